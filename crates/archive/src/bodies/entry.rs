//! The sealed entry: everything the catalog knows about a body's object, encrypted with the body's
//! own key. A catalog can be rebuilt from platters, logs and keys; platters and logs alone reveal
//! nothing. Byte layout: docs/formats/entry.md.

mod version1;

use fulgurite_catalog::ReadView;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use self::version1::Entry1;
use crate::bodies::cipher::{ENTRY_OVERHEAD_BYTES, SecretKey, open_entry, seal_entry};
use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::bodies::log::SealedEntry;
use crate::bodies::log::record::EntryForm;
use crate::objects::labels::Labels;
use crate::objects::names::ObjectName;
use crate::objects::object::{ObjectMeta, StorageClass};
use crate::rows::{self, BodyRow, ObjectRow};
use crate::{ArchiveError, Result};

/// Entries outlive catalogs, so their version is not that of rows. Entries without a part checksum
/// keep the format that earlier programs read.
const ENTRY_VERSION: u8 = 2;
/// The version with a part's checksum at the end.
const CHECKSUM_VERSION: u8 = 3;
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
    #[serde(skip)]
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

    fn encode(&self) -> Result<Vec<u8>> {
        match &self.part_checksum {
            None => encode(ENTRY_VERSION, self),
            Some(checksum) => append(encode(CHECKSUM_VERSION, self)?, checksum),
        }
    }

    /// Returns the length of the sealed entry.
    pub(crate) fn sealed_bytes(&self) -> Result<usize> {
        Ok(self.encode()?.len() + ENTRY_OVERHEAD_BYTES)
    }

    pub(crate) fn seal(&self, key: &SecretKey, body: ObjectId) -> Result<Vec<u8>> {
        seal_entry(key, body, &self.encode()?)
    }

    /// Seals the entry in the version that takes `planned` bytes. A set planned by an older program
    /// has room for entries in that program's format.
    pub(crate) fn seal_as_planned(
        &self,
        key: &SecretKey,
        body: ObjectId,
        planned: usize,
    ) -> Result<Vec<u8>> {
        if self.sealed_bytes()? != planned
            && let Some(older) = Entry1::build(self)
        {
            return seal_entry(key, body, &encode(Entry1::VERSION, &older)?);
        }
        self.seal(key, body)
    }

    /// Opens the entry of `body` with `key`.
    pub(crate) fn open(key: &SecretKey, body: ObjectId, sealed: &[u8]) -> Result<Self> {
        open_as(key, body, sealed, |version, plain| match version {
            Entry1::VERSION => Ok(rows::read::<Entry1>(plain).map(Self::from)),
            ENTRY_VERSION => Ok(rows::read(plain)),
            CHECKSUM_VERSION => Ok(read_with_checksum(plain)),
            _ => Err(CHECKSUM_VERSION < version && version < PART_ENTRY_VERSION),
        })
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
        open_as(key, body, sealed, |version, plain| match version {
            PART_ENTRY_VERSION => Ok(rows::read(plain)),
            _ => Err(PART_ENTRY_VERSION < version),
        })
    }
}

/// Reads an entry with a part checksum at the end.
fn read_with_checksum(plain: &[u8]) -> rows::RowResult<Entry> {
    let (entry, rest) =
        postcard::take_from_bytes::<Entry>(plain).map_err(|error| error.to_string())?;
    Ok(entry.with_part(Some(rows::read(rest)?)))
}

fn encode<T: Serialize>(version: u8, entry: &T) -> Result<Vec<u8>> {
    append(vec![version], entry)
}

fn append<T: Serialize>(bytes: Vec<u8>, value: &T) -> Result<Vec<u8>> {
    postcard::to_extend(value, bytes).map_err(|error| ArchiveError::Internal {
        what: format!("an entry does not encode: {error}"),
    })
}

/// Opens a sealed entry and parses it with `read`, which gets version and bytes. For a version that
/// it does not know, `read` returns whether it is a newer one of its kind.
fn open_as<T>(
    key: &SecretKey,
    body: ObjectId,
    sealed: &[u8],
    read: impl FnOnce(u8, &[u8]) -> std::result::Result<rows::RowResult<T>, bool>,
) -> Result<T> {
    let plain = open_entry(key, body, sealed).ok_or_else(|| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body} does not open"),
    })?;
    let corrupt = |reason: String| ArchiveError::Corrupt {
        what: format!("the sealed entry of body {body}: {reason}"),
    };
    let Some((&version, entry)) = plain.split_first() else {
        return Err(corrupt("it is empty".to_owned()));
    };
    match read(version, entry) {
        Ok(entry) => entry.map_err(corrupt),
        Err(true) => Err(ArchiveError::Newer {
            what: format!("the sealed entry of body {body} has version {version}"),
        }),
        Err(false) => Err(corrupt(format!("version {version} is unknown for this kind of entry"))),
    }
}

#[cfg(test)]
mod tests;
