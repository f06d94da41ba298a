//! What tells messages of the decode queue from forged ones: a code over each, under a key that
//! archives and workers share.
//!
//! ```text
//! | version | message (postcard) | BLAKE3 keyed by the queue's key (32) |
//!                                  of the subject's length (8, LE), the subject, all before it
//! ```
//!
//! The subject is in it, so that an answer to one archive is none to another, and jobs are
//! authenticated too: else a worker would put its code under whatever it was asked. Without a key
//! the code proves nothing but that the bytes are whole.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// First byte of every message: what is of another version is refused.
const VERSION: u8 = 2;
const MAC_BYTES: usize = blake3::OUT_LEN;
/// What the key is derived for; a change of it is a change of the protocol.
const CONTEXT: &str = "fulgurite decode queue v2";

/// The key of a decode queue.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueueKey([u8; blake3::KEY_LEN]);

impl QueueKey {
    /// The key that follows from a secret text.
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

    /// The bytes of a message that goes to `subject`.
    pub(crate) fn seal<T: Serialize>(&self, subject: &str, message: &T) -> Vec<u8> {
        let bytes = postcard::to_extend(message, vec![VERSION]);
        let mut bytes = bytes.expect("a message has nothing that postcard cannot write");
        let mac = self.mac(subject, &bytes);
        bytes.extend_from_slice(mac.as_bytes());
        bytes
    }

    /// The message in these bytes, which came by `subject`.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        subject: &str,
        bytes: &[u8],
    ) -> Result<T, NoMessage> {
        if bytes.first().is_some_and(|version| *version != VERSION) {
            return Err(NoMessage::OtherVersion);
        }
        let Some((signed, mac)) = bytes.split_last_chunk::<MAC_BYTES>() else {
            return Err(NoMessage::Forged);
        };
        // The comparison takes the same time whatever differs.
        if self.mac(subject, signed) != blake3::Hash::from_bytes(*mac) {
            return Err(NoMessage::Forged);
        }
        let rest = signed.split_first().map_or(&[][..], |(_, rest)| rest);
        match postcard::take_from_bytes(rest) {
            Ok((message, [])) => Ok(message),
            Ok(_) | Err(_) => Err(NoMessage::Malformed),
        }
    }
}

impl std::fmt::Debug for QueueKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueKey(..)")
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMessage {
    /// Of another version of the program.
    OtherVersion,
    /// Not of somebody with the queue's key, or not whole, or of another subject.
    Forged,
    /// Of somebody with the key, and yet no message.
    Malformed,
}

impl std::fmt::Display for NoMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OtherVersion => "it is of another version of the program",
            Self::Forged => "it does not carry the code of the queue's key",
            Self::Malformed => "it cannot be read",
        })
    }
}
