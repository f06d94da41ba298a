//! The sealed entry: everything the catalog knows about a body's object, encrypted with the body's
//! own key. A catalog can be rebuilt from platters, logs and keys; platters and logs alone reveal
//! nothing. Byte layout: docs/formats/entry.md.

use fulgurite_catalog::ReadView;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bodies::cipher::{ENTRY_OVERHEAD_BYTES, SecretKey, open_entry, seal_entry};
use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::bodies::log::SealedEntry;
use crate::bodies::log::record::EntryForm;
use crate::model::labels::Labels;
use crate::model::names::ObjectName;
use crate::model::object::{ObjectMeta, StorageClass};
use crate::rows::{self, BodyRow, ObjectRow};
use crate::{ArchiveError, Result};

/// Entries outlive catalogs, so their version is not that of rows.
const ENTRY_VERSION: u8 = 1;
/// First byte of a part's entry, so that it is never taken for an object's.
const PART_ENTRY_VERSION: u8 = 0x81;

/// The encrypted metadata that a platter's file list holds for each body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: ObjectName,
    pub(crate) bucket_created: UnixTime,
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
    /// As of when this was written; the catalog has their current state.
    pub(crate) labels: Labels,
    /// The part's checksum, if the body is a part.
    pub(crate) part_checksum: Option<Checksum>,
}

impl Entry {
    pub(crate) fn new(
        view: &dyn ReadView,
        name: &ObjectName,
        object: &ObjectRow,
        index: u32,
        body: &BodyRow,
    ) -> Result<Self> {
        let found: Option<rows::BucketRow> =
            rows::get(view, rows::BUCKETS, &rows::bucket_key(name.bucket.as_str()))?;
        let created = found.map_or(object.modified, |row| row.created);
        let checksum = rows::part_checksum(view, object, index)?;
        let of_object =
            Self::build(name.clone(), created, object, (index, body.bytes, body.digest));
        Ok(of_object.with_part(checksum))
    }

    /// Creates the entry of one of an object's bodies, given its index, plaintext bytes and digest.
    pub(crate) fn build(
        name: ObjectName,
        bucket_created: UnixTime,
        object: &ObjectRow,
        (index, body_bytes, body_digest): (u32, u64, u64),
    ) -> Self {
        Self {
            name,
            bucket_created,
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
            labels: object.labels.clone(),
            part_checksum: None,
        }
    }

    /// Returns the entry for a body that is a part with this checksum.
    pub(crate) fn with_part(self, part_checksum: Option<Checksum>) -> Self {
        Self { part_checksum, ..self }
    }

    /// Returns the length of the sealed entry.
    pub(crate) fn sealed_bytes(&self) -> Result<usize> {
        Ok(encode(ENTRY_VERSION, self)?.len() + ENTRY_OVERHEAD_BYTES)
    }

    pub(crate) fn seal(&self, key: &SecretKey, body: ObjectId) -> Result<Vec<u8>> {
        seal_entry(key, body, &encode(ENTRY_VERSION, self)?)
    }

    /// Opens the entry of `body` with `key`.
    pub(crate) fn open(key: &SecretKey, body: ObjectId, sealed: &[u8]) -> Result<Self> {
        let is_newer = |version| (ENTRY_VERSION..PART_ENTRY_VERSION).contains(&version);
        open_as(key, body, sealed, ENTRY_VERSION, is_newer)
    }

    /// Returns the entry as a log record.
    pub(crate) fn record(
        &self,
        key: &SecretKey,
        body: ObjectId,
        written: UnixTime,
    ) -> Result<SealedEntry> {
        Ok(SealedEntry { form: EntryForm::Object, written, sealed: self.seal(key, body)? })
    }
}

/// The encrypted metadata that a log holds for a part of an incomplete upload: all that the rows of
/// the upload and the part contain.
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
    /// Returns the entry as a log record.
    pub(crate) fn record(
        &self,
        key: &SecretKey,
        body: ObjectId,
        written: UnixTime,
    ) -> Result<SealedEntry> {
        let sealed = seal_entry(key, body, &encode(PART_ENTRY_VERSION, self)?)?;
        Ok(SealedEntry { form: EntryForm::Part, written, sealed })
    }

    /// Opens the entry of the part `body` with `key`.
    pub(crate) fn open(key: &SecretKey, body: ObjectId, sealed: &[u8]) -> Result<Self> {
        open_as(key, body, sealed, PART_ENTRY_VERSION, |version| PART_ENTRY_VERSION < version)
    }
}

fn encode<T: Serialize>(version: u8, entry: &T) -> Result<Vec<u8>> {
    postcard::to_extend(entry, vec![version]).map_err(|error| ArchiveError::Internal {
        what: format!("an entry does not encode: {error}"),
    })
}

/// Opens a sealed entry of version `known`. `is_newer` decides whether another version is a newer
/// one of its kind.
fn open_as<T: DeserializeOwned>(
    key: &SecretKey,
    body: ObjectId,
    sealed: &[u8],
    known: u8,
    is_newer: impl FnOnce(u8) -> bool,
) -> Result<T> {
    let plain = open_entry(key, body, sealed).ok_or_else(|| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body} does not open"),
    })?;
    let corrupt = |reason: String| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body}: {reason}"),
    };
    match plain.split_first() {
        None => Err(corrupt("it is empty".to_owned())),
        Some((&version, entry)) if version == known => rows::read(entry).map_err(corrupt),
        Some((&version, _)) if is_newer(version) => Err(ArchiveError::Newer {
            what: format!("the sealed entry of body {body} has version {version}"),
        }),
        Some((version, _)) => {
            Err(corrupt(format!("version {version} is unknown for this kind of entry")))
        }
    }
}

#[cfg(test)]
mod tests;
