//! Validated names: buckets and keys, parsed once at the edge or from a row, and the full name of
//! an object including its version.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::{
    BUCKET_NAME_BYTES_MAX, BUCKET_NAME_BYTES_MIN, KEY_BYTES_MAX, VERSION_ID_BYTES,
};
use crate::{ArchiveError, Result};

/// A valid general-purpose bucket name: 3 to 63 of `a-z 0-9 . -`, S3's rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct BucketName(String);

impl BucketName {
    /// Checks `name`.
    ///
    /// # Errors
    /// `InvalidBucketName`, with the rule that was broken.
    pub fn new(name: &str) -> Result<Self> {
        match broken_rule(name) {
            None => Ok(Self(name.to_owned())),
            Some(rule) => Err(ArchiveError::InvalidBucketName { name: name.to_owned(), rule }),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BucketName {
    type Error = ArchiveError;

    fn try_from(name: String) -> Result<Self> {
        Self::new(&name)
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn broken_rule(name: &str) -> Option<&'static str> {
    let bytes = name.as_bytes();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if !(BUCKET_NAME_BYTES_MIN..=BUCKET_NAME_BYTES_MAX).contains(&bytes.len()) {
        return Some("a name has 3 to 63 characters");
    }
    if !bytes.iter().all(|&b| plain(b) || b == b'.' || b == b'-') {
        return Some("a name has only lower-case letters, digits, dots and hyphens");
    }
    if !bytes.first().copied().is_some_and(plain) || !bytes.last().copied().is_some_and(plain) {
        return Some("a name begins and ends with a letter or digit");
    }
    if name.contains("..") {
        return Some("a name has no two dots side by side");
    }
    let groups: Vec<&str> = name.split('.').collect();
    if groups.len() == 4 && groups.iter().all(|g| g.bytes().all(|b| b.is_ascii_digit())) {
        return Some("a name does not look like an IP address");
    }
    if name.starts_with("xn--") || name.ends_with("-s3alias") || name.ends_with("--ol-s3") {
        return Some("the prefix xn-- and the suffixes -s3alias and --ol-s3 are reserved");
    }
    None
}

/// A valid object key: 1 to 1,024 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ObjectKey(String);

impl ObjectKey {
    /// Checks `key`.
    ///
    /// # Errors
    /// `KeyTooLong` over 1,024 bytes, `InvalidKey` when empty.
    pub fn new(key: &str) -> Result<Self> {
        if key.is_empty() {
            return Err(ArchiveError::InvalidArgument {
                what: "an object key is empty".to_owned(),
            });
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(ArchiveError::KeyTooLong { bytes: key.len(), max: KEY_BYTES_MAX });
        }
        Ok(Self(key.to_owned()))
    }

    /// The key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = ArchiveError;

    fn try_from(key: String) -> Result<Self> {
        Self::new(&key)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The version of an object: one put while its bucket kept versions, or the one without an id,
/// which S3 calls "null".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct VersionId(Option<[u8; VERSION_ID_BYTES]>);

impl VersionId {
    /// The version of objects in a bucket without versioning; a key has at most one.
    pub(crate) const NULL: Self = Self(None);
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("null"),
            Some(id) => f.write_str(&hex::encode(id)),
        }
    }
}

/// The full name of an object. Only the catalog stores it in plaintext.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ObjectName {
    pub(crate) bucket: BucketName,
    pub(crate) key: ObjectKey,
    pub(crate) version: VersionId,
}

impl ObjectName {
    pub(crate) fn new(bucket: &BucketName, key: &ObjectKey, version: VersionId) -> Self {
        Self { bucket: bucket.clone(), key: key.clone(), version }
    }

    /// Parses the name from these strings, as row keys contain them.
    pub(crate) fn parse(bucket: &str, key: &str, version: VersionId) -> Result<Self> {
        Ok(Self { bucket: BucketName::new(bucket)?, key: ObjectKey::new(key)?, version })
    }
}

impl fmt::Display for ObjectName {
    /// Includes the version only if there is one; other objects are known by bucket and key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" in bucket \"{}\"", self.key, self.bucket)?;
        if self.version == VersionId::NULL {
            return Ok(());
        }
        write!(f, ", version {}", self.version)
    }
}

#[cfg(test)]
mod tests;
