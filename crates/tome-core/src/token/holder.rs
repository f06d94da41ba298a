//! A tome's side of its token: it asks for it, claims it, renews it while in use, and releases it.
//!
//! It decides when the disk may spin and when it must have stopped. Not here: the disk.

use fulgurite_units::Instant;

use super::{FromTokenManager, Need, ToTokenManager, TokenId};
use crate::Epoch;
use crate::limits::{LEASE, RENEW_AFTER, RETRY_INTERVAL, SPIN_DOWN_MARGIN};

/// What a tome knows of its token. Volatile: after a restart a tome asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    state: State,
    /// Nonce of the latest request for a token.
    nonce: u64,
    /// The lease that others wait for.
    wanted: Option<Lease>,
    /// The lease that others wait for in order to read.
    wanted_to_read: Option<Lease>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    None,
    /// Requested, last at that time, and whether to read.
    Asked {
        at: Instant,
        reads: bool,
    },
    /// Offered, and claimed at that time.
    Claimed {
        lease: Lease,
        at: Instant,
    },
    /// Held until then, and last claimed at that time.
    Held {
        lease: Lease,
        until: Instant,
        at: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    token: TokenId,
    epoch: Epoch,
}

impl Lease {
    const fn claim(self, sent: Instant) -> ToTokenManager {
        ToTokenManager::Claim { token: self.token, epoch: self.epoch, sent }
    }

    /// Returns whether it is a later lease of the same token.
    fn follows(self, other: Self) -> bool {
        self.token == other.token && self.epoch > other.epoch
    }
}

impl Holder {
    /// Returns a holder without a token. `nonce` is drawn at random at each start.
    #[must_use]
    pub const fn new(nonce: u64) -> Self {
        Self { state: State::None, nonce, wanted: None, wanted_to_read: None }
    }

    /// Returns the token under which the disk may spin now.
    #[must_use]
    pub fn current_token(&self, now: Instant) -> Option<(TokenId, Epoch)> {
        match self.state {
            State::Held { lease, until, .. } if now + SPIN_DOWN_MARGIN < until => {
                Some((lease.token, lease.epoch))
            }
            State::None | State::Asked { .. } | State::Claimed { .. } | State::Held { .. } => None,
        }
    }

    /// Returns the message for the token manager while the disk is needed or in use. Call it again
    /// as time passes: lost messages are resent.
    pub fn want(&mut self, now: Instant, need: Need) -> Option<ToTokenManager> {
        match self.state {
            // A first reader is reported at once.
            State::Asked { at, reads }
                if now.since(at) < RETRY_INTERVAL && (reads || !need.read) =>
            {
                None
            }
            State::Claimed { at, .. } if now.since(at) < RETRY_INTERVAL => None,
            State::Held { lease, until, at } if now < until => {
                (now.since(at) >= RENEW_AFTER).then(|| {
                    self.state = State::Held { lease, until, at: now };
                    lease.claim(now)
                })
            }
            State::Asked { .. } | State::Claimed { .. } => Some(self.ask(now, need)),
            State::None | State::Held { .. } => {
                self.nonce = self.nonce.wrapping_add(1);
                Some(self.ask(now, need))
            }
        }
    }

    const fn ask(&mut self, now: Instant, need: Need) -> ToTokenManager {
        self.state = State::Asked { at: now, reads: need.read };
        ToTokenManager::Ask { need, nonce: self.nonce }
    }

    /// Handles a message of the token manager; returns the reply.
    pub fn handle_message(
        &mut self,
        now: Instant,
        message: FromTokenManager,
    ) -> Option<ToTokenManager> {
        match message {
            // An answer to an earlier request may have been released since.
            FromTokenManager::Offer { token, epoch, nonce } if nonce == self.nonce => {
                self.handle_offer(now, Lease { token, epoch })
            }
            FromTokenManager::Offer { .. } => None,
            FromTokenManager::Held { token, epoch, sent } => {
                self.handle_confirmation(Lease { token, epoch }, sent);
                None
            }
            FromTokenManager::Stale { token, epoch } => {
                // If only the renewal was refused, the rest of the lease remains valid.
                if matches!(self.state, State::Claimed { lease, .. }
                    if lease == (Lease { token, epoch }))
                {
                    self.state = State::None;
                }
                None
            }
            FromTokenManager::Wanted { token, epoch } => {
                self.wanted = Some(Lease { token, epoch });
                None
            }
            FromTokenManager::WantedToRead { token, epoch } => {
                let lease = Some(Lease { token, epoch });
                (self.wanted, self.wanted_to_read) = (lease, lease);
                None
            }
        }
    }

    /// Whether others wait for the token that it holds.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        matches!(self.state, State::Held { lease, .. } if self.wanted == Some(lease))
    }

    /// Whether others wait for the token that it holds in order to read.
    #[must_use]
    pub fn is_wanted_to_read(&self) -> bool {
        matches!(self.state, State::Held { lease, .. } if self.wanted_to_read == Some(lease))
    }

    fn handle_offer(&mut self, now: Instant, offered: Lease) -> Option<ToTokenManager> {
        self.state = match self.state {
            State::Asked { .. } => State::Claimed { lease: offered, at: now },
            // The request arrived twice: the lease continues under a later epoch.
            State::Claimed { lease, .. } if offered.follows(lease) => {
                State::Claimed { lease: offered, at: now }
            }
            State::Held { lease, until, .. } if offered.follows(lease) => {
                State::Held { lease: offered, until, at: now }
            }
            State::None | State::Claimed { .. } | State::Held { .. } => return None,
        };
        Some(offered.claim(now))
    }

    fn handle_confirmation(&mut self, confirmed: Lease, sent: Instant) {
        match self.state {
            State::Claimed { lease, at } if lease == confirmed && sent == at => {
                self.state = State::Held { lease, until: sent + LEASE, at };
            }
            State::Held { lease, until, at } if lease == confirmed && sent <= at => {
                self.state = State::Held { lease, until: until.max(sent + LEASE), at };
            }
            State::None | State::Asked { .. } | State::Claimed { .. } | State::Held { .. } => {}
        }
    }

    /// Releases the token once the disk stands still and is not needed; returns the message for the
    /// token manager.
    pub fn release(&mut self) -> Option<ToTokenManager> {
        match std::mem::replace(&mut self.state, State::None) {
            State::Held { lease: Lease { token, epoch }, .. }
            | State::Claimed { lease: Lease { token, epoch }, .. } => {
                Some(ToTokenManager::Release { token, epoch })
            }
            State::None | State::Asked { .. } => None,
        }
    }

    /// Returns when [`Self::want`] or [`Self::current_token`] next changes its answer by itself.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::None => None,
            State::Asked { at, .. } | State::Claimed { at, .. } => Some(at + RETRY_INTERVAL),
            State::Held { until, at, .. } => {
                let stop = until.as_nanos().saturating_sub(SPIN_DOWN_MARGIN.as_nanos());
                let times = [at + RENEW_AFTER, Instant::from_nanos(stop), until];
                times.into_iter().filter(|at| *at > now).min()
            }
        }
    }
}
