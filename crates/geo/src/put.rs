//! A write with its bytes: sites agree on the version while the fragments are in flight.
//!
//! Both begin at once, so a write without contention takes as long as the slower of the two: one
//! round between sites, or the bytes to the farthest site. It is acknowledged when both are done.

use std::collections::BTreeMap;

use fulgurite_units::{Controller, Duration, Instant, Outbox, RandomStream};

use crate::agreeing::Agreeing;
use crate::{
    Act, Condition, Deed, Fragment, Goal, Heard, How, Known, Operation, Outcome, Rounds, Terms,
    Value, Version,
};

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
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
    agreeing: Agreeing,
    terms: Terms,
    value: Value,
    /// The result of each fragment; none while it is in flight.
    fragments: BTreeMap<Fragment, Option<How>>,
    /// Number of fragments that must be written before it is acknowledged.
    needed: usize,
    /// How long to wait for the remaining fragments, once enough are written and the version is
    /// decided.
    rest: Option<Instant>,
    end: Option<Wrote>,
}

impl Write {
    /// Creates a write of a value whose fragments are not written yet, or which has none. It is
    /// acknowledged with `needed` of them written, if the others take longer than a round of the
    /// terms, or are at sites that did not answer lately.
    #[must_use]
    pub fn new(
        terms: Terms,
        (value, condition): (Value, Condition),
        needed: usize,
        known: Option<Known>,
        random: RandomStream,
    ) -> Self {
        let goal = Goal::Write { value: value.clone(), condition };
        let fragments = if value.was_written() { Vec::new() } else { fragments(&value) };
        let needed = needed.min(fragments.len());
        Self {
            agreeing: Agreeing::new(terms.clone(), goal, known, random),
            terms,
            value,
            fragments: fragments.into_iter().map(|fragment| (fragment, None)).collect(),
            needed,
            rest: None,
            end: None,
        }
    }

    /// Rounds between sites so far.
    #[must_use]
    pub const fn rounds(&self) -> Rounds {
        self.agreeing.proposer().rounds()
    }

    /// What is known of the object.
    #[must_use]
    pub const fn known(&self) -> &Known {
        self.agreeing.proposer().known()
    }

    fn count(&self, how: Option<How>) -> usize {
        self.fragments.values().filter(|is| **is == how).count()
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<Act>) {
        let (written, open) = (self.count(Some(How::Done)), self.count(None));
        let decided = match self.agreeing.outcome() {
            Some(Outcome::Refused) => return self.finish(Wrote::Refused),
            Some(Outcome::Written(version)) => Some(*version),
            Some(Outcome::Indeterminate(version)) => {
                return self.finish(Wrote::Indeterminate(*version));
            }
            Some(Outcome::Unavailable | Outcome::Seen | Outcome::Promised(..)) => {
                return self.finish(Wrote::Unavailable);
            }
            None => None,
        };
        if written + open < self.needed {
            // Without the bytes the version must not be acknowledged, nor proposed any further.
            let proposed = self.agreeing.proposer().has_proposed();
            if decided.is_some() || !proposed {
                self.finish(Wrote::Unwritten(decided));
            }
            return;
        }
        let Some(version) = decided else { return };
        let over = self.rest.is_some_and(|rest| now >= rest);
        let is_waited_for = |(fragment, how): (&Fragment, &Option<How>)| {
            how.is_none() && !self.terms.silent.contains(&fragment.site)
        };
        let waits = self.fragments.iter().any(is_waited_for);
        if written < self.needed {
            // The others are still in flight; the driver reports how they end.
            return;
        }
        if !waits || over {
            self.tell(version, out);
            let missing = self.fragments.iter().filter(|(_, how)| **how != Some(How::Done));
            let missing = missing.map(|(fragment, _)| *fragment).collect();
            self.finish(Wrote::Done { version, missing });
        } else if self.rest.is_none() {
            self.rest = Some(now + self.terms.round);
        }
    }

    fn finish(&mut self, end: Wrote) {
        self.end = Some(end);
    }

    /// Notifies all sites that the version is decided and its bytes are written.
    fn tell(&self, version: Version, out: &mut Outbox<Act>) {
        let mut known = self.known().newest();
        let decided = crate::Decided { value: self.value.clone(), durable: true };
        known.learn(version, &decided);
        for site in &self.terms.voters {
            out.push(Act::Tell { site: *site, known: known.clone() });
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
    type Event = Heard;
    type Command = Act;

    fn step(&mut self, now: Instant, event: Heard, out: &mut Outbox<Act>) {
        if self.end.is_some() {
            return;
        }
        match &event {
            Heard::Begin => {
                for fragment in self.fragments.keys() {
                    out.push(Act::Fragment(*fragment, Deed::Write));
                }
            }
            Heard::Changed(terms) => self.terms = (**terms).clone(),
            Heard::Fragment(fragment, Deed::Write, how) => {
                if let Some(entry) = self.fragments.get_mut(fragment) {
                    entry.get_or_insert(*how);
                }
            }
            Heard::Answered { .. } | Heard::Fragment(..) | Heard::Fetched(..) | Heard::Timer => {}
        }
        self.agreeing.hear(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() {
            return None;
        }
        self.agreeing.deadline().into_iter().chain(self.rest).min()
    }

    fn check(&self) {
        self.agreeing.check();
        if let Some(Wrote::Done { missing, .. }) = &self.end {
            let written = self.fragments.len() - missing.len();
            assert!(written >= self.needed, "acknowledged with {written} of {}", self.needed);
        }
    }
}

impl Operation for Write {
    type End = Wrote;

    fn end(&self) -> Option<&Wrote> {
        self.end.as_ref()
    }

    fn known(&self) -> &Known {
        Self::known(self)
    }
}

/// Returns the longest time a write may take: its agreement and the rest of its bytes.
#[must_use]
pub fn longest(terms: &Terms) -> Duration {
    terms.patience + terms.round
}
