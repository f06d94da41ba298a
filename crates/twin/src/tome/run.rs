//! A set of tomes: which disks spin, which wait for a token, and what is written, protected and
//! rebuilt.
//!
//! ```text
//!   client --> ingest: tome spins, takes the data in (acked), makes parity of segments (coded)
//!                 '--> protection: the tome and one parity tome spin, then it and the next
//!   tome lost --> rebuild: the target and one source spin, then it and the next
//!
//!   phase:  wait for tokens --> spin up, work (done) --> limited scrub (passed) --> next, or sleep
//! ```
//!
//! Rules, both asserted: no more disks spin than there are tokens, and a tome is in one phase at a
//! time. A waiting job holds no token, so no two wait for each other. Jobs wait in the order of
//! arrival: rebuilds first, then as [`TokenPriority`] says.
//!
//! This is a separate model (after Pergamum (FAST 2008), sections 4.3 and 5.3) without blocks,
//! signatures and reads. A failure of a tome takes effect when its step ends, and the work of a
//! parity tome is that of the tome whose delta it applies. It runs where the scenario says
//! `model = "analytic"`; otherwise the tomes of this project decide ([`super::live_set`]).

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant, Seed};

use super::jobs::{Job, JobIndex, Jobs, Kind, Layout};
use super::live_set::{Driven, SetModel};
use super::result::{RunResult, Stats};
use super::scenario::{Ingest, Scenario, TokenPriority, bytes, takes};
use crate::Error;
use crate::engine::{Context, Ended, EventQueue, Observer, System};
use crate::workload::Exponentials;

/// Maximum number of waiting jobs considered if the first cannot start.
const CANDIDATES_MAX: usize = 64;

/// The system of a set of tomes.
#[derive(Debug)]
pub struct TomeSet {
    scenario: Scenario,
    layout: Layout,
    tokens: u32,
    tomes: Vec<Tome>,
    jobs: Jobs,
    rebuilds: VecDeque<JobIndex>,
    protections: VecDeque<JobIndex>,
    /// Clients waiting to write.
    clients: u32,
    /// Bytes still to be written.
    unwritten: u64,
    /// Where a client starts to search for a tome.
    cursor: u32,
    stats: Stats,
    is_over: bool,
    /// The tomes of this project, if they decide instead of this model.
    driven: Option<Box<Driven>>,
}

/// One tome.
#[derive(Clone, Copy, Debug)]
struct Tome {
    is_busy: bool,
    is_lost: bool,
    /// Free space for clients, in bytes.
    room: u64,
}

/// An external event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// Clients start, and so do initial failures.
    Begin,
    /// A tome fails.
    Fails {
        /// The tome.
        tome: u32,
    },
    /// The run is over.
    End,
}

/// A pending event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScheduledEvent(pub(crate) PendingEvent);

/// The kinds of pending events; see [`ScheduledEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PendingEvent {
    /// A tome has acknowledged all that its client wrote.
    Acked(JobIndex),
    /// A tome has computed the parity of its segments.
    Coded(JobIndex),
    /// The work of a step is done.
    Done(JobIndex),
    /// The helpers of a step have spun down.
    Passed(JobIndex),
    /// A disk has spun down.
    SpunDown(u32),
    /// An event of a set run by its tomes.
    Driven(u32),
}

/// Observable events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Change in the number of spinning disks.
    SpinningChanged(i32),
    /// Bytes that a tome acknowledged.
    Acknowledged(u64),
    /// Acknowledged bytes that now have parity on other tomes.
    Protected(u64),
    /// Acknowledged bytes that are lost before they had parity.
    Dropped(u64),
    /// A tome is lost (1), or rebuilt (-1).
    Lost(i32),
}

/// Whether a queue started something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartOutcome {
    Yes,
    /// Nothing, but only for lack of a token. Later queues must not take the tokens away.
    NoToken,
    Nothing,
}

impl System for TomeSet {
    type Scenario = Scenario;
    type Arrival = (Instant, Arrival);
    type PendingEvent = ScheduledEvent;
    type Observation<'a> = Observation;
    type Result = RunResult;

    fn new(
        scenario: &Scenario,
        seed: &Seed,
        _: &mut EventQueue<ScheduledEvent>,
    ) -> Result<Self, Error> {
        scenario.validate()?;
        let driven = match scenario.model {
            SetModel::Driven => Some(Box::new(Driven::new(scenario, seed)?)),
            SetModel::Analytic => None,
        };
        let layout = Layout::new(scenario);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a disk's")]
        let room = scenario.room() as u64;
        let tome = Tome { is_busy: false, is_lost: false, room };
        let total = scenario.ingest.map(|ingest| ingest.total.map_or(u64::MAX, |of| of.get()));
        Ok(Self {
            scenario: scenario.clone(),
            layout,
            tokens: scenario.tokens(),
            tomes: vec![tome; scenario.tomes as usize],
            jobs: Jobs::default(),
            rebuilds: VecDeque::new(),
            protections: VecDeque::new(),
            clients: 0,
            unwritten: total.unwrap_or(0),
            cursor: 0,
            stats: Stats::default(),
            is_over: false,
            driven,
        })
    }

    fn arrivals(
        scenario: &Scenario,
        seed: &Seed,
    ) -> Result<impl Iterator<Item = Self::Arrival>, Error> {
        let end = Instant::ZERO + scenario.until;
        let failures = Failures::new(scenario, seed).take_while(move |(at, _)| *at < end);
        let begin = [(Instant::ZERO, Arrival::Begin)].into_iter();
        Ok(begin.chain(failures).chain([(end, Arrival::End)]))
    }

    fn arrival_time((at, _): &Self::Arrival) -> Instant {
        *at
    }

    fn handle_arrival<O: Observer<Self>>(
        &mut self,
        (_, arrival): &Self::Arrival,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if let Some(driven) = self.driven.as_mut() {
            driven.handle_arrival(*arrival, ctx);
            return;
        }
        ctx.record(arrival);
        match *arrival {
            Arrival::Begin => {
                self.clients = self.scenario.ingest.map_or(0, |ingest| ingest.clients);
                if self.scenario.one_fails {
                    self.fail(0, ctx);
                }
            }
            Arrival::Fails { tome } => self.fail(tome, ctx),
            Arrival::End => self.is_over = true,
        }
        if !self.is_over {
            self.begin(ctx);
        }
    }

    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: ScheduledEvent,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if let (Some(driven), PendingEvent::Driven(index)) = (self.driven.as_mut(), next.0) {
            driven.handle_event(index, ctx);
            return;
        }
        ctx.record(&next);
        match next.0 {
            PendingEvent::Driven(_) => unreachable!("the model has no events of a driven set"),
            PendingEvent::Acked(job) => self.acked(job, ctx),
            PendingEvent::Coded(job) => self.coded(job, ctx),
            PendingEvent::Done(job) => {
                let at = ctx.now() + self.scenario.limited_scrub;
                ctx.put(at, ScheduledEvent(PendingEvent::Passed(job)));
            }
            PendingEvent::Passed(job) => self.passed(job, ctx),
            PendingEvent::SpunDown(tome) => {
                self.stop(&[tome], ctx);
                self.tokens += 1;
            }
        }
        self.begin(ctx);
    }

    fn is_done(&self) -> bool {
        self.is_over || self.driven.as_ref().is_some_and(|driven| driven.is_over)
    }

    fn result(self, ended: Ended) -> RunResult {
        if let Some(driven) = self.driven {
            return driven.result(ended);
        }
        self.stats.result(&self.scenario, ended)
    }
}

impl TomeSet {
    /// Starts everything that has tokens, in order.
    fn begin<O: Observer<Self>>(&mut self, ctx: &mut Context<'_, Self, O>) {
        let first = self.scenario.ingest.map_or(TokenPriority::Protection, |ingest| ingest.first);
        while self.begin_one(first, ctx) {}
    }

    fn begin_one<O: Observer<Self>>(
        &mut self,
        first: TokenPriority,
        ctx: &mut Context<'_, Self, O>,
    ) -> bool {
        let mut begun = self.begin_waiting(Kind::Rebuild, ctx);
        for turn in 0..2 {
            if begun != StartOutcome::Nothing {
                break;
            }
            begun = match (first, turn) {
                (TokenPriority::Protection, 0) | (TokenPriority::Clients, 1) => {
                    self.begin_waiting(Kind::Protection, ctx)
                }
                (TokenPriority::Protection, _) | (TokenPriority::Clients, _) => {
                    self.begin_client(ctx)
                }
            };
        }
        begun == StartOutcome::Yes
    }

    const fn queue(&mut self, kind: Kind) -> &mut VecDeque<JobIndex> {
        match kind {
            Kind::Rebuild => &mut self.rebuilds,
            Kind::Protection => &mut self.protections,
        }
    }

    /// Starts the first waiting job whose tomes are all idle.
    fn begin_waiting<O: Observer<Self>>(
        &mut self,
        kind: Kind,
        ctx: &mut Context<'_, Self, O>,
    ) -> StartOutcome {
        for place in 0..self.queue(kind).len().min(CANDIDATES_MAX) {
            let index = self.queue(kind)[place];
            if self.tomes[self.jobs.get(index).tome as usize].is_busy {
                continue;
            }
            let Some(helpers) = self.helpers(index) else { continue };
            let needs = 1 + u32::try_from(helpers.len()).unwrap_or(u32::MAX);
            if needs > self.tokens {
                return StartOutcome::NoToken;
            }
            self.queue(kind).remove(place);
            self.tokens -= needs;
            let tome = self.jobs.get(index).tome;
            self.spin(&[tome], ctx);
            self.step(index, helpers, ctx);
            return StartOutcome::Yes;
        }
        StartOutcome::Nothing
    }

    /// Lets a waiting client write to the next idle tome with enough space.
    fn begin_client<O: Observer<Self>>(&mut self, ctx: &mut Context<'_, Self, O>) -> StartOutcome {
        let Some(Ingest { session, .. }) = self.scenario.ingest else {
            return StartOutcome::Nothing;
        };
        let size = session.get().min(self.unwritten);
        if self.clients == 0 || size == 0 {
            return StartOutcome::Nothing;
        }
        if self.tokens == 0 {
            return StartOutcome::NoToken;
        }
        let count = self.layout.members();
        let found = (0..count).map(|step| (self.cursor + step) % count).find(|place| {
            let tome = self.tomes[self.layout.across(*place) as usize];
            !tome.is_busy && !tome.is_lost && tome.room >= size
        });
        let Some(place) = found else { return StartOutcome::Nothing };
        self.cursor = (place + 1) % count;
        let tome = self.layout.across(place);
        self.clients -= 1;
        self.unwritten -= size;
        self.tokens -= 1;
        self.tomes[tome as usize].room -= size;
        self.spin(&[tome], ctx);
        let left = self.layout.parity_of(tome);
        let index = self.jobs.put(Job::new(Kind::Protection, tome, size, left));
        let lasts = takes(size, self.scenario.rates.ingest);
        let at = ctx.now() + self.scenario.spin_up + lasts;
        ctx.put(at, ScheduledEvent(PendingEvent::Acked(index)));
        StartOutcome::Yes
    }

    fn acked<O: Observer<Self>>(&mut self, index: JobIndex, ctx: &mut Context<'_, Self, O>) {
        let now = ctx.now();
        let job = self.jobs.get_mut(index);
        job.since = now;
        let size = job.bytes;
        ctx.put(
            now + takes(size, self.scenario.rates.segment),
            ScheduledEvent(PendingEvent::Coded(index)),
        );
        self.stats.acknowledged(now, size);
        ctx.notify(Observation::Acknowledged(size));
        self.clients += 1;
    }

    /// Handles a tome that has computed the parity of its segments: it continues if nothing is
    /// ahead of it, or spins down and waits.
    fn coded<O: Observer<Self>>(&mut self, index: JobIndex, ctx: &mut Context<'_, Self, O>) {
        let tome = self.jobs.get(index).tome;
        if self.drop_if_lost(index, ctx) {
            self.sleep(tome, ctx);
            return;
        }
        let first = self.scenario.ingest.map_or(TokenPriority::Protection, |ingest| ingest.first);
        let is_next = self.rebuilds.is_empty()
            && self.protections.is_empty()
            && (first == TokenPriority::Protection || self.clients == 0);
        if is_next
            && let Some(helpers) = self.helpers(index)
            && let needs = u32::try_from(helpers.len()).unwrap_or(u32::MAX)
            && needs <= self.tokens
        {
            self.tokens -= needs;
            self.step(index, helpers, ctx);
            return;
        }
        self.sleep(tome, ctx);
        self.protections.push_back(index);
    }

    /// Returns the helpers of the next step if all are idle; an empty list if nothing is left to
    /// do.
    fn helpers(&mut self, index: JobIndex) -> Option<Vec<u32>> {
        let tomes = &self.tomes;
        let job = self.jobs.get_mut(index);
        if job.kind == Kind::Protection {
            // A parity tome being rebuilt includes the written data anyway.
            job.left.retain(|left| !tomes[*left as usize].is_lost);
        }
        let together = match job.kind {
            Kind::Protection => 1,
            Kind::Rebuild => self.scenario.together() as usize,
        };
        let resting = job.left.iter().copied().filter(|left| !tomes[*left as usize].is_busy);
        let helpers: Vec<u32> = resting.take(together).collect();
        (helpers.len() == together.min(job.left.len())).then_some(helpers)
    }

    /// Starts a step: the job holds the tokens of its helpers, and its own tome spins.
    fn step<O: Observer<Self>>(
        &mut self,
        index: JobIndex,
        helpers: Vec<u32>,
        ctx: &mut Context<'_, Self, O>,
    ) {
        self.spin(&helpers, ctx);
        let job = self.jobs.get_mut(index);
        job.left.retain(|left| !helpers.contains(left));
        let lasts = job.step_duration(&self.scenario, helpers.len());
        job.helpers = helpers;
        let at = ctx.now() + self.scenario.spin_up + lasts;
        ctx.put(at, ScheduledEvent(PendingEvent::Done(index)));
    }

    /// Handles the end of a step, when its helpers have spun down: the next ones follow, or the job
    /// ends, or it waits.
    fn passed<O: Observer<Self>>(&mut self, index: JobIndex, ctx: &mut Context<'_, Self, O>) {
        let job = self.jobs.get_mut(index);
        let (tome, kind) = (job.tome, job.kind);
        let helpers = std::mem::take(&mut job.helpers);
        job.stepped();
        self.stop(&helpers, ctx);
        let tokens = u32::try_from(helpers.len()).unwrap_or(u32::MAX);
        let goes_on = match kind {
            Kind::Protection => !self.drop_if_lost(index, ctx),
            Kind::Rebuild => self.replan(index, ctx),
        };
        if !goes_on {
            self.tokens += tokens;
            self.sleep(tome, ctx);
            return;
        }
        match self.helpers(index) {
            Some(next) if next.is_empty() => {
                self.tokens += tokens;
                self.ended(index, ctx);
                self.sleep(tome, ctx);
            }
            Some(next) => self.step(index, next, ctx),
            None => {
                self.tokens += tokens;
                self.sleep(tome, ctx);
                self.queue(kind).push_front(index);
            }
        }
    }

    fn ended<O: Observer<Self>>(&mut self, index: JobIndex, ctx: &mut Context<'_, Self, O>) {
        let now = ctx.now();
        let job = self.jobs.take(index);
        match job.kind {
            Kind::Protection => {
                self.stats.protected(now, job.since, job.bytes);
                ctx.notify(Observation::Protected(job.bytes));
            }
            Kind::Rebuild => {
                self.tomes[job.tome as usize].is_lost = false;
                self.stats.rebuilt(now, &job);
                ctx.notify(Observation::Lost(-1));
            }
        }
    }

    /// Fails a tome: its unprotected data is lost, and a replacement must be filled.
    fn fail<O: Observer<Self>>(&mut self, tome: u32, ctx: &mut Context<'_, Self, O>) {
        self.stats.failures += 1;
        if self.tomes[tome as usize].is_lost || tome >= self.layout.members() {
            return;
        }
        self.tomes[tome as usize].is_lost = true;
        ctx.notify(Observation::Lost(1));
        let waiting: Vec<JobIndex> = self.protections.iter().copied().collect();
        let of_tome = |index: &JobIndex| self.jobs.get(*index).tome == tome;
        let lost: Vec<JobIndex> = waiting.into_iter().filter(of_tome).collect();
        self.protections.retain(|index| !lost.contains(index));
        for index in lost {
            self.drop_if_lost(index, ctx);
        }
        let size = bytes(self.scenario.capacity) * self.scenario.filled;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a disk's")]
        let mut job = Job::new(Kind::Rebuild, tome, size as u64, Vec::new());
        job.since = ctx.now();
        let index = self.jobs.put(job);
        if self.plan(index, ctx) {
            self.rebuilds.push_back(index);
        }
    }

    /// Chooses the tomes that a rebuild reads from; returns false if too few are left and data is
    /// lost.
    fn plan<O: Observer<Self>>(&mut self, index: JobIndex, ctx: &mut Context<'_, Self, O>) -> bool {
        let tome = self.jobs.get(index).tome;
        let data = self.scenario.group.data as usize;
        let live = |other: &u32| !self.tomes[*other as usize].is_lost;
        let left: Vec<u32> = self.layout.others(tome).filter(live).take(data).collect();
        if left.len() < data {
            self.jobs.take(index);
            self.tomes[tome as usize].is_lost = false;
            self.stats.groups_lost += 1;
            ctx.notify(Observation::Lost(-1));
            return false;
        }
        self.jobs.get_mut(index).restart(left);
        true
    }

    /// Restarts a rebuild from other tomes if one that it still needs is lost: every coefficient of
    /// the sum then changes.
    fn replan<O: Observer<Self>>(
        &mut self,
        index: JobIndex,
        ctx: &mut Context<'_, Self, O>,
    ) -> bool {
        let left = &self.jobs.get(index).left;
        if !left.iter().any(|tome| self.tomes[*tome as usize].is_lost) {
            return true;
        }
        self.stats.restarts += 1;
        self.plan(index, ctx)
    }

    /// Drops the unprotected data of a job whose tome is lost; returns whether it did.
    fn drop_if_lost<O: Observer<Self>>(
        &mut self,
        index: JobIndex,
        ctx: &mut Context<'_, Self, O>,
    ) -> bool {
        if !self.tomes[self.jobs.get(index).tome as usize].is_lost {
            return false;
        }
        let job = self.jobs.take(index);
        self.stats.dropped(job.bytes);
        ctx.notify(Observation::Dropped(job.bytes));
        true
    }

    /// Starts the limited scrub of a disk, after which it spins down and gives its token back.
    fn sleep<O: Observer<Self>>(&mut self, tome: u32, ctx: &mut Context<'_, Self, O>) {
        ctx.put(
            ctx.now() + self.scenario.limited_scrub,
            ScheduledEvent(PendingEvent::SpunDown(tome)),
        );
    }

    fn spin<O: Observer<Self>>(&mut self, tomes: &[u32], ctx: &mut Context<'_, Self, O>) {
        for tome in tomes {
            let tome = &mut self.tomes[*tome as usize];
            assert!(!tome.is_busy, "a tome is in one phase at a time");
            tome.is_busy = true;
        }
        self.change_spinning(i32::try_from(tomes.len()).unwrap_or(i32::MAX), ctx);
    }

    fn stop<O: Observer<Self>>(&mut self, tomes: &[u32], ctx: &mut Context<'_, Self, O>) {
        for tome in tomes {
            let tome = &mut self.tomes[*tome as usize];
            assert!(tome.is_busy, "only a spinning tome can stop");
            tome.is_busy = false;
        }
        self.change_spinning(-i32::try_from(tomes.len()).unwrap_or(i32::MAX), ctx);
    }

    fn change_spinning<O: Observer<Self>>(&mut self, delta: i32, ctx: &mut Context<'_, Self, O>) {
        let spinning = self.stats.change_spinning(ctx.now(), delta);
        assert!(spinning <= self.scenario.tokens(), "no more disks spin than there are tokens");
        ctx.notify(Observation::SpinningChanged(delta));
    }
}

/// Generates random failures of tomes.
#[derive(Debug)]
struct Failures {
    gaps: Exponentials,
    tomes: crate::workload::Draws,
    count: u32,
    gap_s: f64,
    at: Instant,
}

impl Failures {
    fn new(scenario: &Scenario, seed: &Seed) -> Self {
        let rate = scenario.failures_per_hour * f64::from(scenario.tomes) / 3_600.0;
        Self {
            gaps: Exponentials::new(seed, b"failures"),
            tomes: crate::workload::Draws::new(seed, b"failing tomes"),
            count: scenario.tomes,
            gap_s: 1.0 / rate,
            at: Instant::ZERO,
        }
    }
}

impl Iterator for Failures {
    type Item = (Instant, Arrival);

    fn next(&mut self) -> Option<Self::Item> {
        if self.gap_s.is_infinite() {
            return None;
        }
        self.at = self.at + Duration::from_secs_f64(self.gaps.draw() * self.gap_s);
        let tome = u32::try_from(self.tomes.below(u64::from(self.count))).unwrap_or(0);
        Some((self.at, Arrival::Fails { tome }))
    }
}
