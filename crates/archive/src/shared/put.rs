//! The write path of an object in a shared bucket.
//!
//! ```text
//! write --> buffer (512 KiB) --> blocking pool: MD5, checksum, AES-GCM --> the store's task
//! finish --> compare claims --> sealed note --> the store agrees on it --> answer
//! ```
//!
//! Nothing is stored before the store has the note, which is sent after all claims are verified: a
//! writer that is dropped leaves nothing.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::buckets::SharedBucket;
use super::note::{Note, key_of};
use super::part_runs::PartRuns;
use super::{SharedCondition, SharedError, SharedPut};
use crate::bodies::cipher::{BodyCipher, cipher_bytes, random_bytes};
use crate::bodies::digest::{BodyDigest, Checksum, ChecksumAlgorithm};
use crate::bodies::ingest::{check_claims, truncate_to_seconds};
use crate::limits::{BODY_BYTES_MAX, CHUNK_BYTES, FRAME_BYTES, INLINE_BYTES_MAX, SHARED_AHEAD};
use crate::model::names::ObjectKey;
use crate::model::object::{ObjectInfo, PutOptions, Residence, StorageClass, WriteCondition};
use crate::objects::put::check_meta;
use crate::{ArchiveError, Result};

/// Digests and encrypts a body, on the blocking pool.
struct BodyEncryptor {
    cipher: BodyCipher,
    digest: BodyDigest,
    frame: u64,
}

impl BodyEncryptor {
    fn take(&mut self, plain: &[u8], is_end: bool) -> Bytes {
        let mut sealed = Vec::new();
        self.digest.update(plain);
        self.cipher.encrypt(self.frame, plain, is_end, &mut sealed);
        self.frame += plain.len().div_ceil(FRAME_BYTES) as u64;
        sealed.into()
    }
}

/// Metadata of an object that is joined from the parts of an upload.
#[derive(Debug)]
pub(super) struct MultipartMeta {
    pub(super) upload: UploadId,
    pub(super) etag: String,
    pub(super) checksum: Option<Checksum>,
    pub(super) count: u32,
    /// Lengths of the parts, if they are stored.
    pub(super) runs: Option<PartRuns>,
}

/// An object of a shared bucket being written. Dropped before `finish`, it leaves nothing behind.
pub(crate) struct SharedWriter {
    bucket: SharedBucket,
    key: ObjectKey,
    options: PutOptions,
    parts: Option<MultipartMeta>,
    object: ObjectId,
    now: UnixTime,
    bytes: u64,
    received: u64,
    buffer: Vec<u8>,
    encryptor: Option<Box<BodyEncryptor>>,
    body: Option<mpsc::Sender<Bytes>>,
    note: Option<oneshot::Sender<String>>,
    put: JoinHandle<Result<(), SharedError>>,
}

impl std::fmt::Debug for SharedWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("SharedWriter");
        shown.field("bucket", &self.bucket).field("key", &self.key).finish_non_exhaustive()
    }
}

/// Rejects classes other than STANDARD and GLACIER_IR: shared buckets have no glass.
fn check_class(bucket: &SharedBucket, class: StorageClass) -> Result<()> {
    match class {
        StorageClass::Standard | StorageClass::GlacierIr => Ok(()),
        StorageClass::Glacier
        | StorageClass::DeepArchive
        | StorageClass::StandardIa
        | StorageClass::OnezoneIa
        | StorageClass::IntelligentTiering => Err(ArchiveError::NotShared {
            bucket: bucket.name.to_string(),
            what: "its objects must be of class STANDARD or GLACIER_IR; to archive an object on \
                   glass, copy it to a bucket of one archive",
        }),
    }
}

/// Converts the condition to one that the store supports, based on the current object.
async fn condition(
    bucket: &SharedBucket,
    key: &ObjectKey,
    wanted: &WriteCondition,
) -> Result<SharedCondition> {
    if !wanted.absent && wanted.etag.is_none() {
        return Ok(SharedCondition::Always);
    }
    let current = bucket.find(key).await?;
    match (&wanted.etag, current) {
        (_, Some(_)) if wanted.absent => {
            Err(ArchiveError::PreconditionFailed { condition: "If-None-Match" })
        }
        (None, _) => Ok(SharedCondition::Absent),
        (Some(_), None) => Err(bucket.no_such_key_error(key)),
        (Some(etag), Some(found)) if etag == "*" || *etag == found.info.etag => {
            Ok(SharedCondition::Version(found.version))
        }
        (Some(_), Some(_)) => Err(ArchiveError::PreconditionFailed { condition: "If-Match" }),
    }
}

impl SharedBucket {
    /// Rejects an invalid put before any of it is received.
    ///
    /// # Errors
    /// `KeyTooLong`, `NotShared`.
    pub(crate) fn check(&self, key: &ObjectKey, class: StorageClass) -> Result<()> {
        check_class(self, class)?;
        self.object(key).map(drop)
    }

    /// Starts a PUT.
    pub(crate) async fn put(
        &self,
        key: &ObjectKey,
        options: PutOptions,
        now: UnixTime,
    ) -> Result<SharedWriter> {
        self.begin_put(key, options, None, now).await
    }

    /// Starts a PUT, or the object that joins the parts of an upload.
    pub(super) async fn begin_put(
        &self,
        key: &ObjectKey,
        mut options: PutOptions,
        parts: Option<MultipartMeta>,
        now: UnixTime,
    ) -> Result<SharedWriter> {
        check_meta(&options.meta)?;
        check_class(self, options.class)?;
        let name = self.object(key)?;
        let what = || format!("the length of \"{key}\" must be declared before the body");
        let bytes = options.claim.bytes;
        let bytes = bytes.ok_or_else(|| ArchiveError::InvalidArgument { what: what() })?;
        if parts.is_none() && bytes > BODY_BYTES_MAX {
            return Err(ArchiveError::EntityTooLarge { bytes, max: BODY_BYTES_MAX });
        }
        let condition = condition(self, key, &options.condition).await?;
        let claim = &mut options.claim;
        // As everywhere: if the client names no algorithm it is the cheapest strong one.
        let named = claim.checksum.as_ref().map(|checksum| checksum.algorithm);
        let algorithm = named.or(claim.algorithm).unwrap_or(ChecksumAlgorithm::Crc64Nvme);
        let object = ObjectId::from_random(random_bytes()?);
        let encryptor = BodyEncryptor {
            cipher: BodyCipher::new(&key_of(self.key(), object), object),
            digest: BodyDigest::new(Some(algorithm)),
            frame: 0,
        };
        let (body, mut coming) = mpsc::channel::<Bytes>(SHARED_AHEAD);
        let (note, received_note) = oneshot::channel();
        let put = SharedPut {
            name,
            bytes: cipher_bytes(bytes),
            body: stream::poll_fn(move |context| coming.poll_recv(context)).boxed(),
            note: received_note.map(Result::ok).boxed(),
            condition,
        };
        let store = Arc::clone(self.store());
        // A separate task, so that a client that disconnects does not interrupt the store's
        // agreement.
        let put = tokio::spawn(async move { store.put(put).await });
        Ok(SharedWriter {
            bucket: self.clone(),
            key: key.clone(),
            options,
            parts,
            object,
            now,
            bytes,
            received: 0,
            buffer: Vec::new(),
            encryptor: Some(Box::new(encryptor)),
            body: Some(body),
            note: Some(note),
            put,
        })
    }
}

impl SharedWriter {
    /// Adds the next bytes.
    pub(crate) async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.received += bytes.len() as u64;
        if self.received > self.bytes {
            return Err(ArchiveError::BodyTooLong { declared: self.bytes });
        }
        while !bytes.is_empty() {
            // A full buffer is handed over only when more bytes follow, so its last frame is never
            // the body's last.
            if self.buffer.len() == CHUNK_BYTES {
                self.submit_buffer(false).await?;
            }
            let now = bytes.split_to(bytes.len().min(CHUNK_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(&now);
        }
        Ok(())
    }

    async fn submit_buffer(&mut self, is_end: bool) -> Result<()> {
        let lost = || ArchiveError::Internal { what: "the worker of a body is missing".to_owned() };
        let mut encryptor = self.encryptor.take().ok_or_else(lost)?;
        let plain = std::mem::take(&mut self.buffer);
        let (encryptor, sealed, mut buffer) = if plain.len() <= INLINE_BYTES_MAX {
            let sealed = encryptor.take(&plain, is_end);
            (encryptor, sealed, plain)
        } else {
            let task = tokio::task::spawn_blocking(move || {
                let sealed = encryptor.take(&plain, is_end);
                (encryptor, sealed, plain)
            });
            task.await.map_err(|error| ArchiveError::Internal {
                what: format!("the worker of a body panicked: {error}"),
            })?
        };
        buffer.clear();
        (self.encryptor, self.buffer) = (Some(encryptor), buffer);
        let body = self.body.as_ref().ok_or_else(lost)?;
        if sealed.is_empty() || body.send(sealed).await.is_ok() {
            return Ok(());
        }
        // The store stopped accepting bytes; its error has the reason.
        self.ended().await.and_then(|()| Err(lost()))
    }

    async fn ended(&mut self) -> Result<()> {
        let ended = (&mut self.put).await.map_err(|error| ArchiveError::Internal {
            what: format!("a put to a shared bucket panicked: {error}"),
        })?;
        ended.map_err(|error| {
            if error == SharedError::Refused && self.options.condition.absent {
                return ArchiveError::PreconditionFailed { condition: "If-None-Match" };
            }
            self.bucket.to_archive_error(self.key.as_str(), error)
        })
    }

    /// Ends the body: verifies every claim, and returns when the store has it.
    pub(crate) async fn finish(mut self, trailer: Option<Checksum>) -> Result<ObjectInfo> {
        if self.received < self.bytes {
            let (declared, received) = (self.bytes, self.received);
            return Err(ArchiveError::IncompleteBody { declared, received });
        }
        self.submit_buffer(true).await?;
        let lost = || ArchiveError::Internal { what: "the worker of a body is missing".to_owned() };
        let digests = self.encryptor.take().ok_or_else(lost)?.digest.finish();
        let PutOptions { class, meta, claim, .. } = self.options.clone();
        check_claims(&claim, trailer, &digests)?;
        let multipart_meta = self.parts.take();
        let (upload, part_count) =
            multipart_meta.as_ref().map(|parts| (parts.upload, parts.count)).unzip();
        let (etag, checksum, runs) = match multipart_meta {
            Some(parts) => (parts.etag, parts.checksum, parts.runs),
            None => (hex::encode(digests.md5), digests.checksum, None),
        };
        let note = Note {
            bucket: self.bucket.name.to_string(),
            key: self.key.to_string(),
            bytes: self.bytes,
            etag: etag.clone(),
            class,
            meta: meta.clone(),
            checksum: checksum.clone(),
            part_count,
            upload,
            runs,
        };
        let note = note.seal(self.bucket.key(), self.object)?;
        if let Some(sender) = self.note.take() {
            // If the put ended without taking the note, its result has the reason.
            let _ = sender.send(note);
        }
        self.body = None;
        self.ended().await?;
        Ok(ObjectInfo {
            key: self.key.to_string(),
            object_id: self.object,
            bytes: self.bytes,
            etag,
            modified: truncate_to_seconds(self.now),
            class,
            meta,
            checksum,
            part_count,
            restore: None,
            residence: Residence::Online,
        })
    }
}
