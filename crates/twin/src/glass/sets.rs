//! Platter-sets: which platters are read instead of an unavailable one.
//!
//! Sets are built as in the live archive, one after the other, each on the least used blast zones
//! (`fulgurite_glass_core::plan::choose_zones`), so that no two platters of a set share one:
//!
//! ```text
//!   zones        0  1  2  . . .  18 | 19 20  . . .  37 | . . . | 133 . . . 139
//!   platter 1    --- set 0 -------- | --- set 1 ------ | . . . | --- set 7 ----
//!   platter 2    --- set 7 -- | --- set 8 -------- | . . .
//! ```
//!
//! The slot of each platter is given. The few platters left over that form no complete set join
//! complete ones. All platters of a set get reads: that some hold only redundancy is ignored, here
//! as in the number of platters.

use fulgurite_glass_core::control::LibraryShape;
use fulgurite_glass_core::plan::{ZoneState, choose_zones};
use fulgurite_units::{RandomStream, SlotIndex};

use crate::Error;

/// The sets of all stored platters.
#[derive(Debug)]
pub(crate) struct Sets {
    /// The platters of each set.
    members: Vec<Vec<u32>>,
    /// The set of each platter.
    set_of: Vec<usize>,
    /// Platters of a set that may be unavailable at a time.
    redundancy: usize,
}

impl Sets {
    /// Builds sets of `size` platters from the platters in these slots.
    ///
    /// # Errors
    /// When there are too few platters, or zones, for a set.
    pub(crate) fn new(
        shape: &LibraryShape,
        slots: &[SlotIndex],
        size: usize,
        redundancy: usize,
    ) -> Result<Self, Error> {
        let zone_of = |slot: SlotIndex| shape.zone(slot).map_or(0, |zone| zone.get() as usize);
        let mut zones = vec![Vec::new(); shape.zone_count() as usize];
        for (platter, &slot) in (0..).zip(slots) {
            zones[zone_of(slot)].push(platter);
        }
        let homes = u32::from(shape.slots_per_shelf - shape.spare_slots_per_shelf);
        let mut states: Vec<ZoneState> = (0..)
            .zip(&zones)
            .map(|(zone, _)| ZoneState {
                zone,
                total: homes,
                free: homes,
                next: None,
                holds_member: false,
            })
            .collect();
        let mut sets = Self { members: Vec::new(), set_of: vec![0; slots.len()], redundancy };
        loop {
            for (state, left) in states.iter_mut().zip(&zones) {
                state.next = left.last().map(|platter: &u32| slots[*platter as usize]);
            }
            let Ok(chosen) = choose_zones(&states, size) else { break };
            let platters = chosen.into_iter().filter_map(|slot| {
                states[zone_of(slot)].free -= 1;
                zones[zone_of(slot)].pop()
            });
            let platters = platters.collect();
            sets.add(platters);
        }
        for platter in zones.into_iter().flatten() {
            let zone = |platter: u32| zone_of(slots[platter as usize]);
            let apart = |set: &&usize| {
                sets.members[**set].iter().all(|other| zone(*other) != zone(platter))
            };
            let open: Vec<usize> = (0..sets.members.len()).collect();
            let set = open.iter().filter(apart).min_by_key(|set| sets.members[**set].len());
            let Some(&set) = set else { return Err(too_few(slots.len())) };
            sets.members[set].push(platter);
            sets.set_of[platter as usize] = set;
        }
        Ok(sets)
    }

    fn add(&mut self, platters: Vec<u32>) {
        for platter in &platters {
            self.set_of[*platter as usize] = self.members.len();
        }
        self.members.push(platters);
    }

    /// Returns the other platters of a platter's set.
    pub(crate) fn other_members(&self, platter: u32) -> impl Iterator<Item = u32> + '_ {
        let members = &self.members[self.set_of[platter as usize]];
        members.iter().copied().filter(move |other| *other != platter)
    }

    /// Limits the unavailable platters of each set to its redundancy. Those drawn beyond it are
    /// taken from other sets.
    pub(crate) fn bound(&self, unavailable: &mut [bool], random: &mut RandomStream) {
        let mut lost = vec![0; self.members.len()];
        let mut beyond = 0;
        for (is_lost, &set) in unavailable.iter_mut().zip(&self.set_of) {
            if *is_lost && lost[set] == self.redundancy {
                *is_lost = false;
                beyond += 1;
            }
            lost[set] += usize::from(*is_lost);
        }
        for _ in 0..beyond {
            let from = usize::try_from(random.below(unavailable.len() as u64)).unwrap_or(0);
            let mut platters = (from..unavailable.len()).chain(0..from);
            let free = |platter: &usize| {
                !unavailable[*platter] && lost[self.set_of[*platter]] < self.redundancy
            };
            let Some(platter) = platters.find(free) else { return };
            unavailable[platter] = true;
            lost[self.set_of[platter]] += 1;
        }
    }
}

fn too_few(platters: usize) -> Error {
    Error::Parameter {
        field: "platters",
        value: platters.to_string(),
        expected: "enough for whole sets with no two platters of a set in one blast zone",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fulgurite_glass_core::control::LibraryShape;
    use fulgurite_units::{Seed, SlotIndex};

    use super::Sets;

    const SIZE: usize = 19;
    const REDUNDANCY: usize = 3;

    /// Spreads platters evenly over the zones, each zone filled from its first slot on.
    fn slots(shape: &LibraryShape, platters: u32) -> Vec<SlotIndex> {
        let (zones, per_zone) = (shape.zone_count(), u32::from(shape.slots_per_shelf));
        (0..platters).map(|at| SlotIndex::new(at % zones * per_zone + at / zones)).collect()
    }

    #[test]
    fn platters_of_a_set_are_in_distinct_zones() {
        let shape = LibraryShape::mdu();
        for platters in [19, 2_000, 5_500, 5_501, 5_518] {
            let slots = slots(&shape, platters);
            let sets = Sets::new(&shape, &slots, SIZE, REDUNDANCY).unwrap();
            let mut seen: BTreeSet<u32> = BTreeSet::new();
            for (number, set) in sets.members.iter().enumerate() {
                let zone = |platter: &u32| shape.zone(slots[*platter as usize]).unwrap();
                let zones: BTreeSet<_> = set.iter().map(zone).collect();
                assert_eq!(zones.len(), set.len(), "{platters}: set {number}");
                assert!((SIZE..=SIZE + 1).contains(&set.len()), "{platters}: set {number}");
                assert!(set.iter().all(|platter| sets.set_of[*platter as usize] == number));
                seen.extend(set);
            }
            assert_eq!(seen.len(), platters as usize);
        }
        assert!(Sets::new(&shape, &slots(&shape, 18), SIZE, REDUNDANCY).is_err());
    }

    #[test]
    fn no_set_loses_more_platters_than_its_redundancy() {
        let shape = LibraryShape::mdu();
        let sets = Sets::new(&shape, &slots(&shape, 2_000), SIZE, REDUNDANCY).unwrap();
        let mut random = Seed::new(7).stream();
        let mut lost: Vec<bool> = (0..2_000).map(|_| random.unit() < 0.15).collect();
        let drawn = lost.iter().filter(|is_lost| **is_lost).count();
        sets.bound(&mut lost, &mut random);
        assert_eq!(lost.iter().filter(|is_lost| **is_lost).count(), drawn);
        for set in &sets.members {
            assert!(set.iter().filter(|platter| lost[**platter as usize]).count() <= REDUNDANCY);
        }
    }
}
