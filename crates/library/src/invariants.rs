//! What must hold after every event. A violation is a bug of this crate (or of a driver that
//! answers what it was not asked), so each is an assertion.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex};

use crate::controller::{Actor, Library};
use crate::limits::{EJECT_BAY_PLATTERS_MAX, FETCHES_IN_A_ROW_MAX, REQUESTS_MAX};
use crate::state::{Age, Drive, Job, Place, Platter, Shuttle, Stage, Trip, TripKind};
use crate::{Action, CommandId, Destination, DriveSlot, RequestId, Source};

impl Library {
    pub(crate) fn check_invariants(&self) {
        self.check_places();
        self.check_queues();
        self.check_requests();
        self.check_commands();
        self.check_trips();
        self.check_work_conserved();
    }

    /// Every platter is in exactly one place, and that place knows it.
    fn check_places(&self) {
        let mut held: BTreeMap<PlatterId, Place> = BTreeMap::new();
        let mut hold = |id: PlatterId, place: Place| {
            let before = held.insert(id, place);
            assert!(before.is_none(), "platter {id} is in {before:?} and in {place:?}");
        };
        for (index, shuttle) in self.indexed_shuttles() {
            if let Some(id) = shuttle.cargo {
                hold(id, Place::Shuttle(index));
            }
        }
        for (index, drive) in self.indexed_drives() {
            for slot in [DriveSlot::Customer, DriveSlot::Verification] {
                let bay = drive.bay(slot);
                assert!(
                    bay.platter.is_some() || !bay.mounted,
                    "drive {index} has nothing mounted in {slot:?}"
                );
                assert!(
                    bay.platter.is_none() || bay.reserved.is_none(),
                    "drive {index} expects a second platter in {slot:?}"
                );
                if let Some(id) = bay.platter {
                    hold(id, Place::Drive(index, slot));
                }
            }
            let facing = drive.facing;
            let faces_mounted = facing.is_none_or(|slot| drive.bay(slot).mounted);
            assert!(faces_mounted, "drive {index} faces {facing:?}, which is not mounted");
        }
        for (id, platter) in &self.platters {
            match platter.place {
                Place::Shuttle(_) | Place::Drive(..) => {
                    let place = held.remove(id);
                    assert_eq!(place, Some(platter.place), "platter {id} is not there");
                }
                Place::Storage(slot) => {
                    assert!(!held.contains_key(id), "platter {id} is in {slot} and elsewhere");
                    assert_eq!(platter.home(), Some(slot), "platter {id} is in a foreign slot");
                }
                Place::EjectBay(_) => {
                    assert!(!held.contains_key(id), "platter {id} is ejected and elsewhere");
                    let new = matches!(platter.stage, Stage::Unverified { .. });
                    assert!(new, "platter {id} went back to the write drive");
                }
            }
        }
        assert!(held.is_empty(), "somebody holds platters that nobody knows: {held:?}");
        let homes = self.platters.iter().filter_map(|(id, p)| p.home().map(|home| (home, *id)));
        let count = homes.clone().count();
        let homes: BTreeMap<_, _> = homes.collect();
        assert_eq!(homes.len(), count, "two platters live in one slot");
        assert_eq!(homes, self.homes, "the owners of the slots are known");
    }

    /// Each platter waits in the queue of its place exactly if something can fetch it there.
    fn check_queues(&self) {
        let mut listed: BTreeSet<(Age, PlatterId)> = BTreeSet::new();
        for (index, queue) in (0u16..).map(ShuttleIndex::new).zip(&self.fetchable) {
            for &(age, id) in queue {
                let home = self.platter(id).home();
                let owner = home.and_then(|home| self.floor.owner(home));
                assert_eq!(owner, Some(index), "platter {id} waits in a foreign partition");
                assert!(listed.insert((age, id)), "platter {id} waits twice");
            }
        }
        for queue in &self.ejected {
            assert!(queue.len() <= EJECT_BAY_PLATTERS_MAX, "the eject bay overflows");
            for &(age, id) in queue {
                assert!(listed.insert((age, id)), "platter {id} waits twice");
            }
        }
        for (&id, platter) in &self.platters {
            let due = queue_key(platter);
            assert_eq!(due, platter.waits_since, "platter {id} waits as what it is");
            if let Some(age) = due {
                assert!(listed.remove(&(age, id)), "platter {id} is in no queue");
            }
        }
        assert!(listed.is_empty(), "queues hold platters that do not wait: {listed:?}");
    }

    /// Each request is in exactly one state.
    fn check_requests(&self) {
        assert!(self.requests.len() <= REQUESTS_MAX, "too many requests");
        let mut states: Vec<(RequestId, PlatterId)> = Vec::new();
        for (id, platter) in &self.platters {
            for (age, request) in &platter.reads {
                let known = self.requests.get(request);
                assert_eq!(known.map(|r| r.age), Some(*age), "read {request} is listed by age");
                let is_read = known.is_some_and(|r| matches!(r.job, Job::Read { .. }));
                assert!(is_read, "request {request} is listed as a read");
                states.push((*request, *id));
            }
            if let Stage::Unverified { request, .. } | Stage::Storing { request, .. } =
                platter.stage
            {
                states.push((request, *id));
            }
        }
        for drive in &self.drives {
            if let Some(Action::Read { request, platter, .. }) = drive.work.map(|w| w.action) {
                states.push((request, platter));
            }
        }
        states.sort_unstable();
        let known: Vec<_> = self.requests.iter().map(|(id, r)| (*id, r.platter)).collect();
        assert_eq!(states, known, "each request is in one state");
    }

    /// Each outstanding command is what one shuttle or drive does, and each does one thing.
    fn check_commands(&self) {
        let mut doing: BTreeMap<CommandId, Actor> = BTreeMap::new();
        for (index, shuttle) in self.indexed_shuttles() {
            let current = shuttle.trip.as_ref().map(|trip| trip.current);
            if let Some(current) = current {
                let (command, _) = current.expect("a trip always has a step being done");
                doing.insert(command, Actor::Shuttle(index));
            }
            assert!(!shuttle.broken || current.is_none(), "shuttle {index} is broken and moves");
        }
        for (index, drive) in self.indexed_drives() {
            if let Some(work) = drive.work {
                assert!(!drive.broken, "drive {index} is broken and works");
                doing.insert(work.command, Actor::Drive(index));
            }
        }
        assert_eq!(doing, self.outstanding, "commands are outstanding as they are done");
    }

    /// Each trip is for a platter that is where the trip takes it from, or on board, and trips of
    /// stored platters stay in the partition of their shuttle.
    fn check_trips(&self) {
        for (index, shuttle) in self.indexed_shuttles() {
            assert!(
                shuttle.fetches_in_a_row <= FETCHES_IN_A_ROW_MAX,
                "shuttle {index} forgets new platters"
            );
            let Some(trip) = &shuttle.trip else {
                assert!(shuttle.cargo.is_none() || shuttle.broken, "shuttle {index} idles loaded");
                continue;
            };
            let platter = self.platter(trip.platter);
            if shuttle.cargo.is_some() {
                assert_eq!(shuttle.cargo, Some(trip.platter), "shuttle {index} carries another");
                assert_eq!(platter.claim, None, "platter {} is claimed on board", trip.platter);
            } else {
                assert_eq!(platter.claim, Some(index), "platter {} is claimed", trip.platter);
                assert_eq!(platter.place, place_of(trip.from), "the platter is there");
            }
            if let Destination::Drive(drive, slot) = trip.to {
                let reserved = self.drives[drive.as_usize()].bay(slot).reserved;
                assert_eq!(reserved, Some(index), "drive {drive} expects shuttle {index}");
            }
            self.check_bounds(index, trip);
        }
        let claims = self.platters.values().filter_map(|platter| platter.claim);
        for claim in claims {
            let trip = &self.shuttles[claim.as_usize()].trip;
            assert!(trip.is_some(), "shuttle {claim} comes for no platter it claims");
        }
    }

    /// Nothing rests that has something to do, and no customer waits for a verification that was
    /// not asked to stop.
    fn check_work_conserved(&self) {
        for (index, shuttle) in self.indexed_shuttles() {
            let resting = shuttle.trip.is_none() && !shuttle.broken;
            let due = resting && self.next_errand(index).is_some();
            assert!(!due, "shuttle {index} rests although a platter waits for it");
        }
        for (index, drive) in self.indexed_drives() {
            let due = drive.work.is_none() && self.next_action(index).is_some();
            assert!(!due, "drive {index} rests although a platter waits in it");
        }
    }

    fn check_bounds(&self, index: ShuttleIndex, trip: &Trip) {
        let partition = self.floor.partition(index);
        let stays = match trip.kind {
            TripKind::Fetch | TripKind::Return => true,
            TripKind::Collect | TripKind::Shelve => false,
        };
        for place in [place_of(trip.from), goal_of(trip.to)] {
            let (panel, inside) = match place {
                Place::Storage(slot) => (
                    self.floor.slot(slot).map(|position| position.panel),
                    match trip.kind {
                        TripKind::Return => self.takes_home(index, slot),
                        TripKind::Fetch | TripKind::Collect | TripKind::Shelve => {
                            self.floor.owner(slot) == Some(index)
                        }
                    },
                ),
                Place::Drive(drive, _) => (
                    Some(self.floor.drives()[drive.as_usize()].panel),
                    partition.drives.contains(&drive),
                ),
                Place::EjectBay(panel) => (Some(panel), false),
                Place::Shuttle(_) => (None, false),
            };
            assert_eq!(panel, Some(partition.panel), "shuttle {index} leaves its panel");
            assert!(!stays || inside, "shuttle {index} leaves its partition for {place:?}");
        }
    }

    fn indexed_shuttles(&self) -> impl Iterator<Item = (ShuttleIndex, &Shuttle)> {
        (0..).map(ShuttleIndex::new).zip(&self.shuttles)
    }

    fn indexed_drives(&self) -> impl Iterator<Item = (DriveIndex, &Drive)> {
        (0..).map(DriveIndex::new).zip(&self.drives)
    }
}

/// The key under which a platter has to wait, worked out once more.
fn queue_key(platter: &Platter) -> Option<Age> {
    if platter.claim.is_some() {
        return None;
    }
    match (platter.place, platter.stage) {
        (Place::Storage(_), Stage::Stored { .. }) => platter.reads.keys().min().copied(),
        (Place::EjectBay(_), Stage::Unverified { age, .. }) => Some(age),
        _ => None,
    }
}

const fn place_of(source: Source) -> Place {
    match source {
        Source::EjectBay(panel) => Place::EjectBay(panel),
        Source::Storage(slot) => Place::Storage(slot),
        Source::Drive(drive, slot) => Place::Drive(drive, slot),
    }
}

const fn goal_of(destination: Destination) -> Place {
    match destination {
        Destination::Storage(slot) => Place::Storage(slot),
        Destination::Drive(drive, slot) => Place::Drive(drive, slot),
    }
}
