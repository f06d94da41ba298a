//! A [`Proposer`] embedded in an operation: its requests become commands of the operation, and
//! events about rows are passed on to it.

use fulgurite_units::{Controller, Instant, Outbox, RandomStream};

use crate::{Event, Goal, KnownVersions, OpCommand, OpEvent, Outcome, Proposer, Terms};

/// A proposer embedded in an operation.
#[derive(Debug)]
pub(crate) struct EmbeddedProposer {
    proposer: Proposer,
    asks: Outbox<crate::Ask>,
}

impl EmbeddedProposer {
    pub(crate) fn new(
        terms: Terms,
        goal: Goal,
        known: Option<KnownVersions>,
        random: RandomStream,
    ) -> Self {
        Self { proposer: Proposer::new(terms, goal, known, random), asks: Outbox::new() }
    }

    /// Starts another agreement. Late answers to requests of the previous one no longer count.
    pub(crate) fn restart(
        &mut self,
        terms: Terms,
        goal: Goal,
        known: KnownVersions,
        random: RandomStream,
    ) {
        let calls = self.proposer.calls();
        self.proposer = Proposer::new(terms, goal, Some(known), random).after(calls);
    }

    pub(crate) const fn proposer(&self) -> &Proposer {
        &self.proposer
    }

    pub(crate) const fn outcome(&self) -> Option<&Outcome> {
        self.proposer.outcome()
    }

    /// Number of its last request.
    pub(crate) const fn calls(&self) -> u32 {
        self.proposer.calls()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.proposer.deadline()
    }

    pub(crate) fn check(&self) {
        self.proposer.check();
    }

    /// Passes an event on to the proposer, if it is about rows.
    pub(crate) fn handle(&mut self, now: Instant, received: &OpEvent, out: &mut Outbox<OpCommand>) {
        let event = match received {
            OpEvent::Begin => Event::Begin,
            OpEvent::Answered { site, call, answer } => {
                Event::Answered { site: *site, call: *call, answer: answer.clone() }
            }
            OpEvent::Changed(terms) => Event::Changed(terms.clone()),
            OpEvent::Timer => Event::Timer,
            OpEvent::Fragment(..) | OpEvent::FetchResult(..) => return,
        };
        self.proposer.step(now, event, &mut self.asks);
        for ask in self.asks.drain() {
            out.push(OpCommand::Ask(ask));
        }
    }
}
