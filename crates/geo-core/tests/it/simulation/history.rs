//! Checks the answers that clients got against what was decided.
//!
//! Every answer names a version, so no search for an order is needed: the version numbers are the
//! order. The check is that this order agrees with time: an operation sees everything that was
//! acknowledged before it began, and nothing that began after it ended.

use std::collections::BTreeMap;

use fulgurite_geo_core::{Change, KnownVersions, Value, Version, WriteId};

/// Effect or observation of an operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// A write was acknowledged for a version.
    Wrote(WriteId, Version),
    /// It read this version.
    Read(WriteId, Version),
    /// There was no object.
    Nothing,
    /// A write with an unknown outcome.
    Maybe(WriteId),
    /// A create or a delete was refused.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) observation: Observation,
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// Whether a site was lost for good: then a version that was never acknowledged, and was read
    /// while it was just readable, may be unreadable now.
    pub(super) lost_site: bool,
    entries: Vec<Entry>,
    /// All decisions that any node ever knew.
    decided: BTreeMap<(u64, Version), Value>,
    /// When each write began, and for which object.
    started: BTreeMap<WriteId, (u64, u64)>,
}

impl History {
    pub(super) fn begin(&mut self, write: WriteId, key: u64, now: u64) {
        self.started.insert(write, (now, key));
    }

    /// Returns the object of a write.
    pub(super) fn key(&self, write: WriteId) -> Option<u64> {
        self.started.get(&write).map(|(_, key)| *key)
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Records what a node knows. Fails if it contradicts an earlier record: agreement is broken.
    pub(super) fn witness(&mut self, key: u64, known: &KnownVersions) -> Result<(), String> {
        for (version, decided) in &known.decided {
            let existing =
                self.decided.entry((key, *version)).or_insert_with(|| decided.value.clone());
            if existing.id != decided.value.id {
                return Err(format!("{key}: version {version} is {existing:?} and {decided:?}"));
            }
            if existing.is_gone() && !decided.value.is_gone() {
                *existing = decided.value.clone();
            }
        }
        Ok(())
    }

    /// Checks that every answer was right.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_writes()?;
        for entry in &self.entries {
            match entry.observation {
                Observation::Read(write, version) => self.check_read(entry, write, version)?,
                Observation::Nothing => self.check_nothing(entry)?,
                Observation::Wrote(..) | Observation::Maybe(_) | Observation::Refused => {}
            }
        }
        Ok(())
    }

    fn check_writes(&self) -> Result<(), String> {
        let mut versions = BTreeMap::new();
        for ((key, version), value) in &self.decided {
            if let Some(other) = versions.insert(value.id, *version) {
                return Err(format!("{key}: {value:?} is version {other} and {version}"));
            }
        }
        for entry in &self.entries {
            let Observation::Wrote(write, version) = entry.observation else { continue };
            let decided = self.decided.get(&(entry.key, version));
            if decided.is_none_or(|decided| decided.id != write) {
                return Err(format!("{entry:?}, but {decided:?} was decided"));
            }
            // A write comes after everything that was acknowledged before it began.
            for (earlier, seen) in self.acknowledged_before(entry) {
                if seen >= version {
                    return Err(format!("{entry:?} comes after {earlier:?}"));
                }
            }
        }
        Ok(())
    }

    /// Returns writes and reads that ended before an operation began, with their versions.
    fn acknowledged_before<'a>(
        &'a self,
        later: &'a Entry,
    ) -> impl Iterator<Item = (&'a Entry, Version)> {
        let before = move |entry: &&Entry| entry.key == later.key && entry.ended < later.began;
        self.entries.iter().filter(before).filter_map(|entry| match entry.observation {
            Observation::Read(write, _) if self.lost_site && !self.was_acknowledged(write) => None,
            Observation::Wrote(_, version) | Observation::Read(_, version) => {
                Some((entry, version))
            }
            Observation::Nothing | Observation::Maybe(_) | Observation::Refused => None,
        })
    }

    fn was_acknowledged(&self, write: WriteId) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(entry.observation, Observation::Wrote(id, _) if id == write))
    }

    fn check_read(&self, entry: &Entry, write: WriteId, version: Version) -> Result<(), String> {
        let decided = self.decided.get(&(entry.key, version));
        if decided.is_none_or(|decided| decided.id != write) {
            return Err(format!("{entry:?}, but {decided:?} was decided"));
        }
        if self.started.get(&write).is_none_or(|(begun, _)| *begun > entry.ended) {
            return Err(format!("{entry:?} read what was not written yet"));
        }
        match self.acknowledged_before(entry).find(|(_, seen)| *seen > version) {
            Some((earlier, _)) => Err(format!("{entry:?} is older than {earlier:?}")),
            None => Ok(()),
        }
    }

    /// Checks a read that found no object: a delete that had begun must follow what was
    /// acknowledged.
    fn check_nothing(&self, entry: &Entry) -> Result<(), String> {
        let last = self.acknowledged_before(entry).max_by_key(|(_, version)| *version);
        let Some((earlier, last)) = last else { return Ok(()) };
        let mut after = self.decided.range((entry.key, last)..(entry.key + 1, Version::NONE));
        let deleted = after.any(|(_, value)| {
            let deletes = matches!(*value.change, Change::Delete | Change::Gone);
            let begun = self.started.get(&value.id).is_some_and(|(begun, _)| *begun <= entry.ended);
            deletes && begun
        });
        if deleted { Ok(()) } else { Err(format!("{entry:?} does not see {earlier:?}")) }
    }
}
