//! Restored copies: checked before their expiry is extended, and dropped when they are damaged.
//!
//! ```text
//! GET: a frame fails ------------.
//! RestoreObject: checks it ------+--> one transaction: no copy, no expiry -> its space is free,
//! verify: reads all of it -------'                                           restorable at once
//! ```
//!
//! A copy can always be restored from glass again, so a damaged one is no loss and of no use. The
//! frames authenticate themselves, which shows damage. A copy that only cannot be read right now,
//! for lack of file descriptors or memory, is not damaged.
//!
//! RestoreObject on an existing copy reads at most [`CHECK_FRAMES_MAX`] frames (and one of each
//! part of the object, if that is more) and a byte of each segment that the copy lies in. Copies up
//! to 16 MiB are read whole; of longer ones the first and the last frame and others evenly between.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_catalog::{KeyRange, KeyValue as _, Transaction};
use fulgurite_tier::Progress;
use fulgurite_units::{ObjectId, error_chain};

use crate::bodies::cipher::{BodyCipher, FRAME_CIPHER_BYTES, cipher_bytes};
use crate::bodies::log::{Extent, LogKind, LogReader};
use crate::limits::{
    CHECK_FRAMES_MAX, CHUNK_BYTES, FRAME_BYTES, NAMED_MAX, ROWS_PER_TRANSACTION_MAX,
};
use crate::model::names::{BucketName, ObjectKey};
use crate::rows::accounting::Retired;
use crate::rows::lookup::{bodies, find_object, rows_in};
use crate::rows::{self, BODIES, BodyRow, EXPIRIES, ExpiryRow, OBJECTS, ObjectRow};
use crate::state::ArchiveState;
use crate::status::{DamagedCopy, VerifyReport};
use crate::{ArchiveError, Result};

/// Identifies a copy, so that a later copy of the object is not mistaken for it.
#[derive(Clone, Debug)]
pub(crate) struct CopyId {
    pub(crate) bucket: BucketName,
    pub(crate) key: ObjectKey,
    pub(crate) object: ObjectId,
    /// One of its extents. It is not reused while it is being read.
    pub(crate) extent: Extent,
}

/// How thoroughly a copy is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckDepth {
    /// All frames.
    Whole,
    /// This many of them, but at least one of each body.
    Some(u64),
}

/// Drops a copy that turned out to be damaged, unless it is gone or was replaced by now. On return
/// the object can be restored again.
pub(crate) async fn drop_damaged(
    state: &Arc<ArchiveState>,
    copy: CopyId,
    error: ArchiveError,
) -> Result<()> {
    let (bucket, key) = (copy.bucket.clone(), copy.key.clone());
    let dropped = state.committer.commit(move |tx| remove_if_there(tx, &copy)).await?;
    finish_drop(state, dropped, (&bucket, &key), &error);
    Ok(())
}

/// The same, blocking.
fn drop_damaged_blocking(state: &ArchiveState, copy: CopyId, error: &ArchiveError) -> Result<bool> {
    let (bucket, key) = (copy.bucket.clone(), copy.key.clone());
    let commit = move |tx: &mut Transaction<'_>| remove_if_there(tx, &copy);
    let dropped = state.committer.commit_blocking(commit)?;
    Ok(finish_drop(state, dropped, (&bucket, &key), error))
}

fn finish_drop(
    state: &ArchiveState,
    dropped: Option<Retired>,
    (bucket, key): (&BucketName, &ObjectKey),
    error: &ArchiveError,
) -> bool {
    let Some(retired) = dropped else { return false };
    state.free(&retired.extents);
    state.copies_dropped.fetch_add(1, Ordering::Relaxed);
    tracing::error!(%bucket, %key, %error, "a restored copy is damaged; restore the object again");
    true
}

fn remove_if_there(tx: &mut Transaction<'_>, copy: &CopyId) -> Result<Option<Retired>> {
    let found = find_object(tx, &copy.bucket, &copy.key)?;
    let Some(object) = found.filter(|object| object.object_id == copy.object) else {
        return Ok(None);
    };
    let Some(expiry) = object.restore.and_then(|mark| mark.expiry) else { return Ok(None) };
    let all = bodies(tx, &object)?;
    let mut extents = all.iter().filter_map(|body| body.restored.as_ref()).flatten();
    if !extents.any(|extent| *extent == copy.extent) {
        return Ok(None);
    }
    tx.delete(EXPIRIES, rows::expiry_key(expiry, object.object_id))?;
    remove(tx, &copy.bucket, &copy.key, object).map(Some)
}

/// Removes an object's copy from the catalog. The caller removes the expiry row.
pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    bucket: &BucketName,
    key: &ObjectKey,
    mut object: ObjectRow,
) -> Result<Retired> {
    let mut retired = Retired::default();
    for (index, mut body) in (0..).zip(bodies(tx, &object)?) {
        if let Some(extents) = body.restored.take() {
            retired.remove(tx, LogKind::Restored, &extents)?;
            rows::put(tx, BODIES, rows::body_key(object.object_id, index), &body)?;
        }
    }
    object.restore = None;
    rows::put(tx, OBJECTS, rows::object_key(bucket.as_str(), key.as_str()), &object)?;
    rows::with_totals(tx, |totals| totals.restored -= 1)?;
    Ok(retired)
}

/// Checks an object's copy before its expiry is extended, and drops it if it is damaged. Blocks.
pub(crate) fn check_before_extending(
    state: &ArchiveState,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<()> {
    check_copy(state, bucket, key, CheckDepth::Some(CHECK_FRAMES_MAX), &mut |_| {}).map(drop)
}

/// Reads every restored copy whole, drops the damaged ones and reports them. Blocks.
pub(crate) fn verify_all(
    state: &ArchiveState,
    progress: &Arc<Progress>,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut part = progress.part();
    let mut before = 0;
    each_copy(state, |bucket, key| {
        let bytes = copy_bytes(state, bucket, key)?;
        let mut read = 0;
        let mut on_read = |more: u64| {
            read += more;
            part.set(before + read.min(bytes));
        };
        let (error, is_dropped) =
            match check_copy(state, bucket, key, CheckDepth::Whole, &mut on_read) {
                Ok(dropped) => (dropped, true),
                Err(error @ (ArchiveError::Stopping | ArchiveError::Catalog(_))) => {
                    return Err(error);
                }
                // If one cannot be read right now, the others can still be verified.
                Err(error) => (Some(error), false),
            };
        before += bytes;
        part.set(before);
        report.copies += 1;
        if let Some(error) = error {
            report.copies_damaged += 1;
            if report.damaged_copies.len() < NAMED_MAX {
                let (bucket, key) = (bucket.to_string(), key.to_string());
                let error = error_chain(&error);
                report.damaged_copies.push(DamagedCopy { bucket, key, is_dropped, error });
            }
        }
        Ok(())
    })
}

/// Returns the bytes of all restored copies.
pub(crate) fn bytes_of_all(state: &ArchiveState) -> Result<u64> {
    let mut bytes = 0;
    each_copy(state, |bucket, key| {
        bytes += copy_bytes(state, bucket, key)?;
        Ok(())
    })?;
    Ok(bytes)
}

fn copy_bytes(state: &ArchiveState, bucket: &BucketName, key: &ObjectKey) -> Result<u64> {
    let found = find_object(&*state.kv.snapshot(), bucket, key)?;
    Ok(found.map_or(0, |object| cipher_bytes(object.bytes)))
}

/// Calls `each` for every object that has a restored copy, reading a page of rows at a time.
fn each_copy(
    state: &ArchiveState,
    mut each: impl FnMut(&BucketName, &ObjectKey) -> Result<()>,
) -> Result<()> {
    let mut range = KeyRange::prefix(b"");
    loop {
        let page: Vec<(Vec<u8>, ExpiryRow)> =
            rows_in(&*state.kv, EXPIRIES, &range, ROWS_PER_TRANSACTION_MAX)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        range = range.after(last);
        for (_, row) in page {
            state.check_stopping()?;
            each(&row.name.bucket, &row.name.key)?;
        }
    }
}

/// Checks an object's copy, if it has one, and drops it if it is damaged; returns the reason then.
/// `on_read` is called with the number of bytes read.
fn check_copy(
    state: &ArchiveState,
    bucket: &BucketName,
    key: &ObjectKey,
    depth: CheckDepth,
    on_read: &mut dyn FnMut(u64),
) -> Result<Option<ArchiveError>> {
    let view = state.kv.snapshot();
    let found = find_object(&*view, bucket, key)?;
    let has_copy = |object: &ObjectRow| object.restore.is_some_and(|mark| mark.expiry.is_some());
    let Some(object) = found.filter(has_copy) else { return Ok(None) };
    let all = bodies(&*view, &object)?;
    let frames: u64 = all.iter().map(|body| body.bytes.div_ceil(FRAME_BYTES as u64)).sum();
    for body in &all {
        state.check_stopping()?;
        let Some(extents) = body.restored.clone() else { continue };
        let Some(&extent) = extents.first() else { continue };
        // An error of the key table says nothing about the copy.
        let secret = state.keys.load(body.key_slot, body.body_id)?;
        let cipher = BodyCipher::new(&secret, body.body_id);
        let mut reader = state.restored.reader(extents.clone());
        let share = match depth {
            CheckDepth::Whole => u64::MAX,
            CheckDepth::Some(most) => {
                most * body.bytes.div_ceil(FRAME_BYTES as u64) / frames.max(1)
            }
        };
        let seen = is_there(&mut reader, &extents)
            .and_then(|()| authenticate(&mut reader, &cipher, body, share.max(1), on_read));
        match seen {
            Ok(()) => {}
            Err(error @ ArchiveError::Corrupt { .. }) => {
                let (bucket, key) = (bucket.clone(), key.clone());
                let copy = CopyId { bucket, key, object: object.object_id, extent };
                return Ok(drop_damaged_blocking(state, copy, &error)?.then_some(error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Checks that every segment exists and is long enough.
fn is_there(reader: &mut LogReader, extents: &[Extent]) -> Result<()> {
    let mut end = 0;
    for extent in extents {
        end += extent.bytes;
        reader.read_at(end - 1, &mut [0])?;
    }
    Ok(())
}

/// Authenticates `count` frames of a body, evenly spread from the first to the last.
fn authenticate(
    reader: &mut LogReader,
    cipher: &BodyCipher,
    body: &BodyRow,
    count: u64,
    on_read: &mut dyn FnMut(u64),
) -> Result<()> {
    let frames = body.bytes.div_ceil(FRAME_BYTES as u64);
    let run = (CHUNK_BYTES / FRAME_BYTES) as u64;
    let mut buffer = Vec::new();
    let mut check = |first: u64, count: u64| -> Result<()> {
        let start = first * FRAME_CIPHER_BYTES as u64;
        let end = cipher_bytes(body.bytes).min((first + count) * FRAME_CIPHER_BYTES as u64);
        buffer.resize(usize::try_from(end - start).unwrap_or(usize::MAX), 0);
        reader.read_at(start, &mut buffer)?;
        on_read(end - start);
        cipher.decrypt(first, frames, &mut buffer).map(drop)
    };
    if count >= frames {
        let mut runs = (0..frames.div_ceil(run)).map(|number| number * run);
        return runs.try_for_each(|first| check(first, run.min(frames - first)));
    }
    let place = |number: u64| number * (frames - 1) / (count - 1).max(1);
    (0..count).try_for_each(|number| check(place(number), 1))
}

#[cfg(test)]
mod tests;
