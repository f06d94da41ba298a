//! The metadata of an object that an index holds.

use std::time::{Duration, SystemTime};

use object_store::path::Path;
use object_store::{ObjectMeta, PutResult};

/// An object's metadata, without its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Object key.
    pub key: String,
    /// Sequence number of its put; the entity tag is derived from it.
    pub sequence: u64,
    /// Time of the put, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Size in bytes.
    pub length: u64,
}

impl Entry {
    /// Converts to `object_store`'s metadata.
    ///
    /// # Errors
    /// When the key is not a valid path.
    pub fn meta(&self) -> object_store::Result<ObjectMeta> {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(self.modified_ms);
        Ok(ObjectMeta {
            location: Path::parse(&self.key)?,
            last_modified: modified.into(),
            size: self.length,
            e_tag: Some(tag(self.sequence)),
            version: None,
        })
    }
}

fn tag(sequence: u64) -> String {
    format!("\"{sequence}\"")
}

/// Builds the result of the put with this sequence number.
#[must_use]
pub fn put_result(sequence: u64) -> PutResult {
    PutResult { e_tag: Some(tag(sequence)), version: None, extensions: Default::default() }
}
