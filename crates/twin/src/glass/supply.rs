//! The platters: the slots of stored ones, and the new ones that are ejected and must be verified.

use fulgurite_glass_core::control::{Event, LibraryShape, PanelIndex, RequestId, TrackSpan};
use fulgurite_units::{Instant, PlatterId, RandomStream, Seed, SlotIndex, TrackIndex};

use super::backlog::Backlog;
use super::files::NEW_PLATTER;
use super::sets::Sets;
use crate::Error;
use crate::glass::scenario::{Recovery, Scenario, Writes};

/// Stored and new platters.
#[derive(Debug)]
pub(crate) struct Supply {
    slots: Vec<SlotIndex>,
    unavailable: Vec<bool>,
    /// The sets, if platters of a set are read instead of each other.
    sets: Option<Sets>,
    recovery_reads: usize,
    /// Free slots of each panel.
    free: Vec<Vec<SlotIndex>>,
    /// New platters of each panel that have not been in a drive yet.
    pub(crate) waiting: Vec<u64>,
    /// The panel of each new platter, and whether it has yet to be in a drive.
    panels: Vec<(PanelIndex, bool)>,
    /// New platters that are not verified yet.
    pub(crate) backlog: Backlog,
    tracks: u32,
    recovery: RandomStream,
}

impl Supply {
    pub(crate) fn new(scenario: &Scenario, seed: &Seed) -> Result<Self, Error> {
        let shape = &scenario.library;
        let mut random = seed.child(b"slots").stream();
        let mut zones = free_by_zone(shape, &mut random);
        let mut slots = Vec::with_capacity(scenario.platters as usize);
        // Round robin over the zones, so the least occupied come first.
        while slots.len() < scenario.platters as usize {
            let before = slots.len();
            for zone in &mut zones {
                if slots.len() < scenario.platters as usize {
                    slots.extend(zone.pop());
                }
            }
            if slots.len() == before {
                let (platters, slots) = (scenario.platters, slots.len());
                return Err(Error::TooManyPlatters { platters, slots });
            }
        }
        shuffle(&mut slots, &mut random);
        let share = scenario.unavailable.get();
        let mut chance = seed.child(b"unavailable").stream();
        let mut unavailable: Vec<bool> = slots.iter().map(|_| chance.unit() < share).collect();
        let sets = sets(scenario, &slots)?;
        if let Some(sets) = &sets {
            sets.bound(&mut unavailable, &mut chance);
        }
        let mut free = vec![Vec::new(); usize::from(shape.panels)];
        for slot in zones.into_iter().flatten() {
            if let Some(address) = shape.address(slot) {
                free[usize::from(address.panel.get())].push(slot);
            }
        }
        let size = match scenario.writes {
            Writes::None => 0,
            Writes::Saturated { platter_size } | Writes::Every { platter_size, .. } => {
                platter_size.get().div_ceil(scenario.track_size.get())
            }
        };
        Ok(Self {
            slots,
            unavailable,
            sets,
            recovery_reads: usize::from(scenario.recovery_reads),
            waiting: vec![0; free.len()],
            free,
            panels: Vec::new(),
            backlog: Backlog::default(),
            tracks: u32::try_from(size).unwrap_or(u32::MAX / 2).max(1),
            recovery: seed.child(b"recovery").stream(),
        })
    }

    pub(crate) fn slot(&self, platter: u32) -> SlotIndex {
        self.slots[platter as usize]
    }

    pub(crate) fn is_unavailable(&self, platter: u32) -> bool {
        self.unavailable[platter as usize]
    }

    /// Returns whether platters of a set are read instead of each other.
    pub(crate) const fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Returns the platters to read instead of an unavailable one; empty if too few of its set are
    /// left.
    pub(crate) fn recovery_sources(&mut self, platter: u32) -> Vec<u32> {
        if self.sets.is_none() {
            return (0..self.recovery_reads).map(|_| self.any_platter()).collect();
        }
        let mut other_members = self.available_members(platter);
        if other_members.len() < self.recovery_reads {
            return Vec::new();
        }
        let first = self.recovery.below(other_members.len() as u64);
        other_members.rotate_left(usize::try_from(first).unwrap_or(0));
        other_members.truncate(self.recovery_reads);
        other_members
    }

    /// Returns all platters that an archive reads instead of another, and how many of them are
    /// enough. From a set it reads all available others, as it does not know which of them are
    /// readable.
    pub(crate) fn all_recovery_sources(&mut self, platter: u32) -> (Vec<u32>, usize) {
        let other_members = match self.sets {
            Some(_) => self.available_members(platter),
            None => self.recovery_sources(platter),
        };
        (other_members, self.recovery_reads)
    }

    /// Returns another platter when a recovery source is unavailable too.
    pub(crate) fn replacement(&mut self, platter: u32) -> Option<u32> {
        if self.sets.is_none() {
            return Some(self.any_platter());
        }
        let other_members = self.available_members(platter);
        let drawn = self.recovery.below(other_members.len().max(1) as u64);
        other_members.get(usize::try_from(drawn).unwrap_or(0)).copied()
    }

    /// Returns the other available platters of a set.
    fn available_members(&self, platter: u32) -> Vec<u32> {
        let other_members = self.sets.iter().flat_map(|sets| sets.other_members(platter));
        other_members.filter(|other| !self.is_unavailable(*other)).collect()
    }

    /// Draws an available platter; after 64 failed draws, platter 0.
    fn any_platter(&mut self) -> u32 {
        let count = self.slots.len() as u64;
        for _ in 0..64 {
            let platter = u32::try_from(self.recovery.below(count)).unwrap_or(0);
            if !self.is_unavailable(platter) {
                return platter;
            }
        }
        0
    }

    /// Ejects a new platter on a panel.
    pub(crate) fn new_platter(&mut self, panel: PanelIndex, now: Instant) -> Event {
        let number = u32::try_from(self.panels.len()).unwrap_or(u32::MAX);
        self.backlog.ejected(number, now, self.tracks);
        self.panels.push((panel, true));
        self.waiting[usize::from(panel.get())] += 1;
        Event::Verify {
            request: RequestId::new(NEW_PLATTER + u64::from(number)),
            platter: new_id(number),
            panel,
            tracks: TrackSpan::new(TrackIndex::new(0), self.tracks),
        }
    }

    /// Records that a new platter is in a drive; returns its panel if this is the first time.
    pub(crate) fn mounted(&mut self, platter: PlatterId) -> Option<PanelIndex> {
        let (panel, first) = self.panels.get_mut(number_of(platter) as usize)?;
        if !std::mem::replace(first, false) {
            return None;
        }
        self.waiting[usize::from(panel.get())] -= 1;
        Some(*panel)
    }

    /// Marks a new platter as verified and returns when it was ejected.
    pub(crate) fn verified(&mut self, request: RequestId) -> Option<Instant> {
        let number = u32::try_from(request.get() - NEW_PLATTER).unwrap_or(u32::MAX);
        self.backlog.verified(number)
    }

    /// Stores a verified new platter in a slot, as long as there are free ones.
    pub(crate) fn store(&mut self, request: RequestId) -> Option<Event> {
        let number = u32::try_from(request.get() - NEW_PLATTER).unwrap_or(u32::MAX);
        let (panel, _) = self.panels.get(number as usize)?;
        let slot = self.free[usize::from(panel.get())].pop()?;
        Some(Event::Store { request, platter: new_id(number), slot })
    }
}

/// Builds the sets of the platters in these slots, if a scenario has sets.
fn sets(scenario: &Scenario, slots: &[SlotIndex]) -> Result<Option<Sets>, Error> {
    let Recovery::Set { redundancy } = scenario.recovery else { return Ok(None) };
    let (reads, redundancy) = (usize::from(scenario.recovery_reads), usize::from(redundancy));
    Sets::new(&scenario.library, slots, reads + redundancy, redundancy).map(Some)
}

/// Returns the ID of a stored platter.
pub(crate) fn stored_id(number: u32) -> PlatterId {
    id(0, number)
}

/// Returns the ID of a new platter.
pub(crate) fn new_id(number: u32) -> PlatterId {
    id(1, number)
}

/// Whether an id is that of a new platter.
pub(crate) fn is_new(platter: PlatterId) -> bool {
    platter.to_bytes()[0] == 1
}

fn id(kind: u8, number: u32) -> PlatterId {
    let mut bytes = [0; 16];
    bytes[0] = kind;
    for (index, byte) in bytes.iter_mut().rev().take(4).enumerate() {
        *byte = u8::try_from((number >> (8 * index)) & 0xff).unwrap_or(0);
    }
    PlatterId::from_bytes(bytes)
}

/// Returns the number in the id of a platter.
pub(crate) fn number_of(platter: PlatterId) -> u32 {
    platter.to_bytes()[12..].iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// Returns the slots for storage, by zone, in random order.
fn free_by_zone(shape: &LibraryShape, random: &mut RandomStream) -> Vec<Vec<SlotIndex>> {
    let per_zone = u32::from(shape.slots_per_shelf);
    let mut zones: Vec<Vec<SlotIndex>> = (0..shape.zone_count())
        .map(|zone| {
            let slots = (zone * per_zone..(zone + 1) * per_zone).map(SlotIndex::new);
            let mut slots: Vec<_> = slots.filter(|slot| !shape.is_spare(*slot)).collect();
            shuffle(&mut slots, random);
            slots
        })
        .collect();
    shuffle(&mut zones, random);
    zones
}

fn shuffle<T>(values: &mut [T], random: &mut RandomStream) {
    for last in (1..values.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or(0);
        values.swap(last, other);
    }
}
