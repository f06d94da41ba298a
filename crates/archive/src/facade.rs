//! The archive's API for its front ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_catalog::KeyValue as _;
use fulgurite_glass::{LibraryWatch, Machine, Verification};
use fulgurite_tier::Progress;
use fulgurite_units::{Clock, PlatterId, UploadId};
use futures::future::BoxFuture;

use crate::bodies::orphan_report;
use crate::config::ArchiveConfig;
use crate::directory::{Paths, is_empty_dir, shared_key};
use crate::jobs::{VerifyScope, Workers};
use crate::model::names::{BucketName, ObjectKey};
use crate::model::object::{
    BodyClaim, BucketInfo, ByteRange, CompletedPart, ListPage, ListQuery, ObjectInfo, ObjectParts,
    ObjectSelection, PartInfo, PutOptions, RestoreOutcome, RestoreRequest, StorageClass,
    UploadInfo, UploadOptions, WriteCondition,
};
use crate::objects::body::{ObjectReader, ObjectWriter};
use crate::objects::list;
use crate::objects::multipart;
use crate::objects::multipart::{Completion, PartWriter, UploadName};
use crate::objects::parts;
use crate::objects::put;
use crate::objects::put::LocalWriter;
use crate::objects::read;
use crate::permissions::refuse_world_readable;
use crate::restore::RestoreWatch;
use crate::shared::{self, SharedBuckets};
use crate::state::{self, ArchiveState};
use crate::status::{
    MoveReport, OrphanedSegment, SealReport, ShardLocation, Status, VerifiedPlatter, VerifyReport,
};
use crate::tiers::refuse_missing_unopened;
use crate::{ArchiveError, Checksum, Result};
use crate::{clock, restore, status};

/// An open archive. Clones share it.
#[derive(Clone, Debug)]
pub struct Archive {
    state: Arc<ArchiveState>,
    workers: Arc<Workers>,
    shared: Arc<SharedBuckets>,
    is_ready: Arc<AtomicBool>,
}

/// Runs blocking work without blocking the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a worker panicked: {e}") })?
}

impl Archive {
    /// Opens or creates the archive in `config.data`, completes what a crash interrupted and starts
    /// the background jobs.
    ///
    /// # Errors
    /// When the directory is in use, damaged, or the master key is wrong.
    pub fn open(config: ArchiveConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move { Self::open_with_clock(config, clock::system()).await })
    }

    /// Refuses a configuration and a data directory that [`Self::open`] would refuse, as far as
    /// that shows without opening the catalog. Creates and changes nothing. With `adds_tiers` the
    /// catalog is read, too: a tier may be created because its name was changed.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn check(config: &ArchiveConfig, adds_tiers: bool) -> Result<()> {
        state::check(config)?;
        let catalog = Paths::new(&config.data).catalog();
        if adds_tiers && !is_empty_dir(&catalog) {
            refuse_missing_unopened(config, &catalog)?;
        }
        Ok(())
    }

    /// Refuses a file that has no key of shared buckets, or that everyone may read.
    ///
    /// # Errors
    /// `Unusable` with the file.
    pub fn check_shared_key(file: &Path) -> Result<()> {
        refuse_world_readable(file)?;
        shared_key(file).map(drop)
    }

    /// The same with a given clock, which controls when copies expire, when jobs run and how long
    /// they back off. Only the library's internals have a clock of their own.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with_clock(
        config: ArchiveConfig,
        clock: Clock,
    ) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let state = blocking(move || Ok(Arc::new(ArchiveState::open(config, clock)?))).await?;
            let shared = Arc::new(SharedBuckets::open(&state).await?);
            let opened = Arc::clone(&state);
            let workers = blocking(move || Ok(Arc::new(Workers::start(&opened)?))).await?;
            Ok(Self { state, workers, shared, is_ready: Arc::new(AtomicBool::new(true)) })
        })
    }

    /// Stops the background jobs at their next safe point and waits for them.
    ///
    /// # Errors
    /// When a worker died.
    pub fn stop(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.is_ready.store(false, Ordering::SeqCst);
            let (workers, state) = (Arc::clone(&self.workers), Arc::clone(&self.state));
            blocking(move || {
                let stopped = workers.stop();
                state.close_logs();
                if let Err(error) = state.record_settled() {
                    tracing::warn!(
                        %error,
                        "cannot record the settled segments; the next start scans more of the logs"
                    );
                }
                state.mark.record_or_warn(true);
                stopped
            })
            .await
        })
    }

    /// Waits until the archive has failed for good, so that its process should exit, and returns
    /// the reason: an fsync of the key table failed, so the keys on the disk are unknown.
    pub fn failed(&self) -> BoxFuture<'_, String> {
        Box::pin(async move { self.state.keys.failed().await })
    }

    /// Whether requests can be served now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::SeqCst)
    }

    /// Returns why nothing can be written now; `None` when it can. Reads continue.
    #[must_use]
    pub fn write_refusal(&self) -> Option<String> {
        self.state.committer.refusal()
    }

    /// Whether catalog damage was found since the start. It requires a recovery, because requested
    /// data may be in the damaged part.
    #[must_use]
    pub fn is_catalog_damaged(&self) -> bool {
        self.state.kv.damage().is_some()
    }

    /// Creates a bucket.
    ///
    /// # Errors
    /// `BucketAlreadyOwnedByYou` when it exists.
    pub fn create_bucket<'a>(
        &'a self,
        bucket: &'a BucketName,
    ) -> BoxFuture<'a, Result<BucketInfo>> {
        Box::pin(async move { list::create_bucket(&self.state, bucket).await })
    }

    /// Deletes an empty bucket.
    ///
    /// # Errors
    /// `BucketNotEmpty` when it has objects or uploads.
    pub fn delete_bucket<'a>(&'a self, bucket: &'a BucketName) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if !self.shared.is_unconfigured(bucket) {
                let what = "remove it from geo.shared first; the other archives keep its objects";
                self.shared.refuse(bucket, what)?;
            }
            list::delete_bucket(&self.state, bucket).await?;
            self.shared.forget(bucket);
            Ok(())
        })
    }

    /// Returns a bucket.
    ///
    /// # Errors
    /// `NoSuchBucket`.
    pub fn head_bucket<'a>(&'a self, bucket: &'a BucketName) -> BoxFuture<'a, Result<BucketInfo>> {
        Box::pin(async move {
            self.shared.get(bucket)?;
            let row = crate::rows::lookup::require_bucket(&*self.state.kv, bucket)?;
            Ok(BucketInfo { name: bucket.to_string(), created: row.created })
        })
    }

    /// Lists all buckets by name.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn list_buckets(&self) -> BoxFuture<'_, Result<Vec<BucketInfo>>> {
        Box::pin(async move { list::list_buckets(&self.state) })
    }

    /// Starts a PUT; bucket, metadata, length and conditions are checked before any byte is
    /// accepted.
    ///
    /// # Errors
    /// When one of them does not hold, or the archive is full.
    pub fn put<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        options: PutOptions,
    ) -> BoxFuture<'a, Result<ObjectWriter>> {
        Box::pin(async move {
            match self.shared.get(bucket)? {
                Some(shared) => Ok(shared.put(key, options, self.state.now()).await?.into()),
                None => Ok(LocalWriter::begin(&self.state, bucket, key, options)?.into()),
            }
        })
    }

    /// Returns an object's metadata.
    ///
    /// # Errors
    /// `NoSuchKey`, `NoSuchBucket`.
    pub fn head<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<ObjectInfo>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                return shared.head(key).await;
            }
            let row = crate::rows::lookup::require_object(&*self.state.kv, bucket, key)?;
            Ok(row.info(key.as_str(), self.state.now()))
        })
    }

    /// Opens an object for reading.
    ///
    /// # Errors
    /// `NotRestored` when it is archived without a restored copy, `InvalidRange`, `NoSuchKey`.
    pub fn get<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        range: Option<ByteRange>,
    ) -> BoxFuture<'a, Result<ObjectReader>> {
        Box::pin(async move {
            match self.shared.get(bucket)? {
                Some(shared) => Ok(shared.get(key, range).await?.into()),
                None => Ok(read::open(&self.state, bucket, key, range)?.into()),
            }
        })
    }

    /// Opens one part of an object for reading. Parts count from 1, in object order.
    ///
    /// # Errors
    /// `InvalidPartNumber`, `PartsNotKept`, and as for the object.
    pub fn get_part<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        number: u32,
    ) -> BoxFuture<'a, Result<ObjectReader>> {
        Box::pin(async move {
            match self.shared.get(bucket)? {
                Some(shared) => Ok(shared.get_part(key, number).await?.into()),
                None => Ok(read::open_part(&self.state, bucket, key, number)?.into()),
            }
        })
    }

    /// Returns an object with its parts after number `after`, at most `limit`.
    ///
    /// # Errors
    /// `NoSuchKey`, `NoSuchBucket`, `PartsNotKept`.
    pub fn parts<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        after: u32,
        limit: usize,
    ) -> BoxFuture<'a, Result<ObjectParts>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                return shared.parts(key, after, limit).await;
            }
            let view = self.state.kv.snapshot();
            let row = crate::rows::lookup::require_object(&*view, bucket, key)?;
            let (parts, is_more) = parts::list(&*view, &row, after, limit)?;
            Ok(ObjectParts { info: row.info(key.as_str(), self.state.now()), parts, is_more })
        })
    }

    /// Returns one page of a bucket's objects.
    ///
    /// # Errors
    /// `NoSuchBucket`.
    pub fn list<'a>(
        &'a self,
        bucket: &'a BucketName,
        query: ListQuery,
    ) -> BoxFuture<'a, Result<ListPage>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                return shared.list(&query).await;
            }
            let (state, bucket) = (Arc::clone(&self.state), bucket.clone());
            blocking(move || list::list(&state, &bucket, &query)).await
        })
    }

    /// Deletes an object and destroys its keys. Returns `false` for a missing object, which is no
    /// error.
    ///
    /// # Errors
    /// `NoSuchBucket`, or when the key table cannot be written.
    pub fn delete<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            match self.shared.get(bucket)? {
                Some(shared) => shared.delete(key).await,
                None => put::delete(&self.state, bucket, key).await,
            }
        })
    }

    /// CopyObject: writes a new body under a new key. `options.meta` is used as given.
    ///
    /// # Errors
    /// As for reading the source and writing the target.
    pub fn copy<'a>(
        &'a self,
        from: (&'a BucketName, &'a ObjectKey),
        to: (&'a BucketName, &'a ObjectKey),
        mut options: PutOptions,
    ) -> BoxFuture<'a, Result<ObjectInfo>> {
        Box::pin(async move {
            let shared = self.shared.get(to.0)?;
            if shared.is_none() && self.shared.get(from.0)?.is_none() {
                return put::copy(&self.state, from, to, options).await;
            }
            let mut reader = self.get(from.0, from.1, None).await?;
            put::describe_copy(&mut options, &reader.info, reader.bytes);
            let mut writer = self.put(to.0, to.1, options).await?;
            while let Some(bytes) = reader.next().await {
                self.state.check_stopping()?;
                writer.write(bytes?).await?;
            }
            let info = writer.finish(None).await?;
            let Some(shared) = shared else { return Ok(info) };
            // Only the shared bucket's store knows when the object was written.
            let there = shared.head(to.1).await;
            Ok(there.ok().filter(|there| there.object_id == info.object_id).unwrap_or(info))
        })
    }

    /// RestoreObject. On return the request is durable.
    ///
    /// # Errors
    /// `NotArchived`, `RestoreAlreadyInProgress`, `ExpeditedNotAvailable`.
    pub fn restore<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        request: RestoreRequest,
    ) -> BoxFuture<'a, Result<RestoreOutcome>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                let class = shared.head(key).await?.class.name();
                return Err(ArchiveError::NotArchived { class });
            }
            restore::request(&self.state, bucket, key, request).await
        })
    }

    /// Starts a multipart upload.
    ///
    /// # Errors
    /// `NoSuchBucket`, `MetadataTooLarge`.
    pub fn create_upload<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        options: UploadOptions,
    ) -> BoxFuture<'a, Result<UploadInfo>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                shared.check(key, options.class)?;
            }
            multipart::create(&self.state, bucket, key, options).await
        })
    }

    /// Starts a part.
    ///
    /// # Errors
    /// `NoSuchUpload`, `InvalidArgument` for a number outside 1 to 10,000.
    pub fn put_part<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        upload: UploadId,
        number: u32,
        claim: BodyClaim,
    ) -> BoxFuture<'a, Result<PartWriter>> {
        Box::pin(
            async move { PartWriter::begin(&self.state, name(bucket, key, upload), number, claim) },
        )
    }

    /// UploadPartCopy: copies from a readable object.
    ///
    /// # Errors
    /// As for reading the source and writing the part.
    pub fn copy_part<'a>(
        &'a self,
        from: (&'a BucketName, &'a ObjectKey),
        range: Option<ByteRange>,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        upload: UploadId,
        number: u32,
    ) -> BoxFuture<'a, Result<PartInfo>> {
        Box::pin(async move {
            let name = name(bucket, key, upload);
            let reader = self.get(from.0, from.1, range).await?;
            multipart::copy_part(&self.state, reader, name, number).await
        })
    }

    /// Joins parts to an object. Idempotent: a repeated call returns the same result.
    ///
    /// # Errors
    /// `InvalidPart`, `InvalidPartOrder`, `EntityTooSmall`, `BadDigest`, `PreconditionFailed`.
    pub fn complete_upload<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        upload: UploadId,
        parts: Vec<CompletedPart>,
        condition: WriteCondition,
        checksum: Option<Checksum>,
    ) -> BoxFuture<'a, Result<ObjectInfo>> {
        Box::pin(async move {
            let name = name(bucket, key, upload);
            let completion = Completion { name, listed: parts, condition, checksum };
            if let Some(shared) = self.shared.get(bucket)? {
                return shared::complete(&self.state, &shared, completion).await;
            }
            multipart::complete(&self.state, completion).await
        })
    }

    /// Aborts an upload and drops its parts.
    ///
    /// # Errors
    /// `NoSuchUpload`.
    pub fn abort_upload<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        upload: UploadId,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { multipart::abort(&self.state, name(bucket, key, upload)).await })
    }

    /// Lists uploads in progress, ordered by key and id, after the marker pair, at most `limit`;
    /// `true` when more follow.
    ///
    /// # Errors
    /// `NoSuchBucket`.
    pub fn list_uploads<'a>(
        &'a self,
        bucket: &'a BucketName,
        prefix: &'a str,
        after: Option<(String, Option<UploadId>)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<(Vec<UploadInfo>, bool)>> {
        Box::pin(async move { multipart::list_uploads(&self.state, bucket, prefix, after, limit) })
    }

    /// Lists parts of an upload after number `after`, at most `limit`; `true` when more follow.
    ///
    /// # Errors
    /// `NoSuchUpload`.
    pub fn list_parts<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
        upload: UploadId,
        after: u32,
        limit: usize,
    ) -> BoxFuture<'a, Result<(UploadInfo, Vec<PartInfo>, bool)>> {
        Box::pin(async move {
            multipart::list_parts(&self.state, &name(bucket, key, upload), after, limit)
        })
    }

    /// Seals everything staged now. Returns when it is written, verified, stored and released.
    /// Starts moving bodies that wait for tiers of objects, but does not wait for them.
    ///
    /// # Errors
    /// When a set cannot be written or read back.
    pub fn seal(&self) -> BoxFuture<'_, Result<SealReport>> {
        Box::pin(async move { self.workers.seal().await })
    }

    /// Waits until every body that waits for a tier of objects now is there, deleted, or set aside
    /// because its staged bytes are damaged. Waits for tiers that do not answer.
    ///
    /// # Errors
    /// When the catalog fails, or the archive stops.
    pub fn wait_until_moved(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.workers.wait_until_moved().await })
    }

    /// Returns the progress of the sealing in progress, by whichever job.
    #[must_use]
    pub fn seal_progress(&self) -> Arc<Progress> {
        Arc::clone(self.state.platters.sealing())
    }

    /// Verifies one platter or all by reading them whole. For all, also verifies restored copies,
    /// dropping damaged ones, and bodies in tiers of objects. Updates `progress` meanwhile.
    ///
    /// # Errors
    /// When a platter is not known. Unreadable data is in the report.
    pub fn verify<'a>(
        &'a self,
        platter: Option<PlatterId>,
        progress: &'a Arc<Progress>,
    ) -> BoxFuture<'a, Result<VerifyReport>> {
        let scope = platter.map_or(VerifyScope::All, VerifyScope::Platter);
        Box::pin(async move { self.workers.verify(scope, progress).await })
    }

    /// Verifies one platter or all by reading them whole. Updates `progress` meanwhile.
    pub(crate) async fn verify_platters(
        &self,
        platter: Option<PlatterId>,
        progress: &Arc<Progress>,
    ) -> Result<Vec<VerifiedPlatter>> {
        let scope = platter.map_or(VerifyScope::Platters, VerifyScope::Platter);
        Ok(self.workers.verify(scope, progress).await?.platters)
    }

    /// Changes the storage class of objects in a bucket: each is copied onto itself, and goes to
    /// the home of that class. Updates `progress` meanwhile.
    ///
    /// # Errors
    /// When there is no such object or class, or a failure blocks all remaining objects; a repeated
    /// call continues. Objects that cannot be read, such as archived ones without a restored copy,
    /// are in the report.
    pub fn reclassify<'a>(
        &'a self,
        bucket: &'a BucketName,
        chosen: ObjectSelection,
        class: StorageClass,
        progress: &'a Arc<Progress>,
    ) -> BoxFuture<'a, Result<MoveReport>> {
        Box::pin(async move {
            let what = "the class of its objects cannot be changed; upload them again";
            self.shared.refuse(bucket, what)?;
            self.workers.reclassify(bucket.clone(), chosen, class, progress).await
        })
    }

    /// Returns the result of a platter's last verification, sector by sector; `None` if there was
    /// none.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn verification(&self, platter: PlatterId) -> BoxFuture<'_, Result<Option<Verification>>> {
        Box::pin(async move {
            let state = Arc::clone(&self.state);
            blocking(move || Ok(state.platters.verification(platter)?)).await
        })
    }

    /// Lists segments that the catalog does not name, with their content.
    ///
    /// # Errors
    /// When they cannot be listed. Unreadable ones are in the list.
    pub fn orphans(&self) -> BoxFuture<'_, Result<Vec<OrphanedSegment>>> {
        Box::pin(async move {
            let state = Arc::clone(&self.state);
            blocking(move || orphan_report::orphans(&state)).await
        })
    }

    /// Deletes the orphaned segment in the file `name` for good.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none of that name.
    pub fn discard_orphan(&self, name: String) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let state = Arc::clone(&self.state);
            blocking(move || orphan_report::discard_orphan(&state, &name)).await
        })
    }

    /// Returns counts and states for operators.
    ///
    /// # Errors
    /// When the catalog fails.
    pub fn status(&self) -> BoxFuture<'_, Result<Status>> {
        Box::pin(async move {
            let (state, workers) = (Arc::clone(&self.state), Arc::clone(&self.workers));
            blocking(move || {
                let mut status = status::status(&state)?;
                workers.add_to_status(&mut status);
                Ok(status)
            })
            .await
        })
    }

    /// Returns what is degraded while requests are still served, one line each; empty in normal
    /// operation.
    #[must_use]
    pub fn degraded(&self) -> Vec<String> {
        self.workers.degraded()
    }

    /// Returns the failures of glass, one line each.
    pub(crate) fn glass_degraded(&self) -> Vec<String> {
        self.state.platters.degraded()
    }

    /// Returns the kinds of failures of glass, without paths and platters.
    pub(crate) fn glass_degraded_kinds(&self) -> Vec<String> {
        self.state.platters.degraded_kinds().into_iter().map(str::to_owned).collect()
    }

    /// Returns the kinds of degradation besides those of glass, which its tier reports, for
    /// unauthenticated clients: no path, platter, tier or object is named.
    #[must_use]
    pub fn degraded_kinds(&self) -> Vec<String> {
        self.workers.degraded_kinds()
    }

    /// Subscribes to the library's events and commands from now on.
    ///
    /// # Errors
    /// When the archive is stopping.
    pub fn watch_library(&self) -> BoxFuture<'_, Result<LibraryWatch>> {
        Box::pin(async move {
            let state = Arc::clone(&self.state);
            blocking(move || Ok(state.platters.watch()?)).await
        })
    }

    /// Subscribes to restores that are given up from now on.
    #[must_use]
    pub fn watch_restores(&self) -> RestoreWatch {
        RestoreWatch::new(self.state.runtime.given_up.subscribe())
    }

    /// Breaks an emulated machine of the library: it stops where it is until it is repaired. For
    /// trials. Requests that need it fail, and reads go to other platters of their sets.
    ///
    /// # Errors
    /// `InvalidArgument` when the library has no such machine.
    pub fn break_machine(&self, machine: Machine) -> Result<()> {
        Ok(self.state.platters.broke(machine)?)
    }

    /// Repairs a broken machine.
    ///
    /// # Errors
    /// `InvalidArgument` when the library has no such machine.
    pub fn repair_machine(&self, machine: Machine) -> Result<()> {
        Ok(self.state.platters.repaired(machine)?)
    }

    /// Returns where an object's bytes are.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn locate<'a>(
        &'a self,
        bucket: &'a BucketName,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Vec<ShardLocation>>> {
        Box::pin(async move {
            if let Some(shared) = self.shared.get(bucket)? {
                return shared.head(key).await.map(|_| Vec::new());
            }
            status::locate(&self.state, bucket, key)
        })
    }
}

fn name(bucket: &BucketName, key: &ObjectKey, upload: UploadId) -> UploadName {
    UploadName { bucket: bucket.clone(), key: key.clone(), upload }
}
