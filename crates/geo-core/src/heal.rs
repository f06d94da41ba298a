//! Repairs one object: settles open versions, updates rows that lag behind, and rebuilds missing
//! fragments.
//!
//! ```text
//! read all rows --> settle the version after the last, when a row has something for it --.
//!     ^ ^----------------------------------------------------------------- (again) -------'
//!     |   probe all fragments --> rebuild those that are certainly absent
//!     '------ make versions obsolete that were never acknowledged and cannot be read, once
//!             their absent fragments are fenced
//!         notify all rows, as the last step
//! ```
//!
//! Settling involves only some of the rows, so all are read again before the result says anything
//! about them. If not all rows could be read in time, the object is reported neither as whole nor
//! as incomplete. The result lists the sites of the unread rows, and the repair can be retried.
//!
//! The proposer of a version may still be writing fragments, and somebody may have read the version
//! just after the probe. So a version is made obsolete only once so many of its fragments are
//! fenced that nobody will ever read it.
//!
//! Rows are notified last: an interrupted repair can simply be run again.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Controller, Instant, Outbox, RandomStream, UnixTime};

use crate::embedded_proposer::EmbeddedProposer;
use crate::get::{child, noop};
use crate::put::fragments;
use crate::{
    Change, Condition, Decided, Fragment, FragmentOp, Goal, Hole, KnownVersions, OpCommand,
    OpEvent, OpResult, Operation, Outcome, SiteIndex, Terms, Value, Version, WriteId, limits,
};

/// Result of repairing an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealResult {
    /// Whether the object is whole: every version is decided, all rows know it, and all fragments
    /// exist.
    pub whole: bool,
    /// Versions settled by the repair.
    pub settled: u32,
    /// Fragments that were rebuilt.
    pub rebuilt: u32,
    /// Fragments that are still missing or in an unknown state.
    pub missing: Vec<Fragment>,
    /// Acknowledged versions with too few fragments left.
    pub lost: Vec<Version>,
    /// Versions that were never acknowledged and were made obsolete.
    pub obsoleted: Vec<Version>,
    /// Voting sites whose rows were not read in time.
    pub unread: Vec<SiteIndex>,
    /// Sites whose rows do not vote because they lost their promises. Only [`crate::Restore`]
    /// changes that.
    pub silent: Vec<SiteIndex>,
    /// Whether enough rows could be read to inspect the object at all.
    pub conclusive: bool,
}

impl HealResult {
    /// Whether the object is reported neither as whole nor as incomplete: rows were not read in
    /// time, or writes went on throughout.
    #[must_use]
    pub const fn is_unsure(&self) -> bool {
        !self.whole && self.missing.is_empty() && self.lost.is_empty()
    }
}

/// Target state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealPolicy {
    /// How many of its fragments make a version durable.
    pub needed: usize,
    /// Whether open versions are settled: not while their proposers may still be running.
    pub finish: bool,
    /// How many puts are kept; all if none. Older ones are not repaired.
    pub keep: Option<usize>,
}

#[derive(Debug)]
enum Stage {
    /// Reading rows, or settling a version.
    Agreeing,
    /// Probing fragments.
    Probing,
    /// Rebuilding fragments.
    Rebuilding,
    /// Fencing fragments of versions to be made obsolete.
    Fencing(Vec<Version>),
    /// Making versions obsolete.
    Obsoleting(Vec<Version>),
    Done,
}

/// Repair of one object.
#[derive(Debug)]
pub struct Heal {
    terms: Terms,
    policy: HealPolicy,
    /// Timestamp of what it writes.
    time: UnixTime,
    random: RandomStream,
    agreement: EmbeddedProposer,
    stage: Stage,
    /// Fragments of visible versions, with their state.
    fragments: BTreeMap<Fragment, Option<OpResult>>,
    /// The version of each write that has fragments.
    versions: BTreeMap<WriteId, Version>,
    /// Fragments that can never be written.
    fenced: BTreeSet<Fragment>,
    /// Whether it started over because a version seemed to be lost.
    rechecked: bool,
    /// Whether something was decided since all rows were read.
    is_stale: bool,
    /// Agreements so far.
    agreements: u32,
    healed: HealResult,
    end: Option<HealResult>,
}

impl Heal {
    /// Creates a repair. What it writes carries this time.
    #[must_use]
    pub fn new(terms: Terms, policy: HealPolicy, time: UnixTime, mut random: RandomStream) -> Self {
        let inner = child(&mut random);
        Self {
            agreement: EmbeddedProposer::new(terms.clone(), Goal::ReadAll, None, inner),
            terms,
            policy,
            time,
            random,
            stage: Stage::Agreeing,
            fragments: BTreeMap::new(),
            versions: BTreeMap::new(),
            fenced: BTreeSet::new(),
            rechecked: false,
            is_stale: false,
            agreements: 0,
            healed: HealResult::default(),
            end: None,
        }
    }

    /// What is known of the object.
    #[must_use]
    pub const fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }

    fn agree(&mut self, goal: Goal, now: Instant, out: &mut Outbox<OpCommand>) {
        self.agreements += 1;
        self.is_stale = !matches!(goal, Goal::ReadAll);
        let (known, inner) = (self.known().clone(), child(&mut self.random));
        self.agreement.restart(self.terms.clone(), goal, known, inner);
        self.agreement.handle(now, &OpEvent::Begin, out);
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        match &self.stage {
            Stage::Agreeing => self.after_agreement(now, out),
            Stage::Probing if self.has_pending() => {}
            Stage::Probing => self.after_probe(now, out),
            Stage::Rebuilding if self.has_pending() => {}
            Stage::Rebuilding => self.fence(now, out),
            Stage::Fencing(_) if self.has_pending() => {}
            Stage::Fencing(versions) => {
                let versions = versions.clone();
                self.obsolete(versions, now, out);
            }
            Stage::Obsoleting(versions) => {
                let versions = versions.clone();
                match self.agreement.outcome() {
                    None => {}
                    Some(Outcome::Written(_)) => {
                        self.healed.obsoleted.extend(versions);
                        self.start_over(now, out);
                    }
                    Some(_) => self.finish(out),
                }
            }
            Stage::Done => {}
        }
    }

    fn has_pending(&self) -> bool {
        self.fragments.values().any(Option::is_none)
    }

    /// Continues after rows were read or a version was settled: with the next version, or the
    /// fragments.
    fn after_agreement(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        match self.agreement.outcome() {
            None => return,
            Some(Outcome::Seen) => {}
            Some(_) => return self.give_up(),
        }
        let may_go_on = self.agreements < limits::HEAL_AGREEMENTS_MAX;
        if self.policy.finish && may_go_on && self.is_next_open() {
            self.healed.settled += 1;
            let (version, noop) = (self.known().last().next(), noop(&mut self.random));
            return self.agree(Goal::Settle { version, noop }, now, out);
        }
        match self.known().visible(usize::MAX) {
            Err(_) if !may_go_on => self.give_up(),
            Err(Hole(version)) => {
                let noop = noop(&mut self.random);
                self.agree(Goal::Settle { version, noop }, now, out);
            }
            Ok(_) if self.is_stale && may_go_on => self.agree(Goal::ReadAll, now, out),
            Ok(visible) => {
                let dead = self.known().dead(self.policy.keep, UnixTime::from_millis(u64::MAX));
                let live = visible.iter().filter(|(version, _)| !dead.contains(version));
                let visible: Vec<_> = live.map(|(v, d)| (*v, d.value.clone())).collect();
                self.probe(&visible, out);
                self.conclude(now, out);
            }
        }
    }

    /// Whether a row has accepted a value for the version after the last.
    fn is_next_open(&self) -> bool {
        let next = self.known().last().next();
        self.agreement.proposer().rows().values().any(|row| row.accepted(next).is_some())
    }

    /// Ends because too few rows could be read.
    fn give_up(&mut self) {
        self.stage = Stage::Done;
        self.record_unread();
        self.end = Some(self.healed.clone());
    }

    /// Records the sites whose rows were not read.
    fn record_unread(&mut self) {
        let proposer = self.agreement.proposer();
        let unread = self.terms.voters.iter().filter(|site| !proposer.rows().contains_key(site));
        self.healed.unread = unread.copied().collect();
        self.healed.silent = proposer.silent().iter().copied().collect();
    }

    /// Starts over: reads all rows and probes all fragments again.
    fn start_over(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        self.fragments.clear();
        self.versions.clear();
        self.healed.lost.clear();
        self.stage = Stage::Agreeing;
        self.agree(Goal::ReadAll, now, out);
    }

    fn probe(&mut self, visible: &[(Version, Value)], out: &mut Outbox<OpCommand>) {
        self.stage = Stage::Probing;
        for (version, value) in visible {
            for fragment in fragments(value) {
                self.versions.insert(fragment.write, *version);
                if self.fragments.insert(fragment, None).is_none() {
                    out.push(OpCommand::Fragment(fragment, FragmentOp::Probe));
                }
            }
        }
    }

    /// Continues after the probe: rebuilds the fragments that are certainly absent, where enough
    /// others exist.
    fn after_probe(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        self.stage = Stage::Rebuilding;
        let mut rebuild = Vec::new();
        for write in self.versions.keys().copied().collect::<Vec<_>>() {
            let of_write = |(fragment, result): (&Fragment, &Option<OpResult>)| {
                (fragment.write == write).then_some((*fragment, *result))
            };
            let all: Vec<_> = self.fragments.iter().filter_map(of_write).collect();
            let existing = all.iter().filter(|(_, result)| *result == Some(OpResult::Done)).count();
            let absent = all.iter().filter(|(_, result)| *result == Some(OpResult::Absent));
            if existing >= self.data(write) {
                rebuild.extend(absent.map(|(fragment, _)| *fragment));
            }
        }
        for fragment in rebuild {
            self.fragments.insert(fragment, None);
            out.push(OpCommand::Fragment(fragment, FragmentOp::Rebuild));
        }
        self.conclude(now, out);
    }

    /// Returns how many fragments are needed to decode a write.
    fn data(&self, write: WriteId) -> usize {
        let version = self.versions.get(&write);
        let decided = version.and_then(|version| self.known().decided.get(version));
        let put = decided.and_then(|decided| decided.value.put());
        let coded = put.and_then(|put| put.coded(write));
        coded.map_or(usize::MAX, |(_, _, coded)| usize::from(coded.data))
    }

    /// Fences the absent fragments of versions that were never acknowledged and cannot be read, and
    /// records lost versions.
    fn fence(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        let mut obsolete = Vec::new();
        for (write, version) in self.versions.clone() {
            let (existing, absent) = self.count_fragments(write);
            let all = self.fragments.keys().filter(|fragment| fragment.write == write).count();
            let decided = self.known().decided.get(&version);
            let durable = decided.is_some_and(|decided| decided.durable);
            // So many are certainly absent that it is unreadable, whatever the state of the others.
            if existing >= self.data(write) || all - absent >= self.data(write) {
                continue;
            }
            if durable {
                self.healed.lost.push(version);
            } else if self.policy.finish {
                obsolete.push(version);
            }
        }
        if !self.healed.lost.is_empty() && !self.rechecked {
            // They may have been removed since the rows were read; fresh rows say so.
            self.rechecked = true;
            return self.start_over(now, out);
        }
        if obsolete.is_empty() || self.agreements >= limits::HEAL_AGREEMENTS_MAX {
            return self.finish(out);
        }
        let absent = |fragment: &Fragment, result: Option<OpResult>| {
            let version = self.versions.get(&fragment.write);
            result == Some(OpResult::Absent) && version.is_some_and(|it| obsolete.contains(it))
        };
        let fence = self.fragments.iter().filter(|(fragment, result)| absent(fragment, **result));
        let fence: Vec<_> = fence.map(|(fragment, _)| *fragment).collect();
        self.stage = Stage::Fencing(obsolete);
        for fragment in fence {
            self.fragments.insert(fragment, None);
            out.push(OpCommand::Fragment(fragment, FragmentOp::Fence));
        }
    }

    /// Makes versions obsolete that have so many fenced fragments that nobody will ever read them.
    fn obsolete(&mut self, mut obsolete: Vec<Version>, now: Instant, out: &mut Outbox<OpCommand>) {
        let versions = self.versions.clone();
        let is_unreadable = |version: &Version| {
            let write =
                versions.iter().find(|(_, other)| *other == version).map(|(write, _)| *write);
            write.is_some_and(|write| {
                let fenced = self.fenced.iter().filter(|fragment| fragment.write == write);
                let all = self.fragments.keys().filter(|fragment| fragment.write == write);
                all.count() - fenced.count() < self.data(write)
            })
        };
        obsolete.retain(is_unreadable);
        if obsolete.is_empty() {
            return self.finish(out);
        }
        let change = Change::DeleteVersions(obsolete.clone());
        let value = Value::new(WriteId::draw(&mut self.random), self.time, change);
        self.stage = Stage::Obsoleting(obsolete);
        let goal = Goal::Write { value, condition: Condition::Always };
        self.agree(goal, now, out);
    }

    /// Returns how many fragments of a write exist, and how many certainly do not.
    fn count_fragments(&self, write: WriteId) -> (usize, usize) {
        let all = self.fragments.iter().filter(|(fragment, _)| fragment.write == write);
        let count =
            |wanted: OpResult| all.clone().filter(|(_, result)| **result == Some(wanted)).count();
        (count(OpResult::Done), count(OpResult::Absent))
    }

    /// Notifies all rows of what is known, and of which versions are durable.
    fn finish(&mut self, out: &mut Outbox<OpCommand>) {
        self.stage = Stage::Done;
        let mut known = self.known().clone();
        for (write, version) in &self.versions {
            let enough =
                self.count_fragments(*write).0 >= self.policy.needed.max(self.data(*write));
            if let Some(decided) = self.known().decided.get(version)
                && enough
            {
                known.learn(*version, &Decided { value: decided.value.clone(), durable: true });
            }
        }
        for site in &self.terms.voters {
            out.push(OpCommand::Notify { site: *site, known: known.clone() });
        }
        let missing = self.fragments.iter().filter(|(_, result)| **result != Some(OpResult::Done));
        self.healed.missing = missing.map(|(fragment, _)| *fragment).collect();
        self.record_unread();
        self.healed.conclusive = true;
        let is_settled = !self.is_stale && !self.is_next_open();
        self.healed.whole =
            is_settled && self.healed.missing.is_empty() && self.healed.unread.is_empty();
        self.end = Some(self.healed.clone());
    }
}

impl Controller for Heal {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        if let OpEvent::Fragment(fragment, op, result) = &event
            && let Some(entry @ None) = self.fragments.get_mut(fragment)
        {
            // A fenced fragment is absent.
            let fenced = *op == FragmentOp::Fence && *result == OpResult::Done;
            self.healed.rebuilt +=
                u32::from(*op == FragmentOp::Rebuild && *result == OpResult::Done);
            *entry = Some(if fenced { OpResult::Absent } else { *result });
            if fenced {
                self.fenced.insert(*fragment);
            }
        }
        if let OpEvent::Changed(terms) = &event {
            self.terms = (**terms).clone();
        }
        self.agreement.handle(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() { None } else { self.agreement.deadline() }
    }

    fn check(&self) {
        self.agreement.check();
    }
}

impl Operation for Heal {
    type End = HealResult;

    fn end(&self) -> Option<&HealResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        Self::known(self)
    }
}
