//! Where each disk stands, what is lost of it, and how much each domain supplies now.
//!
//! ```text
//!              SpinUp            Up                SpinDown           Down
//!     still ----------> rising ------> spinning ------------> sinking ------> still
//!       ^                 |  UpFailed                           |  DownFailed: tried again, and
//!       '-----------------'                                     '- until then it counts
//! ```
//!
//! Whatever is not still counts in each of its domains. That a group's disks may spin follows from
//! the proof of its assignment; it is looked up here once more before each spin-up, for disks that
//! do not obey, or are woken by others, are in no proof. Not here: when disks move.

use fulgurite_units::Instant;

use crate::event::Part;
use crate::shape::{Domain, Kind};
use crate::{Assignment, PlaceId, Shape};

/// What a disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// It stands still.
    Still,
    /// It was told to spin up.
    Rising,
    /// It spins and is mounted.
    Spinning,
    /// It was told to stop.
    Sinking,
    /// It spins though it was told to stop, until it is told again.
    Stuck {
        /// When.
        again: Instant,
    },
}

/// A disk's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) motion: Motion,
    /// It spins since somebody else woke it: no domain was asked.
    pub(crate) is_woken: bool,
    /// Why it is lost: a bit each for itself, its units and its domains; those of
    /// [`crate::Loss::Gone`] in the lower half.
    lost: u128,
    /// Attempts to spin it up in this turn that failed.
    pub(crate) tries: u32,
    /// Turns, or orders to stop, that failed in a row.
    pub(crate) failures: u32,
    /// When it may be tried again.
    pub(crate) rest_until: Option<Instant>,
    /// How often it was told to spin up.
    pub(crate) woken: u64,
    /// When its bucket of spin-ups is full again ([`crate::meter`]).
    pub(crate) full: Instant,
}

/// All places and domains.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    spots: Vec<Spot>,
    /// Kinds of domains, hard and soft.
    kinds: Vec<Supply>,
    /// Kinds of failure units: members by index.
    units: Vec<Vec<Vec<PlaceId>>>,
}

#[derive(Clone, Debug)]
struct Supply {
    domain: Domain,
    used: Vec<u32>,
}

/// Half of the bits of what is lost.
const HALF: u32 = 64;

impl Places {
    pub(crate) fn new(shape: &Shape) -> Self {
        let still = Spot {
            motion: Motion::Still,
            is_woken: false,
            lost: 0,
            tries: 0,
            failures: 0,
            rest_until: None,
            woken: 0,
            full: Instant::ZERO,
        };
        let supply = |domain: &Domain| Supply {
            domain: domain.clone(),
            used: vec![0; domain.shared.count()],
        };
        let members = |unit: &crate::Shared| {
            (0..).take(unit.count()).map(|index| unit.members(index).to_vec()).collect()
        };
        Self {
            spots: vec![still; shape.place_count()],
            kinds: shape.domains().iter().map(supply).collect(),
            units: shape.units().iter().map(members).collect(),
        }
    }

    pub(crate) fn spot(&self, place: PlaceId) -> &Spot {
        &self.spots[place.as_usize()]
    }

    pub(crate) fn spot_mut(&mut self, place: PlaceId) -> &mut Spot {
        &mut self.spots[place.as_usize()]
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (PlaceId, &Spot)> {
        (0..).map(PlaceId::new).zip(&self.spots)
    }

    /// The places of a part; none if there is no such part.
    pub(crate) fn of(&self, part: Part) -> Vec<PlaceId> {
        let at = |kind: u32| usize::try_from(kind).unwrap_or(usize::MAX);
        match part {
            Part::Place(place) if place.as_usize() < self.spots.len() => vec![place],
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

    /// Whether all domains of a place supply one more disk. Soft ones are not asked: a rack whose
    /// groups cannot keep them has to spin all the same.
    pub(crate) fn has_room(&self, place: PlaceId) -> bool {
        self.kinds.iter().all(|kind| {
            let used = kind.used[kind.domain.shared.of(place) as usize];
            kind.domain.kind == Kind::Soft || used < kind.domain.capacity
        })
    }

    /// A disk moves from now on otherwise; what it takes of its domains follows.
    pub(crate) fn set(&mut self, place: PlaceId, motion: Motion) {
        let spot = &mut self.spots[place.as_usize()];
        let (was, is) = (spot.motion != Motion::Still, motion != Motion::Still);
        spot.motion = motion;
        spot.is_woken &= is;
        if was == is {
            return;
        }
        for kind in &mut self.kinds {
            let used = &mut kind.used[kind.domain.shared.of(place) as usize];
            *used = if is { *used + 1 } else { *used - 1 };
        }
    }

    /// A place is lost for one more reason; whether it was not lost before.
    pub(crate) fn lose(&mut self, place: PlaceId, part: Part, is_gone: bool) -> bool {
        let bit = bit(part);
        let spot = &mut self.spots[place.as_usize()];
        let was_lost = spot.lost != 0;
        spot.lost |= if is_gone { bit } else { bit << HALF };
        !was_lost
    }

    /// A reason is over; whether there is none left, though there was.
    pub(crate) fn regain(&mut self, place: PlaceId, part: Part) -> bool {
        let bit = bit(part);
        let spot = &mut self.spots[place.as_usize()];
        let was_lost = spot.lost != 0;
        spot.lost &= !(bit | bit << HALF);
        let is_back = was_lost && spot.lost == 0;
        if is_back {
            (spot.failures, spot.tries, spot.rest_until) = (0, 0, None);
        }
        is_back
    }

    /// Asserts that domains count what moves, and that none supplies too much but to disks that
    /// others woke.
    pub(crate) fn check(&self) {
        for kind in &self.kinds {
            let shared = &kind.domain.shared;
            let (mut used, mut woken) = (vec![0; shared.count()], vec![0; shared.count()]);
            for (place, spot) in self.all() {
                let at = shared.of(place) as usize;
                used[at] += u32::from(spot.motion != Motion::Still);
                woken[at] += u32::from(spot.is_woken);
            }
            assert_eq!(used, kind.used, "{} counts what moves", shared.name);
            let most = used.iter().zip(&woken).map(|(used, woken)| used - woken).max();
            let is_kept = most.is_none_or(|most| most <= kind.domain.capacity);
            assert!(is_kept || kind.domain.kind == Kind::Soft, "{} supplies too much", shared.name);
        }
    }
}

impl Spot {
    pub(crate) const fn is_lost(&self) -> bool {
        self.lost != 0
    }

    /// Whether it may be told to spin up now, as far as it is concerned.
    pub(crate) fn may_rise(&self, now: Instant) -> bool {
        !self.is_lost() && self.rest_until.is_none_or(|until| until <= now)
    }
}

/// The reason that a part is, of a shape with at most [`crate::limits::SHARED_MAX`] kinds of each.
fn bit(part: Part) -> u128 {
    match part {
        Part::Place(_) => 1,
        Part::Unit { kind, .. } => 1 << (1 + kind),
        Part::Domain { kind, .. } => 1 << (17 + kind),
    }
}

/// The groups of a rack as its scheduler sees them.
pub(crate) fn class_numbers(assignment: &Assignment) -> Vec<usize> {
    let mut numbers = vec![0; assignment.groups().len()];
    for class in assignment.classes() {
        for (number, group) in assignment.groups_of(class).iter().enumerate() {
            numbers[group.as_usize()] = number;
        }
    }
    numbers
}
