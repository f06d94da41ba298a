//! Removes what nobody can ask for any more: bytes of versions that are hidden, and of writes that
//! never became one.
//!
//! ```text
//! collect   read rows --> erase all fragments of a dead version --> all sites said so --> gone
//! sweep     a fragment of an unknown write: read rows --> some version's: keep
//!                   none's, and all rows say so: erase
//!                   none's, as far as some rows say: decide a no-op, so that it never is; erase
//! ```
//!
//! A version is said to be gone when its fragments are: the other way round nobody would know of
//! them. A site that does not answer keeps the version; it is tried again.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Controller, Instant, Outbox, RandomStream, UnixTime};

use crate::agreeing::Agreeing;
use crate::get::{child, noop};
use crate::put::fragments;
use crate::{
    Act, Deed, Fragment, Goal, Heard, How, Known, Operation, Outcome, Terms, Version, WriteId,
};

/// What there is to keep of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How many puts; all, when it is none.
    pub newest: Option<usize>,
    /// Versions that were hidden after this are left: somebody may be reading them.
    pub hidden_after: UnixTime,
}

/// What removing came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Versions that are gone.
    pub gone: Vec<Version>,
    /// Versions whose fragments could not be removed everywhere.
    pub left: Vec<Version>,
    /// Whether enough rows could be read to tell.
    pub told: bool,
}

/// Removal of the dead versions of one object.
#[derive(Debug)]
pub struct Collect {
    terms: Terms,
    keep: Keep,
    agreeing: Agreeing,
    erasing: Option<BTreeMap<Fragment, (Version, Option<How>)>>,
    dead: Vec<Version>,
    end: Option<Collected>,
}

impl Collect {
    /// A removal that has not begun.
    #[must_use]
    pub fn new(terms: Terms, keep: Keep, random: RandomStream) -> Self {
        Self {
            agreeing: Agreeing::new(terms.clone(), Goal::Read, None, random),
            terms,
            keep,
            erasing: None,
            dead: Vec::new(),
            end: None,
        }
    }

    fn known(&self) -> &Known {
        self.agreeing.proposer().known()
    }

    fn conclude(&mut self, out: &mut Outbox<Act>) {
        if self.erasing.is_none() {
            match self.agreeing.outcome() {
                None => return,
                Some(Outcome::Seen) => self.erase(out),
                Some(_) => return self.end = Some(Collected::default()),
            }
        }
        let Some(erasing) = &self.erasing else { return };
        if erasing.values().any(|(_, how)| how.is_none()) {
            return;
        }
        let done = |how: Option<How>| matches!(how, Some(How::Done | How::Absent));
        let left: BTreeSet<Version> =
            erasing.values().filter(|(_, how)| !done(*how)).map(|(version, _)| *version).collect();
        let gone = self.dead.iter().copied().filter(|version| !left.contains(version));
        let gone: Vec<Version> = gone.collect();
        let mut known = self.known().clone();
        for version in &gone {
            known.mark_gone(*version);
        }
        if !gone.is_empty() {
            for site in &self.terms.voters {
                out.push(Act::Tell { site: *site, known: known.clone() });
            }
        }
        self.end = Some(Collected { gone, left: left.into_iter().collect(), told: true });
    }

    fn erase(&mut self, out: &mut Outbox<Act>) {
        self.dead = self.known().dead(self.keep.newest, self.keep.hidden_after);
        let mut erasing = BTreeMap::new();
        for version in &self.dead {
            let Some(decided) = self.known().decided.get(version) else { continue };
            for fragment in fragments(&decided.value) {
                erasing.insert(fragment, (*version, None));
                out.push(Act::Fragment(fragment, Deed::Erase));
            }
        }
        self.erasing = Some(erasing);
    }
}

impl Controller for Collect {
    type Event = Heard;
    type Command = Act;

    fn step(&mut self, now: Instant, event: Heard, out: &mut Outbox<Act>) {
        if self.end.is_some() {
            return;
        }
        if let Heard::Fragment(fragment, Deed::Erase, how) = &event
            && let Some((_, entry)) =
                self.erasing.as_mut().and_then(|erasing| erasing.get_mut(fragment))
        {
            entry.get_or_insert(*how);
        }
        self.agreeing.hear(now, &event, out);
        self.conclude(out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() { None } else { self.agreeing.deadline() }
    }

    fn check(&self) {
        self.agreeing.check();
    }
}

impl Operation for Collect {
    type End = Collected;

    fn end(&self) -> Option<&Collected> {
        self.end.as_ref()
    }

    fn known(&self) -> &Known {
        self.agreeing.proposer().known()
    }
}

/// What became of a fragment that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// A version has it.
    Kept,
    /// No version has it or ever will, and it is removed.
    Erased,
    /// Nobody can tell at the moment, or it could not be removed.
    Left,
}

/// Whether one fragment belongs to a version, and its removal if it does not. To be asked of
/// fragments that are older than any write can be under way.
#[derive(Debug)]
pub struct Sweep {
    terms: Terms,
    fragment: Fragment,
    random: RandomStream,
    agreeing: Agreeing,
    settled: bool,
    erasing: bool,
    end: Option<Swept>,
}

impl Sweep {
    /// A look that has not begun.
    #[must_use]
    pub fn new(terms: Terms, fragment: Fragment, mut random: RandomStream) -> Self {
        let inner = child(&mut random);
        Self {
            agreeing: Agreeing::new(terms.clone(), Goal::ReadAll, None, inner),
            terms,
            fragment,
            random,
            settled: false,
            erasing: false,
            end: None,
        }
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<Act>) {
        if self.erasing {
            return;
        }
        match self.agreeing.outcome() {
            None => return,
            Some(Outcome::Seen) => {}
            Some(_) => return self.end = Some(Swept::Left),
        }
        let known = self.agreeing.proposer().known();
        if let Some(keep) = has(known, self.fragment.write) {
            if keep {
                self.end = Some(Swept::Kept);
            } else {
                self.erase(out);
            }
            return;
        }
        let rows = self.agreeing.proposer().rows();
        let write = self.fragment.write;
        let of = |instance: &crate::Instance| {
            instance.accepted.as_ref().is_some_and(|accepted| accepted.value.id == write)
        };
        let nowhere = !rows.values().any(|row| row.open.values().any(of));
        let all = rows.len() == self.terms.quorums.sites();
        if self.settled || (nowhere && all) {
            return self.erase(out);
        }
        // Somebody may hold it and have it decided yet: not for this version, and its writer, who
        // alone may propose it for another, is long gone.
        self.settled = true;
        let (version, known) = (known.last().next(), known.clone());
        let goal = Goal::Settle { version, noop: noop(&mut self.random) };
        let inner = child(&mut self.random);
        self.agreeing.again(self.terms.clone(), goal, known, inner);
        self.agreeing.hear(now, &Heard::Begin, out);
    }

    fn erase(&mut self, out: &mut Outbox<Act>) {
        self.erasing = true;
        out.push(Act::Fragment(self.fragment, Deed::Erase));
    }
}

/// Whether a write's fragments are some version's: none when no version is of the write.
fn has(known: &Known, write: WriteId) -> Option<bool> {
    let of = |decided: &&crate::Decided| {
        let put = decided.value.put();
        let coded = put.and_then(|put| put.coded(decided.value.id));
        coded.is_some_and(|(of, ..)| of == write)
    };
    if known.decided.values().any(|decided| of(&decided)) {
        return Some(true);
    }
    known.version_of(write).map(|_| false)
}

impl Controller for Sweep {
    type Event = Heard;
    type Command = Act;

    fn step(&mut self, now: Instant, event: Heard, out: &mut Outbox<Act>) {
        if self.end.is_some() {
            return;
        }
        if let Heard::Fragment(fragment, Deed::Erase, how) = &event
            && *fragment == self.fragment
        {
            let gone = matches!(how, How::Done | How::Absent);
            self.end = Some(if gone { Swept::Erased } else { Swept::Left });
            return;
        }
        self.agreeing.hear(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() { None } else { self.agreeing.deadline() }
    }

    fn check(&self) {
        self.agreeing.check();
    }
}

impl Operation for Sweep {
    type End = Swept;

    fn end(&self) -> Option<&Swept> {
        self.end.as_ref()
    }

    fn known(&self) -> &Known {
        self.agreeing.proposer().known()
    }
}
