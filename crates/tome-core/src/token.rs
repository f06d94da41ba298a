//! Spin-up tokens: no disk spins up without one, and there are few.
//!
//! ```text
//! tome                          keeper
//!   Ask(need, nonce)  --------->  ranks the tomes that ask, when a token is free
//!   <--- Offer(token, epoch + 1, nonce)     committed first
//!   Claim(sent) --------------->  lease until received + LEASE + GRACE
//!   <--------------- Held(sent)
//!   may spin until sent + LEASE, less the time to stop;   Claim again: renews
//!   Release  ------------------>  free at once
//! ```
//!
//! (Pergamum (FAST 2008), section 4.3: the holder of a token passes it on and ranks the tomes that
//! ask.) Over a network that loses messages such a token gets lost or duplicated. So a token
//! manager (keeper) records the holders, and tokens are leases: that of a silent holder expires.
//! Each side counts from its own clock, the holder from when it sent and the token manager from
//! when it received, so no clocks are compared; their rates may differ by [`LEASE_GRACE`] in
//! [`LEASE`]. Each lease has an epoch, which a spin-up shows to the [`Fence`]; it refuses an older
//! one. An offer has the nonce of its request, and an answer to an earlier request is ignored: else
//! a delayed release would end a lease that was claimed after it. A tome has at most one token, and
//! none waits for a token while it holds another, so there is no deadlock.
//!
//! Not here: the disk, and why it is needed beyond the [`Need`].

mod fence;
mod holder;
mod token_manager;

use fulgurite_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

pub use fence::Fence;
pub use holder::Holder;
pub use token_manager::{Command, Event, TokenManager, TokenState};

use crate::Epoch;
use crate::limits::{
    AGE_SCORE_MAX, LEASE, LEASE_GRACE, READ_SCORE, REBUILD_SCORE, SLO, STANDBY_SCORE_UNIT,
    TOMES_PER_TOKEN, WAIT_SCORE_UNIT,
};

/// A token, numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenId(pub u32);

/// Returns the number of tokens of a set of this many tomes: one for each twenty, rounded down, and
/// at least one.
#[must_use]
pub const fn token_count(tomes: u32) -> u32 {
    if tomes < TOMES_PER_TOKEN { 1 } else { tomes / TOMES_PER_TOKEN }
}

/// Why a tome wants to spin its disk up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Age of its oldest request.
    pub age: Duration,
    /// Whether it is for a rebuild.
    pub rebuild: bool,
    /// Whether a reader waits.
    pub read: bool,
    /// Number of requests that wait.
    pub pending: u32,
    /// How long its disk has stood still; `None` if it never spun.
    pub still: Option<Duration>,
}

impl Need {
    /// Returns the priority of a request that has waited this long; the highest wins.
    ///
    /// Every term but the last is bounded, and the last grows with the time since the first
    /// request. So after a bounded time no later request comes first, whatever it needs: nothing
    /// starves.
    #[must_use]
    pub fn score(&self, waited: Duration) -> u64 {
        let scaled = |time: Duration, unit: Duration| time.as_nanos() / (unit.as_nanos() / 1000);
        let age = scaled(self.age, SLO).min(AGE_SCORE_MAX);
        let kinds = u64::from(self.rebuild) * REBUILD_SCORE + u64::from(self.read) * READ_SCORE;
        let many = u64::from(u32::BITS - self.pending.leading_zeros()) * 100;
        // A disk that just spun is spared: each spin-up costs it some of its life.
        let rested = self.still.map_or(1000, |still| scaled(still, STANDBY_SCORE_UNIT).min(1000));
        age + kinds + many + rested + scaled(waited, WAIT_SCORE_UNIT)
    }
}

/// A message from a tome to the token manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToTokenManager {
    /// The tome wants a token.
    Ask {
        /// Its need.
        need: Need,
        /// A number unique to this need for a token.
        nonce: u64,
    },
    /// Claims an offered token, or renews the one it has.
    Claim {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
        /// Send time on the tome's clock: echoed in the answer.
        sent: Instant,
    },
    /// Its disk stands still.
    Release {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
    },
}

/// A message from the token manager to a tome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromTokenManager {
    /// A token is reserved for the tome.
    Offer {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
        /// Nonce of the request that it answers.
        nonce: u64,
    },
    /// The tome holds the token until [`LEASE`] after the claim was sent.
    Held {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
        /// When the claim was sent.
        sent: Instant,
    },
    /// The claim was too late: another tome has the token.
    Stale {
        /// The token.
        token: TokenId,
        /// The epoch that is no longer valid.
        epoch: Epoch,
    },
    /// Others wait for the token: spin an idle disk down sooner.
    Wanted {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// A tome waits for the token to read: a disk without readers is to spin down after its turn.
    WantedToRead {
        /// The token.
        token: TokenId,
        /// Its epoch.
        epoch: Epoch,
    },
}

/// Returns how long the token manager considers a claim valid.
pub(crate) const fn claim_validity() -> Duration {
    Duration::from_nanos(LEASE.as_nanos() + LEASE_GRACE.as_nanos())
}
