//! Restores the row of one object at a site that lost its rows, so that the site votes again.
//!
//! An empty table is an acceptor that has forgotten its votes: a value that it helped to choose
//! could be replaced by another. So it does not vote on an object until enough *other* sites to
//! meet every chosen value have reported what they know, settled what was open, and promised to
//! reject all earlier ballots for the version after that.

use fulgurite_units::{Controller, Instant, Outbox, RandomStream};

use crate::agreeing::Agreeing;
use crate::{
    Act, Ask, Command, Goal, Heard, Known, Operation, Outcome, Request, SiteIndex, Terms, Verdict,
};

/// Result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The site votes on the object.
    Done,
    /// Too few other sites, or the site itself, answered.
    Unavailable,
}

/// Restore of one row of a site.
#[derive(Debug)]
pub struct Restore {
    terms: Terms,
    site: SiteIndex,
    agreeing: Agreeing,
    /// Number of the request to the site, and its deadline.
    asked: Option<(u32, Instant)>,
    end: Option<Restored>,
}

impl Restore {
    /// Creates a restore. The site does not vote in it, whatever the terms say.
    #[must_use]
    pub fn new(mut terms: Terms, site: SiteIndex, random: RandomStream) -> Self {
        terms.voters.retain(|voter| *voter != site);
        let agreeing = Agreeing::new(terms.clone(), Goal::Promise, None, random);
        Self { terms, site, agreeing, asked: None, end: None }
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<Act>) {
        if self.asked.is_some() {
            return;
        }
        match self.agreeing.outcome() {
            None => {}
            Some(Outcome::Promised(next, ballot)) => {
                let call = self.agreeing.calls() + 1;
                let known = self.agreeing.proposer().known().clone();
                let command = Command::Restore { next: *next, ballot: *ballot };
                let request = Request { epoch: self.terms.epoch, known, command };
                self.asked = Some((call, now + self.terms.round));
                out.push(Act::Ask(Ask { site: self.site, call, request }));
            }
            Some(_) => self.end = Some(Restored::Unavailable),
        }
    }
}

impl Controller for Restore {
    type Event = Heard;
    type Command = Act;

    fn step(&mut self, now: Instant, event: Heard, out: &mut Outbox<Act>) {
        if self.end.is_some() {
            return;
        }
        if let Some((asked, until)) = self.asked {
            if let Heard::Answered { site, call, answer } = &event
                && (*site, *call) == (self.site, asked)
            {
                let done = matches!(answer, Some((Verdict::Ok, _)));
                self.end = Some(if done { Restored::Done } else { Restored::Unavailable });
            } else if now >= until {
                self.end = Some(Restored::Unavailable);
            }
            return;
        }
        self.agreeing.hear(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        match (&self.end, self.asked) {
            (Some(_), _) => None,
            (None, Some((_, until))) => Some(until),
            (None, None) => self.agreeing.deadline(),
        }
    }

    fn check(&self) {
        self.agreeing.check();
    }
}

impl Operation for Restore {
    type End = Restored;

    fn end(&self) -> Option<&Restored> {
        self.end.as_ref()
    }

    fn known(&self) -> &Known {
        self.agreeing.proposer().known()
    }
}
