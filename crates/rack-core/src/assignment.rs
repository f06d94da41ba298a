//! Assigns places to groups, and groups to classes. Plain values: created by [`crate::solve()`],
//! proved by [`crate::check()`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClassId, Error, GroupId, Members, PlaceId, Shape};

/// Groups and classes of a rack. The disks of a group spin together, and one group of each class
/// spins at a time. Classes are independent (Pelican, section 2.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    groups: Vec<Group>,
    classes: Vec<Vec<GroupId>>,
    slots: Vec<MemberSlot>,
}

/// The group and position of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSlot {
    /// Its group.
    pub group: GroupId,
    /// Its position among the places of the group.
    pub position: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    class: ClassId,
    places: Vec<PlaceId>,
    sets: Vec<Vec<PlaceId>>,
}

/// An assignment as stored in a file: the group of each place, lowest first, and the class of each
/// group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The group of each place.
    pub group_of: Vec<GroupId>,
    /// The class of each group.
    pub class_of: Vec<ClassId>,
}

impl Assignment {
    /// Creates the assignment of a table for a rack of this shape. This does not prove it: see
    /// [`crate::check()`].
    ///
    /// # Errors
    /// When the table is of another rack, or numbers are left out.
    pub fn from_table(shape: &Shape, table: &Table) -> Result<Self, Error> {
        let misfit = |detail: String| Error::Misfit { detail };
        if table.group_of.len() != shape.place_count() {
            let (has, places) = (table.group_of.len(), shape.place_count());
            return Err(misfit(format!("it has {has} places, but the shape has {places}")));
        }
        let mut places: Vec<Vec<PlaceId>> = vec![Vec::new(); table.class_of.len()];
        for (place, group) in shape.places().zip(&table.group_of) {
            let of_group = places.get_mut(group.as_usize());
            of_group.ok_or_else(|| misfit(format!("group {group} has no class")))?.push(place);
        }
        if table.class_of.iter().any(|class| class.as_usize() >= table.class_of.len()) {
            return Err(misfit("there are more classes than groups".to_owned()));
        }
        let count = table.class_of.iter().map(|class| class.as_usize() + 1).max().unwrap_or(0);
        let mut classes = vec![Vec::new(); count];
        for (group, class) in (0..).map(GroupId::new).zip(&table.class_of) {
            classes[class.as_usize()].push(group);
        }
        if let Some(empty) = classes.iter().position(Vec::is_empty) {
            return Err(misfit(format!("class {empty} has no groups")));
        }
        let mut slots =
            vec![MemberSlot { group: GroupId::new(0), position: 0 }; shape.place_count()];
        for (group, of_group) in (0..).map(GroupId::new).zip(&places) {
            if of_group.is_empty() || of_group.len() > Members::CAPACITY {
                return Err(misfit(format!("group {group} has {} places", of_group.len())));
            }
            for (position, place) in of_group.iter().enumerate() {
                slots[place.as_usize()] = MemberSlot { group, position };
            }
        }
        let group = |(places, class): (Vec<PlaceId>, &ClassId)| {
            let sets = sets(shape, &places);
            Group { class: *class, places, sets }
        };
        let groups = places.into_iter().zip(&table.class_of).map(group).collect();
        Ok(Self { groups, classes, slots })
    }

    /// Returns the assignment as stored.
    #[must_use]
    pub fn to_table(&self) -> Table {
        Table {
            group_of: self.slots.iter().map(|slot| slot.group).collect(),
            class_of: self.groups.iter().map(|group| group.class).collect(),
        }
    }

    /// All groups, lowest first.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = GroupId> + use<> {
        // There are no more groups than places, and those fit.
        (0..u32::try_from(self.groups.len()).unwrap_or(u32::MAX)).map(GroupId::new)
    }

    /// All classes, lowest first.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = ClassId> + use<> {
        (0..u32::try_from(self.classes.len()).unwrap_or(u32::MAX)).map(ClassId::new)
    }

    /// How many places there are.
    #[must_use]
    pub const fn place_count(&self) -> usize {
        self.slots.len()
    }

    /// Returns the group and position of a place.
    ///
    /// # Panics
    /// If the rack has no such place.
    #[must_use]
    pub fn slot(&self, place: PlaceId) -> MemberSlot {
        self.slots[place.as_usize()]
    }

    /// The places of a group, lowest first.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn places(&self, group: GroupId) -> &[PlaceId] {
        &self.groups[group.as_usize()].places
    }

    /// Returns the places of a group, divided by the failure unit that the group is spread over;
    /// each place by itself if the shape names none.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn sets(&self, group: GroupId) -> &[Vec<PlaceId>] {
        &self.groups[group.as_usize()].sets
    }

    /// The class of a group.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn class_of(&self, group: GroupId) -> ClassId {
        self.groups[group.as_usize()].class
    }

    /// The groups of a class, lowest first.
    ///
    /// # Panics
    /// If the rack has no such class.
    #[must_use]
    pub fn groups_of(&self, class: ClassId) -> &[GroupId] {
        &self.classes[class.as_usize()]
    }
}

fn sets(shape: &Shape, places: &[PlaceId]) -> Vec<Vec<PlaceId>> {
    let Some(unit) = shape.spread() else {
        return places.iter().map(|place| vec![*place]).collect();
    };
    let mut sets: BTreeMap<u32, Vec<PlaceId>> = BTreeMap::new();
    for place in places {
        sets.entry(unit.index_of(*place)).or_default().push(*place);
    }
    sets.into_values().collect()
}
