//! How many sites must agree, and the inequalities without which two values could be chosen.
//!
//! For N voting sites, `q1` is the promise quorum, `q2` the quorum of a classic round and `qf` that
//! of a fast round (Howard, Charapko and Mortier, "Fast Flexible Paxos", 2020):
//!
//! ```text
//! q1 + q2     > N    every prepare meets each value that a classic round chose
//! q1 + 2 * qf > 2N   the promises seen allow at most one value to have been chosen by a fast round
//! ```
//!
//! With `q1 = q2 = N / 2 + 1` the second gives `qf = ceil(3N / 4)`: 3, 3, 4, 5, 6, 6, 7 for 3 to 9
//! sites. The usual "two thirds" is too few for 7 sites: a fast quorum of 5 with 4 promises can
//! lose an acknowledged value, as the models show (`tests/it/models`).

use serde::{Deserialize, Serialize};

use crate::{Error, limits};

/// Rule that sets the sizes of quorums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuorumRule {
    /// Majorities for classic rounds, and the smallest fast quorum this allows: classic rounds
    /// tolerate the loss of the most sites.
    #[default]
    Majority,
    /// `2N/3 + 1` for all: fast rounds tolerate the loss of more sites, classic ones of fewer.
    Balanced,
    /// A majority for fast rounds, all sites for a promise: the fast round ends at the nearest
    /// majority and tolerates the loss of a site, but anything that needs a classic round tolerates
    /// none.
    Flexible,
}

/// Quorum sizes for one number of voting sites. Except for `unchecked`, they satisfy the
/// inequalities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorums {
    sites: usize,
    promise: usize,
    classic: usize,
    fast: usize,
}

impl Quorums {
    /// Returns the quorum sizes for this many voting sites.
    ///
    /// # Errors
    /// [`Error::Sites`] if they are fewer than 3 or more than [`limits::VOTING_SITES_MAX`].
    pub const fn new(sites: usize, rule: QuorumRule) -> Result<Self, Error> {
        if sites < 3 || sites > limits::VOTING_SITES_MAX {
            return Err(Error::Sites { sites });
        }
        let majority = sites / 2 + 1;
        let balanced = 2 * sites / 3 + 1;
        match rule {
            QuorumRule::Majority => {
                Self::from_sizes(sites, majority, majority, (2 * sites - majority) / 2 + 1)
            }
            QuorumRule::Balanced => Self::from_sizes(sites, balanced, balanced, balanced),
            QuorumRule::Flexible => Self::from_sizes(sites, sites, majority, majority),
        }
    }

    /// Returns quorums of these sizes: `promise` sites must promise, `classic` must accept in a
    /// classic round and `fast` in a fast one.
    ///
    /// # Errors
    /// [`Error::Quorums`] if two values could be chosen with them, or none.
    pub const fn from_sizes(
        sites: usize,
        promise: usize,
        classic: usize,
        fast: usize,
    ) -> Result<Self, Error> {
        let fit = promise <= sites && classic <= sites && fast <= sites && classic <= fast;
        // Every read meets what a classic round chose, and what a fast one did.
        if !fit || promise + classic <= sites || promise + 2 * fast <= 2 * sites || classic == 0 {
            return Err(Error::Quorums { sites, promise, classic, fast });
        }
        Ok(Self { sites, promise, classic, fast })
    }

    /// Returns sizes without checking the inequalities, for models that show what goes wrong.
    #[doc(hidden)]
    #[must_use]
    pub const fn unchecked(sites: usize, promise: usize, classic: usize, fast: usize) -> Self {
        Self { sites, promise, classic, fast }
    }

    /// Sites that vote.
    #[must_use]
    pub const fn sites(self) -> usize {
        self.sites
    }

    /// Sites that must promise.
    #[must_use]
    pub const fn promise(self) -> usize {
        self.promise
    }

    /// Sites that must accept in a classic round.
    #[must_use]
    pub const fn classic(self) -> usize {
        self.classic
    }

    /// Sites that must accept in a fast round.
    #[must_use]
    pub const fn fast(self) -> usize {
        self.fast
    }

    /// Number of rows that must be read to meet every version that was chosen: `N - q2 + 1`.
    #[must_use]
    pub const fn read(self) -> usize {
        self.sites - self.classic + 1
    }

    /// Returns how many of `seen` rows must have accepted a value in the fast round for it to have
    /// possibly been chosen there: `qf + seen - N`, at least one.
    #[must_use]
    pub const fn choosable(self, seen: usize) -> usize {
        let rest = self.sites - seen;
        if self.fast > rest { self.fast - rest } else { 1 }
    }
}
