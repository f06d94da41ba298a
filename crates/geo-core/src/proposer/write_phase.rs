//! The part of the proposer that only writes use.

use fulgurite_units::{Instant, Outbox};

use super::{Ask, Goal, Outcome, Phase, Proposer};
use crate::{Command, Hole, Value, Version};

impl Proposer {
    /// Whether a value is the one to be written.
    pub(super) fn is_own(&self, value: &Value) -> bool {
        matches!(&self.goal, Goal::Write { value: own, .. } if own == value)
    }

    /// Whether the known versions meet the condition; if that is unknown, they do not.
    pub(super) fn condition_is_met(&self) -> bool {
        let Goal::Write { condition, .. } = &self.goal else { return false };
        let latest = self.known.latest().map(|latest| latest.map(|(version, _)| version));
        latest.is_ok_and(|latest| condition.is_met(latest))
    }

    /// Proposes the value for the version after the last known one, or ends if it has been decided.
    pub(super) fn propose(&mut self, now: Instant, out: &mut Outbox<Ask>) {
        let Goal::Write { value, condition } = &self.goal else {
            unreachable!("only a write proposes")
        };
        let value = value.clone();
        if let Some(version) = self.known.version_of(value.id) {
            self.phase = Phase::Done(Outcome::Written(version));
            return;
        }
        // It was proposed for a version whose write nobody remembers.
        let lost = |version: &&Version| self.known.write(**version).is_none();
        if let Some(version) = self.proposed.iter().find(lost)
            && self.known.has(*version)
        {
            self.phase = Phase::Done(Outcome::Indeterminate(*version));
            return;
        }
        if *condition != super::Condition::Always {
            if let Err(Hole(version)) = self.known.latest() {
                return self.prepare(version, now, out);
            }
            if !self.condition_is_met() {
                if self.confirmed {
                    self.phase = Phase::Done(Outcome::Refused);
                    return;
                }
                return self.read(now, out);
            }
        }
        let version = self.known.last().next();
        if !self.terms.fast_may_succeed() || self.is_promised_elsewhere(version) {
            return self.prepare(version, now, out);
        }
        self.proposed.insert(version);
        self.phase = Phase::Fast(version);
        self.rounds.fast += 1;
        self.ask_all(&Command::PreAccept { version, value }, now, out);
    }

    /// Whether a known row has seen a ballot for a version, so that it will reject the fast round.
    fn is_promised_elsewhere(&self, version: Version) -> bool {
        self.rows.values().any(|row| row.seen(version).is_some())
    }

    pub(super) fn conclude_fast(
        &mut self,
        version: Version,
        last: bool,
        now: Instant,
        out: &mut Outbox<Ask>,
    ) {
        if self.known.has(version) {
            return self.decided(version, now, out);
        }
        if self.round.oks() >= self.terms.quorums.fast() {
            let Goal::Write { value, .. } = &self.goal else { return };
            self.choose(version, value.clone());
            self.decided(version, now, out);
        } else if self.is_hopeless(self.terms.quorums.fast(), last) {
            self.prepare(version, now, out);
        }
    }
}
