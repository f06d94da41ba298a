//! The changes of one data member that a parity has applied, so that a duplicate delta is applied
//! once.
//!
//! Applying a delta is not idempotent: a second time cancels it. So each is identified by its tome,
//! block and version. Applied changes are remembered from a floor on, which the data member raises:
//! nothing below it is ever sent again, and whatever still arrives is a late duplicate.
//!
//! Not here: bytes. Recording a change and switching its block to the new physical block is one
//! commit.

use std::collections::BTreeMap;

use crate::consistency::{AppliedSummary, Change};
use crate::limits::PENDING_MAX;
use crate::{Result, TomeError, Version};

/// What a parity has applied of one data member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedChanges {
    floor: Version,
    above: BTreeMap<Version, Change>,
}

/// What to do with a change that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Apply it.
    New,
    /// It was applied before.
    Known,
}

impl AppliedChanges {
    /// Returns whether a change has been applied.
    ///
    /// # Errors
    /// [`TomeError::ConflictingChange`] when a different change of the same version was applied.
    /// [`TomeError::Full`] when this many are above the floor that its data member must be wrong.
    pub fn classify(&self, change: &Change) -> Result<Arrival> {
        if change.version < self.floor {
            return Ok(Arrival::Known);
        }
        match self.above.get(&change.version) {
            Some(known) if known == change => Ok(Arrival::Known),
            Some(_) => {
                let Change { offset, version, .. } = *change;
                Err(TomeError::ConflictingChange { offset, version })
            }
            None if self.above.len() >= PENDING_MAX => {
                Err(TomeError::Full { what: "changes above the floor" })
            }
            None => Ok(Arrival::New),
        }
    }

    /// Records a change as applied.
    pub fn record(&mut self, change: Change) {
        if change.version >= self.floor {
            self.above.insert(change.version, change);
        }
    }

    /// Every change below this version is applied, and none from there on.
    #[must_use]
    pub const fn with_floor(floor: Version) -> Self {
        Self { floor, above: BTreeMap::new() }
    }

    /// Forgets changes below a floor that the data member announced; the floor never goes down.
    pub fn raise_floor(&mut self, floor: Version) {
        if floor > self.floor {
            self.above = self.above.split_off(&floor);
            self.floor = floor;
        }
    }

    /// Number of changes above the floor.
    #[must_use]
    pub fn above(&self) -> usize {
        self.above.len()
    }

    /// Returns what a report of the region lists.
    #[must_use]
    pub fn summary(&self) -> AppliedSummary {
        AppliedSummary { floor: self.floor, above: self.above.values().copied().collect() }
    }
}
