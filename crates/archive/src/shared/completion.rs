//! Joins the parts of an upload, which are staged at this archive, to an object of a shared bucket.

use std::sync::Arc;

use fulgurite_catalog::KeyValue as _;
use fulgurite_units::UnixTime;

use super::buckets::SharedBucket;
use super::part_runs::PartRuns;
use super::put::MultipartMeta;
use crate::limits::COMPLETE_TRIES_MAX;
use crate::model::object::{BodyClaim, ObjectInfo, PutOptions};
use crate::objects::multipart::{
    self, Completion, check_object_checksum, choose, multipart_checksum, multipart_etag,
};
use crate::objects::read::{self, LocalReader};
use crate::rows::{PartRow, UploadRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Joins the parts of an upload. Idempotent: a repeated call returns the same result, and an
/// interrupted one leaves the upload in place.
pub(crate) async fn complete(
    state: &Arc<ArchiveState>,
    bucket: &SharedBucket,
    completion: Completion,
) -> Result<ObjectInfo> {
    let (state, bucket) = (Arc::clone(state), bucket.clone());
    // A separate task, so that a client that disconnects does not interrupt it.
    tokio::spawn(async move { join(&state, &bucket, completion).await })
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
}

async fn join(
    state: &Arc<ArchiveState>,
    bucket: &SharedBucket,
    completion: Completion,
) -> Result<ObjectInfo> {
    let name = &completion.name;
    let _guard = state.completion_locks.turn(name.upload).await;
    let current = bucket.find(&name.key).await?;
    let done = current.filter(|found| found.upload == Some(name.upload));
    let upload = match name.find(&*state.kv.snapshot()) {
        Ok(upload) => upload,
        Err(error) => return done.map(|found| found.info).ok_or(error),
    };
    let info = match done {
        Some(found) => found.info,
        None => put(state, bucket, &completion, upload).await?,
    };
    state.runtime.fail.pass("shared-joined");
    multipart::abort(state, completion.name.clone()).await?;
    Ok(info)
}

/// Puts the concatenated parts.
async fn put(
    state: &Arc<ArchiveState>,
    bucket: &SharedBucket,
    completion: &Completion,
    upload: UploadRow,
) -> Result<ObjectInfo> {
    let now: UnixTime = state.now();
    let name = &completion.name;
    let (parts, mut reader) = open(state, completion)?;
    let checksum = multipart_checksum(&upload, &parts);
    check_object_checksum(completion.checksum.as_ref(), checksum.as_ref())?;
    let bytes = parts.iter().map(|part| part.body.bytes).sum();
    let options = PutOptions {
        class: upload.class,
        meta: upload.meta,
        condition: completion.condition.clone(),
        claim: BodyClaim { bytes: Some(bytes), ..BodyClaim::default() },
    };
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let runs = PartRuns::from_lengths(parts.iter().map(|part| part.body.bytes));
    let (upload, etag) = (name.upload, multipart_etag(&parts));
    let multipart = MultipartMeta { upload, etag, checksum, count, runs };
    let mut writer = bucket.begin_put(&name.key, options, Some(multipart), now).await?;
    while let Some(bytes) = reader.next().await {
        state.check_stopping()?;
        writer.write(bytes?).await?;
    }
    writer.finish(None).await
}

/// Returns the listed parts with a reader for them, as a consistent snapshot.
fn open(state: &Arc<ArchiveState>, completion: &Completion) -> Result<(Vec<PartRow>, LocalReader)> {
    let chosen = || -> Result<Vec<PartRow>> {
        let view = state.kv.snapshot();
        Ok(choose(completion.name.parts(&*view)?, &completion.listed)?.0)
    };
    let bodies = |parts: &[PartRow]| parts.iter().map(|part| part.body.clone()).collect::<Vec<_>>();
    for _ in 0..COMPLETE_TRIES_MAX {
        let parts = chosen()?;
        let reader = read::open_bodies(state, &bodies(&parts));
        // Parts may have been replaced before their extents were pinned: check again.
        if chosen()? == parts {
            return Ok((parts, reader?));
        }
    }
    let what = format!("parts of upload \"{}\" keep changing", completion.name.upload);
    Err(ArchiveError::Busy { what })
}
