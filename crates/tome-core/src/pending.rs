//! Changes of a data region that some parity of its group has not applied yet.
//!
//! ```text
//! write:     old and new physical block, version --> pending, missing at every parity
//! write of the same block, the first not sent: one change, from the first old to the last new
//! confirm:   one parity less; the last one frees the old physical block
//! ```
//!
//! The old block is kept until then, so that the delta can be recomputed whatever was lost on the
//! way: each parity needs another multiple of it (Pergamum (FAST 2008), section 4.3.1). Not here:
//! bytes, and when which parity is sent a delta.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_units::Instant;
use serde::{Deserialize, Serialize};

use crate::consistency::{Change, Unconfirmed};
use crate::limits::PENDING_MAX;
use crate::{CodeParams, Offset, PhysicalBlock, Result, TomeError, Version};

/// A set of parities of one group, numbered from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parities(u16);

impl Parities {
    /// Returns all parities of a group.
    #[must_use]
    pub const fn all(group: CodeParams) -> Self {
        // A group has at most 16 parities.
        Self(u16::MAX >> (16 - group.parity()))
    }

    /// Returns whether a parity is in the set.
    #[must_use]
    pub const fn has(self, parity: u8) -> bool {
        self.0 >> parity & 1 == 1
    }

    /// Returns the set without a parity.
    #[must_use]
    pub const fn without(self, parity: u8) -> Self {
        Self(self.0 & !(1 << parity))
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the numbers of the parities, in order.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |parity| self.has(*parity))
    }
}

/// A change that some parities lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The block.
    pub offset: Offset,
    /// Its physical block before; `None` where it was never written.
    pub old: Option<PhysicalBlock>,
    /// Its physical block since.
    pub new: PhysicalBlock,
    /// The signature of the change.
    #[serde(with = "crate::wire::signature")]
    pub change: Signature,
    /// Parities that have not confirmed it.
    pub missing: Parities,
    /// Whether a delta may have reached any parity.
    pub is_sent: bool,
    /// When it was written.
    pub since: Instant,
}

/// The changes of one region, by version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingList {
    all: BTreeMap<Version, Pending>,
    /// When the oldest was written.
    oldest: Option<Instant>,
}

impl PendingList {
    /// Adds a change. If the previous one of the same block was not sent, the two are merged.
    ///
    /// # Errors
    /// [`TomeError::Backlog`] when too many wait; then nothing is added.
    pub fn push(&mut self, version: Version, mut pending: Pending) -> Result<()> {
        let unsent = self.unsent_at(pending.offset);
        if let Some(before) = unsent.and_then(|version| self.remove(version)) {
            pending.old = before.old;
            pending.change ^= before.change;
            pending.since = before.since;
        } else if self.all.len() >= PENDING_MAX {
            return Err(TomeError::Backlog { what: "changes that wait for parities" });
        }
        self.oldest = self.oldest.into_iter().chain([pending.since]).min();
        self.all.insert(version, pending);
        Ok(())
    }

    fn unsent_at(&self, offset: Offset) -> Option<Version> {
        let mut of_block = self.all.iter().filter(|(_, pending)| pending.offset == offset);
        of_block.next_back().filter(|(_, pending)| !pending.is_sent).map(|(version, _)| *version)
    }

    /// Marks a change as sent: from now on it is never merged with another.
    pub fn mark_sent(&mut self, version: Version) {
        if let Some(pending) = self.all.get_mut(&version) {
            pending.is_sent = true;
        }
    }

    /// Records that a parity has a change durably; returns the change if that was the last one.
    pub fn confirm(&mut self, version: Version, parity: u8) -> Option<Pending> {
        let pending = self.all.get_mut(&version)?;
        pending.missing = pending.missing.without(parity);
        if pending.missing.is_empty() { self.remove(version) } else { None }
    }

    fn remove(&mut self, version: Version) -> Option<Pending> {
        let removed = self.all.remove(&version)?;
        if self.oldest == Some(removed.since) {
            self.oldest = self.all.values().map(|pending| pending.since).min();
        }
        Some(removed)
    }

    /// Returns the version below which every change is applied by all parities or will never be
    /// sent: what parities may forget. `latest` is the region's last version.
    #[must_use]
    pub fn floor(&self, latest: Version) -> Version {
        let beyond = || latest.next().unwrap_or(latest);
        self.all.first_key_value().map_or_else(beyond, |(version, _)| *version)
    }

    /// Whether a physical block is needed to compute a change.
    #[must_use]
    pub fn needs(&self, block: PhysicalBlock) -> bool {
        self.all.values().any(|pending| pending.old == Some(block) || pending.new == block)
    }

    /// Records that a block moved to another physical block.
    pub fn moved(&mut self, from: PhysicalBlock, to: PhysicalBlock) {
        for pending in self.all.values_mut() {
            if pending.old == Some(from) {
                pending.old = Some(to);
            }
            if pending.new == from {
                pending.new = to;
            }
        }
    }

    /// Returns a change by its version.
    #[must_use]
    pub fn get(&self, version: Version) -> Option<&Pending> {
        self.all.get(&version)
    }

    /// Returns all changes, oldest version first.
    pub fn iter(&self) -> impl Iterator<Item = (Version, &Pending)> {
        self.all.iter().map(|(version, pending)| (*version, pending))
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether every parity has every change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns when the oldest unprotected change was written.
    #[must_use]
    pub const fn oldest(&self) -> Option<Instant> {
        self.oldest
    }

    /// Returns the changes as a report of the region lists them.
    #[must_use]
    pub fn unconfirmed(&self) -> Vec<Unconfirmed> {
        let listed = |(version, pending): (&Version, &Pending)| Unconfirmed {
            change: Change { offset: pending.offset, version: *version, signature: pending.change },
            missing: pending.missing.numbers().collect(),
        };
        self.all.iter().map(listed).collect()
    }
}
