//! Garbage collection: removes the bytes of obsolete versions, and of writes that never became a
//! version.
//!
//! ```text
//! collect   read rows --> erase all fragments of a dead version --> all sites confirm --> gone
//! sweep     a fragment of an unknown write: read rows --> a version uses it: keep
//!                   none does, and all rows were read: erase
//!                   none does, as far as some rows say: settle a no-op, so none ever will; erase
//! ```
//!
//! A version is marked gone only after its fragments are removed. In the other order, fragments
//! could remain that no row names. If a site does not answer, the version stays and the next run
//! retries.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Controller, Instant, Outbox, RandomStream, UnixTime};

use crate::embedded_proposer::EmbeddedProposer;
use crate::get::{child, noop};
use crate::put::fragments;
use crate::{
    Fragment, FragmentOp, Goal, KnownVersions, OpCommand, OpEvent, OpResult, Operation, Outcome,
    Terms, Version, WriteId,
};

/// Retention policy of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How many of the newest puts to keep; all if none.
    pub newest: Option<usize>,
    /// Versions that became obsolete after this time are kept: a read of them may still be running.
    pub obsolete_after: UnixTime,
}

/// Result of a garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectResult {
    /// Versions that are gone.
    pub gone: Vec<Version>,
    /// Versions with fragments that could not be removed everywhere.
    pub left: Vec<Version>,
    /// Whether enough rows could be read to decide.
    pub conclusive: bool,
}

/// Garbage collection of one object.
#[derive(Debug)]
pub struct Collect {
    terms: Terms,
    keep: Retention,
    agreement: EmbeddedProposer,
    erasing: Option<BTreeMap<Fragment, (Version, Option<OpResult>)>>,
    dead: Vec<Version>,
    end: Option<CollectResult>,
}

impl Collect {
    /// Creates a garbage collection.
    #[must_use]
    pub fn new(terms: Terms, keep: Retention, random: RandomStream) -> Self {
        Self {
            agreement: EmbeddedProposer::new(terms.clone(), Goal::Read, None, random),
            terms,
            keep,
            erasing: None,
            dead: Vec::new(),
            end: None,
        }
    }

    fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }

    fn conclude(&mut self, out: &mut Outbox<OpCommand>) {
        if self.erasing.is_none() {
            match self.agreement.outcome() {
                None => return,
                Some(Outcome::Seen) => self.erase(out),
                Some(_) => return self.end = Some(CollectResult::default()),
            }
        }
        let Some(erasing) = &self.erasing else { return };
        if erasing.values().any(|(_, result)| result.is_none()) {
            return;
        }
        let done =
            |result: Option<OpResult>| matches!(result, Some(OpResult::Done | OpResult::Absent));
        let left: BTreeSet<Version> = erasing
            .values()
            .filter(|(_, result)| !done(*result))
            .map(|(version, _)| *version)
            .collect();
        let gone = self.dead.iter().copied().filter(|version| !left.contains(version));
        let gone: Vec<Version> = gone.collect();
        let mut known = self.known().clone();
        for version in &gone {
            known.mark_gone(*version);
        }
        if !gone.is_empty() {
            for site in &self.terms.voters {
                out.push(OpCommand::Notify { site: *site, known: known.clone() });
            }
        }
        self.end = Some(CollectResult { gone, left: left.into_iter().collect(), conclusive: true });
    }

    fn erase(&mut self, out: &mut Outbox<OpCommand>) {
        self.dead = self.known().dead(self.keep.newest, self.keep.obsolete_after);
        let mut erasing = BTreeMap::new();
        for version in &self.dead {
            let Some(decided) = self.known().decided.get(version) else { continue };
            for fragment in fragments(&decided.value) {
                erasing.insert(fragment, (*version, None));
                out.push(OpCommand::Fragment(fragment, FragmentOp::Erase));
            }
        }
        self.erasing = Some(erasing);
    }
}

impl Controller for Collect {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        if let OpEvent::Fragment(fragment, FragmentOp::Erase, result) = &event
            && let Some((_, entry)) =
                self.erasing.as_mut().and_then(|erasing| erasing.get_mut(fragment))
        {
            entry.get_or_insert(*result);
        }
        self.agreement.handle(now, &event, out);
        self.conclude(out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() { None } else { self.agreement.deadline() }
    }

    fn check(&self) {
        self.agreement.check();
    }
}

impl Operation for Collect {
    type End = CollectResult;

    fn end(&self) -> Option<&CollectResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }
}

/// Result of the orphan sweep of one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepResult {
    /// A version uses it.
    Kept,
    /// No version uses it or ever will; it was erased.
    Erased,
    /// Its use is unknown at the moment, or it could not be erased.
    Left,
}

/// Orphan sweep of one fragment: checks whether it belongs to a version and erases it if not. Only
/// for fragments older than any write that may still be running.
#[derive(Debug)]
pub struct Sweep {
    terms: Terms,
    fragment: Fragment,
    random: RandomStream,
    agreement: EmbeddedProposer,
    settled: bool,
    erasing: bool,
    end: Option<SweepResult>,
}

impl Sweep {
    /// Creates an orphan sweep.
    #[must_use]
    pub fn new(terms: Terms, fragment: Fragment, mut random: RandomStream) -> Self {
        let inner = child(&mut random);
        Self {
            agreement: EmbeddedProposer::new(terms.clone(), Goal::ReadAll, None, inner),
            terms,
            fragment,
            random,
            settled: false,
            erasing: false,
            end: None,
        }
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        if self.erasing {
            return;
        }
        match self.agreement.outcome() {
            None => return,
            Some(Outcome::Seen) => {}
            Some(_) => return self.end = Some(SweepResult::Left),
        }
        let known = self.agreement.proposer().known();
        if let Some(keep) = is_in_use(known, self.fragment.write) {
            if keep {
                self.end = Some(SweepResult::Kept);
            } else {
                self.erase(out);
            }
            return;
        }
        let rows = self.agreement.proposer().rows();
        let write = self.fragment.write;
        let is_accepted = |instance: &crate::Instance| {
            instance.accepted.as_ref().is_some_and(|accepted| accepted.value.id == write)
        };
        let nowhere = !rows.values().any(|row| row.open.values().any(is_accepted));
        let all = rows.len() == self.terms.quorums.sites();
        if self.settled || (nowhere && all) {
            return self.erase(out);
        }
        // A row may still hold this write and have it decided. Settling rules that out for this
        // version. Only its writer may propose it for another version, and the writer is long gone.
        self.settled = true;
        let (version, known) = (known.last().next(), known.clone());
        let goal = Goal::Settle { version, noop: noop(&mut self.random) };
        let inner = child(&mut self.random);
        self.agreement.restart(self.terms.clone(), goal, known, inner);
        self.agreement.handle(now, &OpEvent::Begin, out);
    }

    fn erase(&mut self, out: &mut Outbox<OpCommand>) {
        self.erasing = true;
        out.push(OpCommand::Fragment(self.fragment, FragmentOp::Erase));
    }
}

/// Returns whether a version still uses a write's fragments; none if no known version belongs to
/// the write.
fn is_in_use(known: &KnownVersions, write: WriteId) -> Option<bool> {
    let uses_write = |decided: &crate::Decided| {
        let put = decided.value.put();
        let coded = put.and_then(|put| put.coded(decided.value.id));
        coded.is_some_and(|(id, ..)| id == write)
    };
    if known.decided.values().any(uses_write) {
        return Some(true);
    }
    known.version_of(write).map(|_| false)
}

impl Controller for Sweep {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        if let OpEvent::Fragment(fragment, FragmentOp::Erase, result) = &event
            && *fragment == self.fragment
        {
            let gone = matches!(result, OpResult::Done | OpResult::Absent);
            self.end = Some(if gone { SweepResult::Erased } else { SweepResult::Left });
            return;
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

impl Operation for Sweep {
    type End = SweepResult;

    fn end(&self) -> Option<&SweepResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }
}
