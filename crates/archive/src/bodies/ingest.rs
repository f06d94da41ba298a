//! The write path of a body: hashed, encrypted and written to a log as it streams in.
//!
//! ```text
//! write --> buffer (512 KiB) --+--> its queue (digest_pool): MD5, checksum
//!               ^              '--> blocking pool: AES-GCM, CRC, pwrite; a sync begins each 4 MiB
//!               '- fills while the one before it is written, and up to two are digested
//! finish --> compare claims --> seal entry, write --> sync log and key table --> commit --> answer
//! ```
//!
//! The object's metadata is known before the log is synced, so the entry in the log holds it: if
//! the catalog is lost, the log shows which object the bytes belong to.
//!
//! Nothing is visible before the commit. A writer that is dropped before it leaves nothing: its
//! space and its key slot are freed. Once the commit has begun it runs to its end even if the
//! client disconnects, because only its outcome decides whether the bytes are referenced.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_glass::cipher_crc;
use fulgurite_units::{ObjectId, UnixTime};
use tokio::task::JoinHandle;

use crate::bodies::cipher::{BodyCipher, SecretKey, cipher_bytes, random_bytes};
use crate::bodies::digest::{BodyDigest, BodyDigests, Checksum};
use crate::bodies::digest_pool::QueuedDigest;
use crate::bodies::entry::{Entry, PartEntry};
use crate::bodies::log::{LogKind, LogWriter};
use crate::limits::{BODY_BYTES_MAX, CHUNK_BYTES, INLINE_BYTES_MAX};
use crate::model::object::BodyClaim;
use crate::rows::{BodyRow, LoggedBody, Place};
use crate::space::Admission;
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Encrypts a body and writes it to the log.
#[derive(Debug)]
struct BodyEncryptor {
    cipher: BodyCipher,
    crc: crc_fast::Digest,
    writer: LogWriter,
    frame: u64,
    scratch: Vec<u8>,
    /// The whole ciphertext of a small body is in `scratch`, and not in the log yet.
    is_whole: bool,
}

impl BodyEncryptor {
    fn take(&mut self, plain: &[u8], is_end: bool) -> Result<()> {
        self.scratch.clear();
        self.is_whole = is_end && self.frame == 0 && plain.len() <= INLINE_BYTES_MAX;
        self.cipher.encrypt(self.frame, plain, is_end, &mut self.scratch);
        self.frame += plain.len().div_ceil(crate::limits::FRAME_BYTES) as u64;
        self.crc.update(&self.scratch);
        if self.is_whole { Ok(()) } else { self.writer.write(&self.scratch) }
    }
}

/// The entry that describes a body in the log.
#[derive(Clone, Debug)]
pub(crate) enum BodyEntry {
    Object(Entry),
    Part(PartEntry),
}

/// A key slot that is freed on drop unless its body was committed.
#[derive(Debug)]
struct KeyGuard {
    state: Arc<ArchiveState>,
    slot: u32,
    body: ObjectId,
    is_kept: bool,
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            self.state.keys.discard(self.slot, self.body);
        }
    }
}

/// A body being written.
#[derive(Debug)]
pub(crate) struct Ingest {
    claim: BodyClaim,
    admission: Admission,
    key: KeyGuard,
    secret: SecretKey,
    kind: LogKind,
    received: u64,
    buffer: Vec<u8>,
    /// Buffers handed over for writing and digesting, oldest first, to be reused.
    in_flight: VecDeque<Arc<Vec<u8>>>,
    idle: Option<Box<BodyEncryptor>>,
    writing: Option<JoinHandle<(Box<BodyEncryptor>, Result<()>)>>,
    digest: QueuedDigest,
}

/// A body whose bytes and key are durable, waiting for its row.
#[derive(Debug)]
pub(crate) struct IngestedBody {
    pub(crate) row: BodyRow,
    pub(crate) digests: BodyDigests,
    key: KeyGuard,
    writer: LogWriter,
}

impl IngestedBody {
    /// Keeps bytes and key: the row was committed.
    fn keep(mut self) {
        self.key.is_kept = true;
        self.writer.keep();
    }

    /// Keeps bytes and key: the row may have been committed.
    fn keep_unconfirmed(mut self) {
        self.key.is_kept = true;
        self.writer.keep_unconfirmed();
    }

    /// Keeps or frees bytes and key, depending on the outcome of the commit. If the catalog failed
    /// during the write, it is unknown whether the row exists, so both stay.
    pub(crate) fn settle<T>(self, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => self.keep(),
            Err(ArchiveError::Catalog(error)) if error.is_outcome_unknown() => {
                self.keep_unconfirmed()
            }
            Err(_) => {}
        }
        outcome
    }
}

impl Ingest {
    /// Starts a body in the log `kind`.
    pub(crate) fn begin(
        state: &Arc<ArchiveState>,
        kind: LogKind,
        claim: BodyClaim,
    ) -> Result<Self> {
        Self::try_begin(state, kind, claim).inspect_err(|error| state.space.record_failure(error))
    }

    fn try_begin(state: &Arc<ArchiveState>, kind: LogKind, claim: BodyClaim) -> Result<Self> {
        if let Some(bytes) = claim.bytes.filter(|&bytes| bytes > BODY_BYTES_MAX) {
            return Err(ArchiveError::EntityTooLarge { bytes, max: BODY_BYTES_MAX });
        }
        // A body of undeclared length is admitted one buffer at a time.
        let expected = claim.bytes.map_or(CHUNK_BYTES as u64, cipher_bytes);
        let admission = state.space.admit(expected)?;
        let body = ObjectId::from_random(random_bytes()?);
        let bytes = claim.bytes.map_or(0, cipher_bytes);
        // A small body is written in one go and reserves its space then.
        let is_small = claim.bytes.is_some_and(|bytes| bytes <= INLINE_BYTES_MAX as u64);
        state.log(kind).admit(bytes)?;
        let writer = state.log(kind).writer(body, if is_small { 0 } else { bytes })?;
        let (key, slot) = state.keys.create(body)?;
        let key_guard = KeyGuard { state: Arc::clone(state), slot, body, is_kept: false };
        let algorithm = claim.checksum.as_ref().map(|c| c.algorithm).or(claim.algorithm);
        let encryptor = BodyEncryptor {
            cipher: BodyCipher::new(&key, body),
            crc: cipher_crc(),
            writer,
            frame: 0,
            scratch: Vec::new(),
            is_whole: false,
        };
        Ok(Self {
            claim,
            admission,
            key: key_guard,
            secret: key,
            kind,
            received: 0,
            buffer: Vec::new(),
            in_flight: VecDeque::new(),
            idle: Some(Box::new(encryptor)),
            writing: None,
            digest: state.digest_pool.begin(BodyDigest::new(algorithm)),
        })
    }

    /// Adds the next bytes.
    pub(crate) async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.received += bytes.len() as u64;
        if let Some(declared) = self.claim.bytes.filter(|&declared| self.received > declared) {
            return Err(ArchiveError::BodyTooLong { declared });
        }
        if self.received > BODY_BYTES_MAX {
            return Err(ArchiveError::EntityTooLarge { bytes: self.received, max: BODY_BYTES_MAX });
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

    /// Waits until the buffer that was handed over is written.
    async fn written(&mut self) -> Result<()> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let (encryptor, outcome) = writing.await.map_err(|error| ArchiveError::Internal {
            what: format!("the worker of a body panicked: {error}"),
        })?;
        self.idle = Some(encryptor);
        outcome.inspect_err(|error| self.key.state.space.record_failure(error))
    }

    async fn submit_buffer(&mut self, is_end: bool) -> Result<()> {
        let plain = std::mem::take(&mut self.buffer);
        self.written().await?;
        let bytes = cipher_bytes(plain.len() as u64);
        self.admission.cover(bytes)?;
        self.admission.written(bytes);
        let lost = || ArchiveError::Internal { what: "a write to a failed body".to_owned() };
        let mut encryptor = self.idle.take().ok_or_else(lost)?;
        if plain.len() <= INLINE_BYTES_MAX {
            self.digest.update(&plain).await?;
            let outcome = encryptor.take(&plain, is_end);
            self.idle = Some(encryptor);
            return outcome;
        }
        let plain = Arc::new(plain);
        self.in_flight.push_back(Arc::clone(&plain));
        let to_write = Arc::clone(&plain);
        self.writing = Some(tokio::task::spawn_blocking(move || {
            let outcome = encryptor.take(&to_write, is_end);
            drop(to_write);
            (encryptor, outcome)
        }));
        self.digest.push(plain).await?;
        if !is_end {
            self.buffer = self.used_buffer();
        }
        Ok(())
    }

    /// Returns the oldest buffer handed over if it is no longer in use, otherwise a new one.
    fn used_buffer(&mut self) -> Vec<u8> {
        if self.in_flight.front().is_none_or(|first| Arc::strong_count(first) > 1) {
            return Vec::with_capacity(CHUNK_BYTES);
        }
        let mut buffer = self.in_flight.pop_front().and_then(Arc::into_inner).unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Ends the body: verifies every claim, writes the entry that `describe` makes from its digests
    /// and the CRC of its ciphertext, then syncs bytes and key.
    pub(crate) async fn finish<T>(
        self,
        trailer: Option<Checksum>,
        describe: impl FnOnce(&BodyDigests, u64) -> (BodyEntry, T),
    ) -> Result<(IngestedBody, T)> {
        let state = Arc::clone(&self.key.state);
        let finished = self.finished(trailer, describe).await;
        finished.inspect_err(|error| state.space.record_failure(error))
    }

    async fn finished<T>(
        mut self,
        trailer: Option<Checksum>,
        describe: impl FnOnce(&BodyDigests, u64) -> (BodyEntry, T),
    ) -> Result<(IngestedBody, T)> {
        if let Some(declared) = self.claim.bytes.filter(|&declared| self.received < declared) {
            return Err(ArchiveError::IncompleteBody { declared, received: self.received });
        }
        self.submit_buffer(true).await?;
        self.written().await?;
        let digest = self.digest.take().await?;
        let Some(encryptor) = self.idle.take() else {
            return Err(ArchiveError::Internal {
                what: "the worker of a body is missing".to_owned(),
            });
        };
        let BodyEncryptor { crc, mut writer, mut scratch, is_whole, .. } = *encryptor;
        // Locals drop in reverse order: if a later step fails, the writer must not settle the entry
        // before the key is freed.
        let key = self.key;
        let (digests, digest) = (digest.finish(), crc.finalize());
        check_claims(&self.claim, trailer, &digests)?;
        let (entry, described) = describe(&digests, digest);
        let (body, now) = (key.body, key.state.now());
        let sealed = match entry {
            BodyEntry::Object(entry) => entry.record(&self.secret, body, now)?,
            BodyEntry::Part(entry) => entry.record(&self.secret, body, now)?,
        };
        if is_whole {
            writer.write_small(&mut scratch, &sealed)?;
        } else {
            writer.finish(&sealed)?;
        }
        key.state.runtime.fail.pass("put-written");
        tokio::try_join!(writer.sync(), key.state.keys.sync())?;
        key.state.runtime.fail.pass("put-staged");
        let row = BodyRow {
            body_id: key.body,
            key_slot: key.slot,
            bytes: digests.bytes,
            digest,
            place: Place::Log(LoggedBody::new(self.kind, writer.extents(), writer.framing())),
            restored: None,
        };
        Ok((IngestedBody { row, digests, key, writer }, described))
    }
}

pub(crate) fn check_claims(
    claim: &BodyClaim,
    trailer: Option<Checksum>,
    digests: &BodyDigests,
) -> Result<()> {
    if let Some(expected) = claim.md5.filter(|md5| *md5 != digests.md5) {
        return Err(ArchiveError::BadDigest {
            algorithm: "Content-MD5",
            expected: hex::encode(expected),
            actual: hex::encode(digests.md5),
        });
    }
    for expected in claim.checksum.iter().chain(&trailer) {
        let actual = digests.checksum.as_ref().filter(|c| c.algorithm == expected.algorithm);
        let Some(actual) = actual else {
            return Err(ArchiveError::InvalidArgument {
                what: format!("{} was not declared before the body", expected.algorithm.header()),
            });
        };
        if actual.value != expected.value {
            return Err(ArchiveError::BadDigest {
                algorithm: expected.algorithm.name(),
                expected: expected.text(),
                actual: actual.text(),
            });
        }
    }
    Ok(())
}

/// Rounds down to whole seconds, the resolution of modification times in S3's headers.
pub(crate) fn truncate_to_seconds(now: UnixTime) -> UnixTime {
    UnixTime::from_millis(now.as_secs() * 1000)
}

#[cfg(test)]
mod tests;
