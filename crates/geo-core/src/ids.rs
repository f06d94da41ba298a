//! Ids and numbers of the protocol: sites, versions, writes, ballots, epochs.

use std::fmt;

use fulgurite_units::RandomStream;
use serde::{Deserialize, Serialize};

/// A site, by its index in the site map. It is logical: the store behind it can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteIndex(pub u8);

impl SiteIndex {
    /// Returns its index in a list of sites.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for SiteIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "site {}", self.0)
    }
}

/// A version of an object: each is one instance of Paxos. The first is 1; 0 is before all.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version(pub u64);

impl Version {
    /// Before all versions.
    pub const NONE: Self = Self(0);

    /// Returns the next version.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One write: a put, a delete or a no-op. Ids are drawn at random and never reused; values are
/// compared by id, never by content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteId(pub u128);

impl WriteId {
    /// Draws a new id.
    #[must_use]
    pub fn draw(random: &mut RandomStream) -> Self {
        Self(draw(random))
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteId({:x})", self.0)
    }
}

/// Draws 128 random bits.
fn draw(random: &mut RandomStream) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}

/// Epoch of the site map. Requests with an older epoch are rejected.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A ballot. The fast ballot comes before all others and belongs to nobody. Any other belongs to
/// one attempt with a random id, so that none is used twice, even after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// Epoch of the site map it was made under; ballots of a later epoch come after all of earlier
    /// ones.
    pub epoch: Epoch,
    /// Its round.
    pub round: u32,
    /// Id of the attempt that owns it.
    pub proposer: u128,
}

impl Ballot {
    /// The ballot of the fast round.
    pub const FAST: Self = Self { epoch: Epoch(0), round: 0, proposer: 0 };

    /// Returns a ballot higher than all that were seen.
    #[must_use]
    pub fn after(seen: Self, epoch: Epoch, random: &mut RandomStream) -> Self {
        let epoch = epoch.max(seen.epoch);
        let round = if epoch == seen.epoch { seen.round + 1 } else { 1 };
        Self { epoch, round, proposer: draw(random) }
    }

    /// Whether it is the one of the fast round.
    #[must_use]
    pub fn is_fast(self) -> bool {
        self == Self::FAST
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_fast() {
            return f.write_str("Ballot(fast)");
        }
        write!(f, "Ballot({}.{} of {:x})", self.epoch, self.round, self.proposer)
    }
}
