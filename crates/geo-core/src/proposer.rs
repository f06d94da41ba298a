//! One agreement on one object, from the first request to the result: a write that becomes the next
//! version, or a read that learns the last one.
//!
//! ```text
//! write:  read (nearest row) --> fast round --all of a fast quorum--> chosen
//!             |                     | no            ^ other value chosen: next version
//!             | refused             v               |
//!             v                  prepare --promised--> accept --> chosen
//!         read (a quorum)           ^------- lost: back off -'
//! read:   read (a quorum) --certain--> seen;   not certain --> prepare (--> accept) --> seen
//! ```
//!
//! A write is proposed for a version only if another write is known to be decided for the version
//! before. If it were proposed for both, it could be chosen twice, and removing one version would
//! delete the bytes of the other. If another value may have been chosen, it is proposed instead of
//! ours.
//!
//! Clocks order nothing. Not here: bytes (`put`, `get`), connections, retries of a site's
//! conditional writes.

mod round;
mod write_phase;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Controller, Duration, Instant, Outbox, RandomStream};

use crate::choose::{Choice, Judgement, choose, judge};
use crate::proposer::round::Round;
use crate::{
    Ballot, Command, Decided, Hole, KnownVersions, Request, Row, SiteIndex, Terms, Value, Verdict,
    Version, limits,
};

/// Goal of an agreement.
#[derive(Clone, Debug)]
pub enum Goal {
    /// To learn the last version.
    Read,
    /// The same, from all rows that can be read within a round.
    ReadAll,
    /// To have a value decided for the next version.
    Write {
        /// The value.
        value: Value,
        /// Its precondition.
        condition: Condition,
    },
    /// To have some value decided for a version: a no-op, if that is possible.
    Settle {
        /// The version.
        version: Version,
        /// A no-op.
        noop: Value,
    },
    /// To have enough sites promise to reject earlier ballots for the version after the last, so
    /// that a site that lost its rows may vote again.
    Promise,
}

/// Precondition of a write. It must hold at the version right before the one that the write
/// becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    Always,
    /// The object does not exist.
    Absent,
    /// The object exists.
    Present,
    /// Its latest version is this one.
    Is(Version),
}

impl Condition {
    fn is_met(self, latest: Option<Version>) -> bool {
        match self {
            Self::Always => true,
            Self::Absent => latest.is_none(),
            Self::Present => latest.is_some(),
            Self::Is(version) => latest == Some(version),
        }
    }
}

/// An event for a proposer.
#[derive(Clone, Debug)]
pub enum Event {
    /// Begin.
    Begin,
    /// A site answered, or failed to: then it is unknown whether it executed the request.
    Answered {
        /// The site.
        site: SiteIndex,
        /// Number of the request.
        call: u32,
        /// Its verdict and row.
        answer: Option<(Verdict, Row)>,
    },
    /// The terms have changed: the site map, or what is known of the sites.
    Changed(Box<Terms>),
    /// The deadline has passed.
    Timer,
}

/// A request that a proposer sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its destination.
    pub site: SiteIndex,
    /// Its number.
    pub call: u32,
    /// The request itself.
    pub request: Request,
}

/// How an agreement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The last version is known: nothing after it was decided when the read began.
    Seen,
    /// The value was decided for this version.
    Written(Version),
    /// Enough sites promised, for the version after the last one.
    Promised(Version, Ballot),
    /// The condition is not met; the known versions show why.
    Refused,
    /// Too few sites answered, and nothing was written.
    Unavailable,
    /// Too few sites answered, and the value may have been decided, or may still be.
    Indeterminate(Version),
}

/// Rounds between sites that an agreement took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Read rounds.
    pub read: u32,
    /// Fast rounds.
    pub fast: u32,
    /// Prepare rounds.
    pub prepare: u32,
    /// Classic rounds.
    pub accept: u32,
}

impl Rounds {
    /// Returns their sum.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.read + self.fast + self.prepare + self.accept
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Not started.
    New,
    /// Reading the nearest row.
    ReadingNearest,
    /// Reading a quorum of rows.
    Reading,
    /// Asking sites to accept in the fast round.
    Fast(Version),
    /// Asking sites to promise.
    Preparing(Version, Ballot),
    /// Asking sites to accept.
    Accepting(Version, Ballot, Value),
    /// Backing off after a lost ballot for this version, or after a read that too few sites
    /// answered.
    BackingOff(Option<Version>, Instant),
    /// Ended with an outcome.
    Done(Outcome),
}

/// One agreement: a Paxos proposer.
#[derive(Debug)]
pub struct Proposer {
    terms: Terms,
    goal: Goal,
    random: RandomStream,
    known: KnownVersions,
    /// Rows of voting sites, as read since it began.
    rows: BTreeMap<SiteIndex, Row>,
    /// Sites whose row does not vote.
    silent: BTreeSet<SiteIndex>,
    phase: Phase,
    round: Round,
    /// Whether a quorum was read since it began.
    confirmed: bool,
    /// Versions for which the value was proposed.
    proposed: BTreeSet<Version>,
    backoff: Duration,
    give_up: Option<Instant>,
    rounds: Rounds,
}

impl Proposer {
    /// Creates an agreement. If `known` is given, it skips reading the nearest row.
    #[must_use]
    pub fn new(
        terms: Terms,
        goal: Goal,
        known: Option<KnownVersions>,
        random: RandomStream,
    ) -> Self {
        let backoff = terms.backoff;
        let skip_first_read = known.is_some();
        Self {
            terms,
            goal,
            random,
            known: known.unwrap_or_default(),
            rows: BTreeMap::new(),
            silent: BTreeSet::new(),
            phase: Phase::New,
            round: Round::new(skip_first_read),
            confirmed: false,
            proposed: BTreeSet::new(),
            backoff,
            give_up: None,
            rounds: Rounds::default(),
        }
    }

    /// Continues the request numbers of an earlier agreement of the same operation.
    pub(crate) fn after(mut self, calls: u32) -> Self {
        self.round.call = calls;
        self
    }

    /// Number of its last request.
    pub(crate) const fn calls(&self) -> u32 {
        self.round.call
    }

    /// Returns the outcome, if it has ended.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Done(outcome) => Some(outcome),
            Phase::New
            | Phase::ReadingNearest
            | Phase::Reading
            | Phase::Fast(_)
            | Phase::Preparing(..)
            | Phase::Accepting(..)
            | Phase::BackingOff(..) => None,
        }
    }

    /// Returns what it knows of the object.
    #[must_use]
    pub const fn known(&self) -> &KnownVersions {
        &self.known
    }

    /// Returns the rows it read from voting sites.
    #[must_use]
    pub const fn rows(&self) -> &BTreeMap<SiteIndex, Row> {
        &self.rows
    }

    /// Returns the sites that answered that they lost their promises and do not vote.
    #[must_use]
    pub const fn silent(&self) -> &BTreeSet<SiteIndex> {
        &self.silent
    }

    /// Rounds between sites so far.
    #[must_use]
    pub const fn rounds(&self) -> Rounds {
        self.rounds
    }

    /// Whether its value was ever proposed to a site.
    #[must_use]
    pub fn has_proposed(&self) -> bool {
        !self.proposed.is_empty()
    }

    fn begin(&mut self, now: Instant, out: &mut Outbox<Ask>) {
        self.give_up = Some(now + self.terms.patience);
        match &self.goal {
            Goal::Read | Goal::ReadAll | Goal::Promise => self.read(now, out),
            Goal::Settle { version, .. } => {
                let version = *version;
                self.prepare(version, now, out);
            }
            Goal::Write { .. } if self.round.skip_first_read => self.propose(now, out),
            Goal::Write { .. } => {
                let nearest = self.terms.voters.first().copied();
                let Some(near) = nearest.filter(|site| !self.terms.down.contains(site)) else {
                    return self.propose(now, out);
                };
                self.phase = Phase::ReadingNearest;
                self.open_round(now);
                out.push(self.ask(near, Command::Read));
            }
        }
    }

    /// Reads a quorum of rows: asks all sites and uses the first that suffice.
    fn read(&mut self, now: Instant, out: &mut Outbox<Ask>) {
        self.phase = Phase::Reading;
        self.rounds.read += 1;
        self.ask_all(&Command::Read, now, out);
    }

    fn prepare(&mut self, version: Version, now: Instant, out: &mut Outbox<Ask>) {
        let seen = self.rows.values().filter_map(|row| row.seen(version)).max();
        let seen = seen.unwrap_or(Ballot::FAST).max(self.round.highest(version));
        let ballot = Ballot::after(seen, self.terms.epoch, &mut self.random);
        self.round.own = Some((version, ballot));
        self.phase = Phase::Preparing(version, ballot);
        self.rounds.prepare += 1;
        self.ask_all(&Command::Prepare { version, ballot }, now, out);
    }

    fn accept(
        &mut self,
        (version, ballot): (Version, Ballot),
        value: Value,
        now: Instant,
        out: &mut Outbox<Ask>,
    ) {
        if self.is_own(&value) {
            self.proposed.insert(version);
        }
        let command = Command::Accept { version, ballot, value: value.clone() };
        self.phase = Phase::Accepting(version, ballot, value);
        self.rounds.accept += 1;
        self.ask_all(&command, now, out);
    }

    /// Continues after an answer, if there are enough; `last` means that no more are waited for.
    fn conclude(&mut self, last: bool, now: Instant, out: &mut Outbox<Ask>) {
        match self.phase.clone() {
            Phase::ReadingNearest => {
                if last || self.round.answers() > 0 {
                    self.propose(now, out);
                }
            }
            Phase::Reading => self.conclude_reading(last, now, out),
            Phase::Fast(version) => self.conclude_fast(version, last, now, out),
            Phase::Preparing(version, ballot) => {
                self.conclude_promises((version, ballot), last, now, out);
            }
            Phase::Accepting(version, _, value) => {
                if self.known.has(version) {
                    return self.decided(version, now, out);
                }
                if self.round.oks() >= self.terms.quorums.classic() {
                    self.choose(version, value);
                    self.decided(version, now, out);
                } else if self.is_hopeless(self.terms.quorums.classic(), last) {
                    self.back_off(Some(version), now);
                }
            }
            Phase::New | Phase::BackingOff(..) | Phase::Done(_) => {}
        }
    }

    fn conclude_reading(&mut self, last: bool, now: Instant, out: &mut Outbox<Ask>) {
        let quorums = self.terms.quorums;
        if self.rows.len() < quorums.read() {
            if self.is_hopeless(quorums.read(), last) {
                self.back_off(None, now);
            }
            return;
        }
        let all = last || self.round.answers() == self.terms.voters.len();
        if !all && matches!(self.goal, Goal::ReadAll | Goal::Promise) {
            return;
        }
        loop {
            let version = self.known.last().next();
            let rows: Vec<&Row> = self.rows.values().collect();
            match judge(quorums, version, &rows) {
                Judgement::Chosen(value) => self.choose(version, value),
                Judgement::Nothing => return self.seen(now, out),
                Judgement::Open if all => return self.prepare(version, now, out),
                Judgement::Open => return,
            }
        }
    }

    /// Continues once the last version is known; fills holes below it first.
    fn seen(&mut self, now: Instant, out: &mut Outbox<Ask>) {
        self.confirmed = true;
        let hole = match &self.goal {
            // A row may vote again only if it knows of every version.
            Goal::Promise => self.known.first_hole(),
            Goal::Read | Goal::ReadAll | Goal::Write { .. } | Goal::Settle { .. } => {
                self.known.latest().err()
            }
        };
        if let Some(Hole(version)) = hole {
            return self.prepare(version, now, out);
        }
        match &self.goal {
            Goal::Write { .. } => self.propose(now, out),
            Goal::Promise => self.prepare(self.known.last().next(), now, out),
            Goal::Read | Goal::ReadAll | Goal::Settle { .. } => {
                self.phase = Phase::Done(Outcome::Seen);
            }
        }
    }

    fn conclude_promises(
        &mut self,
        (version, ballot): (Version, Ballot),
        last: bool,
        now: Instant,
        out: &mut Outbox<Ask>,
    ) {
        if self.known.has(version) {
            return self.decided(version, now, out);
        }
        let quorums = self.terms.quorums;
        let needed = match self.goal {
            // Enough that no value unknown to these sites can be chosen any more.
            Goal::Promise => quorums.promise().max(quorums.read()),
            Goal::Read | Goal::ReadAll | Goal::Write { .. } | Goal::Settle { .. } => {
                quorums.promise()
            }
        };
        if self.round.oks() < needed {
            if self.is_hopeless(needed, last) {
                self.back_off(Some(version), now);
            }
            return;
        }
        let rows: Vec<&Row> = self.round.promised().collect();
        let free = match choose(quorums, version, &rows) {
            Choice::Forced(value) => return self.accept((version, ballot), value, now, out),
            // Handled above: `known` would have it.
            Choice::Decided => return self.decided(version, now, out),
            Choice::Free if self.is_promise_goal(version) => {
                self.phase = Phase::Done(Outcome::Promised(version, ballot));
                return;
            }
            Choice::Free => self.own_value(version),
        };
        match free {
            Some(value) => self.accept((version, ballot), value, now, out),
            // No value was chosen below this ballot, which is later than the start of the read.
            None => self.seen(now, out),
        }
    }

    /// Whether the goal is only to get promises for this version.
    fn is_promise_goal(&self, version: Version) -> bool {
        matches!(self.goal, Goal::Promise) && version == self.known.last().next()
    }

    /// Returns the value to propose if any may be.
    fn own_value(&self, version: Version) -> Option<Value> {
        match &self.goal {
            Goal::Read | Goal::ReadAll | Goal::Promise => None,
            Goal::Settle { version: wanted, noop } => (*wanted == version).then(|| noop.clone()),
            Goal::Write { value, .. } => {
                let next = version == self.known.last().next();
                (next && self.condition_is_met()).then(|| value.clone())
            }
        }
    }

    /// Records that a value was chosen; every later quorum read will find it.
    fn choose(&mut self, version: Version, value: Value) {
        let durable = value.was_written();
        self.known.learn(version, &Decided { value, durable });
    }

    /// Continues after a version that it asked about was decided.
    fn decided(&mut self, version: Version, now: Instant, out: &mut Outbox<Ask>) {
        self.backoff = self.terms.backoff;
        match &self.goal {
            Goal::Write { .. } => self.propose(now, out),
            Goal::Settle { version: wanted, .. } if *wanted == version => {
                self.phase = Phase::Done(Outcome::Seen);
            }
            Goal::Read | Goal::ReadAll | Goal::Promise | Goal::Settle { .. } => {
                self.phase = Phase::Reading;
                self.conclude_reading(true, now, out);
            }
        }
    }

    /// Whether enough `Ok` answers can no longer arrive.
    fn is_hopeless(&self, needed: usize, last: bool) -> bool {
        let bad = self.round.answers() - self.round.oks();
        last || self.terms.voters.len() - bad < needed
    }

    /// Backs off after a lost ballot or read.
    fn back_off(&mut self, version: Option<Version>, now: Instant) {
        let spread = 1.0 - limits::BACKOFF_JITTER * self.random.unit();
        let backoff = Duration::from_secs_f64(self.backoff.as_secs_f64() * spread);
        let doubled = Duration::from_nanos(self.backoff.as_nanos().saturating_mul(2));
        self.backoff = doubled.min(limits::BACKOFF_MAX).max(self.terms.backoff);
        self.phase = Phase::BackingOff(version, now + backoff);
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox<Ask>) {
        if self.give_up.is_some_and(|give_up| now >= give_up) {
            return self.give_up();
        }
        let Phase::BackingOff(version, until) = self.phase else {
            if self.round.is_over(now) {
                self.conclude(true, now, out);
            }
            return;
        };
        if now < until {
            return;
        }
        match version {
            // Answers also carry what others had decided meanwhile.
            Some(version) if !self.known.has(version) => self.prepare(version, now, out),
            Some(version) => self.decided(version, now, out),
            None => self.read(now, out),
        }
    }

    fn give_up(&mut self) {
        let open = self.proposed.iter().find(|version| !self.known.has(**version));
        let outcome = match open {
            Some(version) => Outcome::Indeterminate(*version),
            None => Outcome::Unavailable,
        };
        self.phase = Phase::Done(outcome);
    }
}

impl Controller for Proposer {
    type Event = Event;
    type Command = Ask;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Ask>) {
        if matches!(self.phase, Phase::Done(_)) {
            return;
        }
        match event {
            Event::Begin => self.begin(now, out),
            Event::Changed(terms) => self.terms = *terms,
            Event::Timer => self.on_timer(now, out),
            Event::Answered { site, call, answer } => {
                self.handle_answer(site, call, answer);
                self.conclude(false, now, out);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let next = match self.phase {
            Phase::Done(_) | Phase::New => return None,
            Phase::BackingOff(_, until) => Some(until),
            Phase::ReadingNearest
            | Phase::Reading
            | Phase::Fast(_)
            | Phase::Preparing(..)
            | Phase::Accepting(..) => self.round.ends,
        };
        next.into_iter().chain(self.give_up).min()
    }

    fn check(&self) {
        if let Phase::Fast(version) | Phase::Preparing(version, _) = &self.phase
            && let Goal::Write { .. } = self.goal
            && self.proposed.contains(version)
        {
            let before = self.proposed.range(..*version).all(|before| self.known.has(*before));
            assert!(before, "proposed for {version} while an earlier one is open");
        }
        if let Some(Outcome::Written(version)) = self.outcome()
            && let Goal::Write { value, .. } = &self.goal
        {
            assert_eq!(self.known.write(*version), Some(value.id), "not what was decided");
        }
    }
}
