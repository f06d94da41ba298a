//! Chunk signatures: each covers the one before it, so that no chunk can be omitted, repeated or
//! reordered. A chunk's digest is computed as its bytes stream; nothing is held back.

use http::HeaderMap;
use ring::{digest, hmac};

/// Verifies the chunks of one body in order.
#[derive(Clone)]
pub(crate) struct ChunkSigner {
    key: hmac::Key,
    /// `DATE-TIME \n SCOPE \n`.
    prefix: String,
    /// The signature of the previous chunk, or of the request; hexadecimal.
    previous: String,
    running: digest::Context,
}

impl std::fmt::Debug for ChunkSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkSigner").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl ChunkSigner {
    pub(super) fn new(key: hmac::Key, date_time: &str, scope: &str, request: &[u8; 32]) -> Self {
        Self {
            key,
            prefix: format!("{date_time}\n{scope}\n"),
            previous: hex::encode(request),
            running: digest::Context::new(&digest::SHA256),
        }
    }

    /// Returns a signer with any scope and key, for tests and fuzzing.
    pub(crate) fn from_key(key: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        Self::new(key, "20260101T000000Z", "20260101/any/s3/aws4_request", &[0; 32])
    }

    /// Adds bytes of the chunk.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.running.update(bytes);
    }

    /// Ends the chunk; returns whether `signature` is right.
    pub(crate) fn check_chunk(&mut self, signature: &[u8; 32]) -> bool {
        let fresh = digest::Context::new(&digest::SHA256);
        let digest = std::mem::replace(&mut self.running, fresh).finish();
        let text = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}{}\n{}\n{}",
            self.prefix,
            self.previous,
            hex::encode(digest::digest(&digest::SHA256, b"")),
            hex::encode(digest)
        );
        self.previous = hex::encode(signature);
        hmac::verify(&self.key, text.as_bytes(), signature).is_ok()
    }

    /// Returns whether `signature` is that of the trailer after the last chunk.
    pub(crate) fn check_trailer(&self, trailers: &HeaderMap, signature: &[u8; 32]) -> bool {
        let mut lines: Vec<Vec<u8>> = trailers
            .iter()
            .map(|(name, value)| [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].concat())
            .collect();
        lines.sort_unstable();
        let text = format!(
            "AWS4-HMAC-SHA256-TRAILER\n{}{}\n{}",
            self.prefix,
            self.previous,
            hex::encode(digest::digest(&digest::SHA256, &lines.concat()))
        );
        hmac::verify(&self.key, text.as_bytes(), signature).is_ok()
    }
}
