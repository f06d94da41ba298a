//! Signature version 4, implemented again from its description, so that it does not share a bug
//! with the server's.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use ring::{digest, hmac};

pub(crate) const ACCESS_KEY: &str = "TESTACCESSKEY";
pub(crate) const SECRET_KEY: &str = "test/secret+key";

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

/// The state that a request and its chunks share.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) time: Timestamp,
    pub(crate) region: String,
}

impl Signer {
    pub(crate) fn new() -> Self {
        Self {
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            time: Timestamp::now(),
            region: "us-east-1".to_owned(),
        }
    }

    pub(crate) fn date_time(&self) -> String {
        self.time.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn scope(&self) -> String {
        format!("{}/{}/s3/aws4_request", &self.date_time()[..8], self.region)
    }

    pub(crate) fn credential(&self) -> String {
        format!("{}/{}", self.access_key, self.scope())
    }

    fn sign(&self, text: &str) -> String {
        let day = mac(format!("AWS4{}", self.secret_key).as_bytes(), &self.date_time()[..8]);
        let key = mac(&mac(&mac(&day, &self.region), "s3"), "aws4_request");
        hex::encode(mac(&key, text))
    }

    /// Returns the signature of a request. Names of `headers` are in lower case; path and query are
    /// encoded, the query sorted.
    pub(crate) fn request(
        &self,
        (method, path, query): (&str, &str, &str),
        headers: &BTreeMap<String, String>,
        payload: &str,
    ) -> String {
        let mut canonical = format!("{method}\n{path}\n{query}\n");
        for (name, value) in headers {
            let _ = writeln!(canonical, "{name}:{}", value.trim());
        }
        let names: Vec<&str> = headers.keys().map(String::as_str).collect();
        let _ = write!(canonical, "\n{}\n{payload}", names.join(";"));
        self.sign(&format!(
            "AWS4-HMAC-SHA256\n{}\n{}\n{}",
            self.date_time(),
            self.scope(),
            sha256_hex(canonical.as_bytes())
        ))
    }

    /// Returns the signature of one chunk; `previous` is that of the chunk before.
    pub(crate) fn chunk(&self, previous: &str, data: &[u8]) -> String {
        self.sign(&format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{previous}\n{}\n{}",
            self.date_time(),
            self.scope(),
            sha256_hex(b""),
            sha256_hex(data)
        ))
    }

    /// Returns the signature of the trailers.
    pub(crate) fn trailer(&self, previous: &str, lines: &str) -> String {
        self.sign(&format!(
            "AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{previous}\n{}",
            self.date_time(),
            self.scope(),
            sha256_hex(lines.as_bytes())
        ))
    }
}
