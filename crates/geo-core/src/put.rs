//! A write with its bytes: sites agree on the version while the fragments are in flight.
//!
//! Both begin at once, so a write without contention takes as long as the slower of the two: one
//! round between sites, or the bytes to the farthest site. It is acknowledged when both are done.

use std::collections::BTreeMap;

use fulgurite_units::{Controller, Duration, Instant, Outbox, RandomStream};

use crate::embedded_proposer::EmbeddedProposer;
use crate::{
    Condition, Fragment, FragmentOp, Goal, KnownVersions, OpCommand, OpEvent, OpResult, Operation,
    Outcome, Rounds, Terms, Value, Version,
};

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It is this version, and its bytes are on stable storage at as many sites as the policy
    /// requires.
    Done {
        /// The version.
        version: Version,
        /// Fragments that are not written, left to repair.
        missing: Vec<Fragment>,
    },
    /// The condition is not met.
    Refused,
    /// Nothing was written that a read could find.
    Unavailable,
    /// It may have become this version, or may still.
    Indeterminate(Version),
    /// Too few fragments could be written. If a version is named, it was decided all the same and
    /// must be made obsolete.
    Unwritten(Option<Version>),
}

/// A write.
#[derive(Debug)]
pub struct Write {
    agreement: EmbeddedProposer,
    terms: Terms,
    value: Value,
    /// The result of each fragment; none while it is in flight.
    fragments: BTreeMap<Fragment, Option<OpResult>>,
    /// Number of fragments that must be written before it is acknowledged.
    needed: usize,
    /// How long to wait for the remaining fragments, once enough are written and the version is
    /// decided.
    straggler_deadline: Option<Instant>,
    end: Option<WriteResult>,
}

impl Write {
    /// Creates a write of a value whose fragments are not written yet, or which has none. It is
    /// acknowledged with only `needed` fragments written if the others take longer than a round, or
    /// are at sites that did not answer lately.
    #[must_use]
    pub fn new(
        terms: Terms,
        (value, condition): (Value, Condition),
        needed: usize,
        known: Option<KnownVersions>,
        random: RandomStream,
    ) -> Self {
        let goal = Goal::Write { value: value.clone(), condition };
        let fragments = if value.was_written() { Vec::new() } else { fragments(&value) };
        let needed = needed.min(fragments.len());
        Self {
            agreement: EmbeddedProposer::new(terms.clone(), goal, known, random),
            terms,
            value,
            fragments: fragments.into_iter().map(|fragment| (fragment, None)).collect(),
            needed,
            straggler_deadline: None,
            end: None,
        }
    }

    /// Rounds between sites so far.
    #[must_use]
    pub const fn rounds(&self) -> Rounds {
        self.agreement.proposer().rounds()
    }

    /// What is known of the object.
    #[must_use]
    pub const fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }

    fn count(&self, result: Option<OpResult>) -> usize {
        self.fragments.values().filter(|other| **other == result).count()
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        let (written, open) = (self.count(Some(OpResult::Done)), self.count(None));
        let decided = match self.agreement.outcome() {
            Some(Outcome::Refused) => return self.finish(WriteResult::Refused),
            Some(Outcome::Written(version)) => Some(*version),
            Some(Outcome::Indeterminate(version)) => {
                return self.finish(WriteResult::Indeterminate(*version));
            }
            Some(Outcome::Unavailable | Outcome::Seen | Outcome::Promised(..)) => {
                return self.finish(WriteResult::Unavailable);
            }
            None => None,
        };
        if written + open < self.needed {
            // Without the bytes the version must not be acknowledged, nor proposed any further.
            let proposed = self.agreement.proposer().has_proposed();
            if decided.is_some() || !proposed {
                self.finish(WriteResult::Unwritten(decided));
            }
            return;
        }
        let Some(version) = decided else { return };
        let over =
            self.straggler_deadline.is_some_and(|straggler_deadline| now >= straggler_deadline);
        let is_waited_for = |(fragment, result): (&Fragment, &Option<OpResult>)| {
            result.is_none() && !self.terms.silent.contains(&fragment.site)
        };
        let waits = self.fragments.iter().any(is_waited_for);
        if written < self.needed {
            // The others are still in flight; the driver reports how they end.
            return;
        }
        if !waits || over {
            self.notify_sites(version, out);
            let missing =
                self.fragments.iter().filter(|(_, result)| **result != Some(OpResult::Done));
            let missing = missing.map(|(fragment, _)| *fragment).collect();
            self.finish(WriteResult::Done { version, missing });
        } else if self.straggler_deadline.is_none() {
            self.straggler_deadline = Some(now + self.terms.round);
        }
    }

    fn finish(&mut self, end: WriteResult) {
        self.end = Some(end);
    }

    /// Notifies all sites that the version is decided and its bytes are written.
    fn notify_sites(&self, version: Version, out: &mut Outbox<OpCommand>) {
        let mut known = self.known().newest();
        let decided = crate::Decided { value: self.value.clone(), durable: true };
        known.learn(version, &decided);
        for site in &self.terms.voters {
            out.push(OpCommand::Notify { site: *site, known: known.clone() });
        }
    }
}

/// Returns the fragments that belong to the value alone. Those of a shared stripe belong to the
/// stripe.
#[must_use]
pub fn fragments(value: &Value) -> Vec<Fragment> {
    let coded = value.put().and_then(|put| put.coded(value.id));
    let Some((write, _, coded)) = coded.filter(|(write, ..)| *write == value.id) else {
        return Vec::new();
    };
    let fragment = |(index, site): (u8, &crate::SiteIndex)| Fragment { write, index, site: *site };
    (0..).zip(&coded.sites).map(fragment).collect()
}

impl Controller for Write {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        match &event {
            OpEvent::Begin => {
                for fragment in self.fragments.keys() {
                    out.push(OpCommand::Fragment(*fragment, FragmentOp::Write));
                }
            }
            OpEvent::Changed(terms) => self.terms = (**terms).clone(),
            OpEvent::Fragment(fragment, FragmentOp::Write, result) => {
                if let Some(entry) = self.fragments.get_mut(fragment) {
                    entry.get_or_insert(*result);
                }
            }
            OpEvent::Answered { .. }
            | OpEvent::Fragment(..)
            | OpEvent::FetchResult(..)
            | OpEvent::Timer => {}
        }
        self.agreement.handle(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() {
            return None;
        }
        self.agreement.deadline().into_iter().chain(self.straggler_deadline).min()
    }

    fn check(&self) {
        self.agreement.check();
        if let Some(WriteResult::Done { missing, .. }) = &self.end {
            let written = self.fragments.len() - missing.len();
            assert!(written >= self.needed, "acknowledged with {written} of {}", self.needed);
        }
    }
}

impl Operation for Write {
    type End = WriteResult;

    fn end(&self) -> Option<&WriteResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        Self::known(self)
    }
}

/// Returns the longest time a write may take: its agreement and the rest of its bytes.
#[must_use]
pub fn max_write_duration(terms: &Terms) -> Duration {
    terms.patience + terms.round
}
