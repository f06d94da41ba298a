//! Every response with keys in it is XML that a strict parser accepts, and the keys are those that
//! were put, whatever characters they contain.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use ring::digest;

use crate::harness::{TestResponse, TestServer};
use crate::xml::{References, parse, texts};

/// Characters that some writer or parser of XML, of URLs or of paths treats specially.
const CHARACTERS: [char; 44] = [
    '\u{1}',
    '\u{2}',
    '\u{8}',
    '\t',
    '\n',
    '\u{b}',
    '\u{c}',
    '\r',
    '\r',
    '\u{e}',
    '\u{1b}',
    '\u{1f}',
    ' ',
    '<',
    '>',
    '&',
    '"',
    '\'',
    ']',
    '[',
    '!',
    '#',
    ';',
    '%',
    '+',
    '/',
    '\\',
    '=',
    '?',
    '~',
    'a',
    'b',
    'x',
    '1',
    '\u{7f}',
    '\u{85}',
    '\u{a0}',
    '\u{e9}',
    '\u{2028}',
    '\u{fb01}',
    '\u{feff}',
    '\u{fffd}',
    '\u{ffff}',
    '\u{1f600}',
];

fn key() -> impl Strategy<Value = String> {
    // Keys begin with a letter: keys of dots alone are another matter.
    vec(select(CHARACTERS.to_vec()), 1..10).prop_map(|all| format!("k{}", String::from_iter(all)))
}

/// Percent-encodes; slashes stay in paths.
fn encode(text: &str, keeps_slashes: bool) -> String {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keeps_slashes && byte == b'/')
    };
    let encoded = text.bytes().map(|byte| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    encoded.collect()
}

/// Returns whether XML 1.0 has a form for every character.
fn is_readable(key: &str) -> bool {
    !key.chars().any(|c| (c < ' ' && !"\t\n\r".contains(c)) || c == '\u{fffe}' || c == '\u{ffff}')
}

/// Returns the texts of the elements of that name, parsed as strictly as the keys allow.
fn read(response: &TestResponse, name: &str, readable: bool) -> BTreeSet<String> {
    let references = if readable { References::Strict } else { References::All };
    let leaves = parse(&response.body, references)
        .unwrap_or_else(|error| panic!("{error}: {}", response.text()));
    texts(&leaves, name).into_iter().map(str::to_owned).collect()
}

async fn get(server: &TestServer, path: &str) -> TestResponse {
    server.request("GET", path).send().await
}

async fn check_lists(server: &TestServer, bucket: &str, keys: &BTreeSet<String>, readable: bool) {
    for query in ["", "list-type=2&fetch-owner=true", "versions"] {
        let response = get(server, &format!("/{bucket}?{query}")).await;
        assert_eq!(response.status, 200, "{query}: {}", response.text());
        assert_eq!(&read(&response, "Key", readable), keys, "{query}");
        // The response repeats the request's parameters in this encoding too.
        let first = keys.first().unwrap();
        let prefix = encode(first, false);
        let response =
            get(server, &format!("/{bucket}?{query}&prefix={prefix}&delimiter=%0D")).await;
        let prefixes = read(&response, "Prefix", readable);
        assert!(prefixes.contains(first), "{query}: {prefixes:?}");
        let response = get(server, &format!("/{bucket}?{query}&encoding-type=url")).await;
        let encoded = keys.iter().map(|key| encode(key, true)).collect();
        assert_eq!(read(&response, "Key", true), encoded, "{query}: every parser reads these");
    }
}

async fn check_uploads(server: &TestServer, bucket: &str, keys: &BTreeSet<String>) {
    for key in keys {
        let (readable, only) = (is_readable(key), BTreeSet::from([key.clone()]));
        let path = format!("/{bucket}/{}", encode(key, true));
        let begun = server.request("POST", &format!("{path}?uploads")).send().await;
        assert_eq!(read(&begun, "Key", readable), only);
        let id = begun.element("UploadId").unwrap();
        let parts = get(server, &format!("{path}?uploadId={id}")).await;
        assert_eq!(read(&parts, "Key", readable), only);
    }
    let response = get(server, &format!("/{bucket}?uploads")).await;
    assert_eq!(&read(&response, "Key", keys.iter().all(|key| is_readable(key))), keys);
}

async fn check_errors(server: &TestServer, bucket: &str, keys: &BTreeSet<String>) {
    for key in keys {
        let missing = format!("{key}!missing");
        let response = get(server, &format!("/{bucket}/{}", encode(&missing, true))).await;
        assert_eq!(response.error(), (404, "NoSuchKey".to_owned()));
        assert_eq!(read(&response, "Key", is_readable(key)), BTreeSet::from([missing]));
    }
}

/// Checks DeleteObjects, whose body can name only keys that XML can express.
async fn check_deletes(server: &TestServer, bucket: &str, keys: &BTreeSet<String>) {
    let escape = |c: char| match c {
        '<' | '>' | '&' | '"' | '\'' | '\t' | '\n' | '\r' => format!("&#{};", u32::from(c)),
        c => c.to_string(),
    };
    let escape = |key: &str| key.chars().map(escape).collect::<String>();
    let objects: String =
        keys.iter().map(|key| format!("<Object><Key>{}</Key></Object>", escape(key))).collect();
    let body = format!("<Delete>{objects}</Delete>");
    let sha256 = BASE64.encode(digest::digest(&digest::SHA256, body.as_bytes()));
    let request = server.request("POST", &format!("/{bucket}?delete")).body(body.as_bytes());
    let response = request.header("x-amz-checksum-sha256", &sha256).send().await;
    assert_eq!(&read(&response, "Key", true), keys, "{}", response.text());
    assert!(!response.text().contains("<Error>"), "{}", response.text());
}

async fn check(server: &TestServer, bucket: &str, keys: BTreeSet<String>) {
    assert_eq!(server.request("PUT", &format!("/{bucket}")).send().await.status, 200);
    let readable = keys.iter().all(|key| is_readable(key));
    for key in &keys {
        server.put(&format!("/{bucket}/{}", encode(key, true)), b"x").await;
    }
    check_lists(server, bucket, &keys, readable).await;
    check_errors(server, bucket, &keys).await;
    check_uploads(server, bucket, &keys).await;
    let nameable: BTreeSet<String> = keys.into_iter().filter(|key| is_readable(key)).collect();
    if !nameable.is_empty() {
        check_deletes(server, bucket, &nameable).await;
    }
}

#[test]
fn keys_with_any_characters_round_trip() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::start());
    let config =
        ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let buckets = AtomicU32::new(0);
    proptest!(config, |(keys in btree_set(key(), 1..6))| {
        let bucket = buckets.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(check(&server, &format!("bucket-{bucket}"), keys));
    });
}

/// The three line ends are three keys.
#[tokio::test]
async fn line_endings_in_keys_are_distinct() {
    let server = TestServer::start().await;
    let keys = ["a\nb", "a\r\nb", "a\rb"].map(str::to_owned);
    check(&server, "lines", BTreeSet::from(keys)).await;
    server.put("/vault/a%0Db", b"x").await;
    let response = get(&server, "/vault").await;
    assert!(response.text().contains("<Key>a&#13;b</Key>"), "{}", response.text());
}

/// Object bytes are not modified, even when their content type is XML.
#[tokio::test]
async fn xml_objects_are_returned_unmodified() {
    let server = TestServer::start().await;
    let body = b"<Key>\r\x01</Key>";
    let put =
        server.request("PUT", "/vault/a").header("content-type", "application/xml").body(body);
    assert_eq!(put.send().await.status, 200);
    assert_eq!(get(&server, "/vault/a").await.body, body);
}
