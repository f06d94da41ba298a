//! What an index knows of an object without asking for its bytes.

use std::time::{Duration, SystemTime};

use object_store::path::Path;
use object_store::{ObjectMeta, PutResult};

/// An object, but for its bytes and attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its number among all puts; its entity tag is made of it.
    pub sequence: u64,
    /// When it was put, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Its bytes.
    pub length: u64,
}

impl Entry {
    /// The same in `object_store`'s words.
    ///
    /// # Errors
    /// When the key is no path.
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

/// What a put of a sequence is answered.
#[must_use]
pub fn put_result(sequence: u64) -> PutResult {
    PutResult { e_tag: Some(tag(sequence)), version: None, extensions: Default::default() }
}
