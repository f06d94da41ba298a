//! The platters with work pending, and the slots they live in. A platter at rest in its slot
//! without requests is forgotten: the catalog knows it.
//!
//! ```text
//!   by_id ----> slab of platters <---- by_home   the slot each lives in
//!                  |   unused                    places of the slab that are free
//!                  '-- where it is ----> spares  spare slots that hold one or expect one
//!                                        displaced  those in a spare slot that live elsewhere
//! ```
//!
//! The four indexes follow from the stage and the place of each platter, so only
//! [`PlatterTable::set_stage`] and [`PlatterTable::set_place`] change those. Platters live in a
//! slab and are addressed by their index in it, so that the cost of one event does not depend on
//! how many there are. Not here: which platter waits for which shuttle (`partition.rs`,
//! `arrivals.rs`).

#[cfg(test)]
pub(crate) mod corruptions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fulgurite_units::{PlatterId, ShuttleIndex, SlotIndex};

use crate::control::state::{Age, PendingRead, Place, PlatterKey, Queue, Stage};

/// The platters with work pending.
#[derive(Clone, Debug)]
pub(crate) struct PlatterTable {
    platters: Vec<Platter>,
    unused: Vec<PlatterKey>,
    by_id: BTreeMap<PlatterId, PlatterKey>,
    /// The platter that lives in each slot, if known.
    by_home: Vec<Option<PlatterKey>>,
    /// Spare slots in use.
    spares: BTreeMap<SlotIndex, PlatterKey>,
    /// Platters in a spare slot because their home was out of reach.
    displaced: BTreeSet<PlatterKey>,
}

/// A platter with work pending.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    id: PlatterId,
    stage: Stage,
    place: Place,
    /// The shuttle that is on its way to pick it.
    claim: Option<ShuttleIndex>,
    /// Waiting reads, most urgent first.
    reads: VecDeque<PendingRead>,
    /// Number of tracks of the waiting reads.
    tracks_wanted: u64,
    /// Reads started since it left its slot.
    visit_reads: u32,
    /// The queue in which it waits for a fetch, if it does.
    queued: Option<(Queue, Age)>,
}

impl Platter {
    pub(crate) const fn id(&self) -> PlatterId {
        self.id
    }

    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// The shuttle that is on its way to pick it.
    pub(crate) const fn claim(&self) -> Option<ShuttleIndex> {
        self.claim
    }

    /// Waiting reads, most urgent first.
    pub(crate) const fn reads(&self) -> &VecDeque<PendingRead> {
        &self.reads
    }

    /// Returns the most urgent read.
    #[inline]
    pub(crate) fn first_read(&self) -> Option<&PendingRead> {
        self.reads.front()
    }

    pub(crate) const fn tracks_wanted(&self) -> u64 {
        self.tracks_wanted
    }

    /// Reads started since it left its slot.
    pub(crate) const fn visit_reads(&self) -> u32 {
        self.visit_reads
    }

    /// The queue in which it waits for a fetch, if it does.
    pub(crate) const fn queued(&self) -> Option<(Queue, Age)> {
        self.queued
    }

    /// Returns the slot it lives in, if it has one.
    pub(crate) const fn home(&self) -> Option<SlotIndex> {
        match self.stage {
            Stage::Stored { home } | Stage::Storing { home, .. } => Some(home),
            Stage::Unverified { .. } | Stage::Checked { .. } => None,
        }
    }

    /// Returns the slot it is in, if that is not where it lives: a spare one.
    fn occupied_spare(&self) -> Option<SlotIndex> {
        match self.place {
            Place::Storage(slot) if self.home() != Some(slot) => Some(slot),
            Place::Storage(_) | Place::EjectBay(_) | Place::Drive(..) | Place::Shuttle(_) => None,
        }
    }
}

impl PlatterTable {
    /// Creates the shelf of this many slots, with all platters at rest.
    pub(crate) fn new(slot_count: u32) -> Self {
        Self {
            platters: Vec::new(),
            unused: Vec::new(),
            by_id: BTreeMap::new(),
            by_home: vec![None; slot_count as usize],
            spares: BTreeMap::new(),
            displaced: BTreeSet::new(),
        }
    }

    /// Returns a platter that must be known, since something else refers to it.
    #[inline]
    pub(crate) fn get(&self, key: PlatterKey) -> &Platter {
        &self.platters[key.0 as usize]
    }

    /// Returns the platter with this id, if it has work pending.
    pub(crate) fn find(&self, id: PlatterId) -> Option<PlatterKey> {
        self.by_id.get(&id).copied()
    }

    /// Returns the platter that lives in a slot, if known.
    pub(crate) fn owner(&self, slot: SlotIndex) -> Option<PlatterKey> {
        self.by_home[slot.as_usize()]
    }

    /// Returns all platters with work pending, by id.
    pub(crate) fn known(&self) -> impl Iterator<Item = (PlatterKey, &Platter)> {
        self.by_id.values().map(|&key| (key, self.get(key)))
    }

    /// Whether a key still refers to a platter.
    pub(crate) fn is_known(&self, key: PlatterKey) -> bool {
        self.find(self.get(key).id) == Some(key)
    }

    /// Returns the platters in a spare slot that live elsewhere.
    pub(crate) fn displaced(&self) -> impl Iterator<Item = PlatterKey> {
        self.displaced.iter().copied()
    }

    /// Whether a platter is in a spare slot and lives elsewhere.
    pub(crate) fn is_displaced(&self, key: PlatterKey) -> bool {
        let platter = self.get(key);
        platter.home().is_some() && platter.occupied_spare().is_some()
    }

    /// Adds a platter.
    pub(crate) fn remember(&mut self, id: PlatterId, stage: Stage, place: Place) -> PlatterKey {
        let mut platter = Platter {
            id,
            stage,
            place,
            claim: None,
            reads: VecDeque::new(),
            tracks_wanted: 0,
            visit_reads: 0,
            queued: None,
        };
        let key = if let Some(key) = self.unused.pop() {
            // Reuses the buffer of its reads.
            let entry = self.get_mut(key);
            platter.reads = std::mem::take(&mut entry.reads);
            *entry = platter;
            key
        } else {
            let key = u32::try_from(self.platters.len()).unwrap_or(u32::MAX);
            self.platters.push(platter);
            PlatterKey(key)
        };
        self.by_id.insert(id, key);
        if let Some(home) = self.get(key).home() {
            self.set_owner(home, key);
        }
        self.record_spare(key);
        key
    }

    /// Forgets a platter that has no work pending, or is gone.
    pub(crate) fn forget(&mut self, key: PlatterKey) {
        let platter = self.get(key);
        assert!(platter.reads.is_empty(), "platter {} is forgotten with reads", platter.id);
        assert!(platter.queued.is_none(), "platter {} is forgotten in a queue", platter.id);
        let (id, home) = (platter.id, platter.home());
        let known = self.by_id.remove(&id);
        assert_eq!(known, Some(key), "platter {id} is forgotten once");
        self.remove_spare(key);
        if let Some(home) = home {
            self.by_home[home.as_usize()] = None;
        }
        self.unused.push(key);
    }

    /// Sets its stage.
    pub(crate) fn set_stage(&mut self, key: PlatterKey, stage: Stage) {
        let before = self.get(key).home();
        self.get_mut(key).stage = stage;
        let after = self.get(key).home();
        if before == after {
            return;
        }
        if let Some(home) = before {
            self.by_home[home.as_usize()] = None;
        }
        if let Some(home) = after {
            self.set_owner(home, key);
        }
        self.record_spare(key);
    }

    /// Sets its place. Arrival in a slot ends its visit to a drive.
    pub(crate) fn set_place(&mut self, key: PlatterKey, place: Place) {
        self.remove_spare(key);
        let platter = self.get_mut(key);
        platter.place = place;
        if let Place::Storage(_) = place {
            platter.visit_reads = 0;
            self.record_spare(key);
        }
    }

    /// Claims it for a shuttle: one at a time.
    pub(crate) fn claim(&mut self, key: PlatterKey, shuttle: ShuttleIndex) {
        let before = self.get_mut(key).claim.replace(shuttle);
        assert!(before.is_none(), "a platter is claimed by one shuttle at a time");
    }

    /// Releases the claim: the shuttle has it, or does not come.
    pub(crate) fn unclaim(&mut self, key: PlatterKey) {
        self.get_mut(key).claim = None;
    }

    /// Adds a read.
    pub(crate) fn add_read(&mut self, key: PlatterKey, read: PendingRead) {
        let platter = self.get_mut(key);
        platter.tracks_wanted += u64::from(read.tracks.track_count);
        if platter.reads.back().is_none_or(|last| last.age < read.age) {
            platter.reads.push_back(read);
        } else {
            let at = platter.reads.partition_point(|other| other.age < read.age);
            platter.reads.insert(at, read);
        }
    }

    /// Removes a read, if it is still listed.
    pub(crate) fn remove_read(&mut self, key: PlatterKey, age: Age) -> Option<PendingRead> {
        let platter = self.get_mut(key);
        let read = if platter.reads.front().is_some_and(|read| read.age == age) {
            platter.reads.pop_front()?
        } else {
            let at = platter.reads.binary_search_by(|read| read.age.cmp(&age)).ok()?;
            platter.reads.remove(at)?
        };
        platter.tracks_wanted -= u64::from(read.tracks.track_count);
        Some(read)
    }

    /// Counts a read that a drive starts.
    pub(crate) fn count_read(&mut self, key: PlatterKey) {
        self.get_mut(key).visit_reads += 1;
    }

    /// Sets the queue in which it waits, if any.
    pub(crate) fn set_queued(&mut self, key: PlatterKey, queued: Option<(Queue, Age)>) {
        self.get_mut(key).queued = queued;
    }

    /// Reserves a spare slot for a platter that is on its way.
    pub(crate) fn reserve_spare(&mut self, slot: SlotIndex, key: PlatterKey) {
        let before = self.spares.insert(slot, key);
        assert!(before.is_none(), "slot {slot} is reserved for {key:?} and for {before:?}");
    }

    /// Cancels the reservation of a spare slot.
    pub(crate) fn release_spare(&mut self, slot: SlotIndex, key: PlatterKey) {
        if self.spares.get(&slot) == Some(&key) {
            self.spares.remove(&slot);
        }
    }

    /// Whether a spare slot holds nothing and expects nothing.
    pub(crate) fn is_spare_free(&self, slot: SlotIndex) -> bool {
        !self.spares.contains_key(&slot)
    }

    fn get_mut(&mut self, key: PlatterKey) -> &mut Platter {
        &mut self.platters[key.0 as usize]
    }

    fn set_owner(&mut self, home: SlotIndex, key: PlatterKey) {
        let before = self.by_home[home.as_usize()].replace(key);
        assert!(before.is_none(), "{before:?} and {key:?} live in slot {home}");
    }

    /// Records a platter in a spare slot, and as displaced if it has a home.
    fn record_spare(&mut self, key: PlatterKey) {
        let platter = self.get(key);
        let Some(slot) = platter.occupied_spare() else { return };
        if platter.home().is_some() {
            self.displaced.insert(key);
        } else {
            self.displaced.remove(&key);
        }
        self.spares.insert(slot, key);
    }

    fn remove_spare(&mut self, key: PlatterKey) {
        if let Some(slot) = self.get(key).occupied_spare() {
            self.spares.remove(&slot);
            self.displaced.remove(&key);
        }
    }

    /// Asserts that each index agrees with the platters. `expected` are the spare slots to which
    /// platters are on their way.
    pub(crate) fn check(&self, expected: &BTreeMap<SlotIndex, PlatterKey>) {
        self.check_slab();
        self.check_homes();
        self.check_spares(expected.clone());
        for (_, platter) in self.known() {
            let tracks = platter.reads.iter().map(|read| u64::from(read.tracks.track_count));
            let tracks: u64 = tracks.sum();
            assert_eq!(tracks, platter.tracks_wanted, "tracks of platter {}", platter.id);
            let sorted = platter.reads.iter().is_sorted_by(|a, b| a.age < b.age);
            assert!(sorted, "reads of platter {} are out of order", platter.id);
        }
    }

    /// Asserts that every slab entry is known by its platter's id, or unused.
    fn check_slab(&self) {
        let unused: BTreeSet<PlatterKey> = self.unused.iter().copied().collect();
        assert_eq!(unused.len(), self.unused.len(), "a slab entry is listed twice as unused");
        let keys: BTreeSet<PlatterKey> = self.by_id.values().copied().collect();
        assert_eq!(keys.len(), self.by_id.len(), "two ids refer to one platter");
        assert!(keys.is_disjoint(&unused), "a slab entry is both used and unused");
        assert_eq!(
            keys.len() + unused.len(),
            self.platters.len(),
            "a slab entry is neither used nor unused"
        );
        for (id, key) in &self.by_id {
            assert_eq!(self.get(*key).id, *id, "a platter is indexed by its id");
        }
    }

    /// Asserts that every slot has at most one owner, and knows it.
    fn check_homes(&self) {
        let mut homes: BTreeMap<SlotIndex, PlatterKey> = BTreeMap::new();
        for (key, platter) in self.known() {
            let Some(home) = platter.home() else { continue };
            let before = homes.insert(home, key);
            assert!(before.is_none(), "{before:?} and {key:?} live in slot {home}");
        }
        let owners = (0..).map(SlotIndex::new).zip(&self.by_home);
        let owners = owners.filter_map(|(slot, key)| key.map(|key| (slot, key)));
        assert_eq!(homes, owners.collect(), "the index of slot owners is correct");
    }

    /// Asserts that a spare slot in use holds a platter or expects one, and that displaced platters
    /// are known.
    fn check_spares(&self, mut spares: BTreeMap<SlotIndex, PlatterKey>) {
        let mut displaced = BTreeSet::new();
        for (key, platter) in self.known() {
            let Place::Storage(slot) = platter.place else { continue };
            if platter.home() != Some(slot) {
                let before = spares.insert(slot, key);
                assert!(before.is_none(), "slot {slot} holds a platter and expects one");
                displaced.extend(platter.home().map(|_| key));
            }
        }
        assert_eq!(spares, self.spares, "the index of spare slots is correct");
        assert_eq!(displaced, self.displaced, "the set of displaced platters is correct");
    }
}
