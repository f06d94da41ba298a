//! How often a store was opened with its set: by that an older copy of one is known.
//!
//! ```text
//! set store, for each other one   begun = n + 1              done = n + 1
//! the store itself                               n + 1
//! ```
//!
//! In this order, each synced before the next. So what a store says of itself is `done`, or `begun`
//! where a start was cut short. One that says less is a copy of before: what it was told since is
//! not in it, and a tome that went on with it would give versions twice that its parities have. One
//! that says more has seen a start that its set has not: then that is the copy. What a set keeps of
//! objects is counted when the set is stopped, too, so that a copy of it while the set was open is
//! known. Not known so is a copy of another store that was made since the latest start, and none of
//! a process that was killed since. Not here: tomes in other processes.

use fulgurite_catalog::row::Row;
use fulgurite_tome::TomeId;
use serde::{Deserialize, Serialize};

/// A store that is opened with its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    /// What a tome keeps awake.
    Tome(TomeId),
    /// What the set keeps of objects.
    Pieces,
    /// What is kept of objects above the set.
    Index,
}

/// What a store says of itself: the number of its latest start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartRow(pub(crate) u64);

/// What its set says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartsRow {
    /// The latest start that it may know of.
    pub(crate) begun: u64,
    /// The latest that it knows of.
    pub(crate) done: u64,
}

/// What a store is, of two that should fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// Both are the latest.
    Latest,
    /// The store is an older copy.
    Older,
    /// That of its set is.
    SetOlder,
}

impl Row for StartRow {
    const VERSION: u8 = 1;
}

impl Row for StartsRow {
    const VERSION: u8 = 1;
}

impl StartsRow {
    /// What a store is that says this of itself.
    pub(crate) const fn age(self, StartRow(own): StartRow) -> Age {
        if own < self.done {
            Age::Older
        } else if own > self.begun {
            Age::SetOlder
        } else {
            Age::Latest
        }
    }

    /// A start is begun.
    pub(crate) const fn next(self) -> Self {
        Self { begun: self.begun + 1, done: self.done }
    }

    /// It is done.
    pub(crate) const fn ended(self) -> Self {
        Self { begun: self.begun, done: self.begun }
    }
}
