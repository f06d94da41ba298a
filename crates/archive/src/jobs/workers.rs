//! All jobs of an open archive, their handles and shared state.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};

use fulgurite_tier::Progress;
use fulgurite_units::{Clock, ObjectId};

use super::expiry::ExpiryJob;
use super::maintenance::MaintenanceJob;
use super::moves::MoveJob;
use super::reclassify::{MoveOrder, ReclassifyJob};
use super::seal::{SEALING, SealJob, SealOrder};
use super::shred::ShredJob;
use super::transport::TransportJob;
use super::verify::{VerifyJob, VerifyOrder, VerifyScope};
use super::{JobHandle, JobSender, Runner};
use crate::bodies::quarantine;
use crate::bodies::staged_bodies::StagedBodies;
use crate::model::names::BucketName;
use crate::model::object::{ObjectSelection, StorageClass};
use crate::restore::{self, Restorer};
use crate::state::ArchiveState;
use crate::status::{JobStatus, MoveReport, PIPELINE_IDLE, SealReport, Status, VerifyReport};
use crate::tiers::{Mover, Tiers};
use crate::{ArchiveError, Result, rows, startup, tiers};

/// The message for a tier that is an older copy.
const OLDER_TIER: &str = "tiers: one is an older copy and lacks bodies written since";

/// Handles and channels to the jobs.
#[derive(Debug)]
pub(crate) struct JobHandles {
    sealing: JobSender<SealOrder>,
    verifying: JobSender<VerifyOrder>,
    reclassifying: JobSender<MoveOrder>,
    pub(crate) restore: JobSender<restore::Message>,
    /// One for each tier, in order.
    moving: Vec<JobHandle>,
}

/// The receiving ends of the channels.
#[derive(Debug)]
pub(crate) struct Inboxes {
    sealing: Receiver<SealOrder>,
    verifying: Receiver<VerifyOrder>,
    reclassifying: Receiver<MoveOrder>,
    restore: Receiver<restore::Message>,
}

impl JobHandles {
    /// Creates handles and channels, and their receiving ends.
    pub(crate) fn new(clock: &Clock, tiers: &Tiers) -> (Self, Inboxes) {
        let (sealing, seals) = JobSender::new(&JobHandle::new(clock));
        let (verifying, verifies) = JobSender::new(&JobHandle::new(clock));
        let (reclassifying, moves) = JobSender::new(&JobHandle::new(clock));
        let (restore, restores) = JobSender::new(&JobHandle::new(clock));
        let inboxes = Inboxes {
            sealing: seals,
            verifying: verifies,
            reclassifying: moves,
            restore: restores,
        };
        let moving = tiers.iter().map(|_| JobHandle::new(clock)).collect();
        (Self { sealing, verifying, reclassifying, restore, moving }, inboxes)
    }
}

impl ArchiveState {
    /// Notifies the jobs that something was staged.
    pub(crate) fn notify_pipeline(&self) {
        self.runtime.job_handles.sealing.handle().notify();
        self.notify_movers();
    }

    /// Notifies the tier jobs that bodies wait for a tier, or for removal from one.
    pub(crate) fn notify_movers(&self) {
        self.runtime.job_handles.moving.iter().for_each(JobHandle::notify);
    }

    /// Requests the restore of an object that has a row in the queue.
    pub(crate) fn request_restore(&self, object: ObjectId) {
        // If no job receives it, the next start finds the row.
        self.runtime.job_handles.restore.send(restore::Message::Asked(object));
    }
}

/// The jobs of an open archive.
#[derive(Debug)]
pub(crate) struct Workers {
    state: Arc<ArchiveState>,
    runner: Runner,
}

impl Workers {
    pub(crate) fn start(state: &Arc<ArchiveState>) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|e| ArchiveError::Internal { what: format!("no runtime: {e}") })?;
        state.platters.start(runtime.clone())?;
        startup::finish_shreds(state)?;
        quarantine::requeue(state)?;
        let inboxes = state.runtime.inboxes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Inboxes { sealing: orders, verifying, reclassifying, restore }) = inboxes else {
            return Err(ArchiveError::Internal {
                what: "the workers were started twice".to_owned(),
            });
        };
        let runner = Runner::new(state.clock(), &state.runtime.panics);
        let shared_state = || Arc::clone(state);
        runner.start(ExpiryJob(shared_state()))?;
        let bodies = StagedBodies::from_state(state);
        let sealing = SealJob { state: shared_state(), bodies, orders };
        runner.start_at(state.runtime.job_handles.sealing.handle(), sealing)?;
        let moves = ReclassifyJob::new(state, reclassifying, &runtime);
        runner.start_at(state.runtime.job_handles.reclassifying.handle(), moves)?;
        Restorer::start(&runner, state, restore)?;
        for (handle, tier) in state.runtime.job_handles.moving.iter().zip(state.tiers.iter()) {
            runner.start_at(handle, MoveJob(Mover::new(state, tier)))?;
        }
        if !state.config.far_libraries.is_empty() {
            runner.start(TransportJob(state.platters.carrier()))?;
        }
        runner.start(ShredJob::from_state(state))?;
        runner.start(MaintenanceJob::from_state(state))?;
        let verifying = VerifyJob::new(state, verifying);
        runner.start_at(state.runtime.job_handles.verifying.handle(), verifying)?;
        Ok(Self { state: shared_state(), runner })
    }

    /// Adds the state of the jobs to the status.
    pub(crate) fn add_to_status(&self, status: &mut Status) {
        status.jobs = self.runner.status();
        let sealing = status.jobs.iter().find(|job| job.name == SEALING);
        status.pipeline = sealing.map_or_else(String::new, pipeline);
    }

    /// Returns what is degraded while requests are still served, one line each.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let jobs = self.failing_jobs();
        let jobs = jobs.iter().filter_map(JobStatus::failure_report);
        let platters = self.state.platters.degraded().into_iter();
        platters.chain(jobs).chain(self.failed_restores()).chain(self.older_tiers()).collect()
    }

    /// Returns the kinds of degradation besides those of glass, without paths or tier names.
    pub(crate) fn degraded_kinds(&self) -> Vec<String> {
        let jobs = self.failing_jobs();
        // A job's name may end with what it works for.
        let jobs = jobs.iter().filter_map(|job| job.name.split('-').next());
        let jobs: BTreeSet<String> = jobs.map(|name| format!("jobs: {name} fails")).collect();
        let older = self.older_tiers().next().map(|_| OLDER_TIER.to_owned());
        let kinds = self.no_room().into_iter().chain(jobs);
        kinds.chain(self.failed_restores()).chain(older).collect()
    }

    /// Returns a message if bodies are refused because the disk of the data directory is full.
    fn no_room(&self) -> Option<String> {
        let is_full = matches!(self.state.space.check(1), Err(ArchiveError::Full { .. }));
        is_full.then(|| "disk: it has no room for objects".to_owned())
    }

    /// Returns the failing jobs. Failures of sealing that its sets report are left out.
    fn failing_jobs(&self) -> Vec<JobStatus> {
        let has_sealing_failure = self.state.platters.oldest_failure().is_some();
        let is_reported_by_sets = |job: &JobStatus| has_sealing_failure && job.name == SEALING;
        let jobs = self.runner.status().into_iter();
        jobs.filter(|job| job.failure.is_some() && !is_reported_by_sets(job)).collect()
    }

    /// Returns messages for tiers that are older copies.
    fn older_tiers(&self) -> impl Iterator<Item = String> {
        let older = self.state.tiers.iter().filter(|tier| tier.is_older());
        older.map(|tier| format!("{OLDER_TIER}: {}", tier.name()))
    }

    /// Returns how many restores were given up; only operators are shown which.
    fn failed_restores(&self) -> Option<String> {
        let count = rows::failed_count(&*self.state.kv).unwrap_or_default();
        (count > 0).then(|| format!("restores: {count} failed; the status names them"))
    }

    /// Seals what is staged, and starts the moves to tiers in parallel.
    pub(crate) async fn seal(&self) -> Result<SealReport> {
        self.state.tiers.iter().for_each(|tier| tier.request_move());
        self.state.notify_movers();
        let answer = self.state.runtime.job_handles.sealing.order(|reply| reply)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    /// Starts the moves to tiers, and waits until they are done.
    pub(crate) async fn wait_until_moved(&self) -> Result<()> {
        self.state.tiers.iter().for_each(|tier| tier.request_move());
        self.state.notify_movers();
        tiers::wait_until_moved(&self.state).await
    }

    /// Verifies by reading whole; restored copies that are damaged are dropped.
    pub(crate) async fn verify(
        &self,
        scope: VerifyScope,
        progress: &Arc<Progress>,
    ) -> Result<VerifyReport> {
        let progress = Arc::clone(progress);
        let order = |reply| VerifyOrder { scope, progress, reply };
        let answer = self.state.runtime.job_handles.verifying.order(order)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    /// Changes the storage class of objects in a bucket.
    pub(crate) async fn reclassify(
        &self,
        bucket: BucketName,
        chosen: ObjectSelection,
        class: StorageClass,
        progress: &Arc<Progress>,
    ) -> Result<MoveReport> {
        let progress = Arc::clone(progress);
        let order = |reply| MoveOrder { bucket, chosen, class, progress, reply };
        let answer = self.state.runtime.job_handles.reclassifying.order(order)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    pub(crate) fn stop(&self) -> Result<()> {
        self.state.runtime.stopping.store(true, std::sync::atomic::Ordering::SeqCst);
        self.runner.stop();
        // The library first, because a job may wait minutes for simulated mechanics.
        self.state.platters.stop();
        let died = self.runner.join();
        if died > 0 {
            return Err(ArchiveError::Internal { what: format!("{died} jobs panicked") });
        }
        Ok(())
    }
}

/// Returns the state of the pipeline: what sealing does, or the error that it waits on.
fn pipeline(sealing: &JobStatus) -> String {
    match (&sealing.doing, &sealing.failure) {
        (Some(doing), _) => doing.clone(),
        (None, Some(failure)) => format!("waiting to retry: {failure}"),
        (None, None) => PIPELINE_IDLE.to_owned(),
    }
}
