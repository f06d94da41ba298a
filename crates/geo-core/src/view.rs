//! The state of an object, derived from its known versions.

use std::collections::BTreeSet;

use fulgurite_units::UnixTime;

use crate::{Change, Decided, KnownVersions, Version};

/// An unknown version without which the state of an object cannot be derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole(pub Version);

impl KnownVersions {
    /// Returns the current put of the object; none if the object does not exist.
    ///
    /// # Errors
    /// The [`Hole`] that has to be filled first.
    pub fn latest(&self) -> Result<Option<(Version, &Decided)>, Hole> {
        Ok(self.visible(1)?.into_iter().next())
    }

    /// Returns the latest visible versions, newest first, at most this many.
    ///
    /// # Errors
    /// The [`Hole`] that has to be filled first.
    pub fn visible(&self, limit: usize) -> Result<Vec<(Version, &Decided)>, Hole> {
        let (mut visible, mut obsolete) = (Vec::new(), BTreeSet::new());
        let mut version = self.last();
        while version > self.floor && visible.len() < limit {
            let decided = self.decided.get(&version).ok_or(Hole(version))?;
            match &*decided.value.change {
                Change::Put(_) if !obsolete.contains(&version) => visible.push((version, decided)),
                Change::Delete => break,
                Change::DeleteVersions(versions) => obsolete.extend(versions.iter().copied()),
                Change::Put(_) | Change::Noop | Change::Gone => {}
            }
            version = Version(version.0 - 1);
        }
        Ok(visible)
    }

    /// Returns the first version that was decided but whose value is not known.
    #[must_use]
    pub fn first_hole(&self) -> Option<Hole> {
        let versions = (self.floor.0 + 1..self.last().0).map(Version);
        versions.into_iter().find(|version| !self.has(*version)).map(Hole)
    }

    /// Returns the versions that have been unreachable since `before`: those made obsolete by a
    /// later delete, no-ops, and deletes with nothing left behind them; with `keep` set, also puts
    /// that are not among the `keep` newest. Unknown versions are not among them.
    #[must_use]
    pub fn dead(&self, keep: Option<usize>, before: UnixTime) -> Vec<Version> {
        let (mut dead, mut obsolete, mut all_obsolete) = (Vec::new(), BTreeSet::new(), false);
        let mut puts = 0;
        for (version, decided) in self.decided.iter().rev() {
            let old = decided.value.time <= before;
            match &*decided.value.change {
                Change::Gone => continue,
                Change::Put(_) => {
                    let over = keep.is_some_and(|keep| puts >= keep);
                    // A put that may be unreadable does not count as one of the newest.
                    puts += usize::from(old && decided.durable);
                    if !(all_obsolete || over || obsolete.contains(version)) {
                        continue;
                    }
                }
                Change::Delete | Change::DeleteVersions(_) | Change::Noop if !old => continue,
                Change::Delete => all_obsolete = true,
                Change::DeleteVersions(versions) => obsolete.extend(versions.iter().copied()),
                Change::Noop => {}
            }
            dead.push(*version);
        }
        dead.reverse();
        // A delete goes last: while it exists, the versions that it covers stay obsolete.
        let is_delete = |version: &Version| {
            let change = self.decided.get(version).map(|decided| &*decided.value.change);
            matches!(change, Some(Change::Delete | Change::DeleteVersions(_)))
        };
        let left = |delete: &Version| {
            let mut before = self.decided.range(self.floor.next()..*delete);
            let whole = delete.0 - self.floor.0 - 1 == before.clone().count() as u64;
            !whole || before.any(|(_, decided)| !decided.value.is_gone())
        };
        dead.retain(|version| !is_delete(version) || !left(version));
        dead
    }
}
