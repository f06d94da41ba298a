//! A tome's side of its token: asked for, claimed, kept while it is used, given back.
//!
//! It says when the disk may turn and when it has to have stopped. Not here: the disk.

use fulgurite_units::Instant;

use super::{FromKeeper, Need, ToKeeper, TokenId};
use crate::Epoch;
use crate::limits::{ASK_AGAIN, LEASE, RENEW_AFTER, STOP_WITHIN};

/// What a tome knows of its token. Nothing of it outlives a start: a tome asks anew then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    /// It was asked for, last at that time.
    Asked { at: Instant },
    /// One was offered, and claimed at that time.
    Claimed { token: TokenId, epoch: Epoch, at: Instant },
    /// It is held until then, and was last claimed at that time.
    Held { token: TokenId, epoch: Epoch, until: Instant, at: Instant },
}

impl Holder {
    /// The token under which the disk may turn now.
    #[must_use]
    pub fn held(&self, now: Instant) -> Option<(TokenId, Epoch)> {
        match self.state {
            State::Held { token, epoch, until, .. } if now + STOP_WITHIN < until => {
                Some((token, epoch))
            }
            State::None | State::Asked { .. } | State::Claimed { .. } | State::Held { .. } => None,
        }
    }

    /// What to tell the keeper now that the disk is needed, or is turning for something. Call it
    /// again when time passed: what was lost is said again.
    pub fn want(&mut self, now: Instant, need: Need) -> Option<ToKeeper> {
        match self.state {
            State::Asked { at } if now.since(at) < ASK_AGAIN => None,
            State::Claimed { at, .. } if now.since(at) < ASK_AGAIN => None,
            State::Held { token, epoch, until, at } if now < until => {
                (now.since(at) >= RENEW_AFTER).then(|| {
                    self.state = State::Held { token, epoch, until, at: now };
                    ToKeeper::Claim { token, epoch, sent: now }
                })
            }
            State::None | State::Asked { .. } | State::Claimed { .. } | State::Held { .. } => {
                self.state = State::Asked { at: now };
                Some(ToKeeper::Ask(need))
            }
        }
    }

    /// Takes what the keeper said; what to tell it.
    pub fn told(&mut self, now: Instant, message: FromKeeper) -> Option<ToKeeper> {
        match (message, self.state) {
            (FromKeeper::Offer { token, epoch }, State::Asked { .. }) => {
                self.state = State::Claimed { token, epoch, at: now };
                Some(ToKeeper::Claim { token, epoch, sent: now })
            }
            // An older question of its own came late: the lease goes on under a later epoch.
            (
                FromKeeper::Offer { token, epoch },
                State::Held { token: own, epoch: before, until, .. },
            ) if token == own && epoch > before => {
                self.state = State::Held { token, epoch, until, at: now };
                Some(ToKeeper::Claim { token, epoch, sent: now })
            }
            // It has none to do anything with.
            (FromKeeper::Offer { token, epoch }, State::None) => {
                Some(ToKeeper::Release { token, epoch })
            }
            (
                FromKeeper::Held { token, epoch, sent },
                State::Claimed { token: t, epoch: e, at },
            ) if (token, epoch, sent) == (t, e, at) => {
                self.state = State::Held { token, epoch, until: sent + LEASE, at };
                None
            }
            (
                FromKeeper::Held { token, epoch, sent },
                State::Held { token: t, epoch: e, until, at },
            ) if (token, epoch) == (t, e) && sent <= at => {
                self.state = State::Held { token, epoch, until: until.max(sent + LEASE), at };
                None
            }
            (FromKeeper::Stale { token, epoch }, State::Claimed { token: t, epoch: e, .. })
                if (token, epoch) == (t, e) =>
            {
                self.state = State::None;
                None
            }
            // Not renewed: what is left of the lease is left. Or said to an earlier question.
            (FromKeeper::Offer { .. } | FromKeeper::Held { .. } | FromKeeper::Stale { .. }, _) => {
                None
            }
        }
    }

    /// The disk stands still and is not wanted; what to tell the keeper.
    pub fn release(&mut self) -> Option<ToKeeper> {
        match std::mem::take(&mut self.state) {
            State::Held { token, epoch, .. } | State::Claimed { token, epoch, .. } => {
                Some(ToKeeper::Release { token, epoch })
            }
            State::None | State::Asked { .. } => None,
        }
    }

    /// When [`Self::want`] or [`Self::held`] says something else by itself.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::None => None,
            State::Asked { at } | State::Claimed { at, .. } => Some(at + ASK_AGAIN),
            State::Held { until, at, .. } => {
                let stop =
                    Instant::from_nanos(until.as_nanos().saturating_sub(STOP_WITHIN.as_nanos()));
                [at + RENEW_AFTER, stop, until].into_iter().filter(|at| *at > now).min()
            }
        }
    }
}
