//! The decided versions of an object, as far as known. A decision is final, so it may be sent to
//! anybody, in any order and any number of times; a value that is merely accepted may not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Value, Version, WriteId, limits};

/// A decided version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decided {
    /// The decided value.
    pub value: Value,
    /// Whether its bytes are written as the policy requires. A decided version that is not durable
    /// may never have been acknowledged.
    pub durable: bool,
}

/// The decided versions of an object, as far as one node knows.
///
/// All versions up to `floor` are decided and gone. If a version is decided, so are all before it,
/// but a node that knows it need not know what those are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KnownVersions {
    /// The last version that is known to be gone together with all before it.
    pub floor: Version,
    /// The writes of the last few of those.
    pub gone: BTreeMap<Version, WriteId>,
    /// Versions after the floor.
    pub decided: BTreeMap<Version, Decided>,
}

impl KnownVersions {
    /// Returns the last version that is known to be decided; [`Version::NONE`] if none is.
    #[must_use]
    pub fn last(&self) -> Version {
        self.decided.keys().next_back().copied().unwrap_or(Version::NONE).max(self.floor)
    }

    /// Whether a version is known to be decided.
    #[must_use]
    pub fn has(&self, version: Version) -> bool {
        version <= self.floor || self.decided.contains_key(&version)
    }

    /// Returns the write that was decided for a version, if it is still known.
    #[must_use]
    pub fn write(&self, version: Version) -> Option<WriteId> {
        let existing = self.decided.get(&version).map(|decided| decided.value.id);
        existing.or_else(|| self.gone.get(&version).copied())
    }

    /// Returns the version for which a write was decided, if that is known.
    #[must_use]
    pub fn version_of(&self, write: WriteId) -> Option<Version> {
        let mut existing = self.decided.iter().filter(|(_, decided)| decided.value.id == write);
        let mut gone = self.gone.iter().filter(|(_, id)| **id == write);
        existing.next().map(|(version, _)| *version).or_else(|| gone.next().map(|(v, _)| *v))
    }

    /// Records that a version was decided. Returns whether that is news.
    ///
    /// # Panics
    /// If another write is known to have been decided for it: agreement is broken, and nothing may
    /// go on.
    pub fn learn(&mut self, version: Version, decided: &Decided) -> bool {
        assert!(version > Version::NONE, "versions begin at 1");
        if let Some(write) = self.write(version) {
            let value = &decided.value;
            assert_eq!(write, value.id, "two values were decided for version {version}");
        }
        if version <= self.floor {
            return false;
        }
        let before = self.decided.get(&version).cloned();
        let existing = self.decided.entry(version).or_insert_with(|| decided.clone());
        existing.durable |= decided.durable;
        if decided.value.is_gone() && !existing.value.is_gone() {
            existing.value = decided.value.clone();
        }
        let news = before.as_ref() != Some(existing)
            || before.is_some_and(|before| before.value.is_gone() != existing.value.is_gone());
        self.raise_floor();
        news
    }

    /// Merges what another node knows. Returns whether any of it is news.
    pub fn merge(&mut self, other: &Self) -> bool {
        let mut news = false;
        if other.floor > self.floor {
            self.floor = other.floor;
            self.decided.retain(|version, _| *version > other.floor);
            news = true;
        }
        for (version, write) in other.gone.range(..=self.floor).rev() {
            let first = self.gone.keys().next().copied();
            let older = first.is_some_and(|first| *version < first);
            if older && self.gone.len() >= limits::GONE_WRITES_MAX {
                // It would not be kept, so it is not news, however often it arrives.
                break;
            }
            news |= self.gone.insert(*version, *write).is_none();
            self.trim_gone();
        }
        for (version, decided) in other.decided.range(self.floor.next()..) {
            news |= self.learn(*version, decided);
        }
        self.raise_floor();
        news
    }

    /// Returns a copy with only the newest few decided versions; the floor and the named writes of
    /// gone versions stay.
    #[must_use]
    pub fn newest(&self) -> Self {
        let newest = self.decided.iter().rev().take(limits::SENT_VERSIONS_MAX);
        let decided = newest.map(|(version, decided)| (*version, decided.clone())).collect();
        Self { floor: self.floor, gone: self.gone.clone(), decided }
    }

    /// Returns this version alone, in the form that is sent to others.
    #[must_use]
    pub fn only(version: Version, value: Value, durable: bool) -> Self {
        let decided = BTreeMap::from([(version, Decided { value, durable })]);
        Self { decided, ..Self::default() }
    }

    /// Marks a version as gone: it was obsolete, and its bytes are removed.
    ///
    /// # Panics
    /// If it is not known to be decided.
    pub fn mark_gone(&mut self, version: Version) {
        if version <= self.floor {
            return;
        }
        let decided = self.decided.get(&version);
        let decided = decided.unwrap_or_else(|| panic!("version {version} is not known"));
        let value = decided.value.gone();
        self.learn(version, &Decided { value, durable: true });
    }

    /// Raises the floor over versions that are gone.
    fn raise_floor(&mut self) {
        while let Some(next) = self.decided.get(&self.floor.next()) {
            if !next.value.is_gone() {
                break;
            }
            self.floor = self.floor.next();
            self.gone.insert(self.floor, next.value.id);
            self.decided.remove(&self.floor);
        }
        self.trim_gone();
    }

    /// Forgets the writes of gone versions except for the last few.
    fn trim_gone(&mut self) {
        while self.gone.len() > limits::GONE_WRITES_MAX {
            self.gone.pop_first();
        }
    }
}
