//! The sealed entry: everything the catalog knows of a body's object, encrypted with the body's
//! own key, so that a catalog can be rebuilt from platters, logs and keys, and from platters
//! and logs alone nothing can be learned.

use fulgurite_catalog::ReadView;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::body::{ENTRY_OVERHEAD_BYTES, SecretKey, open_entry, seal_entry};
use crate::digest::{Checksum, ChecksumAlgorithm};
use crate::log::SealedEntry;
use crate::log::record::EntryForm;
use crate::object::{ObjectMeta, StorageClass};
use crate::rows::{self, BodyRow, ObjectRow};
use crate::{ArchiveError, Result};

/// Entries outlive catalogs, so their version is not that of rows.
const ENTRY_VERSION: u8 = 1;
/// First byte of a part's entry, so that one is never taken for an object's.
const PART_ENTRY_VERSION: u8 = 0x81;

/// What a platter's file list says, under encryption, of each body on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) bucket: String,
    pub(crate) bucket_created: UnixTime,
    pub(crate) key: String,
    pub(crate) object_id: ObjectId,
    pub(crate) index: u32,
    pub(crate) body_count: u32,
    pub(crate) body_bytes: u64,
    pub(crate) body_digest: u64,
    pub(crate) bytes: u64,
    pub(crate) etag: String,
    pub(crate) modified: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) part_count: Option<u32>,
    pub(crate) upload_id: Option<UploadId>,
}

impl Entry {
    pub(crate) fn new(
        view: &dyn ReadView,
        bucket: &str,
        key: &str,
        object: &ObjectRow,
        index: u32,
        body: &BodyRow,
    ) -> Result<Self> {
        let found: Option<rows::BucketRow> =
            rows::get(view, rows::BUCKETS, &rows::bucket_key(bucket))?;
        let created = found.map_or(object.modified, |row| row.created);
        Ok(Self::of(bucket, created, key, object, (index, body.bytes, body.digest)))
    }

    /// The entry of one of an object's bodies: its index, plain bytes and digest.
    pub(crate) fn of(
        bucket: &str,
        bucket_created: UnixTime,
        key: &str,
        object: &ObjectRow,
        (index, body_bytes, body_digest): (u32, u64, u64),
    ) -> Self {
        Self {
            bucket: bucket.to_owned(),
            bucket_created,
            key: key.to_owned(),
            object_id: object.object_id,
            index,
            body_count: object.body_count,
            body_bytes,
            body_digest,
            bytes: object.bytes,
            etag: object.etag.clone(),
            modified: object.modified,
            class: object.class,
            meta: object.meta.clone(),
            checksum: object.checksum.clone(),
            part_count: object.part_count,
            upload_id: object.upload_id,
        }
    }

    fn encode(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![ENTRY_VERSION]).map_err(|error| ArchiveError::Internal {
            what: format!("an entry does not encode: {error}"),
        })
    }

    /// Length of the sealed entry.
    pub(crate) fn sealed_bytes(&self) -> Result<usize> {
        Ok(self.encode()?.len() + ENTRY_OVERHEAD_BYTES)
    }

    pub(crate) fn seal(&self, key: &SecretKey, body: ObjectId) -> Result<Vec<u8>> {
        seal_entry(key, body, &self.encode()?)
    }

    /// The entry of `body`, if `key` opens it.
    pub(crate) fn open(key: &SecretKey, body: ObjectId, sealed: &[u8]) -> Result<Self> {
        open_as(ENTRY_VERSION, key, body, sealed)
    }

    /// The entry as a log has it.
    pub(crate) fn record(
        &self,
        key: &SecretKey,
        body: ObjectId,
        written: UnixTime,
    ) -> Result<SealedEntry> {
        Ok(SealedEntry { form: EntryForm::Object, written, sealed: self.seal(key, body)? })
    }
}

/// What a log says, under encryption, of a part of an upload that is not complete: all that its
/// upload and its own row say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartEntry {
    pub(crate) bucket: String,
    pub(crate) bucket_created: UnixTime,
    pub(crate) key: String,
    pub(crate) upload_id: UploadId,
    pub(crate) initiated: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) algorithm: Option<ChecksumAlgorithm>,
    pub(crate) full_object: bool,
    pub(crate) number: u32,
    pub(crate) body_bytes: u64,
    pub(crate) body_digest: u64,
    pub(crate) md5: [u8; 16],
    pub(crate) modified: UnixTime,
    pub(crate) checksum: Option<Checksum>,
}

impl PartEntry {
    /// The entry as a log has it.
    pub(crate) fn record(
        &self,
        key: &SecretKey,
        body: ObjectId,
        written: UnixTime,
    ) -> Result<SealedEntry> {
        let plain = postcard::to_extend(self, vec![PART_ENTRY_VERSION]).map_err(|error| {
            ArchiveError::Internal { what: format!("an entry does not encode: {error}") }
        })?;
        Ok(SealedEntry { form: EntryForm::Part, written, sealed: seal_entry(key, body, &plain)? })
    }

    /// The entry of the part `body`, if `key` opens it.
    pub(crate) fn open(key: &SecretKey, body: ObjectId, sealed: &[u8]) -> Result<Self> {
        open_as(PART_ENTRY_VERSION, key, body, sealed)
    }
}

fn open_as<T: DeserializeOwned>(
    wanted: u8,
    key: &SecretKey,
    body: ObjectId,
    sealed: &[u8],
) -> Result<T> {
    let plain = open_entry(key, body, sealed).ok_or_else(|| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body} does not open"),
    })?;
    let corrupt = |why: String| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body}: {why}"),
    };
    match plain.split_first() {
        Some((&version, entry)) if version == wanted => {
            postcard::from_bytes(entry).map_err(|error| corrupt(error.to_string()))
        }
        Some((version, _)) => Err(corrupt(format!("its version {version} is not known"))),
        None => Err(corrupt("it is empty".to_owned())),
    }
}

#[cfg(test)]
mod tests;
