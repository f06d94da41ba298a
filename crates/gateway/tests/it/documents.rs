//! XML documents: every spelling that XML allows has the same effect, and everything else has none.

use crate::harness::{TestResponse, TestServer, sha256_base64};

/// Not integers in S3, though some parsers find one in each.
const NO_INTEGERS: [&str; 15] = [
    "1.5",
    "1x",
    "1e1",
    "+1",
    "01",
    "",
    " ",
    " 1",
    "1 ",
    "1<!-- 5 -->x",
    "-0",
    "0x1",
    "2147483648",
    "-2147483649",
    "9223372036854775808",
];

/// Spellings of a text that are equivalent.
fn equivalent_texts(text: &str) -> [String; 8] {
    let (first, rest) = text.split_at(1);
    let code = u32::from(first.as_bytes()[0]);
    [
        text.to_owned(),
        format!("<![CDATA[{text}]]>"),
        format!("{first}<![CDATA[{rest}]]>"),
        format!("<![CDATA[{first}]]>{rest}"),
        format!("&#{code};{rest}"),
        format!("&#x{code:X};<![CDATA[{rest}]]>"),
        format!("{first}<!-- not this -->{rest}"),
        format!("<![CDATA[]]>{text}<!---->"),
    ]
}

/// Spellings of a text that XML does not allow, or that no S3 document uses.
fn invalid_texts(text: &str) -> [Vec<u8>; 11] {
    let (first, rest) = text.split_at(1);
    [
        format!("{first}<?x y?>{rest}").into_bytes(),
        format!("{text}&unknown;").into_bytes(),
        format!("{text}&#0;").into_bytes(),
        format!("{text}&#+49;").into_bytes(),
        format!("{text}&amp").into_bytes(),
        format!("{text}]]>").into_bytes(),
        format!("{text}<!-- -- -->").into_bytes(),
        format!("{text}\u{1}").into_bytes(),
        format!("{text}\u{ffff}").into_bytes(),
        format!("{first}<b>{rest}</b>").into_bytes(),
        [text.as_bytes(), b"\xff"].concat(),
    ]
}

/// Damaged forms of a whole document; `leaf` is one of its elements.
fn damaged_documents(document: &str, leaf: &str) -> Vec<Vec<u8>> {
    let root = document[1..].split('>').next().unwrap();
    let with = |attributes: &str| document.replacen(root, &format!("{root}{attributes}"), 1);
    let prefixed = document.replacen(root, &format!("s3:{root}"), 1);
    let prefixed = prefixed.replace(&format!("</{root}>"), &format!("</s3:{root}>"));
    let texts = [
        document.replacen(leaf, &format!("{leaf}{leaf}"), 1),
        document.replacen(leaf, &format!("{leaf}<Unknown>1</Unknown>"), 1),
        document.replacen(leaf, &format!("{leaf}<Unknown/>"), 1),
        document.replacen(leaf, &format!("{leaf}text"), 1),
        document.replacen(leaf, &format!("{leaf}<![CDATA[text]]>"), 1),
        document.replacen(leaf, &format!("{leaf}<?x y?>"), 1),
        document.replacen(leaf, leaf.trim_end_matches('>'), 1),
        document.replace(root, "Other"),
        format!("{document}x"),
        format!("{document}{document}"),
        format!("{document}<![CDATA[]]>"),
        format!("x{document}"),
        format!(" <?xml version=\"1.0\"?>{document}"),
        format!("<?xml version=\"1.1\"?>{document}"),
        format!("<?xml version=\"1.0\" encoding=\"UTF-16\"?>{document}"),
        format!("<?x y?>{document}"),
        format!("<!DOCTYPE {root}>{document}"),
        format!("<!DOCTYPE {root} [<!ENTITY e \"1\">]>{document}"),
        document[..document.len() - 1].to_owned(),
        document.strip_suffix(&format!("</{root}>")).unwrap().to_owned(),
        with(" xmlns=\"http://example.org/\""),
        with(" xmlns=\"\" xmlns=\"\""),
        with(" a=\"b\""),
        with(" xmlns=http://s3.amazonaws.com/doc/2006-03-01/"),
        prefixed,
        " ".to_owned(),
    ];
    let utf16 = document.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let others = [utf16, [document.as_bytes(), b"\xff"].concat()];
    texts.into_iter().map(String::into_bytes).chain(others).collect()
}

/// Spellings of a whole document that are equivalent.
fn equivalent_documents(document: &str) -> [String; 6] {
    let root = document[1..].split('>').next().unwrap();
    let with = |attributes: &str| document.replacen(root, &format!("{root}{attributes}"), 1);
    [
        format!("<?xml version=\"1.0\" encoding='utf-8' standalone=\"yes\"?>\r\n{document}\n"),
        format!("\u{feff}<!-- a -->{document}<!-- b -->"),
        document.replace('<', "\r\n\t <").replace("\r\n\t </", "</").trim_start().to_owned(),
        document.replace('>', " >").replace("/ >", " />"),
        with(" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""),
        with(
            " xmlns = 'http://s3.amazonaws.com/doc/2006-3-01' xmlns:xsi=\
              \"http://www.w3.org/2001/XMLSchema-instance\"",
        ),
    ]
}

fn assert_malformed(response: &TestResponse, shown: &[u8]) {
    let shown = String::from_utf8_lossy(shown);
    assert_eq!(response.error(), (400, "MalformedXML".to_owned()), "{shown:?}");
}

async fn post(server: &TestServer, path: &str, document: &[u8]) -> TestResponse {
    let request = server.request("POST", path).body(document);
    request.header("x-amz-checksum-sha256", &sha256_base64(document)).send().await
}

fn delete(key: &[u8]) -> Vec<u8> {
    [b"<Delete><Object><Key>", key, b"</Key></Object></Delete>"].concat()
}

/// A sloppy parser of `ab` would delete another one of these keys.
const KEYS: [&str; 4] = ["/vault/a", "/vault/b", "/vault/ab", "/vault/a%20b"];

async fn remaining_keys(server: &TestServer) -> Vec<&'static str> {
    let mut remaining_keys = Vec::new();
    for key in KEYS {
        if server.has(key).await {
            remaining_keys.push(key);
        }
    }
    remaining_keys
}

#[tokio::test]
async fn equivalent_xml_deletes_the_named_key() {
    let server = TestServer::start().await;
    for form in equivalent_texts("ab") {
        for key in KEYS {
            server.put(key, b"x").await;
        }
        let response = post(&server, "/vault?delete", &delete(form.as_bytes())).await;
        assert_eq!(response.status, 200, "{form}: {response:?}");
        assert_eq!(response.element("Key").as_deref(), Some("ab"), "{form}");
        assert_eq!(remaining_keys(&server).await, [KEYS[0], KEYS[1], KEYS[3]], "{form}");
    }
    let document = String::from_utf8(delete(b"ab")).unwrap();
    for form in equivalent_documents(&document) {
        server.put("/vault/ab", b"x").await;
        let response = post(&server, "/vault?delete", form.as_bytes()).await;
        assert_eq!(response.status, 200, "{form}: {response:?}");
        assert_eq!(remaining_keys(&server).await, [KEYS[0], KEYS[1], KEYS[3]], "{form}");
    }
}

#[tokio::test]
async fn whitespace_in_keys_is_preserved() {
    let server = TestServer::start().await;
    for (form, path) in [
        (" a ", "/vault/%20a%20"),
        ("a\r\nb\rc", "/vault/a%0Ab%0Ac"),
        ("a&#13;&#10;b", "/vault/a%0D%0Ab"),
        ("<![CDATA[&amp;<\">]]>", "/vault/%26amp%3B%3C%22%3E"),
        ("\u{e4}&#228;", "/vault/%C3%A4%C3%A4"),
    ] {
        server.put(path, b"x").await;
        let response = post(&server, "/vault?delete", &delete(form.as_bytes())).await;
        assert_eq!(response.status, 200, "{form:?}: {response:?}");
        assert!(!server.has(path).await, "{form:?}");
    }
}

#[tokio::test]
async fn malformed_documents_delete_nothing() {
    let server = TestServer::start().await;
    for key in KEYS {
        server.put(key, b"x").await;
    }
    let document = String::from_utf8(delete(b"ab")).unwrap();
    let mut documents = damaged_documents(&document, "<Key>ab</Key>");
    documents.extend(invalid_texts("ab").map(|form| delete(&form)));
    for quiet in ["1", "yes", "", " true", "true ", "tru"] {
        let quiet = format!("</Object><Quiet>{quiet}</Quiet>");
        documents.push(document.replace("</Object>", &quiet).into_bytes());
    }
    for size in NO_INTEGERS.into_iter().filter(|text| !text.contains("214748364")) {
        let size = format!("<Size>{size}</Size></Object>");
        documents.push(document.replace("</Object>", &size).into_bytes());
    }
    for date in ["", "2015-10-21T07:28:00Z", "Wed, 21 Oct 2015 07:28:00 GMTx"] {
        let date = format!("<LastModifiedTime>{date}</LastModifiedTime></Object>");
        documents.push(document.replace("</Object>", &date).into_bytes());
    }
    documents.push(b"<Delete/>".to_vec());
    documents.push(b"<Delete><Object/></Delete>".to_vec());
    documents.push(b"<Delete><Object><VersionId>null</VersionId></Object></Delete>".to_vec());
    for document in documents {
        assert_malformed(&post(&server, "/vault?delete", &document).await, &document);
    }
    assert_eq!(remaining_keys(&server).await, KEYS);
}

#[tokio::test]
async fn restore_days_are_parsed_strictly() {
    let server = TestServer::start().await;
    let restore =
        |days: &[u8]| [b"<RestoreRequest><Days>", days, b"</Days></RestoreRequest>"].concat();
    let put_cold = async |key: &str| {
        let request = server.request("PUT", key).header("x-amz-storage-class", "DEEP_ARCHIVE");
        assert_eq!(request.body(b"x").send().await.status, 200);
    };
    put_cold("/vault/cold").await;
    let document = String::from_utf8(restore(b"1")).unwrap();
    let mut documents = damaged_documents(&document, "<Days>1</Days>");
    documents.extend(invalid_texts("1").map(|form| restore(&form)));
    documents.extend(NO_INTEGERS.map(|days| restore(days.as_bytes())));
    for document in documents {
        assert_malformed(&post(&server, "/vault/cold?restore", &document).await, &document);
        let head = server.request("HEAD", "/vault/cold").send().await;
        assert_eq!(head.header("x-amz-restore"), None);
    }
    let select = "<RestoreRequest><Type>SELECT</Type></RestoreRequest>";
    let response = post(&server, "/vault/cold?restore", select.as_bytes()).await;
    assert_eq!(response.error(), (501, "NotImplemented".to_owned()));
    let forms = equivalent_texts("1").map(|form| restore(form.as_bytes())).into_iter();
    let forms = forms.chain(equivalent_documents(&document).map(String::into_bytes));
    for (index, form) in forms.enumerate() {
        let key = format!("/vault/cold{index}");
        put_cold(&key).await;
        let response = post(&server, &format!("{key}?restore"), &form).await;
        assert_eq!(response.status, 202, "{}: {response:?}", String::from_utf8_lossy(&form));
    }
}

#[tokio::test]
async fn complete_upload_document_is_parsed_strictly() {
    let server = TestServer::start().await;
    let begun = server.request("POST", "/vault/m?uploads").send().await;
    let id = begun.element("UploadId").unwrap();
    let put = server.request("PUT", &format!("/vault/m?partNumber=12&uploadId={id}")).body(b"part");
    let etag = put.send().await.header("etag").unwrap().to_owned();
    let document = |number: &[u8], etag: &[u8]| {
        let start = b"<CompleteMultipartUpload><Part><PartNumber>".as_slice();
        let end = b"</ETag></Part></CompleteMultipartUpload>";
        [start, number, b"</PartNumber><ETag>", etag, end].concat()
    };
    let complete = async |document: &[u8]| {
        let path = format!("/vault/m?uploadId={id}");
        server.request("POST", &path).body(document).send().await
    };
    let right = String::from_utf8(document(b"12", etag.as_bytes())).unwrap();
    let mut documents = damaged_documents(&right, "<PartNumber>12</PartNumber>");
    documents.extend(invalid_texts("12").map(|form| document(&form, etag.as_bytes())));
    documents.extend(invalid_texts(&etag).map(|form| document(b"12", &form)));
    documents.extend(
        NO_INTEGERS.map(|text| document(text.replace('1', "12").as_bytes(), etag.as_bytes())),
    );
    documents.push(right.replace(&format!("<ETag>{etag}</ETag>"), "").into_bytes());
    for document in documents {
        assert_malformed(&complete(&document).await, &document);
    }
    assert!(!server.has("/vault/m").await);
    let numbers =
        equivalent_texts("12").map(|form| document(form.as_bytes(), etag.as_bytes())).into_iter();
    let etags = equivalent_texts(&etag).map(|form| document(b"12", form.as_bytes()));
    for form in numbers.chain(etags).chain(equivalent_documents(&right).map(String::into_bytes)) {
        let response = complete(&form).await;
        assert_eq!(response.status, 200, "{}: {response:?}", String::from_utf8_lossy(&form));
    }
    assert_eq!(server.request("GET", "/vault/m").send().await.body, b"part");
}

#[tokio::test]
async fn create_bucket_document_is_parsed_strictly() {
    let server = TestServer::start().await;
    let document = |location: &[u8]| {
        let start = b"<CreateBucketConfiguration><LocationConstraint>".as_slice();
        [start, location, b"</LocationConstraint></CreateBucketConfiguration>"].concat()
    };
    let right = String::from_utf8(document(b"EU")).unwrap();
    let mut documents = damaged_documents(&right, "<LocationConstraint>EU</LocationConstraint>");
    documents.extend(invalid_texts("EU").map(|form| document(&form)));
    for document in documents {
        assert_malformed(&server.request("PUT", "/other").body(&document).send().await, &document);
    }
    let directory = "<CreateBucketConfiguration><Bucket><Type>Directory</Type></Bucket>\
                     </CreateBucketConfiguration>";
    let response = server.request("PUT", "/other").body(directory.as_bytes()).send().await;
    assert_eq!(response.error(), (501, "NotImplemented".to_owned()));
    assert_eq!(server.request("HEAD", "/other").send().await.status, 404);
    let forms = equivalent_texts("EU").map(|form| document(form.as_bytes())).into_iter();
    let forms = forms.chain(equivalent_documents(&right).map(String::into_bytes));
    for (index, form) in forms.chain([Vec::new()]).enumerate() {
        let path = format!("/other{index}/?x-id=CreateBucket");
        let response = server.request("PUT", &path).body(&form).send().await;
        assert_eq!(response.status, 200, "{}: {response:?}", String::from_utf8_lossy(&form));
    }
    // The host makes it a bucket; a key that looks like a bucket is not one.
    let request = server.request("PUT", "/").header("host", "hosted.localhost");
    assert_eq!(request.body(right.as_bytes()).send().await.status, 200);
    let request = server.request("PUT", "/key").header("host", "hosted.localhost");
    assert_eq!(request.body(format!("{right} ").as_bytes()).send().await.status, 200);
    let stored = server.request("GET", "/hosted/key").send().await;
    assert_eq!(stored.body, format!("{right} ").as_bytes(), "objects are not rewritten");
}

/// s3s would parse these before it answers that they are not implemented.
#[tokio::test]
async fn unsupported_documents_are_not_parsed() {
    let server = TestServer::start().await;
    for path in [
        "/vault?acl",
        "/vault?cors",
        "/vault?lifecycle",
        "/vault?versioning",
        "/vault?policy",
        "/vault?tagging",
        "/vault?object-lock",
        "/vault?unknown",
        "/vault/a?acl",
        "/vault/a?tagging",
        "/vault/a?retention",
        "/vault/a?legal-hold",
    ] {
        let response = server.request("PUT", path).body(b"<not <xml").send().await;
        assert_eq!(response.error(), (501, "NotImplemented".to_owned()), "{path}");
    }
    for path in
        ["/vault/a?select&select-type=2", "/vault?metadataTable", "/vault/a?restore&uploads"]
    {
        let response =
            post(&server, path, b"<RestoreRequest><Days>1</Days></RestoreRequest>").await;
        assert_eq!(response.error(), (501, "NotImplemented".to_owned()), "{path}");
    }
    assert!(!server.has("/vault/a").await);
}
