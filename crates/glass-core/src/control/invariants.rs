//! The invariants that must hold after every event. A violation is a bug of this crate (or of a
//! driver that answers a command it was not given), so each is an assertion.
//!
//! ```text
//!   each part    its own state is consistent: Shelf, Group, Arrivals, Fleet, Drives, Zones
//!   here         the parts agree: where everything is and what waits for what
//!   machines.rs  commands, trips, charging, work left undone
//! ```
//!
//! Each rule is recomputed from the state, never with the code that maintains it, except where that
//! is the question: whether an idle machine would find work.

mod machines;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{DriveIndex, ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::drive::Drive;
use crate::control::limits::{EJECT_BAY_PLATTERS_MAX, REQUESTS_MAX};
use crate::control::platter_table::Platter;
use crate::control::state::{Age, Errand, Job, Place, PlatterKey, Queue, Stage};
use crate::control::{Action, Destination, DriveSlot, PanelIndex, RequestId};

impl Library {
    pub(crate) fn check_invariants(&self) {
        let bounds = (self.policy.charge_below, self.policy.charge_until);
        self.fleet.check(self.sequence.now(), bounds);
        self.drives.check();
        self.zones.check(self.busy_slots());
        self.check_spares();
        self.check_places();
        self.check_queues();
        self.check_requests();
        self.check_commands();
        self.check_drives();
        self.check_trips();
        self.check_work_conserved();
        self.check_pace();
        self.check_age_bound();
    }

    /// Returns the errands of all shuttles.
    fn errands(&self) -> impl Iterator<Item = (ShuttleIndex, Errand)> {
        let shuttles = self.fleet.indexed();
        shuttles.filter_map(|(index, shuttle)| shuttle.errand().map(|errand| (index, errand)))
    }

    /// Asserts that every platter is in exactly one place, and that the place knows it.
    fn check_places(&self) {
        let mut held: BTreeMap<PlatterKey, Place> = BTreeMap::new();
        let mut hold = |key: PlatterKey, place: Place| {
            let before = held.insert(key, place);
            assert!(before.is_none(), "platter {key:?} is in {before:?} and in {place:?}");
        };
        for (index, shuttle) in self.fleet.indexed() {
            shuttle.cargo().into_iter().for_each(|key| hold(key, Place::Shuttle(index)));
        }
        for (index, drive) in self.drives.indexed() {
            for slot in DriveSlot::BOTH {
                let inside = drive.bay(slot).platter();
                inside.into_iter().for_each(|key| hold(key, Place::Drive(index, slot)));
            }
        }
        for (key, platter) in self.shelf.known() {
            let (id, place) = (platter.id(), platter.place());
            match place {
                Place::Shuttle(_) | Place::Drive(..) => {
                    assert_eq!(held.remove(&key), Some(place), "platter {id} is not at its place");
                }
                Place::Storage(slot) => {
                    assert!(!held.contains_key(&key), "platter {id} is in {slot} and elsewhere");
                    let spare = self.shape().is_spare(slot);
                    let lives = platter.home() == Some(slot)
                        && matches!(platter.stage(), Stage::Stored { .. });
                    assert!(lives != spare, "platter {id} is in a slot of another platter {slot}");
                    let is_at_rest =
                        lives && platter.reads().is_empty() && platter.claim().is_none();
                    assert!(!is_at_rest, "platter {id} is at rest and not forgotten");
                }
                Place::EjectBay(panel) => {
                    assert!(!held.contains_key(&key), "platter {id} is ejected and elsewhere");
                    let new = matches!(platter.stage(), Stage::Unverified { panel: own_panel, .. }
                        if own_panel == panel);
                    assert!(new, "platter {id} went back to the write drive");
                }
            }
        }
        assert!(held.is_empty(), "platters are held but not known: {held:?}");
    }

    /// Asserts that a spare slot in use holds a platter or expects one, and that no platter lives
    /// in it.
    fn check_spares(&self) {
        let mut expected: BTreeMap<SlotIndex, PlatterKey> = BTreeMap::new();
        for (_, errand) in self.errands() {
            if let Destination::Storage(slot) = errand.to
                && self.shelf.get(errand.platter).home() != Some(slot)
            {
                let before = expected.insert(slot, errand.platter);
                assert!(before.is_none(), "two shuttles go to slot {slot}");
            }
        }
        assert!(
            expected.keys().all(|slot| self.shape().is_spare(*slot)),
            "a slot that is not spare is reserved"
        );
        for (_, platter) in self.shelf.known() {
            let lives = platter.home().is_some_and(|home| self.shape().is_spare(home));
            assert!(!lives, "platter {} lives in a spare slot", platter.id());
        }
        self.shelf.check(&expected);
    }

    /// Asserts that each platter waits in the queue of its place exactly if something can fetch it
    /// there.
    fn check_queues(&self) {
        let panels = usize::from(self.shape().panels);
        let mut groups = vec![(BTreeSet::new(), 0); self.partitions.groups().len()];
        let (mut new, mut ejected) = (vec![BTreeSet::new(); panels], vec![0; panels]);
        for (key, platter) in self.shelf.known() {
            let due = self.queue_of(platter);
            assert_eq!(
                due,
                platter.queued(),
                "platter {} is in the queue for its state",
                platter.id()
            );
            match due {
                Some((Queue::Group(group), age)) => {
                    let (waiting, tracks) = &mut groups[usize::from(group)];
                    waiting.insert((age, key));
                    *tracks += platter.tracks_wanted();
                }
                Some((Queue::New(panel), age)) => {
                    new[usize::from(panel.get())].insert((age, key));
                }
                None => {}
            }
            if let Place::EjectBay(panel) = platter.place() {
                ejected[usize::from(panel.get())] += 1;
            }
        }
        for (group, (waiting, tracks)) in self.partitions.groups().iter().zip(&groups) {
            group.check(waiting, *tracks);
        }
        self.arrivals.check(&new, &ejected);
        let most = ejected.into_iter().max().unwrap_or(0);
        assert!(most <= EJECT_BAY_PLATTERS_MAX, "an eject bay holds too many platters");
    }

    /// Recomputes the queue a platter has to wait in.
    fn queue_of(&self, platter: &Platter) -> Option<(Queue, Age)> {
        let oldest = platter.reads().iter().map(|read| read.age).min();
        match (platter.claim(), platter.place(), platter.stage()) {
            (None, Place::Storage(slot), Stage::Stored { .. }) => {
                let group = self.partitions.group_of_slot(&self.floor, slot);
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

    /// Asserts that, where customers may have both slots, a slot is kept for each new platter that
    /// waits, or every free drive keeps one.
    fn check_pace(&self) {
        for panel in (0..self.shape().panels).map(PanelIndex::new) {
            let works = |(at, drive): &(DriveIndex, &Drive)| {
                self.floor.drive(*at).panel == panel && !drive.is_broken()
            };
            let drives: Vec<&Drive> =
                self.drives.indexed().filter(works).map(|(_, drive)| drive).collect();
            let verify_only = drives.iter().filter(|drive| drive.is_verify_only()).count();
            assert!(
                verify_only <= drives.len() / 2,
                "too many drives of panel {panel} only verify"
            );
            if !self.pace.is_current(self.sequence.now()) || !self.has_verify_deadline() {
                continue;
            }
            let waiting = self.arrivals.waiting(panel);
            let free = drives.iter().filter(|drive| !self.has_new_platter(drive));
            let (kept, free) =
                (free.clone().filter(|drive| drive.is_slot_kept()).count(), free.count());
            assert!(
                kept >= waiting.min(free),
                "{waiting} new platters of panel {panel} wait, {kept} slots are kept for them"
            );
        }
    }

    /// Asserts that each request is in exactly one state.
    fn check_requests(&self) {
        assert!(self.requests.len() <= REQUESTS_MAX, "too many requests");
        let mut states: Vec<(RequestId, PlatterKey)> = Vec::new();
        let mut record = |request: RequestId, key: PlatterKey, job: Job| {
            let known = self.requests.get(request);
            assert_eq!(known.map(|r| r.job), Some(job), "request {request} has the recorded job");
            states.push((request, key));
        };
        for (key, platter) in self.shelf.known() {
            for read in platter.reads() {
                record(read.request, key, Job::Read);
            }
            match platter.stage() {
                Stage::Unverified { request, .. } => record(request, key, Job::Verify),
                Stage::Storing { request, .. } => record(request, key, Job::Store),
                Stage::Checked { .. } | Stage::Stored { .. } => {}
            }
        }
        for (_, drive) in self.drives.indexed() {
            if let Some(Action::Read { request, platter, .. }) =
                drive.work().map(|work| work.action)
            {
                let key = self.shelf.find(platter);
                record(request, key.expect("a drive reads a known platter"), Job::Read);
            }
        }
        states.sort_unstable();
        let known: Vec<_> =
            self.requests.sorted().into_iter().map(|(id, r)| (id, r.platter)).collect();
        assert_eq!(states, known, "each request is in exactly one state");
    }
}
