//! Names: `s3://` URLs, and the mapping between keys and paths.
//!
//! A key is arbitrary text; a path is a place on this machine. Only a key whose every segment is a
//! plain file name becomes a path, and that path lies in the requested folder.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::limits::KEY_BYTES_MAX;

/// `s3://bucket/key`, where the key may be a prefix or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    /// Bucket.
    pub bucket: String,
    /// Everything after the bucket's slash.
    pub key: String,
}

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what the fields are")]
#[non_exhaustive]
pub enum NameError {
    #[error("\"{text}\" is not an S3 URL; write s3://bucket/key")]
    NotS3Url { text: String },
    #[error("file name \"{shown}\" is not UTF-8, which keys are")]
    NotUtf8 { shown: String },
    #[error("key of {bytes} bytes for \"{path}\" is longer than {KEY_BYTES_MAX} bytes")]
    KeyTooLong { path: String, bytes: usize },
    #[error("key \"{key}\" is not a path below the folder: {reason}")]
    NotAPath { key: String, reason: &'static str },
}

impl fmt::Display for S3Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.key)
    }
}

impl FromStr for S3Url {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || NameError::NotS3Url { text: text.to_owned() };
        let rest = text.strip_prefix("s3://").ok_or_else(wrong)?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong());
        }
        Ok(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

impl S3Url {
    /// Whether `key` is the named object, or lies in the named folder: `docs` covers `docs` and
    /// `docs/a` but not `docs2`. A URL that ends in `/` covers what is below it.
    pub fn covers(&self, key: &str) -> bool {
        key.strip_prefix(&self.key).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.folder_prefix() == self.key
        })
    }

    /// Returns the prefix that means "everything in this folder".
    pub fn folder_prefix(&self) -> String {
        if self.key.is_empty() || self.key.ends_with('/') {
            self.key.clone()
        } else {
            format!("{}/", self.key)
        }
    }
}

/// Returns the key of the file `relative` below `prefix` (which is empty or ends in `/`).
pub fn key_of(prefix: &str, relative: &Path) -> Result<String, NameError> {
    let mut key = prefix.to_owned();
    for component in relative.components() {
        let Component::Normal(name) = component else { continue };
        let name = utf8(name)?;
        if !key.is_empty() && !key.ends_with('/') {
            key.push('/');
        }
        key.push_str(name);
    }
    check_key_length(&key, relative)?;
    Ok(key)
}

/// Rejects a key that is too long for S3.
pub fn check_key_length(key: &str, path: &Path) -> Result<(), NameError> {
    if key.len() > KEY_BYTES_MAX {
        let path = path.display().to_string();
        return Err(NameError::KeyTooLong { path, bytes: key.len() });
    }
    Ok(())
}

/// Converts a file name to text.
pub fn utf8(name: &OsStr) -> Result<&str, NameError> {
    name.to_str().ok_or_else(|| NameError::NotUtf8 { shown: name.to_string_lossy().into_owned() })
}

/// Returns the relative path of `key` without `prefix`; a trailing `/` (a folder's mark) is
/// dropped.
pub fn path_of(prefix: &str, key: &str) -> Result<PathBuf, NameError> {
    let wrong = |reason| Err(NameError::NotAPath { key: key.to_owned(), reason });
    let Some(rest) = key.strip_prefix(prefix) else {
        return wrong("it does not begin with the prefix");
    };
    let mut path = PathBuf::new();
    if rest.is_empty() && prefix.ends_with('/') {
        return Ok(path);
    }
    for segment in rest.strip_suffix('/').unwrap_or(rest).split('/') {
        match segment {
            "" => return wrong("it has an empty segment"),
            "." | ".." => return wrong("it has a segment . or .."),
            _ if segment.contains('\0') => return wrong("it has a zero byte"),
            _ => path.push(segment),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
