//! The state of each disk, why it is lost, and how much each domain supplies now.
//!
//! ```text
//!              SpinUp            Up                SpinDown           Down
//!   Stopped --------> SpinningUp ---> Spinning ---------> SpinningDown ---> Stopped
//!       ^                 |  UpFailed                           |  DownFailed: tried again, and
//!       '-----------------'                                     '- until then it counts
//! ```
//!
//! A disk counts in each of its domains unless it is stopped. The proof of the assignment already
//! guarantees that a group's disks may spin. It is checked here again before each spin-up, because
//! disks that do not obey or were spun up externally are in no proof. Not here: when disks change
//! state.

use fulgurite_units::Instant;

use crate::event::Part;
use crate::shape::{Domain, Kind};
use crate::{Assignment, PlaceId, Shape};

/// The state of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpinState {
    /// It does not spin.
    Stopped,
    /// It was commanded to spin up.
    SpinningUp,
    /// It spins and is mounted.
    Spinning,
    /// It was commanded to spin down.
    SpinningDown,
    /// It still spins although it was commanded to spin down; it is commanded again.
    Stuck {
        /// When it is commanded again.
        retry_at: Instant,
    },
}

/// State of a place and its disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskState {
    pub(crate) spin_state: SpinState,
    /// Whether it was spun up externally, without asking a domain.
    pub(crate) is_external: bool,
    /// Why it is lost: a bit each for the disk itself, its units and its domains; those of
    /// [`crate::Loss::Gone`] in the lower half.
    lost: u128,
    /// Failed attempts to spin it up in this visit.
    pub(crate) tries: u32,
    /// Visits, or commands to spin down, that failed in a row.
    pub(crate) failures: u32,
    /// When its backoff ends.
    pub(crate) backoff_until: Option<Instant>,
    /// How often it was commanded to spin up.
    pub(crate) spun_up: u64,
    /// When its token bucket of spin-ups is full again ([`crate::token_bucket`]).
    pub(crate) full_at: Instant,
}

/// All places and domains.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    disks: Vec<DiskState>,
    /// Use of each kind of domain, hard and soft.
    kinds: Vec<DomainUsage>,
    /// Members of each unit, by kind of failure unit.
    units: Vec<Vec<Vec<PlaceId>>>,
}

#[derive(Clone, Debug)]
struct DomainUsage {
    domain: Domain,
    used: Vec<u32>,
}

/// Half of the loss bits.
const HALF: u32 = 64;

impl Places {
    pub(crate) fn new(shape: &Shape) -> Self {
        let initial = DiskState {
            spin_state: SpinState::Stopped,
            is_external: false,
            lost: 0,
            tries: 0,
            failures: 0,
            backoff_until: None,
            spun_up: 0,
            full_at: Instant::ZERO,
        };
        let usage = |domain: &Domain| DomainUsage {
            domain: domain.clone(),
            used: vec![0; domain.shared.count()],
        };
        let members = |unit: &crate::Shared| {
            (0..).take(unit.count()).map(|index| unit.members(index).to_vec()).collect()
        };
        Self {
            disks: vec![initial; shape.place_count()],
            kinds: shape.domains().iter().map(usage).collect(),
            units: shape.units().iter().map(members).collect(),
        }
    }

    pub(crate) fn disk(&self, place: PlaceId) -> &DiskState {
        &self.disks[place.as_usize()]
    }

    pub(crate) fn disk_mut(&mut self, place: PlaceId) -> &mut DiskState {
        &mut self.disks[place.as_usize()]
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (PlaceId, &DiskState)> {
        (0..).map(PlaceId::new).zip(&self.disks)
    }

    /// Returns the places of a part; none if there is no such part.
    pub(crate) fn part_places(&self, part: Part) -> Vec<PlaceId> {
        let at = |kind: u32| usize::try_from(kind).unwrap_or(usize::MAX);
        match part {
            Part::Place(place) if place.as_usize() < self.disks.len() => vec![place],
            Part::Place(_) => Vec::new(),
            Part::Unit { kind, index } => {
                let members = self.units.get(at(kind)).and_then(|unit| unit.get(at(index)));
                members.cloned().unwrap_or_default()
            }
            Part::Domain { kind, index } => {
                let members =
                    self.kinds.get(at(kind)).map(|kind| kind.domain.shared.members(index));
                members.unwrap_or_default().to_vec()
            }
        }
    }

    /// Whether all hard domains of a place supply one more disk. Soft ones are ignored: a rack
    /// whose groups have to exceed them must spin all the same.
    pub(crate) fn has_capacity(&self, place: PlaceId) -> bool {
        self.kinds.iter().all(|kind| {
            let used = kind.used[kind.domain.shared.index_of(place) as usize];
            kind.domain.kind == Kind::Soft || used < kind.domain.capacity
        })
    }

    /// Sets the state of a disk and updates the use of its domains.
    pub(crate) fn set(&mut self, place: PlaceId, spin_state: SpinState) {
        let disk = &mut self.disks[place.as_usize()];
        let (was_counted, is_counted) =
            (disk.spin_state != SpinState::Stopped, spin_state != SpinState::Stopped);
        disk.spin_state = spin_state;
        disk.is_external &= is_counted;
        if was_counted == is_counted {
            return;
        }
        for kind in &mut self.kinds {
            let used = &mut kind.used[kind.domain.shared.index_of(place) as usize];
            *used = if is_counted { *used + 1 } else { *used - 1 };
        }
    }

    /// Adds a reason why a place is lost. Returns whether it was not lost before.
    pub(crate) fn lose(&mut self, place: PlaceId, part: Part, is_gone: bool) -> bool {
        let bit = bit(part);
        let disk = &mut self.disks[place.as_usize()];
        let was_lost = disk.lost != 0;
        disk.lost |= if is_gone { bit } else { bit << HALF };
        !was_lost
    }

    /// Removes a reason. Returns whether the place was lost and is not any more.
    pub(crate) fn restore(&mut self, place: PlaceId, part: Part) -> bool {
        let bit = bit(part);
        let disk = &mut self.disks[place.as_usize()];
        let was_lost = disk.lost != 0;
        disk.lost &= !(bit | bit << HALF);
        let is_back = was_lost && disk.lost == 0;
        if is_back {
            (disk.failures, disk.tries, disk.backoff_until) = (0, 0, None);
        }
        is_back
    }

    /// Asserts that domains count the disks that are not stopped, and that no hard domain exceeds
    /// its capacity except by external spin-ups.
    pub(crate) fn check(&self) {
        for kind in &self.kinds {
            let shared = &kind.domain.shared;
            let (mut used, mut spun_up) = (vec![0; shared.count()], vec![0; shared.count()]);
            for (place, disk) in self.all() {
                let at = shared.index_of(place) as usize;
                used[at] += u32::from(disk.spin_state != SpinState::Stopped);
                spun_up[at] += u32::from(disk.is_external);
            }
            assert_eq!(
                used, kind.used,
                "the use of {} matches the states of its disks",
                shared.name
            );
            let most = used.iter().zip(&spun_up).map(|(used, spun_up)| used - spun_up).max();
            let is_kept = most.is_none_or(|most| most <= kind.domain.capacity);
            assert!(
                is_kept || kind.domain.kind == Kind::Soft,
                "{} exceeds its capacity",
                shared.name
            );
        }
    }
}

impl DiskState {
    pub(crate) const fn is_lost(&self) -> bool {
        self.lost != 0
    }

    /// Whether the state of the disk itself allows a spin-up now.
    pub(crate) fn can_spin_up(&self, now: Instant) -> bool {
        !self.is_lost() && self.backoff_until.is_none_or(|until| until <= now)
    }
}

/// Returns the loss bit of a part. A shape has at most [`crate::limits::SHARED_MAX`] kinds of each.
fn bit(part: Part) -> u128 {
    match part {
        Part::Place(_) => 1,
        Part::Unit { kind, .. } => 1 << (1 + kind),
        Part::Domain { kind, .. } => 1 << (17 + kind),
    }
}

/// Returns the index of each group in its class.
pub(crate) fn class_numbers(assignment: &Assignment) -> Vec<usize> {
    let mut numbers = vec![0; assignment.groups().len()];
    for class in assignment.classes() {
        for (number, group) in assignment.groups_of(class).iter().enumerate() {
            numbers[group.as_usize()] = number;
        }
    }
    numbers
}
