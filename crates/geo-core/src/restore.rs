//! Restores the row of one object at a site that lost its rows, so that the site votes again.
//!
//! An empty table is an acceptor that has forgotten its votes: a value that it helped to choose
//! could be replaced by another. So it does not vote on an object until enough *other* sites to
//! meet every chosen value have reported what they know, settled what was open, and promised to
//! reject all earlier ballots for the version after that.

use fulgurite_units::{Controller, Instant, Outbox, RandomStream};

use crate::embedded_proposer::EmbeddedProposer;
use crate::{
    Ask, Command, Goal, KnownVersions, OpCommand, OpEvent, Operation, Outcome, Request, SiteIndex,
    Terms, Verdict,
};

/// Result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreResult {
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
    agreement: EmbeddedProposer,
    /// Number of the request to the site, and its deadline.
    pending: Option<(u32, Instant)>,
    end: Option<RestoreResult>,
}

impl Restore {
    /// Creates a restore. The site does not vote in it, whatever the terms say.
    #[must_use]
    pub fn new(mut terms: Terms, site: SiteIndex, random: RandomStream) -> Self {
        terms.voters.retain(|voter| *voter != site);
        let agreement = EmbeddedProposer::new(terms.clone(), Goal::Promise, None, random);
        Self { terms, site, agreement, pending: None, end: None }
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        if self.pending.is_some() {
            return;
        }
        match self.agreement.outcome() {
            None => {}
            Some(Outcome::Promised(next, ballot)) => {
                let call = self.agreement.calls() + 1;
                let known = self.agreement.proposer().known().clone();
                let command = Command::Restore { next: *next, ballot: *ballot };
                let request = Request { epoch: self.terms.epoch, known, command };
                self.pending = Some((call, now + self.terms.round));
                out.push(OpCommand::Ask(Ask { site: self.site, call, request }));
            }
            Some(_) => self.end = Some(RestoreResult::Unavailable),
        }
    }
}

impl Controller for Restore {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        if let Some((pending, until)) = self.pending {
            if let OpEvent::Answered { site, call, answer } = &event
                && (*site, *call) == (self.site, pending)
            {
                let done = matches!(answer, Some((Verdict::Ok, _)));
                self.end =
                    Some(if done { RestoreResult::Done } else { RestoreResult::Unavailable });
            } else if now >= until {
                self.end = Some(RestoreResult::Unavailable);
            }
            return;
        }
        self.agreement.handle(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        match (&self.end, self.pending) {
            (Some(_), _) => None,
            (None, Some((_, until))) => Some(until),
            (None, None) => self.agreement.deadline(),
        }
    }

    fn check(&self) {
        self.agreement.check();
    }
}

impl Operation for Restore {
    type End = RestoreResult;

    fn end(&self) -> Option<&RestoreResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }
}
