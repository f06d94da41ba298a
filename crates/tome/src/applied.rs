//! Which changes of one data member a parity has folded, so that one that comes twice is folded
//! once.
//!
//! A change is added, and added again it is gone: nothing about it is safe to repeat. So each is
//! known by its tome, block and version. What was folded is kept from a floor on, which the data
//! member raises: below it nothing is ever sent again, and what comes all the same is late.
//!
//! Not here: bytes. That a change is noted and its block is switched to the new spot is one commit.

use std::collections::BTreeMap;

use crate::consistency::{Change, Folded};
use crate::limits::PENDING_MAX;
use crate::{Result, TomeError, Version};

/// What a parity has of one data member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    floor: Version,
    above: BTreeMap<Version, Change>,
}

/// What is to be done with a change that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is to be folded.
    New,
    /// It is there already.
    Known,
}

impl Applied {
    /// Whether a change is there already.
    ///
    /// # Errors
    /// [`TomeError::OtherChange`] when another one of the same version is: they cannot both be.
    /// [`TomeError::Full`] when so many are above the floor that its data member cannot be right.
    pub fn judge(&self, change: &Change) -> Result<Arrival> {
        if change.version < self.floor {
            return Ok(Arrival::Known);
        }
        match self.above.get(&change.version) {
            Some(known) if known == change => Ok(Arrival::Known),
            Some(_) => {
                let Change { offset, version, .. } = *change;
                Err(TomeError::OtherChange { offset, version })
            }
            None if self.above.len() >= PENDING_MAX => {
                Err(TomeError::Full { what: "changes above the floor" })
            }
            None => Ok(Arrival::New),
        }
    }

    /// Notes a change that is folded.
    pub fn note(&mut self, change: Change) {
        if change.version >= self.floor {
            self.above.insert(change.version, change);
        }
    }

    /// Everything below this version is there, and nothing is known from there on.
    #[must_use]
    pub const fn up_to(floor: Version) -> Self {
        Self { floor, above: BTreeMap::new() }
    }

    /// Forgets what is below a floor that the data member told; it never goes down.
    pub fn raise(&mut self, floor: Version) {
        if floor > self.floor {
            self.above = self.above.split_off(&floor);
            self.floor = floor;
        }
    }

    /// What is known one by one.
    #[must_use]
    pub fn above(&self) -> usize {
        self.above.len()
    }

    /// What a report of the region tells.
    #[must_use]
    pub fn folded(&self) -> Folded {
        Folded { floor: self.floor, above: self.above.values().copied().collect() }
    }
}
