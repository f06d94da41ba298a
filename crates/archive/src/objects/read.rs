//! GET: reads an object's bytes and authenticates every frame.
//!
//! The extents are pinned when the object is opened, so a later overwrite, delete or expiry does
//! not affect this reader.
//!
//! A restored copy that fails authentication is dropped at once, so that the object can be restored
//! again; the reader ends with the error.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_catalog::{KeyValue as _, ReadView};
use tokio::task::JoinHandle;

use crate::bodies::cipher::{BodyCipher, FRAME_CIPHER_BYTES, cipher_bytes};
use crate::bodies::copies;
use crate::bodies::copies::CopyId;
use crate::bodies::log::{Extent, LogKind, LogReader};
use crate::limits::{CHUNK_BYTES, FRAME_BYTES, INLINE_BYTES_MAX};
use crate::model::names::{BucketName, ObjectKey};
use crate::model::object::{ByteRange, ObjectInfo, ObjectPart};
use crate::objects::parts;
use crate::rows::lookup::{bodies, require_object};
use crate::rows::{BodyRow, ObjectRow, Place};
use crate::state::ArchiveState;
use crate::tiers::{ObjectTier, TierReader};
use crate::{ArchiveError, Result};

/// A contiguous range of one body.
#[derive(Debug)]
struct Span {
    cipher: BodyCipher,
    origin: Origin,
    /// Plaintext bytes of the whole body.
    body_bytes: u64,
    /// Plaintext range still to read: first byte, and one past the last.
    next: u64,
    end: u64,
}

/// The source of a body's ciphertext.
#[derive(Debug)]
enum Origin {
    /// The source's log, from this offset in its extents.
    Log(u64),
    Tier(TierReader),
}

#[derive(Debug)]
struct Source {
    reader: LogReader,
    spans: VecDeque<Span>,
}

/// Reads the bytes of an object in a bucket of this archive.
#[derive(Debug)]
pub(crate) struct LocalReader {
    state: Arc<ArchiveState>,
    /// The restored copy that is read, if it is one.
    copy: Option<CopyId>,
    idle: Option<Source>,
    ahead: Option<JoinHandle<(Source, Result<Option<Bytes>>)>>,
}

/// An opened object: the selected bytes, and their reader.
#[derive(Debug)]
pub(crate) struct OpenObject {
    pub(crate) info: ObjectInfo,
    pub(crate) first: u64,
    pub(crate) bytes: u64,
    /// The selected part, if one was requested.
    pub(crate) part: Option<ObjectPart>,
    pub(crate) reader: LocalReader,
}

/// The requested bytes of an object.
#[derive(Clone, Copy, Debug)]
enum RequestedBytes {
    All,
    Range(ByteRange),
    Part(u32),
}

/// Opens an object for reading.
pub(crate) fn open(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    range: Option<ByteRange>,
) -> Result<OpenObject> {
    open_requested(state, bucket, key, range.map_or(RequestedBytes::All, RequestedBytes::Range))
}

/// Opens a part of an object for reading.
///
/// # Errors
/// `InvalidPartNumber`, and as for the object.
pub(crate) fn open_part(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    number: u32,
) -> Result<OpenObject> {
    open_requested(state, bucket, key, RequestedBytes::Part(number))
}

fn open_requested(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    requested: RequestedBytes,
) -> Result<OpenObject> {
    loop {
        let view = state.kv.snapshot();
        let row = require_object(&*view, bucket, key)?;
        let now = state.now();
        let info = row.info(key.as_str(), now);
        let from_copy = state.config.classes.needs_restore(row.class, &row.home);
        if from_copy && !matches!(info.restore, Some(crate::RestoreState::Restored { .. })) {
            return Err(ArchiveError::NotRestored { class: row.class.name() });
        }
        let mut part = None;
        let (first, bytes) = match requested {
            RequestedBytes::All => (0, row.bytes),
            RequestedBytes::Range(range) => range.resolve(row.bytes)?,
            RequestedBytes::Part(number) => {
                let found = part.insert(parts::find(&*view, &row, number)?);
                (found.first, found.bytes)
            }
        };
        let source = open_spans(state, &*view, &row, from_copy, (first, bytes));
        // The extents may have been freed before they were pinned: check that the row is unchanged.
        let again = require_object(&*state.kv, bucket, key)?;
        let is_same = again.object_id == row.object_id && again.restore == row.restore;
        if is_same && again.bodies_staged == row.bodies_staged {
            let source = source?;
            let object = row.object_id;
            let copy = source.reader.first().filter(|_| from_copy).map(|extent| CopyId {
                bucket: bucket.clone(),
                key: key.clone(),
                object,
                extent,
            });
            let (state, idle) = (Arc::clone(state), Some(source));
            let reader = LocalReader { state, copy, idle, ahead: None };
            return Ok(OpenObject { info, first, bytes, part, reader });
        }
    }
}

/// Opens whole bodies that are in a log, one after another.
pub(crate) fn open_bodies(state: &Arc<ArchiveState>, bodies: &[BodyRow]) -> Result<LocalReader> {
    let (mut spans, mut extents) = (VecDeque::new(), Vec::new());
    let (mut start, mut kind) = (0, LogKind::Online);
    for body in bodies.iter().filter(|body| body.bytes > 0) {
        let log = body.in_log().ok_or_else(|| ArchiveError::Corrupt {
            what: format!("body {} is in no log", body.body_id),
        })?;
        kind = log.kind;
        extents.extend_from_slice(&log.extents);
        spans.push_back(Span {
            cipher: BodyCipher::new(&state.keys.load(body.key_slot, body.body_id)?, body.body_id),
            origin: Origin::Log(start),
            body_bytes: body.bytes,
            next: 0,
            end: body.bytes,
        });
        start += cipher_bytes(body.bytes);
    }
    let idle = Some(Source { reader: state.log(kind).reader(extents), spans });
    Ok(LocalReader { state: Arc::clone(state), copy: None, idle, ahead: None })
}

fn open_spans(
    state: &Arc<ArchiveState>,
    view: &dyn ReadView,
    object: &ObjectRow,
    from_copy: bool,
    (first, bytes): (u64, u64),
) -> Result<Source> {
    let mut spans = VecDeque::new();
    let mut extents: Vec<Extent> = Vec::new();
    let (mut begin, mut start) = (0, 0);
    let mut kind = LogKind::Online;
    for body in bodies(view, object)? {
        let end = begin + body.bytes;
        let (from, to) = (first.max(begin), (first + bytes).min(end));
        if from < to {
            let bytes = cipher_bytes(body.bytes);
            let origin = match body_location(state, object, from_copy, &body)? {
                BodyLocation::Log(log, found) => {
                    kind = log;
                    extents.extend(found);
                    start += bytes;
                    Origin::Log(start - bytes)
                }
                BodyLocation::Tier(tier) => {
                    Origin::Tier(TierReader::new(tier, body.body_id, bytes))
                }
            };
            spans.push_back(Span {
                cipher: BodyCipher::new(
                    &state.keys.load(body.key_slot, body.body_id)?,
                    body.body_id,
                ),
                origin,
                body_bytes: body.bytes,
                next: from - begin,
                end: to - begin,
            });
        }
        begin = end;
    }
    Ok(Source { reader: state.log(kind).reader(extents), spans })
}

/// The location of a body.
enum BodyLocation<'a> {
    Log(LogKind, Vec<Extent>),
    Tier(&'a Arc<ObjectTier>),
}

fn body_location<'a>(
    state: &'a ArchiveState,
    object: &ObjectRow,
    from_copy: bool,
    body: &BodyRow,
) -> Result<BodyLocation<'a>> {
    let found = match &body.place {
        _ if from_copy => {
            body.restored.clone().map(|extents| BodyLocation::Log(LogKind::Restored, extents))
        }
        Place::Log(log) => Some(BodyLocation::Log(log.kind, log.extents.clone())),
        Place::Tier(tier) => Some(BodyLocation::Tier(state.tiers.get(tier)?)),
        Place::Glass(_) => None,
    };
    found.ok_or_else(|| ArchiveError::Corrupt {
        what: format!("body {} of object {} has no readable copy", body.body_id, object.object_id),
    })
}

impl Source {
    /// Reads and decrypts the next range, at most one chunk.
    fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(span) = self.spans.front_mut() else { return Ok(None) };
        let frame_bytes = FRAME_BYTES as u64;
        let frame = span.next / frame_bytes;
        let last = (span.end - 1) / frame_bytes;
        let count = (last - frame + 1).min((CHUNK_BYTES / FRAME_BYTES) as u64);
        let cipher_start = frame * FRAME_CIPHER_BYTES as u64;
        let cipher_end =
            cipher_bytes(span.body_bytes).min((frame + count) * FRAME_CIPHER_BYTES as u64);
        let length = usize::try_from(cipher_end - cipher_start).unwrap_or(usize::MAX);
        let mut buffer = vec![0; length];
        match &mut span.origin {
            Origin::Log(start) => self.reader.read_at(*start + cipher_start, &mut buffer)?,
            Origin::Tier(reader) => reader.read_at(cipher_start, &mut buffer)?,
        }
        let frames = span.body_bytes.div_ceil(frame_bytes);
        let plain_bytes = span.cipher.decrypt(frame, frames, &mut buffer)?.len();
        let plain_start = frame * frame_bytes;
        let skip = usize::try_from(span.next - plain_start).unwrap_or(usize::MAX);
        let stop =
            usize::try_from(span.end - plain_start).map_or(plain_bytes, |s| s.min(plain_bytes));
        span.next = plain_start + stop as u64;
        if span.next == span.end {
            self.spans.pop_front();
        }
        buffer.truncate(stop);
        Ok(Some(Bytes::from(buffer).slice(skip..)))
    }

    /// Whether the next range is so small and local that no other thread need read it.
    fn is_near(&self) -> bool {
        let in_log = |span: &Span| matches!(span.origin, Origin::Log(_));
        self.remaining_bytes() <= INLINE_BYTES_MAX as u64 && self.spans.iter().all(in_log)
    }

    fn remaining_bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.next).sum()
    }
}

impl LocalReader {
    /// Returns the next bytes, verified; `None` at the end. An error ends the body.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes>> {
        let (source, outcome) = if let Some(ahead) = self.ahead.take() {
            match ahead.await {
                Ok(answer) => answer,
                Err(error) => return Some(Err(reader_error(&error))),
            }
        } else {
            let mut source = self.idle.take()?;
            if source.is_near() {
                let outcome = source.next();
                (source, outcome)
            } else {
                match read_ahead(source).await {
                    Ok(answer) => answer,
                    Err(error) => return Some(Err(reader_error(&error))),
                }
            }
        };
        match outcome {
            Ok(Some(bytes)) => {
                if source.is_near() {
                    self.idle = Some(source);
                } else {
                    self.ahead = Some(read_ahead(source));
                }
                Some(Ok(bytes))
            }
            Ok(None) => None,
            Err(error) => {
                drop(source);
                self.drop_damaged_copy(&error).await;
                Some(Err(error))
            }
        }
    }

    /// Drops the copy that was read if it is damaged. Runs on a separate task, so that a client
    /// that disconnects does not interrupt it.
    async fn drop_damaged_copy(&mut self, error: &ArchiveError) {
        let Some(copy) = self.copy.take() else { return };
        let ArchiveError::Corrupt { what } = error else { return };
        let (state, error) =
            (Arc::clone(&self.state), ArchiveError::Corrupt { what: what.clone() });
        let task = tokio::spawn(async move { copies::drop_damaged(&state, copy, error).await });
        if let Ok(Err(error)) = task.await {
            tracing::error!(%error, "a damaged restored copy stays; its next reader tries again");
        }
    }
}

fn reader_error(error: &tokio::task::JoinError) -> ArchiveError {
    ArchiveError::Internal { what: format!("a reader panicked: {error}") }
}

fn read_ahead(mut source: Source) -> JoinHandle<(Source, Result<Option<Bytes>>)> {
    tokio::task::spawn_blocking(move || {
        let outcome = source.next();
        (source, outcome)
    })
}
