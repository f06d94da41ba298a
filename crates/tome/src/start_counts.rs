//! Counts how often a store was opened with its set, to detect an older copy of either.
//!
//! ```text
//! set store, for each other one   begun = n + 1              done = n + 1
//! the store itself                               n + 1
//! ```
//!
//! In this order, each synced before the next. So a store's own number is `done`, or `begun` if a
//! start was interrupted. A lower number means an older copy: newer changes are missing, and a tome
//! that continued with it would reuse versions that its parities have. A higher one means a start
//! that its set has not seen: then the set store is the copy. The set's record of objects is also
//! counted when the set is stopped, so that a copy of it from while the set was open is detected.
//! Not detected are a copy of another store that was made since the latest start, and any copy
//! after the process was killed since. Not here: tomes in other processes.

use fulgurite_catalog::row::Row;
use fulgurite_tome_core::TomeId;
use serde::{Deserialize, Serialize};

/// A store that is opened with its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CountedStore {
    /// The metadata store of a tome.
    Tome(TomeId),
    /// The set's record of objects.
    Pieces,
    /// The index of objects above the set.
    Index,
}

/// A store's own record: the number of its latest start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartRow(pub(crate) u64);

/// The set's record of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartCountsRow {
    /// The latest start that the store may know of.
    pub(crate) begun: u64,
    /// The latest start that the store knows of.
    pub(crate) done: u64,
}

/// Which of two stores is an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyAge {
    /// Both are the latest.
    Latest,
    /// The store is an older copy.
    Older,
    /// The set store is.
    SetOlder,
}

impl Row for StartRow {
    const VERSION: u8 = 1;
}

impl Row for StartCountsRow {
    const VERSION: u8 = 1;
}

impl StartCountsRow {
    /// Compares this with a store's own number.
    pub(crate) const fn age(self, StartRow(own): StartRow) -> CopyAge {
        if own < self.done {
            CopyAge::Older
        } else if own > self.begun {
            CopyAge::SetOlder
        } else {
            CopyAge::Latest
        }
    }

    /// Begins a start.
    pub(crate) const fn next(self) -> Self {
        Self { begun: self.begun + 1, done: self.done }
    }

    /// Completes a start.
    pub(crate) const fn ended(self) -> Self {
        Self { begun: self.begun, done: self.begun }
    }
}
