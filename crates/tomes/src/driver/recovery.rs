//! A tome that failed is reopened, as at a start, when its storage may work again.
//!
//! ```text
//! given up --rest--> store reopened, written, read --> what it keeps awake failed: usable
//!   ^ ^                   | |
//!   | '-- fails ----------' '--> its disk failed: it turns, a file is written and read --> usable
//!   '-- fails: the rest doubles -----------------'
//! ```
//!
//! After a sync that failed nobody knows which writes before it are on stable storage, and a second
//! sync says nothing. So every file is closed, and nothing that was in memory counts: the tome is
//! what its store says when that is reopened. Nothing else was acknowledged. Blocks and deltas
//! that no row names are written over, from descriptors that saw no failure.
//!
//! Not here: what a set makes of a tome that is back ([`Rejoin`]).

use fulgurite_disks::Observed;
use fulgurite_tome::awake::Awake;
use fulgurite_tome::{Event, Tome};
use fulgurite_units::{Duration, Instant, Seed, error_chain};

use super::held::Held;
use super::looping::{Loop, wakes_of};
use super::{Parts, RETIRED};
use crate::awake_store::AwakeStore;
use crate::disk::Disk;
use crate::injected::Failing;
use crate::limits::{PROBE_REST_MAX, REOPEN_REST, REOPEN_REST_MAX};
use crate::watch::Happening;
use crate::{Result, TomesError};

/// What a set does before a tome that was given up is asked for anything again.
pub(crate) trait Rejoin: Send + Sync + std::fmt::Debug {
    /// Has the tome know what came about meanwhile, and the set what it has.
    ///
    /// # Errors
    /// When that cannot be read or kept; then it is tried again later.
    fn rejoin(&self, store: &AwakeStore, awake: Awake) -> Result<Rejoined>;
}

/// Whether a tome works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It does what it is asked for.
    Well,
    /// What it keeps awake works again, and its disk is to turn.
    Probed,
    /// It does nothing.
    GivenUp,
}

/// What becomes of a tome that is reopened.
#[derive(Debug)]
pub(crate) enum Rejoined {
    /// It has what this says.
    Member(Awake),
    /// It has no seat any more, and is not opened.
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
    /// It is reopened at this time.
    Reopen(Instant),
    /// It was opened; its disk is to turn.
    Probe,
}

/// How often it failed, and whether its disk did.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Without a time between them in which all was well.
    count: u32,
    is_disk: bool,
    /// Since when all is well again.
    well: Option<Instant>,
    /// How often it was reopened.
    reopened: u64,
}

impl Failure {
    /// Why it is given up.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// The same, with what comes next.
    pub(super) fn told(&self) -> String {
        let Self { why, next } = self;
        match next {
            Next::Nothing => why.clone(),
            Next::Reopen(_) => format!("{why}; it is tried again by itself"),
            Next::Probe => format!("{why}; its disk is being tried again"),
        }
    }
}

impl Failures {
    /// How long is rested before the next try.
    fn rest(&self) -> Duration {
        let max = if self.is_disk { PROBE_REST_MAX } else { REOPEN_REST_MAX };
        let doubled = REOPEN_REST.as_nanos().saturating_mul(1 << self.count.min(16));
        Duration::from_nanos(doubled).min(max)
    }

    /// One more.
    fn note(&mut self, now: Instant, is_disk: bool) {
        let is_long = |well: Instant| now.since(well) >= PROBE_REST_MAX;
        if self.well.take().is_some_and(is_long) {
            (self.count, self.is_disk) = (0, false);
        }
        self.is_disk |= is_disk;
    }
}

/// The core with what a tome keeps awake.
pub(super) fn core(parts: &Parts, now: Instant, awake: Awake, seed: Seed) -> Result<Tome> {
    let tome = Tome::new(now, awake, seed)?.idle_for(parts.idle);
    let mut tome = match parts.tokens {
        Some(count) => tome.of_tokens(count),
        None => tome,
    };
    if let Some(per_day) = parts.spin_ups_a_day {
        tome.keep_budget(per_day, wakes_of(parts));
    }
    Ok(tome)
}

/// Whether an error is that of a disk, and not of what is kept awake.
const fn is_of_disk(error: &TomesError) -> bool {
    !matches!(
        error,
        TomesError::Catalog(_)
            | TomesError::Io { .. }
            | TomesError::Awake { .. }
            | TomesError::WrongStore { .. }
    )
}

impl Loop {
    /// Whether the core goes on.
    pub(super) fn is_live(&self) -> bool {
        self.failure.as_ref().is_none_or(|failure| matches!(failure.next, Next::Probe))
    }

    /// Whether its disk turns only to see whether it works.
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
        self.give_up_for(error_chain(error), is_of_disk(error));
    }

    /// Nothing is done any more until it is reopened. Of what failed at once the first is reported.
    pub(super) fn give_up_for(&mut self, why: String, is_disk: bool) {
        let why = match &self.failure {
            Some(Failure { next: Next::Nothing, .. }) => return self.refuse(),
            Some(Failure { why, next: Next::Reopen(_) }) => why.clone(),
            Some(Failure { next: Next::Probe, .. }) | None => why,
        };
        let now = self.now();
        self.failures.note(now, is_disk);
        let next = Next::Reopen(now + self.failures.rest());
        self.failures.count += 1;
        self.fail(Failure { why, next });
    }

    /// It is taken out for good.
    pub(super) fn retire(&mut self) {
        self.fail(Failure { why: RETIRED.to_owned(), next: Next::Nothing });
    }

    fn fail(&mut self, failure: Failure) {
        let tome = self.id();
        let is_known = self.failure.as_ref().is_some_and(|before| before.why == failure.why);
        if !is_known {
            tracing::error!(%tome, "given up: {}", failure.told());
            self.parts.watched.tell(|| Happening::GivenUp { tome, why: failure.why.clone() });
        }
        self.failure = Some(failure);
        self.health.send_replace(Health::GivenUp);
        self.refuse();
    }

    /// Nobody waits for it, and its disk is put down.
    fn refuse(&mut self) {
        self.held = Held::default();
        let (tome, why) = (self.id(), self.failure.as_ref().map_or("", Failure::why).to_owned());
        self.refuse_all(|| TomesError::GivenUp { tome, why: why.clone() });
        self.put_down();
        if self.is_still() {
            self.parts.gate.stopped(tome);
            self.give_token_back();
        }
    }

    /// Reopens it, if it can be.
    pub(super) fn reopen(&mut self) {
        match self.reopened() {
            Ok(Some(why)) => return self.fail(Failure { why, next: Next::Nothing }),
            Ok(None) if self.failures.is_disk => {
                self.tome.probe_disk();
                if let Some(failure) = &mut self.failure {
                    failure.next = Next::Probe;
                }
                self.health.send_replace(Health::Probed);
            }
            Ok(None) => self.is_well(),
            Err(error) => {
                let (why, at) = (error_chain(&error), self.now() + self.failures.rest());
                self.failures.count += 1;
                return self.fail(Failure { why, next: Next::Reopen(at) });
            }
        }
        self.step(Event::Timer);
        self.settle();
    }

    /// Has the core start over with what the store says; tells why not, if it never will.
    ///
    /// # Errors
    /// When that cannot be opened, written or read yet.
    fn reopened(&mut self) -> Result<Option<String>> {
        let (tome, place) = (self.id(), self.place());
        if self.parts.backend.observe(place).is_ok_and(|seen| seen == Observed::Turning) {
            self.parts.backend.spin_down(place)?;
        }
        self.parts.injected.pass(tome, Failing::Commit)?;
        self.parts.store.reopen(&self.parts.identity)?;
        let layout = self.parts.identity.layout;
        // The core of before goes first: two of them take twice the memory.
        self.tome = core(&self.parts, self.now(), Awake::new(tome, layout), self.parts.seed)?;
        let awake = self.parts.store.load(&self.parts.identity)?;
        let awake = match self.parts.rejoin.rejoin(&self.parts.store, awake)? {
            Rejoined::Member(awake) => awake,
            Rejoined::Out(why) => return Ok(Some(why)),
        };
        self.failures.reopened += 1;
        let seed = self.parts.seed.child(&self.failures.reopened.to_le_bytes());
        self.tome = core(&self.parts, self.now(), awake, seed)?;
        (self.alarm, self.tries, self.may_turn) = (None, 0, false);
        self.timer_from = Instant::ZERO;
        Ok(None)
    }

    /// Its disk turns: it is well if that can be written.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn probe(&mut self, disk: &Disk) -> Result<()> {
        if !self.is_probing() {
            return Ok(());
        }
        for failing in [Failing::Write, Failing::Room, Failing::Sync] {
            self.parts.injected.pass(self.id(), failing)?;
        }
        disk.probe()?;
        self.is_well();
        Ok(())
    }

    /// It does again what it is asked for.
    fn is_well(&mut self) {
        let tome = self.id();
        self.failure = None;
        (self.failures.well, self.failures.is_disk) = (Some(self.now()), false);
        self.health.send_replace(Health::Well);
        tracing::info!(%tome, "it works again, and goes on");
        self.parts.watched.tell(|| Happening::Resumed { tome });
    }
}
