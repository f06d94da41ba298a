//! The shape of a rack: places, what disks share, what fails together, and the size of a group. One
//! TOML file, for Pelican as well as for twelve disks on a shelf.
//!
//! ```text
//! name = "shelf"
//! axes = [{ name = "bay", size = 12 }]     places are a grid, or listed: places = [[0], ..]
//! [[domain]]                               a resource, of which each disk takes part of one
//! name = "power"; key = []; capacity = 4; kind = "hard"      four of all twelve may spin
//! [[unit]]                                    what fails at once
//! name = "disk"; key = ["bay"]
//! [groups]
//! size = 4; spread = "disk"
//! [code]
//! data = 3; redundancy = 1
//! ```
//!
//! Source: Pelican (OSDI 2014), section 2.2.1. Not here: which disks form which group; that is
//! computed ([`crate::solve()`]) and proved ([`crate::check()`]).

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{ByteCount, Duration, settings};
use serde::{Deserialize, Serialize};

use crate::key::{Axis, Part};
use crate::limits::{AXES_MAX, PLACES_MAX, SHARED_MAX};
use crate::{Error, Members, PlaceId};

/// A validated rack shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    text: Text,
    coordinates: Vec<Vec<u32>>,
    domains: Vec<Domain>,
    units: Vec<Shared>,
    within: Option<usize>,
    spread: Option<usize>,
}

/// Whether a domain's capacity may ever be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Hardware fails if it is exceeded: power, cooling.
    Hard,
    /// Work becomes slow if it is exceeded: vibration, links.
    Soft,
}

/// Something that each disk shares with some others, such as a tray.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Its name.
    pub name: String,
    indices: Vec<u32>,
    members: Vec<Vec<PlaceId>>,
}

/// A resource and how many disks each of its domains can supply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Which disks share which domain.
    pub shared: Shared,
    /// Disks of one domain that may spin, or spin up, at once.
    pub capacity: u32,
    /// Whether the capacity may be exceeded.
    pub kind: Kind,
}

/// The erasure code of bodies: any `data` of `data + redundancy` stacks are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Stacks that are enough (k).
    pub data: u32,
    /// Stacks that may be lost (r).
    pub redundancy: u32,
}

impl Code {
    /// Number of stacks of a blob.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.data + self.redundancy
    }

    /// Returns the bytes of one stack of a blob of `blob` bytes, which is cut into fragments of
    /// `fragment` bytes and padded to whole stripes.
    ///
    /// # Panics
    /// If a fragment has no bytes.
    #[must_use]
    pub const fn stack_bytes(self, blob: ByteCount, fragment: ByteCount) -> ByteCount {
        let stripe = fragment.get() * self.data as u64;
        ByteCount::new(blob.get().div_ceil(stripe) * fragment.get())
    }
}

/// How places form groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// Places of a group (g).
    pub size: u32,
    /// The failure unit that each group must lie within, such as a server's half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The failure unit over which a group, and each blob in it, is spread evenly, such as a
    /// chassis. The part in one unit is a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
}

/// Power draw of a disk by state, in watts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watts {
    /// The motor is off and the electronics are on.
    pub standby: f64,
    /// It spins up.
    pub spinning_up: f64,
    /// It spins.
    pub active: f64,
}

/// First estimate of how long things take; the controller measures them as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Switching from one group to another: unmount, spin up and mount, of the slowest disk.
    pub switch: Duration,
    /// Bytes of blobs that a group reads or writes per second.
    pub bytes_per_second: ByteCount,
}

/// A shape as written in TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    axes: Vec<Axis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<Vec<Vec<u32>>>,
    groups: Groups,
    code: Code,
    watts: Watts,
    pace: Pace,
    #[serde(rename = "domain")]
    domains: Vec<DomainText>,
    #[serde(rename = "unit", default)]
    units: Vec<UnitText>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainText {
    name: String,
    key: Vec<String>,
    capacity: u32,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitText {
    name: String,
    key: Vec<String>,
}

impl Shared {
    /// Number of units or domains of this kind.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.members.len()
    }

    /// Returns the index of the one that a place is in, from zero.
    ///
    /// # Panics
    /// If the rack has no such place.
    #[must_use]
    pub fn index_of(&self, place: PlaceId) -> u32 {
        self.indices[place.as_usize()]
    }

    /// Returns the places of one of them, lowest first; none if it does not exist.
    #[must_use]
    pub fn members(&self, index: u32) -> &[PlaceId] {
        let members = usize::try_from(index).ok().and_then(|index| self.members.get(index));
        members.map_or(&[], Vec::as_slice)
    }

    fn new(name: &str, key: &[String], axes: &[Axis], places: &[Vec<u32>]) -> Result<Self, Error> {
        let parts = key.iter().map(|text| Part::parse(text, axes, name));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let value = |place: &Vec<u32>| -> Vec<u32> {
            parts.iter().map(|part| part.value_at(place)).collect()
        };
        let mut members: BTreeMap<Vec<u32>, Vec<PlaceId>> = BTreeMap::new();
        for (place, coordinates) in (0..).map(PlaceId::new).zip(places) {
            members.entry(value(coordinates)).or_default().push(place);
        }
        let members: Vec<_> = members.into_values().collect();
        let mut indices = vec![0; places.len()];
        for (index, of_one) in (0..).zip(&members) {
            of_one.iter().for_each(|place| indices[place.as_usize()] = index);
        }
        Ok(Self { name: name.to_owned(), indices, members })
    }
}

impl Shape {
    /// Parses a shape.
    ///
    /// # Errors
    /// When the text is no shape, or an impossible one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text: Text = settings::from_toml(text).map_err(Error::Syntax)?;
        check_numbers(&text)?;
        let coordinates = match &text.places {
            Some(places) => listed(&text.axes, places)?,
            None => grid(&text.axes)?,
        };
        let shared = |name: &str, key: &[String]| Shared::new(name, key, &text.axes, &coordinates);
        let domains = text.domains.iter().map(|domain| {
            let shared = shared(&domain.name, &domain.key)?;
            Ok(Domain { shared, capacity: domain.capacity, kind: domain.kind })
        });
        let domains = domains.collect::<Result<Vec<_>, Error>>()?;
        let units = text.units.iter().map(|unit| shared(&unit.name, &unit.key));
        let units = units.collect::<Result<Vec<_>, Error>>()?;
        let find = |field, name: &Option<String>| {
            let position = |name: &String| units.iter().position(|unit| unit.name == *name);
            let missing = |name: &String| Error::UnknownUnit { field, unit: name.to_owned() };
            name.as_ref().map(|name| position(name).ok_or_else(|| missing(name))).transpose()
        };
        let within = find("groups.within", &text.groups.within)?;
        let spread = find("groups.spread", &text.groups.spread)?;
        Ok(Self { text, coordinates, domains, units, within, spread })
    }

    /// Formats the shape as a TOML file, which [`Self::parse`] reads.
    ///
    /// # Panics
    /// Never: whatever was parsed can be written.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.text).unwrap_or_else(|error| panic!("a shape is TOML: {error}"))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// The axes.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.text.axes
    }

    /// All places, lowest first.
    pub fn places(&self) -> impl ExactSizeIterator<Item = PlaceId> + use<> {
        // PLACES_MAX is far below the maximum of u32.
        let count = u32::try_from(self.coordinates.len()).unwrap_or(u32::MAX);
        (0..count).map(PlaceId::new)
    }

    /// How many places there are.
    #[must_use]
    pub const fn place_count(&self) -> usize {
        self.coordinates.len()
    }

    /// Returns the coordinates of a place, one for each axis.
    ///
    /// # Panics
    /// If the rack has no such place.
    #[must_use]
    pub fn coordinates(&self, place: PlaceId) -> &[u32] {
        &self.coordinates[place.as_usize()]
    }

    /// Returns the place with these coordinates.
    #[must_use]
    pub fn place_at(&self, coordinates: &[u32]) -> Option<PlaceId> {
        self.places().find(|place| self.coordinates(*place) == coordinates)
    }

    /// Resources, in the order of the file.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Failure units, in the order of the file.
    #[must_use]
    pub fn units(&self) -> &[Shared] {
        &self.units
    }

    /// The failure unit that each group lies within.
    #[must_use]
    pub fn within(&self) -> Option<&Shared> {
        self.within.map(|unit| &self.units[unit])
    }

    /// The failure unit that a group is spread over.
    #[must_use]
    pub fn spread(&self) -> Option<&Shared> {
        self.spread.map(|unit| &self.units[unit])
    }

    /// Places of a group.
    #[must_use]
    pub const fn group_size(&self) -> u32 {
        self.text.groups.size
    }

    /// The erasure code of bodies.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.text.code
    }

    /// Power draw of a disk.
    #[must_use]
    pub const fn watts(&self) -> Watts {
        self.text.watts
    }

    /// First estimate of how long things take.
    #[must_use]
    pub const fn pace(&self) -> Pace {
        self.text.pace
    }
}

fn check_numbers(text: &Text) -> Result<(), Error> {
    let range = |field: &str, value: u64, min: u64, max: u64| {
        let field = field.to_owned();
        let is_in = (min..=max).contains(&value);
        if is_in { Ok(()) } else { Err(Error::Range { field, value, min, max }) }
    };
    range("the number of axes", text.axes.len() as u64, 1, AXES_MAX)?;
    range("the number of domains", text.domains.len() as u64, 1, SHARED_MAX)?;
    range("the number of failure units", text.units.len() as u64, 0, SHARED_MAX)?;
    range("code.data", text.code.data.into(), 1, Members::CAPACITY as u64)?;
    range("code.redundancy", text.code.redundancy.into(), 0, Members::CAPACITY as u64)?;
    let width = u64::from(text.code.width());
    range("groups.size", text.groups.size.into(), width, Members::CAPACITY as u64)?;
    range("pace.bytes_per_second", text.pace.bytes_per_second.get(), 1, 1 << 50)?;
    let most = Duration::from_secs(86_400).as_nanos();
    range("pace.switch in nanoseconds", text.pace.switch.as_nanos(), 0, most)?;
    for domain in &text.domains {
        range(&format!("capacity of {}", domain.name), domain.capacity.into(), 1, PLACES_MAX)?;
    }
    let watts = [text.watts.standby, text.watts.spinning_up, text.watts.active];
    if watts.iter().any(|watts| !(0.0..=10_000.0).contains(watts)) {
        // Watts are fractional, so the error reports the range in whole watts.
        return Err(Error::Range { field: "watts".to_owned(), value: 0, min: 0, max: 10_000 });
    }
    let mut names = BTreeSet::new();
    let axes = text.axes.iter().map(|axis| ("axis", &axis.name));
    let domains = text.domains.iter().map(|domain| ("domain", &domain.name));
    let units = text.units.iter().map(|unit| ("failure unit", &unit.name));
    for (kind, name) in axes.chain(domains).chain(units) {
        if !names.insert((kind, name)) {
            return Err(Error::Twice { detail: format!("the {kind} \"{name}\"") });
        }
    }
    Ok(())
}

/// Returns all points of a grid, the last axis varying fastest.
fn grid(axes: &[Axis]) -> Result<Vec<Vec<u32>>, Error> {
    let count = axes.iter().try_fold(1u64, |count, axis| count.checked_mul(axis.size.into()));
    check_count(count.unwrap_or(u64::MAX))?;
    let mut places = vec![Vec::new()];
    for axis in axes {
        let along = |place: Vec<u32>| {
            (0..axis.size).map(move |at| place.iter().copied().chain([at]).collect())
        };
        places = places.into_iter().flat_map(along).collect();
    }
    Ok(places)
}

/// Returns the places that a shape lists.
fn listed(axes: &[Axis], places: &[Vec<u32>]) -> Result<Vec<Vec<u32>>, Error> {
    check_count(places.len() as u64)?;
    let mut known = BTreeSet::new();
    for place in places {
        let field = || format!("place {place:?}");
        if place.len() != axes.len() {
            let (value, axes) = (place.len() as u64, axes.len() as u64);
            let field = format!("the number of coordinates of {}", field());
            return Err(Error::Range { field, value, min: axes, max: axes });
        }
        for (at, axis) in place.iter().zip(axes) {
            if *at >= axis.size {
                let (value, max) = (u64::from(*at), u64::from(axis.size.saturating_sub(1)));
                let field = format!("{} of {}", axis.name, field());
                return Err(Error::Range { field, value, min: 0, max });
            }
        }
        if !known.insert(place) {
            return Err(Error::Twice { detail: field() });
        }
    }
    Ok(places.to_vec())
}

fn check_count(value: u64) -> Result<(), Error> {
    let field = || "the number of places".to_owned();
    let is_in = (1..=PLACES_MAX).contains(&value);
    if is_in {
        Ok(())
    } else {
        Err(Error::Range { field: field(), value, min: 1, max: PLACES_MAX })
    }
}
