//! Authentication of messages of the decode queue: a MAC over each, under a key that archives and
//! workers share.
//!
//! ```text
//! | version | message (postcard) | BLAKE3 keyed by the queue's key (32) |
//!                                  of the subject's length (8, LE), the subject, all before it
//! ```
//!
//! The MAC covers the subject, so that an answer to one archive is not valid for another. Jobs are
//! authenticated too: otherwise a worker would authenticate whatever it was asked. Without a key
//! the MAC only proves that the bytes are intact.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// First byte of every message: other versions are rejected.
const VERSION: u8 = 1;
const MAC_BYTES: usize = blake3::OUT_LEN;
/// Context of the key derivation; a change of it is a change of the protocol.
const CONTEXT: &str = "fulgurite decode queue v2";

/// The key of a decode queue.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueueKey([u8; blake3::KEY_LEN]);

impl QueueKey {
    /// Derives the key from a secret text.
    pub(crate) fn new(secret: &str) -> Self {
        Self(blake3::derive_key(CONTEXT, secret.as_bytes()))
    }

    fn mac(&self, subject: &str, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(subject.len() as u64).to_le_bytes());
        hasher.update(subject.as_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }

    /// Seals a message that goes to `subject`.
    pub(crate) fn seal<T: Serialize>(&self, subject: &str, message: &T) -> Vec<u8> {
        let bytes = postcard::to_extend(message, vec![VERSION]);
        let mut bytes = bytes.expect("postcard can serialize every message");
        let mac = self.mac(subject, &bytes);
        bytes.extend_from_slice(mac.as_bytes());
        bytes
    }

    /// Opens a message that came by `subject`.
    ///
    /// # Errors
    /// Why the bytes are not a valid message.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        subject: &str,
        bytes: &[u8],
    ) -> Result<T, MessageError> {
        if bytes.first().is_some_and(|version| *version != VERSION) {
            return Err(MessageError::OtherVersion);
        }
        let Some((signed, mac)) = bytes.split_last_chunk::<MAC_BYTES>() else {
            return Err(MessageError::Forged);
        };
        // The comparison takes constant time.
        if self.mac(subject, signed) != blake3::Hash::from_bytes(*mac) {
            return Err(MessageError::Forged);
        }
        let rest = signed.split_first().map_or(&[][..], |(_, rest)| rest);
        match postcard::take_from_bytes(rest) {
            Ok((message, [])) => Ok(message),
            Ok(_) | Err(_) => Err(MessageError::Malformed),
        }
    }
}

impl std::fmt::Debug for QueueKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueKey(..)")
    }
}

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageError {
    /// From another version of the program.
    OtherVersion,
    /// Not sealed with the queue's key, not complete, or for another subject.
    Forged,
    /// Sealed with the key, and still not a message.
    Malformed,
}

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OtherVersion => "it is from another version of the program",
            Self::Forged => "its MAC does not match the queue's key",
            Self::Malformed => "it cannot be read",
        })
    }
}
