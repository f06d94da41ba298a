//! Spin-up tokens: nobody turns a disk without one, and there are few.
//!
//! ```text
//! tome                          keeper
//!   Ask(need, nonce)  --------->  ranks who asks, when a token is free
//!   <--- Offer(token, epoch + 1, nonce)     committed first
//!   Claim(sent) --------------->  lease until received + LEASE + GRACE
//!   <--------------- Held(sent)
//!   may turn until sent + LEASE, less what it takes to stop;   Claim again: longer
//!   Release  ------------------>  free at once
//! ```
//!
//! (Pergamum (FAST 2008), section 4.3: tokens are passed on by who has one, which ranks those that
//! ask.) A token that travels over a network that loses messages is lost with one, or is there
//! twice. So a keeper writes down who has which, and tokens are leases: one whose holder is silent
//! comes back by itself. Both sides count from moments of their own, the holder from when it sent
//! and the keeper from when it received, so no clocks are compared; they only have to run equally
//! fast, to [`LEASE_GRACE`] in [`LEASE`]. Each lease has an epoch, and whoever turns a disk shows
//! it to the [`Fence`], which refuses an older one. An offer says which question it answers, and
//! one that answers an earlier question is passed over: else a release that was under way would end
//! a lease that was claimed after it. Nobody has two tokens, and nobody waits for one while it
//! holds another, so nobody waits in a circle.
//!
//! Not here: the disk, and what it is wanted for beyond the [`Need`].

mod fence;
mod holder;
mod keeper;

use fulgurite_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

pub use fence::Fence;
pub use holder::Holder;
pub use keeper::{Command, Event, Keeper, Kept};

use crate::Epoch;
use crate::limits::{
    AGE_TERM_MAX, AWAKE_SHARE, LEASE, LEASE_GRACE, READ_TERM, REBUILD_TERM, RESTED, SLO, WAIT_TERM,
};

/// A token, by its number from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenId(pub u32);

/// How many tokens a set of so many tomes has: one for each twenty, rounded down, and at least one.
#[must_use]
pub const fn token_count(tomes: u32) -> u32 {
    if tomes < AWAKE_SHARE { 1 } else { tomes / AWAKE_SHARE }
}

/// Why a tome wants to turn its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// How long its oldest request waits.
    pub age: Duration,
    /// What was lost is made anew with it.
    pub rebuild: bool,
    /// Somebody reads.
    pub read: bool,
    /// Requests that wait.
    pub pending: u32,
    /// How long its disk has been still; none if it never turned.
    pub still: Option<Duration>,
}

impl Need {
    /// How much it is needed, after it was asked for so long ago; the most wins.
    ///
    /// Every term but the last has a bound, and that one grows with the time since it was asked. So
    /// after a bounded time nobody who asks later comes first, whatever it needs.
    #[must_use]
    pub fn score(&self, waited: Duration) -> u64 {
        let of = |time: Duration, unit: Duration| time.as_nanos() / (unit.as_nanos() / 1000);
        let age = of(self.age, SLO).min(AGE_TERM_MAX);
        let kinds = u64::from(self.rebuild) * REBUILD_TERM + u64::from(self.read) * READ_TERM;
        let many = u64::from(u32::BITS - self.pending.leading_zeros()) * 100;
        // A disk that just turned is spared: each spin-up costs it some of its life.
        let rested = self.still.map_or(1000, |still| of(still, RESTED).min(1000));
        age + kinds + many + rested + of(waited, WAIT_TERM)
    }
}

/// What a tome tells the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToKeeper {
    /// It wants a token.
    Ask {
        /// For what.
        need: Need,
        /// A number that it has for this time of wanting one, and for no other.
        nonce: u64,
    },
    /// It takes one that it was offered, or keeps the one it has.
    Claim {
        /// Which.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
        /// When it was sent, on the tome's axis: the answer says it again.
        sent: Instant,
    },
    /// Its disk stands still.
    Release {
        /// Which it had.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
    },
}

/// What the keeper tells a tome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromKeeper {
    /// A token is set aside for it.
    Offer {
        /// Which.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
        /// The number of the question that it answers.
        nonce: u64,
    },
    /// It is its own, until [`LEASE`] after the claim was sent.
    Held {
        /// Which.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
        /// When the claim was sent.
        sent: Instant,
    },
    /// It came too late: the token is another's.
    Stale {
        /// Which.
        token: TokenId,
        /// The epoch that is none any more.
        epoch: Epoch,
    },
    /// Others wait for it: a disk that turns for nothing is put down sooner.
    Wanted {
        /// Which.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
    },
    /// Somebody waits for it to read: a disk that nobody reads of is put down when it had its turn.
    WantedToRead {
        /// Which.
        token: TokenId,
        /// Of which epoch.
        epoch: Epoch,
    },
}

/// How long the keeper takes a claim to hold.
pub(crate) const fn kept() -> Duration {
    Duration::from_nanos(LEASE.as_nanos() + LEASE_GRACE.as_nanos())
}
