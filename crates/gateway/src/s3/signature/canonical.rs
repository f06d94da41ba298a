//! The canonical form of a request, which is what its signature signs.
//!
//! ```text
//!   METHOD \n  path \n  query, sorted \n  name:value \n ...  \n  names;of;headers \n  payload
//! ```

use http::HeaderMap;

use crate::percent;

/// A request as its signer saw it.
#[derive(Debug)]
pub(super) struct CanonicalRequest<'a> {
    pub(super) method: &'a str,
    /// As sent on the wire.
    pub(super) path: &'a str,
    /// Decoded, without the signature itself.
    pub(super) pairs: &'a [(String, String)],
    pub(super) headers: &'a HeaderMap,
    /// In lower case and sorted.
    pub(super) signed_headers: &'a [String],
    /// The payload hash, or the constant in its place.
    pub(super) payload: &'a str,
}

impl CanonicalRequest<'_> {
    /// Returns the accepted canonical forms: with the path encoded as S3 does it, and with the path
    /// as sent, for clients that escape fewer characters than they should.
    pub(super) fn forms(&self) -> Vec<Vec<u8>> {
        let encoded = percent::encode_bytes(&percent::decode_bytes(self.path), true);
        let mut forms = vec![self.form(&encoded)];
        if encoded != self.path {
            forms.push(self.form(self.path));
        }
        forms
    }

    fn form(&self, path: &str) -> Vec<u8> {
        let mut form = format!("{}\n{path}\n{}\n", self.method, self.query()).into_bytes();
        let mut names = Vec::new();
        for name in self.signed_headers.iter().filter(|name| *name != "authorization") {
            form.extend_from_slice(name.as_bytes());
            form.push(b':');
            for (index, value) in self.headers.get_all(name.as_str()).iter().enumerate() {
                if index > 0 {
                    form.push(b',');
                }
                push_trimmed(&mut form, value.as_bytes());
            }
            form.push(b'\n');
            names.push(name.as_str());
        }
        form.extend_from_slice(format!("\n{}\n{}", names.join(";"), self.payload).as_bytes());
        form
    }

    fn query(&self) -> String {
        let encode = |text: &str| percent::encode_bytes(text.as_bytes(), false);
        let mut pairs: Vec<(String, String)> =
            self.pairs.iter().map(|(name, value)| (encode(name), encode(value))).collect();
        pairs.sort_unstable();
        let pairs: Vec<String> =
            pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&")
    }
}

/// Appends a value without leading and trailing whitespace, and with each inner run of whitespace
/// as one space.
fn push_trimmed(form: &mut Vec<u8>, value: &[u8]) {
    let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            form.push(b' ');
        }
        form.extend_from_slice(word);
    }
}
