//! PUT and COPY: write a body and its object row.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_catalog::Transaction;
use fulgurite_units::{ObjectId, UnixTime};

use crate::bodies::cipher::random_bytes;
use crate::bodies::digest::{BodyDigests, Checksum, ChecksumAlgorithm};
use crate::bodies::entry::Entry;
use crate::bodies::ingest::{BodyEntry, Ingest, truncate_to_seconds};
use crate::limits::USER_METADATA_BYTES_MAX;
use crate::model::classes::Home;
use crate::model::labels::Labels;
use crate::model::names::{BucketName, ObjectKey, ObjectName, VersionId};
use crate::model::object::{ObjectInfo, ObjectMeta, PutOptions};
use crate::objects::commit::{check_condition, insert_object, remove_object};
use crate::objects::read::{self, OpenObject};
use crate::rows::ObjectRow;
use crate::rows::accounting::Retired;
use crate::rows::lookup::{find_object, require_bucket};
use crate::state::ArchiveState;
use crate::tiers::AcknowledgedCopies;
use crate::{ArchiveError, Result};

/// An object of a bucket of this archive, being written. Dropped before `finish`, it leaves nothing
/// behind.
#[derive(Debug)]
pub(crate) struct LocalWriter {
    state: Arc<ArchiveState>,
    bucket: BucketName,
    key: ObjectKey,
    options: PutOptions,
    home: Home,
    bucket_created: UnixTime,
    ingest: Ingest,
}

/// Checks the size of user metadata.
pub(crate) fn check_meta(meta: &ObjectMeta) -> Result<()> {
    let bytes = meta.user.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > USER_METADATA_BYTES_MAX {
        return Err(ArchiveError::MetadataTooLarge { bytes });
    }
    Ok(())
}

impl LocalWriter {
    pub(crate) fn begin(
        state: &Arc<ArchiveState>,
        bucket: &BucketName,
        key: &ObjectKey,
        options: PutOptions,
    ) -> Result<Self> {
        check_meta(&options.meta)?;
        let bucket_created = require_bucket(&*state.kv, bucket)?.created;
        let current = find_object(&*state.kv, bucket, key)?;
        check_condition(&options.condition, current.as_ref(), key, bucket)?;
        let mut claim = options.claim.clone();
        // Every object has a checksum; if the client names no algorithm it is the cheapest strong
        // one.
        claim.algorithm = claim.algorithm.or(Some(ChecksumAlgorithm::Crc64Nvme));
        let home = state.config.classes.home(options.class)?.clone();
        let ingest = Ingest::begin(state, home.log(), claim)?;
        let (bucket, key) = (bucket.clone(), key.clone());
        let state = Arc::clone(state);
        Ok(Self { state, bucket, key, options, home, bucket_created, ingest })
    }

    /// Adds the next bytes of the body.
    ///
    /// # Errors
    /// When the body exceeds its declared length, the archive is full or the disk fails.
    pub(crate) async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.ingest.write(bytes).await
    }

    /// Ends the body. `trailer` is a checksum sent after it. Returns when bytes, key and row are
    /// durable.
    ///
    /// # Errors
    /// When a claim or a condition does not hold (nothing is stored), or the disk fails.
    pub(crate) async fn finish(self, trailer: Option<Checksum>) -> Result<ObjectInfo> {
        // A separate task, so that a client that disconnects does not interrupt the commit.
        let task = tokio::spawn(self.commit(trailer));
        task.await
            .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
    }

    async fn commit(self, trailer: Option<Checksum>) -> Result<ObjectInfo> {
        let Self { state, bucket, key, options, home, bucket_created, ingest } = self;
        let now = state.now();
        let object_id = ObjectId::from_random(random_bytes()?);
        let (class, meta) = (options.class, options.meta);
        let describe = |digests: &BodyDigests, digest: u64| {
            let row = ObjectRow {
                object_id,
                bytes: digests.bytes,
                etag: hex::encode(digests.md5),
                modified: truncate_to_seconds(now),
                class,
                meta,
                checksum: digests.checksum.clone(),
                part_count: None,
                body_count: 1,
                bodies_staged: u32::from(home != Home::Online),
                upload_id: None,
                restore: None,
                version: VersionId::NULL,
                labels: Labels::default(),
                home,
            };
            let body = (0, digests.bytes, digest);
            let name = ObjectName::new(&bucket, &key, row.version);
            let entry = Entry::build(name, bucket_created, &row, body);
            (BodyEntry::Object(entry), row)
        };
        let (staged, row) = ingest.finish(trailer, describe).await?;
        let info_key = key.to_string();
        let (body, condition) = (staged.row.clone(), options.condition);
        let name = ObjectName::new(&bucket, &key, row.version);
        let acknowledged =
            AcknowledgedCopies::upload(&state, &name, &row, &[(body.clone(), None)]).await?;
        let _copies = acknowledged.clone();
        let commit = move |tx: &mut Transaction<'_>| -> Result<_> {
            require_bucket(tx, &bucket)?;
            let current = find_object(tx, &bucket, &key)?;
            check_condition(&condition, current.as_ref(), &key, &bucket)?;
            crate::rows::accounting::account_bodies(tx, std::slice::from_ref(&body))?;
            acknowledged.iter().try_for_each(|there| there.settle(tx, &row.home))?;
            let retired = insert_object(tx, &bucket, &key, row.clone(), vec![body])?;
            Ok((row, retired))
        };
        let outcome = state.committer.commit(commit).await;
        let (row, retired) = staged.settle(outcome)?;
        state.runtime.fail.pass("put-committed");
        state.finish_retired(retired).await?;
        state.notify_pipeline();
        Ok(row.info(&info_key, now))
    }
}

/// Fills in what is known of a copy's body before its bytes arrive.
pub(crate) fn describe_copy(options: &mut PutOptions, source: &ObjectInfo, bytes: u64) {
    options.claim.bytes = Some(bytes);
    if options.claim.algorithm.is_none() {
        options.claim.algorithm = source.checksum.as_ref().map(|c| c.algorithm);
    }
}

/// Copies a readable object of this archive.
pub(crate) async fn copy(
    state: &Arc<ArchiveState>,
    from: (&BucketName, &ObjectKey),
    to: (&BucketName, &ObjectKey),
    mut options: PutOptions,
) -> Result<ObjectInfo> {
    let OpenObject { info, bytes, mut reader, .. } = read::open(state, from.0, from.1, None)?;
    describe_copy(&mut options, &info, bytes);
    let mut writer = LocalWriter::begin(state, to.0, to.1, options)?;
    while let Some(bytes) = reader.next().await {
        state.check_stopping()?;
        writer.write(bytes?).await?;
    }
    writer.finish(None).await
}

/// Deletes an object; `false` when there was none.
pub(crate) async fn delete(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<bool> {
    let (shared, bucket, key) = (Arc::clone(state), bucket.clone(), key.clone());
    let task = async move {
        let commit = move |tx: &mut Transaction<'_>| -> Result<_> {
            require_bucket(tx, &bucket)?;
            let mut retired = Retired::default();
            let was_there = remove_object(tx, &bucket, &key, &mut retired)?;
            Ok((was_there, retired))
        };
        let (was_there, retired) = shared.committer.commit(commit).await?;
        shared.runtime.fail.pass("delete-committed");
        shared.finish_retired(retired).await?;
        Ok(was_there)
    };
    tokio::spawn(task)
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
}
