//! All jobs of an open archive, their handles and shared state.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};

use fulgurite_platters::Progress;
use fulgurite_units::{Clock, ObjectId, PlatterId};

use super::carrying::Carrying;
use super::expiring::Expiring;
use super::moving::Moving;
use super::reclassifying::{MoveOrder, Reclassifying};
use super::sealing::{SEALING, SealOrder, Sealing};
use super::shredding::Shredding;
use super::tending::Tending;
use super::verifying::{VerifyOrder, Verifying};
use super::{Bell, Mail, Runner};
use crate::bodies::damaged;
use crate::bodies::staged::StagedBodies;
use crate::ground::Ground;
use crate::objects::names::BucketName;
use crate::objects::object::{Chosen, StorageClass};
use crate::restore::{self, Restorer};
use crate::status::{JobStatus, MoveReport, PIPELINE_IDLE, SealReport, Status, VerifyReport};
use crate::tiers::{Mover, Tiers};
use crate::{ArchiveError, Result, rows, startup, tiers};

/// The message for a tier that is an older copy.
const OLDER_TIER: &str = "tiers: one is an older copy, and lacks what was brought there since";

/// Handles and channels to the jobs.
#[derive(Debug)]
pub(crate) struct Bells {
    sealing: Mail<SealOrder>,
    verifying: Mail<VerifyOrder>,
    reclassifying: Mail<MoveOrder>,
    pub(crate) restore: Mail<restore::Message>,
    /// One for each tier, in order.
    moving: Vec<Bell>,
}

/// The receiving ends of the channels.
#[derive(Debug)]
pub(crate) struct Inboxes {
    sealing: Receiver<SealOrder>,
    verifying: Receiver<VerifyOrder>,
    reclassifying: Receiver<MoveOrder>,
    restore: Receiver<restore::Message>,
}

impl Bells {
    /// Creates handles and channels, and their receiving ends.
    pub(crate) fn new(clock: &Clock, tiers: &Tiers) -> (Self, Inboxes) {
        let (sealing, seals) = Mail::new(&Bell::new(clock));
        let (verifying, verifies) = Mail::new(&Bell::new(clock));
        let (reclassifying, moves) = Mail::new(&Bell::new(clock));
        let (restore, restores) = Mail::new(&Bell::new(clock));
        let inboxes = Inboxes {
            sealing: seals,
            verifying: verifies,
            reclassifying: moves,
            restore: restores,
        };
        let moving = tiers.iter().map(|_| Bell::new(clock)).collect();
        (Self { sealing, verifying, reclassifying, restore, moving }, inboxes)
    }
}

impl Ground {
    /// Notifies the jobs that something was staged.
    pub(crate) fn wake_pipeline(&self) {
        self.bells.sealing.bell().ring();
        self.wake_moving();
    }

    /// Notifies the tier jobs that bodies wait for a tier, or for removal from one.
    pub(crate) fn wake_moving(&self) {
        self.bells.moving.iter().for_each(Bell::ring);
    }

    /// Requests the restore of an object that has a row in the queue.
    pub(crate) fn ask_restore(&self, object: ObjectId) {
        // If no job receives it, the next start finds the row.
        self.bells.restore.send(restore::Message::Asked(object));
    }
}

/// The jobs of an open archive.
#[derive(Debug)]
pub(crate) struct Workers {
    ground: Arc<Ground>,
    runner: Runner,
}

impl Workers {
    pub(crate) fn start(ground: &Arc<Ground>) -> Result<Self> {
        let answers = tokio::runtime::Handle::try_current()
            .map_err(|e| ArchiveError::Internal { what: format!("no runtime: {e}") })?;
        ground.platters.start(answers.clone())?;
        startup::finish_shreds(ground)?;
        damaged::requeue(ground)?;
        let inboxes = ground.inboxes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Inboxes { sealing: orders, verifying, reclassifying, restore }) = inboxes else {
            return Err(ArchiveError::Internal { what: "workers were started twice".to_owned() });
        };
        let runner = Runner::new(ground.clock(), &ground.panics);
        let given = || Arc::clone(ground);
        runner.start(Expiring(given()))?;
        let bodies = StagedBodies::of(ground);
        let sealing = Sealing { ground: given(), bodies, orders };
        runner.start_at(ground.bells.sealing.bell(), sealing)?;
        let moves = Reclassifying::new(ground, reclassifying, &answers);
        runner.start_at(ground.bells.reclassifying.bell(), moves)?;
        Restorer::start(&runner, ground, restore)?;
        for (bell, tier) in ground.bells.moving.iter().zip(ground.tiers.iter()) {
            runner.start_at(bell, Moving(Mover::new(ground, tier)))?;
        }
        if !ground.config.far_libraries.is_empty() {
            runner.start(Carrying(ground.platters.carrier()))?;
        }
        runner.start(Shredding::of(ground))?;
        runner.start(Tending::of(ground))?;
        let verifying = Verifying::new(ground, verifying);
        runner.start_at(ground.bells.verifying.bell(), verifying)?;
        Ok(Self { ground: given(), runner })
    }

    /// Adds the state of the jobs to the status.
    pub(crate) fn show(&self, status: &mut Status) {
        status.jobs = self.runner.shown();
        let sealing = status.jobs.iter().find(|job| job.name == SEALING);
        status.pipeline = sealing.map_or_else(String::new, pipeline);
    }

    /// Returns what is degraded while requests are still served, one line each.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let jobs = self.failing_jobs();
        let jobs = jobs.iter().filter_map(JobStatus::told);
        let platters = self.ground.platters.degraded().into_iter();
        platters.chain(jobs).chain(self.failed_restores()).chain(self.older_tiers()).collect()
    }

    /// Returns the kinds of degradation, without paths or tier names.
    pub(crate) fn degraded_kinds(&self) -> Vec<String> {
        let kinds = self.ground.platters.degraded_kinds().into_iter().map(str::to_owned);
        let jobs = self.failing_jobs();
        // A job's name may end with what it works for.
        let jobs = jobs.iter().filter_map(|job| job.name.split('-').next());
        let jobs: BTreeSet<String> = jobs.map(|name| format!("jobs: {name} fails")).collect();
        let older = self.older_tiers().next().map(|_| OLDER_TIER.to_owned());
        let kinds = kinds.chain(self.no_room()).chain(jobs);
        kinds.chain(self.failed_restores()).chain(older).collect()
    }

    /// Returns a message if bodies are refused because the disk of the data directory is full.
    fn no_room(&self) -> Option<String> {
        let is_full = matches!(self.ground.space.check(1), Err(ArchiveError::Full { .. }));
        is_full.then(|| "disk: it has no room for objects".to_owned())
    }

    /// Returns the failing jobs. Failures of sealing that its sets report are left out.
    fn failing_jobs(&self) -> Vec<JobStatus> {
        let has_told = self.ground.platters.trouble().is_some();
        let is_told = |job: &JobStatus| has_told && job.name == SEALING;
        let jobs = self.runner.shown().into_iter();
        jobs.filter(|job| job.trouble.is_some() && !is_told(job)).collect()
    }

    /// Returns messages for tiers that are older copies.
    fn older_tiers(&self) -> impl Iterator<Item = String> {
        let older = self.ground.tiers.iter().filter(|tier| tier.is_older());
        older.map(|tier| format!("{OLDER_TIER}: {}", tier.name()))
    }

    /// Returns how many restores were given up; only operators are shown which.
    fn failed_restores(&self) -> Option<String> {
        let count = rows::failed_count(&*self.ground.kv).unwrap_or_default();
        (count > 0).then(|| format!("restores: {count} failed; the status names them"))
    }

    /// Seals what is staged, and starts the moves to tiers in parallel.
    pub(crate) async fn seal(&self) -> Result<SealReport> {
        self.ground.tiers.iter().for_each(|tier| tier.urge());
        self.ground.wake_moving();
        let answer = self.ground.bells.sealing.order(|reply| reply)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    /// Starts the moves to tiers, and waits until they are done.
    pub(crate) async fn until_moved(&self) -> Result<()> {
        self.ground.tiers.iter().for_each(|tier| tier.urge());
        self.ground.wake_moving();
        tiers::until_moved(&self.ground).await
    }

    /// Verifies one platter or all by reading them whole. For all, also verifies restored copies,
    /// dropping damaged ones, and bodies in tiers of objects.
    pub(crate) async fn verify(
        &self,
        platter: Option<PlatterId>,
        progress: &Arc<Progress>,
    ) -> Result<VerifyReport> {
        let progress = Arc::clone(progress);
        let order = |reply| VerifyOrder { platter, progress, reply };
        let answer = self.ground.bells.verifying.order(order)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    /// Changes the storage class of objects in a bucket.
    pub(crate) async fn reclassify(
        &self,
        bucket: BucketName,
        chosen: Chosen,
        class: StorageClass,
        progress: &Arc<Progress>,
    ) -> Result<MoveReport> {
        let progress = Arc::clone(progress);
        let order = |reply| MoveOrder { bucket, chosen, class, progress, reply };
        let answer = self.ground.bells.reclassifying.order(order)?;
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    pub(crate) fn stop(&self) -> Result<()> {
        self.ground.stopping.store(true, std::sync::atomic::Ordering::SeqCst);
        self.runner.stop();
        // The library first, because a job may wait minutes for simulated mechanics.
        self.ground.platters.stop();
        let died = self.runner.join();
        if died > 0 {
            return Err(ArchiveError::Internal { what: format!("{died} jobs died") });
        }
        Ok(())
    }
}

/// Returns the state of the pipeline: what sealing does, or the error that it waits on.
fn pipeline(sealing: &JobStatus) -> String {
    match (&sealing.doing, &sealing.trouble) {
        (Some(doing), _) => doing.clone(),
        (None, Some(trouble)) => format!("waiting to retry: {trouble}"),
        (None, None) => PIPELINE_IDLE.to_owned(),
    }
}
