//! A write with its bytes: the version is agreed on while the fragments are on their way.
//!
//! Both begin at once, so a write that nobody contends with takes as long as the slower of the two:
//! one round between sites, or the bytes to the farthest site. It is acknowledged when both are
//! done.

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
    /// It is this version, and its bytes are on stable storage at as many sites as the policy asks.
    Done {
        /// The version.
        version: Version,
        /// Fragments that are not written, for whoever heals.
        missing: Vec<Fragment>,
    },
    /// The condition is not met.
    Refused,
    /// Nothing was written that anybody could find.
    Unavailable,
    /// It may be this version, or may become it.
    Indeterminate(Version),
    /// Too few fragments could be written. The version has been decided all the same, if one is
    /// named, and has to be hidden.
    Unwritten(Option<Version>),
}

/// A write.
#[derive(Debug)]
pub struct Write {
    agreeing: Agreeing,
    terms: Terms,
    value: Value,
    /// What became of each fragment; none while it is on its way.
    fragments: BTreeMap<Fragment, Option<How>>,
    /// Fragments that must be written before it is acknowledged.
    needed: usize,
    /// Until when the rest are waited for, once enough are written and the version is decided.
    rest: Option<Instant>,
    end: Option<Wrote>,
}

impl Write {
    /// A write of a value whose fragments are not written yet, or which has none. It is
    /// acknowledged with `needed` of them written, if the others cannot be within the time that
    /// terms leave for a round, or are at sites that did not answer lately.
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
            // The others are on their way still: whoever writes them says how that ends.
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

    /// Tells all sites that the version is decided and its bytes written.
    fn tell(&self, version: Version, out: &mut Outbox<Act>) {
        let mut known = self.known().newest();
        let decided = crate::Decided { value: self.value.clone(), durable: true };
        known.learn(version, &decided);
        for site in &self.terms.voters {
            out.push(Act::Tell { site: *site, known: known.clone() });
        }
    }
}

/// All fragments of a value that are its own. Those of a stripe that it shares are the stripe's.
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

/// For how long a write may go on at most: its agreement and the rest of its bytes.
#[must_use]
pub fn longest(terms: &Terms) -> Duration {
    terms.patience + terms.round
}
