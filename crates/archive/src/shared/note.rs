//! The sealed metadata of an object in a shared bucket. The store alone reveals only its name, its
//! size and when it was written.
//!
//! ```text
//! 1 | base64 of: object id (16) | nonce (12) | postcard of the note | tag (16)
//! ```
//!
//! The note names the object, so a store that returns one object under the name of another is
//! detected.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use fulgurite_units::{ObjectId, UploadId};
use serde::{Deserialize, Serialize};

use super::SharedObjectMeta;
use super::part_runs::PartRuns;
use crate::bodies::cipher::{SecretKey, cipher_bytes, open_entry, seal_entry};
use crate::bodies::digest::Checksum;
use crate::bodies::ingest::truncate_to_seconds;
use crate::limits::SHARED_NOTE_BYTES_MAX;
use crate::model::object::{ObjectInfo, ObjectMeta, ObjectPart, Residence, StorageClass};
use crate::objects::parts;
use crate::{ArchiveError, Result, rows};

/// Version of the note, its first character.
const VERSION: char = '1';

/// The metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) bytes: u64,
    pub(super) etag: String,
    pub(super) class: StorageClass,
    pub(super) meta: ObjectMeta,
    pub(super) checksum: Option<Checksum>,
    pub(super) part_count: Option<u32>,
    /// The upload that became the object, if it was a multipart upload.
    pub(super) upload: Option<UploadId>,
    /// Lengths of its parts, if they are stored.
    pub(super) runs: Option<PartRuns>,
}

/// An object of a shared bucket, with its metadata.
#[derive(Clone, Debug)]
pub(super) struct SharedObject {
    pub(super) object_id: ObjectId,
    pub(super) version: u64,
    pub(super) upload: Option<UploadId>,
    pub(super) runs: Option<PartRuns>,
    pub(super) info: ObjectInfo,
}

/// Derives the key of one object's body and note.
pub(super) fn key_of(shared: &SecretKey, object: ObjectId) -> SecretKey {
    let mut hasher = blake3::Hasher::new_derive_key("fulgurite shared bucket, key of an object, 1");
    hasher.update(shared.expose());
    hasher.update(&object.to_bytes());
    SecretKey::from_bytes(hasher.finalize().into())
}

impl Note {
    /// Returns the sealed note as the text that the store keeps.
    pub(super) fn seal(&self, shared: &SecretKey, object: ObjectId) -> Result<String> {
        let internal = |error: postcard::Error| ArchiveError::Internal {
            what: format!("a note could not be written: {error}"),
        };
        let mut plain = postcard::to_stdvec(self).map_err(internal)?;
        // Part lengths can be left out; what the client sent cannot.
        if plain.len() > SHARED_NOTE_BYTES_MAX && self.runs.is_some() {
            plain = postcard::to_stdvec(&Self { runs: None, ..self.clone() }).map_err(internal)?;
        }
        if plain.len() > SHARED_NOTE_BYTES_MAX {
            let what = format!(
                "key, metadata and headers of the object take {} bytes; a shared bucket \
                 allows at most {SHARED_NOTE_BYTES_MAX}",
                plain.len()
            );
            return Err(ArchiveError::InvalidArgument { what });
        }
        let mut all = object.to_bytes().to_vec();
        all.extend(seal_entry(&key_of(shared, object), object, &plain)?);
        Ok(format!("{VERSION}{}", BASE64.encode(all)))
    }

    /// Opens a sealed note, and returns the object that it belongs to.
    fn open(shared: &SecretKey, text: &str) -> Option<(ObjectId, Self)> {
        let all = BASE64.decode(text.strip_prefix(VERSION)?).ok()?;
        let (object, sealed) = all.split_first_chunk::<16>()?;
        let object = ObjectId::from_bytes(*object);
        let plain = open_entry(&key_of(shared, object), object, sealed)?;
        let mut note: Self = rows::read(&plain).ok()?;
        let (parts, bytes) = (note.part_count, note.bytes);
        note.runs =
            note.runs.filter(|runs| parts.is_some_and(|count| runs.add_up_to(count, bytes)));
        Some((object, note))
    }

    /// Opens the note of `found`, and checks that it belongs to the object of that name.
    pub(super) fn open_found(
        shared: &SecretKey,
        found: &SharedObjectMeta,
        (bucket, key): (&str, &str),
    ) -> Result<(ObjectId, Self)> {
        let what =
            |reason: &str| format!("object \"{key}\" of shared bucket \"{bucket}\": {reason}");
        let corrupt = |reason: &str| ArchiveError::Corrupt { what: what(reason) };
        let text = found.note.as_deref().ok_or_else(|| corrupt("no archive wrote it"))?;
        if !text.starts_with(VERSION) {
            let version = text.chars().next();
            let Some(version) = version.filter(char::is_ascii_digit) else {
                return Err(corrupt("its note has no version"));
            };
            let reason =
                format!("its note has version {version}, and this program reads {VERSION}");
            return Err(ArchiveError::Newer { what: what(&reason) });
        }
        let (object, note) = Self::open(shared, text)
            .ok_or_else(|| corrupt("its note was not written with this key"))?;
        if note.bucket != bucket || note.key != key {
            return Err(corrupt("the stored object has another name"));
        }
        Ok((object, note))
    }
}

impl SharedObject {
    /// Returns its parts after number `after`, at most `limit`; `true` when more follow. The
    /// checksum is only known for an object that was put whole.
    pub(super) fn parts(&self, after: u32, limit: usize) -> Result<(Vec<ObjectPart>, bool)> {
        let info = &self.info;
        if info.part_count.is_none() {
            let (mut only, is_more) = parts::page([info.bytes].into_iter(), after, limit);
            only.iter_mut().for_each(|part| part.checksum.clone_from(&info.checksum));
            return Ok((only, is_more));
        }
        let unknown = || ArchiveError::PartsNotKept { key: info.key.clone() };
        let runs = self.runs.as_ref().ok_or_else(unknown)?;
        Ok(parts::page(runs.lengths(), after, limit))
    }

    /// Returns one of its parts.
    ///
    /// # Errors
    /// `InvalidPartNumber`, `PartsNotKept`.
    pub(super) fn part(&self, number: u32) -> Result<ObjectPart> {
        let (found, _) = self.parts(number.saturating_sub(1), 1)?;
        parts::expect_part(found, number, self.info.part_count.unwrap_or(1))
    }

    /// Describes the object found under the name of `key`.
    pub(super) fn open(
        shared: &SecretKey,
        found: &SharedObjectMeta,
        (bucket, key): (&str, &str),
    ) -> Result<Self> {
        let (object_id, note) = Note::open_found(shared, found, (bucket, key))?;
        if found.bytes != cipher_bytes(note.bytes) {
            return Err(ArchiveError::Corrupt {
                what: format!(
                    "object \"{key}\" of shared bucket \"{bucket}\" has {} bytes in the store and \
                     {} by its note",
                    found.bytes,
                    cipher_bytes(note.bytes)
                ),
            });
        }
        let info = ObjectInfo {
            key: note.key,
            object_id,
            bytes: note.bytes,
            etag: note.etag,
            modified: truncate_to_seconds(found.time),
            class: note.class,
            meta: note.meta,
            checksum: note.checksum,
            part_count: note.part_count,
            restore: None,
            residence: Residence::Online,
        };
        let (version, upload, runs) = (found.version, note.upload, note.runs);
        Ok(Self { object_id, version, upload, runs, info })
    }
}

#[cfg(test)]
mod tests;
