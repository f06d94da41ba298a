//! What must hold after every event. A violation is a bug of this crate (or of a driver that
//! answers what it was not asked), so each is an assertion.
//!
//! ```text
//!   here         platters, slots, queues, requests: who is where and what waits for what
//!   machines.rs  commands, trips, drives, shuttles on their lanes, work left undone
//! ```
//!
//! Each rule is worked out once more from the state, never with the code that maintains it, except
//! where the question is just that: whether somebody idle would find work.

mod machines;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{DriveIndex, ShuttleIndex, SlotIndex};

use crate::controller::Library;
use crate::limits::{EJECT_BAY_PLATTERS_MAX, REQUESTS_MAX};
use crate::state::{Age, Drive, Errand, Job, Place, Platter, PlatterKey, Queue, Shuttle, Stage};
use crate::{Action, Destination, DriveSlot, PanelIndex, RequestId};

impl Library {
    pub(crate) fn check_invariants(&self) {
        self.check_slab();
        self.check_places();
        self.check_homes();
        self.check_spares();
        self.check_queues();
        self.check_requests();
        self.check_commands();
        self.check_drives();
        self.check_trips();
        self.check_batteries();
        self.check_waiting_shuttles();
        self.check_lanes();
        self.check_work_conserved();
        self.check_pace();
        self.check_age_bound();
    }

    pub(crate) fn known(&self) -> impl Iterator<Item = (PlatterKey, &Platter)> {
        self.by_id.values().map(|&key| (key, self.platter(key)))
    }

    pub(crate) fn indexed_shuttles(&self) -> impl Iterator<Item = (ShuttleIndex, &Shuttle)> {
        (0..).map(ShuttleIndex::new).zip(&self.shuttles)
    }

    pub(crate) fn indexed_drives(&self) -> impl Iterator<Item = (DriveIndex, &Drive)> {
        (0..).map(DriveIndex::new).zip(&self.drives)
    }

    /// What the shuttles carry from where to where.
    fn errands(&self) -> impl Iterator<Item = (ShuttleIndex, Errand)> {
        self.indexed_shuttles().filter_map(|(index, shuttle)| {
            shuttle.trip.as_ref().and_then(|trip| trip.errand).map(|errand| (index, errand))
        })
    }

    /// Every place of the slab is known by its platter's name, or not in use.
    fn check_slab(&self) {
        let unused: BTreeSet<PlatterKey> = self.unused.iter().copied().collect();
        assert_eq!(unused.len(), self.unused.len(), "a place is twice not in use");
        let keys: BTreeSet<PlatterKey> = self.by_id.values().copied().collect();
        assert_eq!(keys.len(), self.by_id.len(), "two names mean one platter");
        assert!(keys.is_disjoint(&unused), "a platter is forgotten and known");
        assert_eq!(keys.len() + unused.len(), self.platters.len(), "a place is lost");
        for (id, key) in &self.by_id {
            assert_eq!(self.platter(*key).id, *id, "a platter is known by its name");
        }
    }

    /// Every platter is in exactly one place, and that place knows it.
    fn check_places(&self) {
        let mut held: BTreeMap<PlatterKey, Place> = BTreeMap::new();
        let mut hold = |key: PlatterKey, place: Place| {
            let before = held.insert(key, place);
            assert!(before.is_none(), "platter {key:?} is in {before:?} and in {place:?}");
        };
        for (index, shuttle) in self.indexed_shuttles() {
            shuttle.cargo.into_iter().for_each(|key| hold(key, Place::Shuttle(index)));
        }
        for (index, drive) in self.indexed_drives() {
            for slot in DriveSlot::BOTH {
                let inside = drive.bay(slot).platter;
                inside.into_iter().for_each(|key| hold(key, Place::Drive(index, slot)));
            }
        }
        let mut ejected = vec![0; usize::from(self.shape().panels)];
        for (key, platter) in self.known() {
            let (id, place) = (platter.id, platter.place);
            match place {
                Place::Shuttle(_) | Place::Drive(..) => {
                    assert_eq!(held.remove(&key), Some(place), "platter {id} is not there");
                }
                Place::Storage(slot) => {
                    assert!(!held.contains_key(&key), "platter {id} is in {slot} and elsewhere");
                    let spare = self.spares.get(&slot) == Some(&key);
                    let lives = platter.home() == Some(slot)
                        && matches!(platter.stage, Stage::Stored { .. });
                    assert!(lives != spare, "platter {id} is in a foreign slot {slot}");
                    let rests = lives && platter.reads.is_empty() && platter.claim.is_none();
                    assert!(!rests, "platter {id} is at rest and not forgotten");
                }
                Place::EjectBay(panel) => {
                    assert!(!held.contains_key(&key), "platter {id} is ejected and elsewhere");
                    let new = matches!(platter.stage, Stage::Unverified { panel: of, .. }
                        if of == panel);
                    assert!(new, "platter {id} went back to the write drive");
                    ejected[usize::from(panel.get())] += 1;
                }
            }
        }
        assert!(held.is_empty(), "somebody holds platters that nobody knows: {held:?}");
        assert_eq!(ejected, self.ejected, "the eject bays know how many they hold");
        let most = ejected.iter().max().copied().unwrap_or(0);
        assert!(most <= EJECT_BAY_PLATTERS_MAX, "an eject bay overflows");
    }

    /// Every slot has at most one owner, and knows it; no spare slot has one.
    fn check_homes(&self) {
        let mut homes: BTreeMap<SlotIndex, PlatterKey> = BTreeMap::new();
        for (key, platter) in self.known() {
            let Some(home) = platter.home() else { continue };
            let before = homes.insert(home, key);
            assert!(before.is_none(), "{before:?} and {key:?} live in slot {home}");
            assert!(!self.shape().is_spare(home), "platter {} lives in a spare slot", platter.id);
        }
        let owners = (0..).map(SlotIndex::new).zip(&self.by_home);
        let owners = owners.filter_map(|(slot, key)| key.map(|key| (slot, key)));
        assert_eq!(homes, owners.collect(), "the owners of the slots are known");
    }

    /// A spare slot holds a platter or expects one; who lives elsewhere is known as displaced.
    fn check_spares(&self) {
        let mut expected: BTreeMap<SlotIndex, PlatterKey> = BTreeMap::new();
        for (_, errand) in self.errands() {
            if let Destination::Storage(slot) = errand.to
                && self.platter(errand.platter).home() != Some(slot)
            {
                let before = expected.insert(slot, errand.platter);
                assert!(before.is_none(), "two shuttles go to slot {slot}");
            }
        }
        let mut displaced = BTreeSet::new();
        for (key, platter) in self.known() {
            let Place::Storage(slot) = platter.place else { continue };
            if self.shape().is_spare(slot) {
                let before = expected.insert(slot, key);
                assert!(before.is_none(), "slot {slot} holds a platter and expects one");
                displaced.extend(platter.home().map(|_| key));
            }
        }
        assert!(expected.keys().all(|slot| self.shape().is_spare(*slot)), "a slot is misused");
        assert_eq!(expected, self.spares, "spare slots know what they hold");
        assert_eq!(displaced, self.displaced, "platters out of place are known");
    }

    /// Each platter waits in the queue of its place exactly if something can fetch it there.
    fn check_queues(&self) {
        let mut groups: BTreeMap<u16, BTreeSet<(Age, PlatterKey)>> = BTreeMap::new();
        let mut backlogs: BTreeMap<u16, u64> = BTreeMap::new();
        let mut new: BTreeMap<PanelIndex, BTreeSet<(Age, PlatterKey)>> = BTreeMap::new();
        for (key, platter) in self.known() {
            let due = self.queue_of(platter);
            assert_eq!(due, platter.queued, "platter {} waits as what it is", platter.id);
            let tracks = platter.reads.iter().map(|read| u64::from(read.tracks.track_count));
            let tracks: u64 = tracks.sum();
            assert_eq!(tracks, platter.tracks_wanted, "tracks of platter {}", platter.id);
            let sorted = platter.reads.iter().is_sorted_by(|a, b| a.age < b.age);
            assert!(sorted, "reads of platter {} are out of order", platter.id);
            match due {
                Some((Queue::Group(group), age)) => {
                    groups.entry(group).or_default().insert((age, key));
                    *backlogs.entry(group).or_default() += tracks;
                }
                Some((Queue::New(panel), age)) => {
                    new.entry(panel).or_default().insert((age, key));
                }
                None => {}
            }
        }
        for (index, group) in (0..).zip(&self.partitions.groups) {
            let due = groups.remove(&index).unwrap_or_default();
            assert!(due.iter().eq(&group.queue), "group {index} knows who waits for it");
            let backlog = backlogs.remove(&index).unwrap_or(0);
            assert_eq!(backlog, group.backlog_tracks, "group {index} knows its backlog");
        }
        assert!(groups.is_empty(), "platters wait for groups that are not there: {groups:?}");
        for (panel, waiting) in (0..).map(PanelIndex::new).zip(&self.new_platters) {
            let due = new.remove(&panel).unwrap_or_default();
            assert_eq!(due, *waiting, "panel {panel} knows its new platters");
        }
        assert!(new.is_empty(), "new platters wait on no panel: {new:?}");
    }

    /// The queue a platter has to wait in, worked out once more.
    fn queue_of(&self, platter: &Platter) -> Option<(Queue, Age)> {
        let oldest = platter.reads.iter().map(|read| read.age).min();
        match (platter.claim, platter.place, platter.stage) {
            (None, Place::Storage(slot), Stage::Stored { .. }) => {
                let group = self.partitions.of_slot(&self.floor, slot);
                oldest.map(|age| (Queue::Group(group), age))
            }
            (
                None,
                Place::EjectBay(_) | Place::Storage(_),
                Stage::Unverified { age, panel, .. },
            ) => Some((Queue::New(panel), age)),
            _ => None,
        }
    }

    /// What is not verified is known by panel; where customers may have both slots, a slot is kept
    /// for each new platter that waits, or no drive is without one.
    fn check_pace(&self) {
        for panel in (0..self.shape().panels).map(PanelIndex::new) {
            let mut unverified: BTreeSet<(Age, PlatterKey)> = BTreeSet::new();
            for (key, platter) in self.known() {
                if let Stage::Unverified { age, panel: of, .. } = platter.stage
                    && of == panel
                {
                    unverified.insert((age, key));
                }
            }
            let known = &self.unverified[usize::from(panel.get())];
            assert_eq!(unverified, *known, "panel {panel} knows what is not verified");
            let works = |(at, drive): &(DriveIndex, &Drive)| {
                self.floor.drive(*at).panel == panel && !drive.broken
            };
            let drives: Vec<&Drive> =
                self.indexed_drives().filter(works).map(|(_, drive)| drive).collect();
            let insisting = drives.iter().filter(|drive| drive.insists).count();
            assert!(insisting <= drives.len() / 2, "panel {panel} serves customers too");
            if !self.pace.was_looked_at(self.now) || !self.holds_bound() {
                continue;
            }
            let waiting = self.new_platters[usize::from(panel.get())].len();
            let free = drives.iter().filter(|drive| !self.holds_new(drive));
            let (kept, free) = (free.clone().filter(|drive| drive.kept).count(), free.count());
            assert!(
                kept >= waiting.min(free),
                "{waiting} new platters of panel {panel} wait, {kept} slots are kept for them"
            );
        }
    }

    /// Each request is in exactly one state.
    fn check_requests(&self) {
        assert!(self.requests.len() <= REQUESTS_MAX, "too many requests");
        let mut states: Vec<(RequestId, PlatterKey)> = Vec::new();
        let mut note = |request: RequestId, key: PlatterKey, job: Job| {
            let known = self.requests.get(request);
            assert_eq!(known.map(|r| r.job), Some(job), "request {request} is what it is");
            states.push((request, key));
        };
        for (key, platter) in self.known() {
            for read in &platter.reads {
                note(read.request, key, Job::Read);
            }
            match platter.stage {
                Stage::Unverified { request, .. } => note(request, key, Job::Verify),
                Stage::Storing { request, .. } => note(request, key, Job::Store),
                Stage::Checked { .. } | Stage::Stored { .. } => {}
            }
        }
        for drive in &self.drives {
            if let Some(Action::Read { request, platter, .. }) = drive.work.map(|w| w.action) {
                note(request, self.by_id[&platter], Job::Read);
            }
        }
        states.sort_unstable();
        let known: Vec<_> =
            self.requests.sorted().into_iter().map(|(id, r)| (id, r.platter)).collect();
        assert_eq!(states, known, "each request is in one state");
    }
}
