//! Which tome has which object, and how much room each has: according to the metadata stores.
//!
//! Not here: whether an object's tome can be used.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome_core::placement::{Candidate, PlacementHistory, choose};
use fulgurite_tome_core::{TomeError, TomeId};
use fulgurite_units::{AffinityGroup, Instant};

use crate::driver::ListedObject;
use crate::piece_store::ObjectLocation;

/// Names of a set, each of one tome.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: BTreeMap<String, NameEntry>,
    /// Data blocks that no object uses.
    free: BTreeMap<TomeId, u64>,
    /// Names of puts in progress.
    pending_puts: BTreeSet<String>,
    /// Tomes that have not listed their objects yet.
    unlisted: BTreeSet<TomeId>,
    /// Duplicates that are not read, since another tome has an object of that name.
    duplicates: BTreeMap<TomeId, BTreeSet<String>>,
    /// Objects of tomes in other processes to be removed when those answer.
    deferred_removals: BTreeMap<TomeId, BTreeSet<String>>,
    /// Last placement of each affinity group.
    placements: PlacementHistory,
}

#[derive(Clone, Copy, Debug)]
struct NameEntry {
    tome: TomeId,
    blocks: u64,
}

impl Names {
    /// Adds a tome with this many data blocks.
    pub(super) fn add_tome(&mut self, tome: TomeId, blocks: u64) {
        self.free.insert(tome, blocks);
    }

    /// Adds an existing object. Returns false if another tome has one of its name, which wins:
    /// duplicates result from a put whose outcome was unknown, and a later one.
    pub(super) fn add(&mut self, name: &str, tome: TomeId, blocks: u64) -> bool {
        let free = self.free.entry(tome).or_default();
        *free = free.saturating_sub(blocks);
        match self.names.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(NameEntry { tome, blocks });
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Records a duplicate that is not read: another tome has an object of that name.
    pub(super) fn add_duplicate(&mut self, name: &str, tome: TomeId) {
        self.duplicates.entry(tome).or_default().insert(name.to_owned());
    }

    /// Reserves a name for the tome with the last object of its affinity group, or for the one with
    /// the most room among spinning ones, or among all.
    pub(super) fn reserve(
        &mut self,
        (name, blocks): (&str, u64),
        (affinity, now): (Option<AffinityGroup>, Instant),
        is_live: impl Fn(TomeId) -> bool,
        is_spinning: impl Fn(TomeId) -> bool,
    ) -> Result<TomeId, TomeError> {
        if self.names.contains_key(name) {
            return Err(TomeError::ObjectExists { name: name.to_owned() });
        }
        let all = self.free.iter().map(|(tome, free)| (*tome, *free));
        let able = all.filter(|(tome, _)| is_live(*tome) && !self.has_tombstone(*tome, name));
        let candidates: Vec<Candidate> = able
            .map(|(tome, free)| Candidate { tome, free, is_spinning: is_spinning(tome) })
            .collect();
        let last = affinity.and_then(|affinity| self.placements.last(affinity));
        let chosen = choose(&candidates, last, blocks, now);
        let tome = chosen.ok_or(TomeError::Full { what: "objects" })?;
        self.add(name, tome, blocks);
        if let Some(affinity) = affinity {
            self.placements.record(affinity, tome, blocks, now);
        }
        self.pending_puts.insert(name.to_owned());
        Ok(tome)
    }

    /// Whether a put to a tome is in progress.
    pub(super) fn is_putting(&self, tome: TomeId) -> bool {
        self.pending_puts.iter().any(|name| self.tome_of(name) == Some(tome))
    }

    /// Moves the objects of a rebuilt region to another tome, except for lost ones.
    pub(super) fn region_moved(
        &mut self,
        (from, to): (TomeId, TomeId),
        objects: &[(String, ObjectLocation)],
        lost: &BTreeSet<String>,
    ) {
        for (name, placed) in objects {
            if self.tome_of(name) == Some(from) {
                self.names.remove(name);
            }
            if !lost.contains(name) {
                self.add(name, to, placed.object.blocks.len() as u64);
            }
        }
    }

    /// Returns the data blocks of a tome that no object uses.
    pub(super) fn free_of(&self, tome: TomeId) -> u64 {
        self.free.get(&tome).copied().unwrap_or(0)
    }

    /// Updates the number of a tome's data blocks.
    pub(super) fn set_room(&mut self, tome: TomeId, data_blocks: u64) {
        let own = self.names.values().filter(|named| named.tome == tome);
        let taken: u64 = own.map(|named| named.blocks).sum();
        self.free.insert(tome, data_blocks.saturating_sub(taken));
    }

    /// Ends a put; if it left nothing, its name is free.
    pub(super) fn end_put(&mut self, name: &str, is_refused: bool) {
        self.pending_puts.remove(name);
        if is_refused {
            self.remove(name);
        }
    }

    /// Adds a tome that will list its objects later.
    pub(super) fn await_tome(&mut self, tome: TomeId) {
        self.unlisted.insert(tome);
    }

    /// Returns the tomes that have not listed their objects yet.
    pub(super) fn unlisted(&self) -> &BTreeSet<TomeId> {
        &self.unlisted
    }

    /// Replaces what is known of a tome by its own list. Names being put stay, here or as the tome
    /// lists them. Returns the names that another tome has as well.
    pub(super) fn set_listing(
        &mut self,
        tome: TomeId,
        data_blocks: u64,
        under_way: &[String],
        objects: &[ListedObject],
    ) -> Vec<String> {
        let own = self.names.extract_if(.., |_, named| named.tome == tome);
        let own: Vec<(String, NameEntry)> = own.collect();
        self.duplicates.remove(&tome);
        self.add_tome(tome, data_blocks);
        let mut duplicates = Vec::new();
        let deferred = self.deferred_removals.get(&tome).cloned().unwrap_or_default();
        for object in objects.iter().filter(|object| !deferred.contains(&object.name)) {
            if !self.add(&object.name, tome, object.blocks) {
                self.add_duplicate(&object.name, tome);
                duplicates.push(object.name.clone());
            }
        }
        for (name, named) in own {
            let is_pending = self.pending_puts.contains(&name) || under_way.contains(&name);
            if is_pending && !self.names.contains_key(&name) {
                self.add(&name, tome, named.blocks);
            }
        }
        self.unlisted.remove(&tome);
        duplicates
    }

    /// Returns the duplicates of each tome that are not read.
    pub(super) fn duplicates(&self) -> &BTreeMap<TomeId, BTreeSet<String>> {
        &self.duplicates
    }

    /// Defers the removal of an object until its tome answers.
    pub(super) fn defer_removal(&mut self, tome: TomeId, name: String) {
        self.deferred_removals.entry(tome).or_default().insert(name);
    }

    pub(super) fn has_tombstones(&self) -> bool {
        !self.deferred_removals.is_empty()
    }

    pub(super) fn has_tombstone(&self, tome: TomeId, name: &str) -> bool {
        self.deferred_removals.get(&tome).is_some_and(|names| names.contains(name))
    }

    /// Returns the first deferred removals of each tome.
    pub(super) fn first_tombstones(&self, max: usize) -> Vec<(TomeId, Vec<String>)> {
        let first = |names: &BTreeSet<String>| names.iter().take(max).cloned().collect();
        self.deferred_removals.iter().map(|(tome, names)| (*tome, first(names))).collect()
    }

    /// Records that a deferred removal is done.
    pub(super) fn removal_done(&mut self, tome: TomeId, name: &str) {
        if let Some(names) = self.deferred_removals.get_mut(&tome) {
            names.remove(name);
        }
        self.deferred_removals.retain(|_, names| !names.is_empty());
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.pending_puts.remove(name);
        if let Some(NameEntry { tome, blocks }) = self.names.remove(name) {
            *self.free.entry(tome).or_default() += blocks;
        }
    }

    pub(super) fn tome_of(&self, name: &str) -> Option<TomeId> {
        self.names.get(name).map(|named| named.tome)
    }

    pub(super) fn list_prefix(&self, prefix: &str) -> Vec<String> {
        let from = self.names.range(prefix.to_owned()..);
        from.map(|(name, _)| name).take_while(|name| name.starts_with(prefix)).cloned().collect()
    }

    pub(super) fn list(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }
}
