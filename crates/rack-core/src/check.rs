//! Proves an assignment: whichever groups spin, one of each class, no domain has to supply more
//! disks than it can.
//!
//! This is done in two independent ways, so that a mistake in one does not repeat in the other.
//! Classes choose freely, so the maximum number of disks of a domain that can spin at once is the
//! sum over classes of the maximum that any one group of the class has in it. And if there are few
//! enough legal states, all are enumerated. Nothing here depends on how an assignment was made.
//! Pelican (OSDI 2014), section 2.2.2.

use std::collections::BTreeSet;

use crate::limits::STATES_MAX;
use crate::shape::{Domain, Kind, Shape, Shared};
use crate::{Assignment, Error, GroupId, PlaceId};

/// Result of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Number of places.
    pub places: usize,
    /// Number of groups.
    pub groups: usize,
    /// Sizes of the smallest and the largest group.
    pub group_size: (usize, usize),
    /// Number of classes.
    pub classes: usize,
    /// Maximum number of disks that can spin at once.
    pub spinning_most: usize,
    /// Pairs of groups in which every disk of either, together with the other group, exceeds some
    /// domain.
    pub colliding_pairs: u64,
    /// Pairs of groups that may spin together as far as only they are concerned.
    pub disjoint_pairs: u64,
    /// All other pairs: some disks collide and some do not.
    pub partial_pairs: u64,
    /// Number of legal states of the rack with one group of each class spinning.
    pub states: u128,
    /// Whether all of these states were enumerated.
    pub is_enumerated: bool,
    /// Use of each kind of domain.
    pub domains: Vec<DomainUse>,
    /// For each kind of failure unit, what a failure takes.
    pub units: Vec<UnitUse>,
}

/// Use of a kind of domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainUse {
    /// The resource.
    pub name: String,
    /// Whether its capacity may be exceeded.
    pub kind: Kind,
    /// Number of domains.
    pub count: usize,
    /// Disks of a domain that may spin at once.
    pub capacity: u32,
    /// Maximum number of disks of one domain that can spin at once.
    pub most: u32,
    /// Maximum number of disks of one domain in one group.
    pub most_in_group: u32,
}

/// What the failure of a unit takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitUse {
    /// The failure unit.
    pub name: String,
    /// Number of units.
    pub count: usize,
    /// Disks of one group in one unit: the minimum and the maximum over all units in which a group
    /// has disks.
    pub in_group: (u32, u32),
}

/// Proves an assignment.
///
/// # Errors
/// When a hard domain could have to supply more than it can, or a group is not where it must be. An
/// exceeded soft domain is no error; the proof reports it.
pub fn check(shape: &Shape, assignment: &Assignment) -> Result<Proof, Error> {
    if assignment.place_count() != shape.place_count() {
        let (has, places) = (assignment.place_count(), shape.place_count());
        return Err(Error::Misfit {
            detail: format!("it has {has} places, but the shape has {places}"),
        });
    }
    check_partition(shape, assignment)?;
    if let Some(unit) = shape.within() {
        for group in assignment.groups() {
            let count = units_containing(unit, assignment.places(group)).len();
            if count != 1 {
                return Err(Error::Straddles { group, unit: unit.name.clone(), count });
            }
        }
    }
    let uses = shape.domains().iter().map(|domain| domain_use(domain, assignment));
    let domains = uses.collect::<Result<Vec<_>, _>>()?;
    let states = assignment.classes().try_fold(1u128, |states, class| {
        states.checked_mul(assignment.groups_of(class).len() as u128)
    });
    let states = states.unwrap_or(u128::MAX);
    let is_enumerated = states <= STATES_MAX;
    if is_enumerated {
        enumerate(shape, assignment)?;
    }
    let sizes = || assignment.groups().map(|group| assignment.places(group).len());
    let largest = |class| {
        let groups = assignment.groups_of(class).iter();
        groups.map(|group| assignment.places(*group).len()).max().unwrap_or(0)
    };
    let mut proof = Proof {
        places: shape.place_count(),
        groups: assignment.groups().len(),
        group_size: (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)),
        classes: assignment.classes().len(),
        spinning_most: assignment.classes().map(largest).sum(),
        colliding_pairs: 0,
        disjoint_pairs: 0,
        partial_pairs: 0,
        states,
        is_enumerated,
        domains,
        units: shape.units().iter().map(|unit| unit_use(unit, assignment)).collect(),
    };
    count_pairs(shape, assignment, &mut proof);
    Ok(proof)
}

/// Checks that every place is in exactly the group and position that it is assigned to.
fn check_partition(shape: &Shape, assignment: &Assignment) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for group in assignment.groups() {
        for (position, place) in assignment.places(group).iter().enumerate() {
            let slot = assignment.slot(*place);
            if !seen.insert(*place) || slot.group != group || slot.position != position {
                return Err(Error::Misfit {
                    detail: format!("place {place} is not in the slot that it is assigned to"),
                });
            }
        }
    }
    if seen.len() == shape.place_count() {
        return Ok(());
    }
    let missing = shape.places().find(|place| !seen.contains(place)).unwrap_or_default();
    Err(Error::Misfit { detail: format!("place {missing} is in no group") })
}

/// Returns the units that some places are in.
fn units_containing(unit: &Shared, places: &[PlaceId]) -> BTreeSet<u32> {
    places.iter().map(|place| unit.index_of(*place)).collect()
}

/// Counts the disks of a group in each domain.
fn counts(shared: &Shared, assignment: &Assignment, group: GroupId) -> Vec<u32> {
    let mut counts = vec![0; shared.count()];
    for place in assignment.places(group) {
        counts[shared.index_of(*place) as usize] += 1;
    }
    counts
}

fn domain_use(domain: &Domain, assignment: &Assignment) -> Result<DomainUse, Error> {
    let shared = &domain.shared;
    let mut sums = vec![0; shared.count()];
    let mut most_in_group = 0;
    for class in assignment.classes() {
        let mut most = vec![0; shared.count()];
        for group in assignment.groups_of(class) {
            for (most, count) in most.iter_mut().zip(counts(shared, assignment, *group)) {
                *most = count.max(*most);
            }
        }
        most_in_group = most.iter().copied().fold(most_in_group, u32::max);
        for (sum, most) in sums.iter_mut().zip(most) {
            *sum += most;
        }
    }
    let worst = (0u32..).zip(&sums).max_by_key(|(_, sum)| **sum);
    let (index, most) = worst.map_or((0, 0), |(index, most)| (index, *most));
    if most > domain.capacity && domain.kind == Kind::Hard {
        return Err(exceeded(domain, index, most));
    }
    Ok(DomainUse {
        name: shared.name.clone(),
        kind: domain.kind,
        count: shared.count(),
        capacity: domain.capacity,
        most,
        most_in_group,
    })
}

fn exceeded(domain: &Domain, index: u32, most: u32) -> Error {
    let (domain, capacity) = (domain.shared.name.clone(), domain.capacity);
    Error::Exceeded { domain, index, most, capacity }
}

fn unit_use(unit: &Shared, assignment: &Assignment) -> UnitUse {
    let of_group = |group| counts(unit, assignment, group).into_iter().filter(|count| *count > 0);
    let all = || assignment.groups().flat_map(of_group);
    let in_group = (all().min().unwrap_or(0), all().max().unwrap_or(0));
    UnitUse { name: unit.name.clone(), count: unit.count(), in_group }
}

/// Enumerates every legal state, changing one class at a time.
fn enumerate(shape: &Shape, assignment: &Assignment) -> Result<(), Error> {
    let hard = || shape.domains().iter().filter(|domain| domain.kind == Kind::Hard);
    let mut used: Vec<Vec<u32>> = hard().map(|domain| vec![0; domain.shared.count()]).collect();
    let mut digits = vec![0usize; assignment.classes().len()];
    let group = |class, digit: usize| assignment.groups_of(class)[digit];
    for class in assignment.classes() {
        count_spinning(hard(), &mut used, assignment.places(group(class, 0)), true);
    }
    loop {
        for (domain, used) in hard().zip(&used) {
            let over = (0..).zip(used).find(|(_, used)| **used > domain.capacity);
            if let Some((index, used)) = over {
                return Err(exceeded(domain, index, *used));
            }
        }
        let mut carried = true;
        for class in assignment.classes() {
            let digit = &mut digits[class.as_usize()];
            count_spinning(hard(), &mut used, assignment.places(group(class, *digit)), false);
            *digit += 1;
            carried = *digit == assignment.groups_of(class).len();
            if carried {
                *digit = 0;
            }
            count_spinning(hard(), &mut used, assignment.places(group(class, *digit)), true);
            if !carried {
                break;
            }
        }
        if carried {
            return Ok(());
        }
    }
}

fn count_spinning<'a>(
    domains: impl Iterator<Item = &'a Domain>,
    used: &mut [Vec<u32>],
    places: &[PlaceId],
    is_on: bool,
) {
    for (domain, used) in domains.zip(used) {
        for place in places {
            let used = &mut used[domain.shared.index_of(*place) as usize];
            *used = if is_on { *used + 1 } else { *used - 1 };
        }
    }
}

/// Counts pairs of groups by how many of their disks collide. A disk collides with a group if its
/// own group and that one together exceed a domain of the disk, of whichever kind.
fn count_pairs(shape: &Shape, assignment: &Assignment, proof: &mut Proof) {
    let uses: Vec<Vec<Vec<u32>>> = shape
        .domains()
        .iter()
        .map(|domain| {
            assignment.groups().map(|group| counts(&domain.shared, assignment, group)).collect()
        })
        .collect();
    let collides = |place: PlaceId, own: GroupId, other: GroupId| {
        shape.domains().iter().zip(&uses).any(|(domain, uses)| {
            let at = domain.shared.index_of(place) as usize;
            let other = uses[other.as_usize()][at];
            other > 0 && uses[own.as_usize()][at] + other > domain.capacity
        })
    };
    for one in assignment.groups() {
        for other in assignment.groups().skip(one.as_usize() + 1) {
            let hits = |own, other| {
                let places = assignment.places(own).iter();
                places.filter(|place| collides(**place, own, other)).count()
            };
            let (forward, reverse) = (hits(one, other), hits(other, one));
            let all = (assignment.places(one).len(), assignment.places(other).len());
            if (forward, reverse) == all {
                proof.colliding_pairs += 1;
            } else if (forward, reverse) == (0, 0) {
                proof.disjoint_pairs += 1;
            } else {
                proof.partial_pairs += 1;
            }
        }
    }
}
