//! Computes groups and classes for a rack of any shape.
//!
//! First by a construction, which for Pelican is its closed form (figure 2 of the paper). A class
//! is a union of whole domains of the tightest resource, its columns. Each of its groups takes one
//! place of each column, and the next group is the same rotated by one.
//!
//! ```text
//!            column 0  1  2  3      a block: columns linked by another resource (a tray)
//! place 0           a  d  c  b      rotated by i, the index of the column in its block, and by
//! place 1           b  a  d  c      s times the index of the block; s is the first with which
//! place 2           c  b  a  d      groups are spread as the shape requires
//! place 3           d  c  b  a      a, b, c, d: groups
//! ```
//!
//! If that fails, by a search. Either result must be proved ([`crate::check()`]). There are as many
//! classes as the resources allow. Soft domains are respected where possible.

use std::collections::{BTreeMap, BTreeSet};

use crate::search::search;
use crate::shape::{Domain, Kind, Shape};
use crate::usage::{Groups, max_per_unit, worst};
use crate::{Assignment, ClassId, Error, GroupId, PlaceId, Table, check};

/// Computes and proves groups and classes.
///
/// # Errors
/// When places do not divide into groups, when resources are not enough for one group, or when no
/// assignment is found; the error names the obstacle.
pub fn solve(shape: &Shape) -> Result<Assignment, Error> {
    let (mut group_of, mut class_of) = (BTreeMap::new(), Vec::new());
    let mut class = 0;
    for part in parts(shape) {
        for groups in solve_part(shape, &part)? {
            for places in groups {
                // There are no more groups than places, and those fit.
                let group = GroupId::new(u32::try_from(class_of.len()).unwrap_or(u32::MAX));
                class_of.push(ClassId::new(class));
                group_of.extend(places.into_iter().map(|place| (place, group)));
            }
            class += 1;
        }
    }
    let table = Table { group_of: group_of.into_values().collect(), class_of };
    let assignment = Assignment::from_table(shape, &table)?;
    check(shape, &assignment)?;
    Ok(assignment)
}

/// A part of the rack that is divided into groups by itself.
struct Part {
    places: Vec<PlaceId>,
    /// Its name, for errors.
    label: String,
}

fn parts(shape: &Shape) -> Vec<Part> {
    let Some(unit) = shape.within() else {
        return vec![Part { places: shape.places().collect(), label: String::new() }];
    };
    let part = |index| {
        let label = format!(" of {} {index}", unit.name);
        Part { places: unit.members(index).to_vec(), label }
    };
    (0..).take(unit.count()).map(part).collect()
}

fn solve_part(shape: &Shape, part: &Part) -> Result<Vec<Groups>, Error> {
    let size = shape.group_size();
    let (places, within) = (part.places.len(), &part.label);
    if !places.is_multiple_of(size as usize) {
        return Err(Error::Indivisible { places, within: within.clone(), size });
    }
    let hard = |domain: &&Domain| domain.kind == Kind::Hard;
    let all: Vec<&Domain> = shape.domains().iter().collect();
    let hard: Vec<&Domain> = shape.domains().iter().filter(hard).collect();
    let classes_of = |domains: &[&Domain]| {
        let most = domains.iter().map(|domain| slots(domain, &part.places)).min();
        most.map_or(places / size as usize, |most| most / size as usize)
    };
    if let Some(domain) = hard.iter().min_by_key(|domain| slots(domain, &part.places))
        && classes_of(&hard) == 0
    {
        let (domain, most) = (domain.shared.name.clone(), slots(domain, &part.places) as u64);
        return Err(Error::NoClass { domain, most, within: within.clone(), size });
    }
    let mut bottleneck = None;
    for domains in [&all, &hard] {
        let most = classes_of(domains).min(places / size as usize);
        for classes in (1..=most).rev() {
            if let Some(found) = construct(shape, domains, part, classes) {
                return Ok(found);
            }
            let found = search(shape, domains, &part.places, classes);
            match worst(domains, &found) {
                None => return Ok(found),
                Some((name, _)) => bottleneck = Some(name),
            }
        }
    }
    let classes = u32::try_from(classes_of(&hard)).unwrap_or(u32::MAX);
    let domain = bottleneck.unwrap_or_default();
    Err(Error::Unsolved { size, within: within.clone(), places, classes, domain })
}

/// Returns how many disks of a part a resource lets spin at once.
fn slots(domain: &Domain, places: &[PlaceId]) -> usize {
    group_by_domain(domain, places)
        .values()
        .map(|members| members.len().min(capacity(domain)))
        .sum()
}

fn capacity(domain: &Domain) -> usize {
    usize::try_from(domain.capacity).unwrap_or(usize::MAX)
}

fn group_by_domain(domain: &Domain, places: &[PlaceId]) -> BTreeMap<u32, Vec<PlaceId>> {
    let mut members: BTreeMap<u32, Vec<PlaceId>> = BTreeMap::new();
    for place in places {
        members.entry(domain.shared.index_of(*place)).or_default().push(*place);
    }
    members
}

/// A column: each group has one of its places.
type Column = Vec<PlaceId>;

/// A column of a class: the index of its block in the class, its own index in the block, its
/// places.
type IndexedColumn<'a> = (usize, usize, &'a Column);

/// Tries the construction, with each resource in turn as the tightest and each other one as the
/// link that forms blocks.
fn construct(
    shape: &Shape,
    domains: &[&Domain],
    part: &Part,
    classes: usize,
) -> Option<Vec<Groups>> {
    let size = shape.group_size() as usize;
    let mut tightest: Vec<&Domain> = domains.to_vec();
    tightest.sort_by_key(|domain| slots(domain, &part.places));
    let mut best: Option<(u32, Vec<Groups>)> = None;
    for tight in &tightest {
        let Some(columns) = columns(tight, &part.places, classes * size) else { continue };
        let others = || tightest.iter().copied().filter(|domain| *domain != *tight);
        for link in others().map(Some).chain([None]) {
            let linked = |domain: &&Domain| link.is_some_and(|link| link == *domain);
            let blocks = connected_components(
                &columns,
                (0..columns.len()).collect(),
                others().filter(linked),
            );
            let atom = |block: Vec<usize>| {
                connected_components(
                    &columns,
                    block,
                    others().filter(|domain| domain.capacity == 1),
                )
            };
            let atoms: Vec<Vec<Vec<usize>>> = blocks.into_iter().map(atom).collect();
            for class_columns in
                [distribute_atoms(&atoms, classes), distribute_blocks(&atoms, classes)]
            {
                if class_columns.iter().any(|class| class.len() != size) {
                    continue;
                }
                let Some((most, found)) = rotation(shape, domains, &columns, &class_columns) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(known, _)| most < *known) {
                    best = Some((most, found));
                }
                if best.as_ref().is_some_and(|(most, _)| *most <= even_spread(shape, part)) {
                    return best.map(|(_, found)| found);
                }
            }
        }
    }
    best.map(|(_, found)| found)
}

/// Returns the number of disks of a group in one unit if it is spread evenly.
fn even_spread(shape: &Shape, part: &Part) -> u32 {
    let Some(unit) = shape.spread() else { return u32::MAX };
    let mut units: Vec<u32> = part.places.iter().map(|place| unit.index_of(*place)).collect();
    units.sort_unstable();
    units.dedup();
    shape.group_size().div_ceil(u32::try_from(units.len()).unwrap_or(u32::MAX))
}

/// Divides the members of each domain into as many columns as it supplies disks, all of the same
/// length.
fn columns(tight: &Domain, places: &[PlaceId], wanted: usize) -> Option<Vec<Column>> {
    let domains = group_by_domain(tight, places);
    let mut columns = Vec::new();
    for members in domains.values() {
        let supplied = members.len().min(capacity(tight));
        let count = if wanted.is_multiple_of(domains.len()) {
            supplied.min(wanted / domains.len())
        } else {
            supplied
        };
        columns.extend((0..count).map(|first| -> Column {
            members.iter().copied().skip(first).step_by(count).collect()
        }));
    }
    let length = columns.first()?.len();
    let is_even = columns.len() == wanted && columns.iter().all(|column| column.len() == length);
    is_even.then_some(columns)
}

/// Linked columns, and the domains (with their kind) in which they have places.
struct Component {
    domains: BTreeSet<(usize, u32)>,
    columns: Vec<usize>,
}

/// Partitions columns into connected sets: columns with places in the same domain are linked.
fn connected_components<'a>(
    columns: &[Column],
    subset: Vec<usize>,
    links: impl Iterator<Item = &'a Domain> + Clone,
) -> Vec<Vec<usize>> {
    let mut sets: Vec<Component> = Vec::new();
    for column in subset {
        let domains = links.clone().enumerate().flat_map(|(kind, domain)| {
            columns[column].iter().map(move |place| (kind, domain.shared.index_of(*place)))
        });
        let mut set = Component { domains: domains.collect(), columns: vec![column] };
        let overlaps = |other: &Component| !other.domains.is_disjoint(&set.domains);
        let (overlapping, disjoint): (Vec<_>, Vec<_>) = sets.into_iter().partition(overlaps);
        for other in overlapping {
            set.domains.extend(other.domains);
            set.columns.extend(other.columns);
        }
        set.columns.sort_unstable();
        sets = disjoint;
        sets.push(set);
    }
    let mut sets: Vec<Vec<usize>> = sets.into_iter().map(|set| set.columns).collect();
    sets.sort_unstable();
    sets
}

/// Columns of a class, each with the index of its block and its own index in the block.
type ClassColumns = Vec<(usize, usize, usize)>;

/// Deals the atoms of each block to the classes in turn.
fn distribute_atoms(blocks: &[Vec<Vec<usize>>], classes: usize) -> Vec<ClassColumns> {
    let mut class_columns: Vec<ClassColumns> = vec![Vec::new(); classes];
    for (number, block) in blocks.iter().enumerate() {
        let mut counts = vec![0; classes];
        for (atom, columns) in block.iter().enumerate() {
            let class = atom % classes;
            for column in columns {
                class_columns[class].push((number, counts[class], *column));
                counts[class] += 1;
            }
        }
    }
    class_columns
}

/// Deals whole blocks to the classes in turn.
fn distribute_blocks(blocks: &[Vec<Vec<usize>>], classes: usize) -> Vec<ClassColumns> {
    let mut class_columns: Vec<ClassColumns> = vec![Vec::new(); classes];
    for (number, block) in blocks.iter().enumerate() {
        let columns = block.iter().flatten().enumerate();
        let indexed = columns.map(|(index, column)| (number / classes, index, *column));
        class_columns[number % classes].extend(indexed);
    }
    class_columns
}

/// Rotates columns against each other, and blocks by the first stride that spreads groups evenly,
/// or as evenly as possible. Returns the maximum number of disks of a group in one unit, and the
/// groups.
fn rotation(
    shape: &Shape,
    domains: &[&Domain],
    columns: &[Column],
    class_columns: &[ClassColumns],
) -> Option<(u32, Vec<Groups>)> {
    let length = columns.first()?.len();
    let mut best: Option<(u32, Vec<Groups>)> = None;
    for stride in 0..length {
        let class = |class_columns: &ClassColumns| {
            let indexed =
                class_columns.iter().map(|(block, index, at)| (*block, *index, &columns[*at]));
            rotated(indexed, stride, length)
        };
        let found: Vec<Groups> = class_columns.iter().map(class).collect();
        if worst(domains, &found).is_some() {
            continue;
        }
        let most = max_per_unit(shape, &found);
        if best.as_ref().is_none_or(|(known, _)| most < *known) {
            best = Some((most, found));
        }
    }
    best
}

fn rotated<'a>(
    columns: impl Iterator<Item = IndexedColumn<'a>>,
    stride: usize,
    length: usize,
) -> Groups {
    let mut groups = vec![Vec::new(); length];
    for (block, index, column) in columns {
        let rotation = (index + stride * block) % length;
        for (height, place) in column.iter().enumerate() {
            groups[(height + length - rotation) % length].push(*place);
        }
    }
    groups
}
