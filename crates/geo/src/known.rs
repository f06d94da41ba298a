//! What is known to be decided of an object. Whatever is decided stays so, and may be told to
//! anybody, in any order and as often as one likes; what is merely accepted may not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Value, Version, WriteId, limits};

/// A version that was decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decided {
    /// What was decided.
    pub value: Value,
    /// Whether its bytes are written as the policy asks. A version that was decided without may
    /// never have been acknowledged.
    pub durable: bool,
}

/// Versions of an object that were decided, as far as somebody knows.
///
/// All versions up to `floor` were decided and are gone. That one was decided means that all before
/// it were, though nobody who knows of it need know of those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Known {
    /// The last version of which it is known that it and all before it are gone.
    pub floor: Version,
    /// Of those, the writes of the last few.
    pub gone: BTreeMap<Version, WriteId>,
    /// Versions after the floor.
    pub decided: BTreeMap<Version, Decided>,
}

impl Known {
    /// The last version that is known to be decided; [`Version::NONE`] when none is.
    #[must_use]
    pub fn last(&self) -> Version {
        self.decided.keys().next_back().copied().unwrap_or(Version::NONE).max(self.floor)
    }

    /// Whether a version is known to be decided.
    #[must_use]
    pub fn has(&self, version: Version) -> bool {
        version <= self.floor || self.decided.contains_key(&version)
    }

    /// Which write was decided for a version, if that is known still.
    #[must_use]
    pub fn write(&self, version: Version) -> Option<WriteId> {
        let there = self.decided.get(&version).map(|decided| decided.value.id);
        there.or_else(|| self.gone.get(&version).copied())
    }

    /// The version for which a write was decided, if that is known.
    #[must_use]
    pub fn version_of(&self, write: WriteId) -> Option<Version> {
        let mut there = self.decided.iter().filter(|(_, decided)| decided.value.id == write);
        let mut gone = self.gone.iter().filter(|(_, id)| **id == write);
        there.next().map(|(version, _)| *version).or_else(|| gone.next().map(|(v, _)| *v))
    }

    /// Takes in that a version was decided. Says whether that is news.
    ///
    /// # Panics
    /// When something else is known to have been decided for it: agreement is broken, and nothing
    /// may go on.
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
        let there = self.decided.entry(version).or_insert_with(|| decided.clone());
        there.durable |= decided.durable;
        if decided.value.is_gone() && !there.value.is_gone() {
            there.value = decided.value.clone();
        }
        let news = before.as_ref() != Some(there)
            || before.is_some_and(|before| before.value.is_gone() != there.value.is_gone());
        self.raise_floor();
        news
    }

    /// Takes in what another knows. Says whether any of it is news.
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
            if older && self.gone.len() >= limits::GONE_NAMED {
                // It would not be kept, and is no news, however often it is told.
                break;
            }
            news |= self.gone.insert(*version, *write).is_none();
            self.name_the_last();
        }
        for (version, decided) in other.decided.range(self.floor.next()..) {
            news |= self.learn(*version, decided);
        }
        self.raise_floor();
        news
    }

    /// The same with the newest few versions only, and nothing of those that are gone but the
    /// floor.
    #[must_use]
    pub fn newest(&self) -> Self {
        let newest = self.decided.iter().rev().take(limits::TOLD_VERSIONS);
        let decided = newest.map(|(version, decided)| (*version, decided.clone())).collect();
        Self { floor: self.floor, gone: self.gone.clone(), decided }
    }

    /// This version alone, as others are told of it.
    #[must_use]
    pub fn only(version: Version, value: Value, durable: bool) -> Self {
        let decided = BTreeMap::from([(version, Decided { value, durable })]);
        Self { decided, ..Self::default() }
    }

    /// Says of a version that it is gone: that it was hidden and that its bytes are removed.
    ///
    /// # Panics
    /// When it is not known to be decided.
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
        self.name_the_last();
    }

    /// Forgets the writes of all versions that are gone but the last few.
    fn name_the_last(&mut self) {
        while self.gone.len() > limits::GONE_NAMED {
            self.gone.pop_first();
        }
    }
}
