//! How many sites must agree, and the inequalities without which two values could be chosen.
//!
//! With N sites that vote, `q1` that must promise, `q2` that must accept in a classic round and
//! `qf` in a fast one (Howard, Charapko and Mortier, "Fast Flexible Paxos", 2020):
//!
//! ```text
//! q1 + q2     > N    whoever prepares meets every value that a classic round chose
//! q1 + 2 * qf > 2N   of two values that a fast round could have chosen only one fits what is seen
//! ```
//!
//! With `q1 = q2 = N / 2 + 1` the second gives `qf = ceil(3N / 4)`: 3, 3, 4, 5, 6, 6, 7 for 3 to 9
//! sites. "Two thirds", as it is often written, is too few for 7: 5 of them with 4 that promise
//! lose an acknowledged value, which the models find (`tests/it/models`).

use serde::{Deserialize, Serialize};

use crate::{Error, limits};

/// How sizes of quorums are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// Majorities for classic rounds, and as few as that allows for fast ones: classic rounds stand
    /// the loss of the most sites.
    #[default]
    Majority,
    /// `2N/3 + 1` for all: fast rounds stand the loss of more sites, classic ones of fewer.
    Balanced,
    /// A majority for fast rounds, all sites for a promise: the fast round ends at the nearest
    /// majority and stands the loss of a site, and whatever needs a classic round stands none.
    Flexible,
}

/// Sizes of quorums, for one number of sites that vote. There are none that break the inequalities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorums {
    sites: usize,
    promise: usize,
    classic: usize,
    fast: usize,
}

impl Quorums {
    /// Sizes for this many sites that vote.
    ///
    /// # Errors
    /// [`Error::Sites`] when they are fewer than 3 or more than [`limits::VOTING_SITES_MAX`].
    pub const fn new(sites: usize, sizes: Sizes) -> Result<Self, Error> {
        if sites < 3 || sites > limits::VOTING_SITES_MAX {
            return Err(Error::Sites { sites });
        }
        let majority = sites / 2 + 1;
        let balanced = 2 * sites / 3 + 1;
        match sizes {
            Sizes::Majority => Self::of(sites, majority, majority, (2 * sites - majority) / 2 + 1),
            Sizes::Balanced => Self::of(sites, balanced, balanced, balanced),
            Sizes::Flexible => Self::of(sites, sites, majority, majority),
        }
    }

    /// These sizes: `promise` that must promise, `classic` that must accept in a classic round and
    /// `fast` that must accept in a fast one.
    ///
    /// # Errors
    /// [`Error::Quorums`] when two values could be chosen with them, or nothing.
    pub const fn of(
        sites: usize,
        promise: usize,
        classic: usize,
        fast: usize,
    ) -> Result<Self, Error> {
        let fit = promise <= sites && classic <= sites && fast <= sites && classic <= fast;
        // Whoever reads meets what a classic round chose, and what a fast one did.
        if !fit || promise + classic <= sites || promise + 2 * fast <= 2 * sites || classic == 0 {
            return Err(Error::Quorums { sites, promise, classic, fast });
        }
        Ok(Self { sites, promise, classic, fast })
    }

    /// Sizes that no inequality holds, for models that show what goes wrong with them.
    #[doc(hidden)]
    #[must_use]
    pub const fn unproved(sites: usize, promise: usize, classic: usize, fast: usize) -> Self {
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

    /// Rows that must be read to meet every version that was chosen: `N - q2 + 1`.
    #[must_use]
    pub const fn read(self) -> usize {
        self.sites - self.classic + 1
    }

    /// Of `seen` rows, how many must have accepted a value in the fast round for it to be possible
    /// that it was chosen there: `qf + seen - N`, one at least.
    #[must_use]
    pub const fn choosable(self, seen: usize) -> usize {
        let rest = self.sites - seen;
        if self.fast > rest { self.fast - rest } else { 1 }
    }
}
