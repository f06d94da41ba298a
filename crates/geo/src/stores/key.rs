//! Keys of rows and blobs, and the tags of rows.
//!
//! A key only has characters that every store takes unchanged, so that its text and its order are
//! the same everywhere. Other characters (in a client's object key) must be encoded.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::stores::limits::{KEY_BYTES_MAX, SEGMENT_BYTES_MAX};

/// The key of a row or a blob: segments of `A-Z a-z 0-9 - . _ =` with slashes between them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// Checks a text and returns it as a key.
    ///
    /// # Errors
    /// [`KeyError`] if it is not a key.
    pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
        let text = text.into();
        match fault(&text) {
            None => Ok(Self(text)),
            Some(reason) => Err(KeyError { key: text.escape_debug().to_string(), reason }),
        }
    }

    /// Returns the key `segment` below this one.
    ///
    /// # Errors
    /// [`KeyError`] if the result is not a key.
    pub fn join(&self, segment: &str) -> Result<Self, KeyError> {
        Self::new(format!("{}/{segment}", self.0))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is below `prefix`.
    #[must_use]
    pub fn is_below(&self, prefix: &Self) -> bool {
        self.0.strip_prefix(&prefix.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

const _: () =
    assert!(KEY_BYTES_MAX == 700 && SEGMENT_BYTES_MAX == 200, "the messages below state these");

/// Returns what is wrong with an invalid key.
fn fault(text: &str) -> Option<&'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._=".contains(&byte);
    if text.len() > KEY_BYTES_MAX {
        return Some("it has more than 700 bytes");
    }
    text.split('/').find_map(|segment| match segment {
        "" => Some("a segment is empty"),
        "." | ".." => Some("a segment is . or .."),
        long if long.len() > SEGMENT_BYTES_MAX => Some("a segment has more than 200 bytes"),
        some if some.bytes().all(is_allowed) => None,
        _ => Some("only A-Z a-z 0-9 - . _ = and / are allowed"),
    })
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

/// An invalid key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid key \"{key}\": {reason}")]
pub struct KeyError {
    key: String,
    reason: &'static str,
}

/// A store's identifier of one image of a row: an `ETag`, a generation, a revision. Opaque.
#[derive(Clone, PartialEq, Eq)]
pub struct Tag(Bytes);

impl Tag {
    /// Creates the tag of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({})", self.0.escape_ascii())
    }
}
