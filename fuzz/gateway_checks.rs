//! What must hold of the gateway's parsers, whatever the bytes: no panic, one meaning, and no other
//! meaning when the bytes come in other pieces.
//!
//! Fuzz targets call these with what the fuzzer finds; `crates/gateway/tests/it/outside.rs` calls
//! them with seeded bytes, on every run of the tests.

use fulgurite_gateway::outside;

/// Headers and queries of signatures, dates, and the operator's header.
pub(crate) fn signatures(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for form in [outside::signature_header(&text), outside::signature_query(&text)] {
        let Some(form) = form else { continue };
        let again = outside::signature_header(&form);
        assert_eq!(again.as_deref(), Some(form.as_str()), "what was understood is understood");
    }
    let _ = outside::date(&text);
    let _ = outside::operator_header(&text);
}

/// The framing of `aws-chunked` bodies.
pub(crate) fn chunks(input: &[u8]) {
    let (piece, body) = input.split_first().unwrap_or((&0, &[]));
    let piece = usize::from(*piece) + 1;
    for key in [None, Some(b"key".as_slice())] {
        let whole = outside::chunked(body, body.len().max(1), key);
        assert_eq!(outside::chunked(body, piece, key), whole, "in pieces of {piece}");
        if let Ok(data) = whole {
            assert!(data.len() <= body.len(), "framing only ever takes room");
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
    assert_eq!(outside::chunked(&framed, piece, None).as_deref(), Ok(body));
    assert!(outside::chunked(&framed, piece, Some(b"key")).is_err(), "nobody signed it");
}

/// The XML documents that are read: a body is at most one of them.
pub(crate) fn documents(input: &[u8]) {
    let read = outside::documents(input).iter().filter(|read| **read).count();
    assert!(read <= 1, "{read} documents at once");
}
