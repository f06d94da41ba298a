//! Recovery of a failed tome: it is reopened, as at a start, when its storage may work again.
//!
//! ```text
//! given up --backoff--> store reopened, written, read --> metadata storage failed: usable
//!   ^ ^                   | |
//!   | '-- fails ----------' '--> disk failed: spin up, write and read a file --> usable
//!   '-- fails: the backoff doubles --------------'
//! ```
//!
//! After a failed fsync it is unknown which earlier writes are durable, and a second one proves
//! nothing. So every file is closed and everything in memory is discarded: the tome is what its
//! store contains when reopened. Nothing else was acknowledged. Blocks and deltas that no row
//! refers to are overwritten, through descriptors that saw no failure.
//!
//! Not here: how a set takes the tome back ([`Rejoin`]).

use fulgurite_disks::Observed;
use fulgurite_tome_core::metadata::TomeMetadata;
use fulgurite_tome_core::{Event, Tome};
use fulgurite_units::{Duration, Instant, Seed, error_chain};

use super::commit_batch::CommitBatch;
use super::event_loop::{Loop, recent_spin_ups};
use super::{Parts, RETIRED};
use crate::disk::Disk;
use crate::faults::InjectedFault;
use crate::limits::{PROBE_BACKOFF_MAX, REOPEN_BACKOFF, REOPEN_BACKOFF_MAX};
use crate::metadata_store::MetadataStore;
use crate::watch::TomeEvent;
use crate::{Result, TomesError};

/// What a set does before a failed tome gets requests again.
pub(crate) trait Rejoin: Send + Sync + std::fmt::Debug {
    /// Brings the tome up to date, and the set's record of its objects.
    ///
    /// # Errors
    /// When that cannot be read or persisted; then it is retried later.
    fn rejoin(&self, store: &MetadataStore, metadata: TomeMetadata) -> Result<RejoinOutcome>;
}

/// Health of a tome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It serves requests.
    Healthy,
    /// Its metadata store works again, and its disk is to be probed.
    Probing,
    /// It serves nothing.
    GivenUp,
}

/// The outcome of reopening a tome.
#[derive(Debug)]
pub(crate) enum RejoinOutcome {
    /// It rejoins with this state.
    Member(TomeMetadata),
    /// It has no member slot any more, and is not opened.
    Out(String),
}

/// Why a tome is given up, and what comes next.
#[derive(Debug)]
pub(super) struct Failure {
    why: String,
    next: Next,
}

#[derive(Debug)]
enum Next {
    /// Nothing, until the next start.
    Nothing,
    /// Reopen at this time.
    Reopen(Instant),
    /// Reopened; its disk is to spin up for a probe.
    Probe,
}

/// Number of failures, and whether the disk failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Failures without a long healthy time in between.
    count: u32,
    is_disk: bool,
    /// Since when it is healthy again.
    healthy_since: Option<Instant>,
    /// How often it was reopened.
    reopen_count: u64,
}

impl Failure {
    /// Why it is given up.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// Returns the reason, with what comes next.
    pub(super) fn describe(&self) -> String {
        let Self { why, next } = self;
        match next {
            Next::Nothing => why.clone(),
            Next::Reopen(_) => format!("{why}; it is retried automatically"),
            Next::Probe => format!("{why}; its disk is being retried"),
        }
    }
}

impl Failures {
    /// Returns the backoff before the next try.
    fn backoff(&self) -> Duration {
        let max = if self.is_disk { PROBE_BACKOFF_MAX } else { REOPEN_BACKOFF_MAX };
        let doubled = REOPEN_BACKOFF.as_nanos().saturating_mul(1 << self.count.min(16));
        Duration::from_nanos(doubled).min(max)
    }

    /// Records a failure.
    fn record(&mut self, now: Instant, is_disk: bool) {
        let is_long = |healthy_since: Instant| now.since(healthy_since) >= PROBE_BACKOFF_MAX;
        if self.healthy_since.take().is_some_and(is_long) {
            (self.count, self.is_disk) = (0, false);
        }
        self.is_disk |= is_disk;
    }
}

/// Returns a core with this state.
pub(super) fn new_core(
    parts: &Parts,
    now: Instant,
    metadata: TomeMetadata,
    seed: Seed,
) -> Result<Tome> {
    let tome = Tome::new(now, metadata, seed)?.with_idle_timeout(parts.idle);
    let mut tome = match parts.tokens {
        Some(count) => tome.with_token_count(count),
        None => tome,
    };
    if let Some(per_day) = parts.spin_ups_a_day {
        tome.limit_spin_ups(per_day, recent_spin_ups(parts));
    }
    Ok(tome)
}

/// Whether an error comes from the disk, not from the metadata store.
const fn is_disk_error(error: &TomesError) -> bool {
    !matches!(
        error,
        TomesError::Catalog(_)
            | TomesError::Io { .. }
            | TomesError::TomeMetadata { .. }
            | TomesError::WrongStore { .. }
    )
}

impl Loop {
    /// Whether the core is running.
    pub(super) fn is_live(&self) -> bool {
        self.failure.as_ref().is_none_or(|failure| matches!(failure.next, Next::Probe))
    }

    /// Whether its disk spins only for a probe.
    pub(super) fn is_probing(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| matches!(failure.next, Next::Probe))
    }

    /// When it is reopened.
    pub(super) fn reopens_at(&self) -> Option<Instant> {
        match self.failure.as_ref()?.next {
            Next::Reopen(at) if self.is_still() => Some(at),
            Next::Reopen(_) | Next::Probe | Next::Nothing => None,
        }
    }

    pub(super) fn give_up(&mut self, error: &TomesError) {
        self.give_up_for(error_chain(error), is_disk_error(error));
    }

    /// Gives the tome up until it is reopened. Of simultaneous failures the first is reported.
    pub(super) fn give_up_for(&mut self, why: String, is_disk: bool) {
        let why = match &self.failure {
            Some(Failure { next: Next::Nothing, .. }) => return self.fail_waiting(),
            Some(Failure { why, next: Next::Reopen(_) }) => why.clone(),
            Some(Failure { next: Next::Probe, .. }) | None => why,
        };
        let now = self.now();
        self.failures.record(now, is_disk);
        let next = Next::Reopen(now + self.failures.backoff());
        self.failures.count += 1;
        self.fail(Failure { why, next });
    }

    /// Retires it for good.
    pub(super) fn retire(&mut self) {
        self.fail(Failure { why: RETIRED.to_owned(), next: Next::Nothing });
    }

    fn fail(&mut self, failure: Failure) {
        let tome = self.id();
        let is_known = self.failure.as_ref().is_some_and(|before| before.why == failure.why);
        if !is_known {
            tracing::error!(%tome, "given up: {}", failure.describe());
            self.parts.events.send(|| TomeEvent::GivenUp { tome, why: failure.why.clone() });
        }
        self.failure = Some(failure);
        self.health.send_replace(Health::GivenUp);
        self.fail_waiting();
    }

    /// Fails all waiting requests and spins the disk down.
    fn fail_waiting(&mut self) {
        self.batch = CommitBatch::default();
        let (tome, why) = (self.id(), self.failure.as_ref().map_or("", Failure::why).to_owned());
        self.refuse_all(|| TomesError::GivenUp { tome, why: why.clone() });
        self.spin_down();
        if self.is_still() {
            self.parts.gate.stopped(tome);
            self.return_token();
        }
    }

    /// Reopens it, if possible.
    pub(super) fn reopen(&mut self) {
        match self.try_reopen() {
            Ok(Some(why)) => return self.fail(Failure { why, next: Next::Nothing }),
            Ok(None) if self.failures.is_disk => {
                self.tome.probe_disk();
                if let Some(failure) = &mut self.failure {
                    failure.next = Next::Probe;
                }
                self.health.send_replace(Health::Probing);
            }
            Ok(None) => self.resume(),
            Err(error) => {
                let (why, at) = (error_chain(&error), self.now() + self.failures.backoff());
                self.failures.count += 1;
                return self.fail(Failure { why, next: Next::Reopen(at) });
            }
        }
        self.step(Event::Timer);
        self.settle();
    }

    /// Restarts the core with the state in the store; returns the reason if it never will.
    ///
    /// # Errors
    /// When the store cannot be opened, written or read yet.
    fn try_reopen(&mut self) -> Result<Option<String>> {
        let (tome, place) = (self.id(), self.place());
        if self.parts.backend.observe(place).is_ok_and(|seen| seen == Observed::Turning) {
            self.parts.backend.spin_down(place)?;
        }
        self.parts.faults.pass(tome, InjectedFault::Commit)?;
        self.parts.store.reopen(&self.parts.identity)?;
        let layout = self.parts.identity.layout;
        // The previous core is dropped first: two of them take twice the memory.
        self.tome =
            new_core(&self.parts, self.now(), TomeMetadata::new(tome, layout), self.parts.seed)?;
        let metadata = self.parts.store.load(&self.parts.identity)?;
        let metadata = match self.parts.rejoin.rejoin(&self.parts.store, metadata)? {
            RejoinOutcome::Member(metadata) => metadata,
            RejoinOutcome::Out(why) => return Ok(Some(why)),
        };
        self.failures.reopen_count += 1;
        let seed = self.parts.seed.child(&self.failures.reopen_count.to_le_bytes());
        self.tome = new_core(&self.parts, self.now(), metadata, seed)?;
        (self.alarm, self.tries, self.may_be_spinning) = (None, 0, false);
        self.timer_from = Instant::ZERO;
        Ok(None)
    }

    /// Tests the spinning disk with a write; then the tome is healthy.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn probe(&mut self, disk: &Disk) -> Result<()> {
        if !self.is_probing() {
            return Ok(());
        }
        for fault in [InjectedFault::Write, InjectedFault::Room, InjectedFault::Sync] {
            self.parts.faults.pass(self.id(), fault)?;
        }
        disk.probe()?;
        self.resume();
        Ok(())
    }

    /// Resumes service.
    fn resume(&mut self) {
        let tome = self.id();
        self.failure = None;
        (self.failures.healthy_since, self.failures.is_disk) = (Some(self.now()), false);
        self.health.send_replace(Health::Healthy);
        tracing::info!(%tome, "it works again");
        self.parts.events.send(|| TomeEvent::Resumed { tome });
    }
}
