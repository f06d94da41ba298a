//! What must hold of the gateway's parsers, whatever the bytes: no panic, one meaning, and no other
//! meaning when the bytes come in other pieces.
//!
//! Fuzz targets call these with what the fuzzer finds; `crates/gateway/tests/it/fuzz_api.rs` calls
//! them with seeded bytes, on every run of the tests.

use fulgurite_gateway::fuzz_api;

/// Headers and queries of signatures, dates, and the operator's header.
pub(crate) fn signatures(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for form in [fuzz_api::signature_header(&text), fuzz_api::signature_query(&text)] {
        let Some(form) = form else { continue };
        let again = fuzz_api::signature_header(&form);
        assert_eq!(again.as_deref(), Some(form.as_str()), "what was understood is understood");
    }
    let _ = fuzz_api::date(&text);
    let _ = fuzz_api::operator_header(&text);
}

/// The framing of `aws-chunked` bodies.
pub(crate) fn chunks(input: &[u8]) {
    let (piece, body) = input.split_first().unwrap_or((&0, &[]));
    let piece = usize::from(*piece) + 1;
    for key in [None, Some(b"key".as_slice())] {
        for trailer in [None, Some("x-amz-checksum-crc32")] {
            let whole = fuzz_api::chunked(body, body.len().max(1), key, trailer);
            let pieces = fuzz_api::chunked(body, piece, key, trailer);
            assert_eq!(pieces, whole, "in pieces of {piece}");
            if let Ok(data) = whole {
                assert!(data.len() <= body.len(), "framing only ever takes room");
            }
        }
    }
    // The same bytes as data: framed, they come back.
    let mut framed = Vec::new();
    for chunk in body.chunks(piece) {
        framed.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(fuzz_api::chunked(&framed, piece, None, None).as_deref(), Ok(body));
    assert!(fuzz_api::chunked(&framed, piece, Some(b"key"), None).is_err(), "nobody signed it");
    let without_trailer = fuzz_api::chunked(&framed, piece, None, Some("x-amz-checksum-crc32"));
    assert!(without_trailer.is_err(), "the trailer did not come");
}

/// The XML documents that are read, against a second parser: both read the same, s3s reads the same
/// from the plain form, and what is refused is no document of S3.
pub(crate) fn documents(input: &[u8]) {
    if input.is_empty() {
        return;
    }
    let found = fuzz_api::documents(input);
    let read = found.iter().flatten().count();
    assert!(read <= 1, "{read} documents at once");
    let text = std::str::from_utf8(input).ok();
    // The second parser knows a declaration by the blank after its name, and by no line end.
    if text.is_some_and(|text| text.contains("<?xml") && !text.contains("<?xml ")) {
        return;
    }
    // It keeps a carriage return that ends a text with references in it; XML 1.0 (2.11) has none.
    let text = text.map(|text| text.replace("\r\n", "\n").replace('\r', "\n"));
    let text = text.as_deref();
    let second = text.and_then(|text| roxmltree::Document::parse(text).ok());
    for (place, plain) in found.iter().enumerate() {
        if let Some(plain) = plain {
            let second = second.as_ref().expect("a second parser reads it");
            check_plain(place, plain, second);
        }
    }
    // Declarations, instructions, attributes and dates are judged by their own tests.
    if let Some((second, text)) = second.as_ref().zip(text)
        && !["<?", "=", "LastModifiedTime"].iter().any(|part| text.contains(part))
    {
        let roots = ["Delete", "CompleteMultipartUpload", "RestoreRequest"];
        for (place, root) in roots.into_iter().chain(["CreateBucketConfiguration"]).enumerate() {
            let element = second.root_element();
            let fits = element.tag_name().name() == root && fits(root, element);
            assert_eq!(found[place].is_some(), fits, "{root} in {text:?}");
        }
    }
}

/// The plain form says what the document said, to two parsers and to s3s.
fn check_plain(place: usize, plain: &[u8], second: &roxmltree::Document<'_>) {
    let again = fuzz_api::documents(plain);
    assert_eq!(again[place].as_deref(), Some(plain), "the plain form of a plain form is itself");
    let text = std::str::from_utf8(plain).expect("it is text");
    assert!(!text.contains("<!") && !text.contains("<?"), "{text}");
    let again = roxmltree::Document::parse(text).expect("it is XML");
    let texts = texts_of(second);
    assert_eq!(texts_of(&again), texts);
    if let Some(mut read) = fuzz_api::read_document(place, plain) {
        let names = ["Key", "VersionId", "Quiet", "PartNumber", "Days", "Tier"];
        let is_read = |name: &str| names.contains(&name) || name == "LocationConstraint";
        let mut expected: Vec<(&str, String)> = texts
            .iter()
            .filter(|(name, _)| is_read(name))
            .map(|(name, text)| match *name {
                "Quiet" => (*name, text.to_ascii_lowercase()),
                _ => (*name, text.clone()),
            })
            .collect();
        read.sort_unstable();
        expected.sort_unstable();
        assert_eq!(read, expected);
    }
}

/// Every element that holds text, in its order.
fn texts_of<'a>(document: &'a roxmltree::Document<'_>) -> Vec<(&'a str, String)> {
    let containers = ["Delete", "Object", "CompleteMultipartUpload", "Part", "RestoreRequest"];
    let others = ["GlacierJobParameters", "CreateBucketConfiguration"];
    let elements = document.descendants().filter(|node| node.is_element());
    elements
        .map(|element| (element.tag_name().name(), text_of(element)))
        .filter(|(name, _)| !containers.contains(name) && !others.contains(name))
        .map(|(name, text)| match name {
            "Quiet" => (name, text.to_ascii_lowercase()),
            _ => (name, text),
        })
        .collect()
}

fn text_of(element: roxmltree::Node<'_, '_>) -> String {
    element.children().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}

/// Whether an element is as S3 describes it. `path` is where it is.
fn fits(path: &str, element: roxmltree::Node<'_, '_>) -> bool {
    let children = || element.children().filter(|node| node.is_element());
    let text = text_of(element);
    let (known, needed): (&[&str], &[&str]) = match path {
        "Delete" => (&["Object", "Quiet"], &[]),
        "Delete/Object" => (&["Key", "VersionId", "ETag", "LastModifiedTime", "Size"], &["Key"]),
        "CompleteMultipartUpload" => (&["Part"], &[]),
        "CompleteMultipartUpload/Part" => (
            &[
                "PartNumber",
                "ETag",
                "ChecksumCRC32",
                "ChecksumCRC32C",
                "ChecksumCRC64NVME",
                "ChecksumSHA1",
                "ChecksumSHA256",
            ],
            &["PartNumber", "ETag"],
        ),
        "RestoreRequest" => (&["Days", "Description", "GlacierJobParameters", "Tier"], &[]),
        "RestoreRequest/GlacierJobParameters" => (&["Tier"], &["Tier"]),
        "CreateBucketConfiguration" => (&["LocationConstraint"], &[]),
        _ => return children().next().is_none() && fits_text(path, &text),
    };
    let count = |name: &str| children().filter(|child| child.tag_name().name() == name).count();
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
        && needed.iter().all(|name| count(name) == 1)
        && children().all(|child| {
            let name = child.tag_name().name();
            let may_repeat = matches!(name, "Object" | "Part");
            known.contains(&name)
                && (may_repeat || count(name) == 1)
                && fits(&format!("{path}/{name}"), child)
        })
}

fn fits_text(path: &str, text: &str) -> bool {
    let is_number = |number: Option<String>| number.as_deref() == Some(text);
    match path.rsplit('/').next() {
        Some("Days" | "PartNumber") => is_number(text.parse().ok().map(|n: i32| n.to_string())),
        Some("Size") => is_number(text.parse().ok().map(|n: i64| n.to_string())),
        Some("Quiet") => matches!(text.to_ascii_lowercase().as_str(), "true" | "false"),
        _ => true,
    }
}
