//! Chooses the next errand of an idle shuttle.
//!
//! In this order: return a platter no drive needs any more (that frees a drive); take work from the
//! most loaded group, if that has much more, or from a neighbor whose customers wait much longer;
//! fetch the most urgent platter of its group, or a nearer one among the most urgent few, if a
//! drive of the group has room; help a group that has more than it can do; shelve a verified
//! platter; collect the oldest new platter for a drive; return a platter from a spare slot to its
//! home. New platters come before customers after [`FETCHES_IN_A_ROW_MAX`] fetches in a row, and at
//! once if customers may have both slots of a drive (`verification.rs`).
//!
//! A platter that cannot be reached just now - on its way, in a drive, or behind another shuttle
//! that picks or places on the same shelf of the same rack - is skipped and tried again later.

use fulgurite_units::{DriveIndex, ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::drive_dispatch::is_wanted;
use crate::control::floor::Position;
use crate::control::limits::FETCHES_IN_A_ROW_MAX;
use crate::control::state::{Age, Errand, Place, PlatterKey, Stage, TripKind};
use crate::control::{Destination, DriveSlot, PanelIndex, Source};

/// Side results of the search for an errand; the search itself changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Findings {
    /// Whether a platter was passed over because it is obscured: all groups search again once one
    /// is not obscured any more.
    pub(crate) passed_over: bool,
    /// How long a platter has been passed over for nearer ones of its batch, in nanoseconds.
    pub(crate) passed_over_ns: u64,
    /// A group begins a new batch, up to this age.
    pub(crate) batch: Option<(u16, Age)>,
    /// Whether the errand was stolen from another group.
    pub(crate) stolen: bool,
}

impl Library {
    /// Returns the next errand of a group for one of its shuttles, if there is any.
    pub(crate) fn next_errand(
        &self,
        group: u16,
        shuttle: ShuttleIndex,
        found: &mut Findings,
    ) -> Option<Errand> {
        if self.fleet.get(shuttle).cargo().is_some() {
            return self.deliver_errand(group, shuttle);
        }
        let is_feasible = |errand: &Errand| !self.damaged || self.has_way_for(shuttle, errand);
        let home = self.return_errand(group, shuttle);
        let pairs = self.policy.pairs && home.is_some_and(|errand| !self.is_at(shuttle, &errand));
        if home.is_some() && !pairs {
            return home;
        }
        let can_defer_new = self.partitions.group(group).fetches_in_a_row() < FETCHES_IN_A_ROW_MAX;
        let panel = self.partitions.group(group).panel();
        let new_first = !can_defer_new || self.has_new_platters_waiting(panel);
        if new_first && let Some(errand) = self.new_platter_errand(group, found).filter(is_feasible)
        {
            return Some(errand);
        }
        // Without room in its drives the group fetches from no group.
        let fetch = if self.has_room(group) {
            self.steal_errand(group, found)
                .filter(is_feasible)
                .or_else(|| self.neighbor_errand(group, found).filter(is_feasible))
                .or_else(|| self.fetch_errand(group, group, found).filter(is_feasible))
                .or(home)
                .or_else(|| self.help_errand(group, found).filter(is_feasible))
        } else {
            home
        };
        let new = |found: &mut Findings| self.new_platter_errand(group, found).filter(is_feasible);
        // Already searched for, without result.
        fetch
            .or_else(|| if new_first { None } else { new(found) })
            .or_else(|| self.displaced_errand(group, found).filter(is_feasible))
    }

    /// Whether a shuttle stands where an errand begins.
    fn is_at(&self, shuttle: ShuttleIndex, errand: &Errand) -> bool {
        let at = self.fleet.get(shuttle).position();
        match errand.from {
            Source::Drive(drive, _) => self.floor.dock(drive, at.shelf) == at,
            Source::Storage(slot) => self.floor.slot(slot) == at,
            Source::EjectBay(panel) => self.floor.eject_bay(panel) == at,
        }
    }

    /// Applies the side results of a search.
    pub(crate) fn apply_findings(&mut self, found: &Findings) {
        self.zones.record_passed_over(found.passed_over);
        self.counters.steals += u64::from(found.stolen);
        let longest = self.counters.passed_over_max_ns.max(found.passed_over_ns);
        self.counters.passed_over_max_ns = longest;
        if let Some((group, end)) = found.batch {
            self.partitions.group_mut(group).begin_batch(end, self.sequence.now());
        }
    }

    pub(crate) fn new_platter_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        self.shelve_errand(group, found).or_else(|| self.collect_errand(group))
    }

    /// Returns the errand for a platter left in a shuttle's picker by a repair or a restart: to its
    /// home, or if it has none to a drive, where it can be verified and stored from.
    fn deliver_errand(&self, group: u16, shuttle: ShuttleIndex) -> Option<Errand> {
        let key = self.fleet.get(shuttle).cargo()?;
        let at = self.fleet.get(shuttle).position();
        // Where it came from no longer matters.
        let (from, kind) = (Source::EjectBay(at.panel), TripKind::Return);
        let stored = |slot| Errand { kind, platter: key, from, to: Destination::Storage(slot) };
        let to = match self.shelf.get(key).stage() {
            Stage::Stored { home } | Stage::Storing { home, .. }
                if self.is_open(home) && self.can_reach_slot(at, home) =>
            {
                home
            }
            Stage::Unverified { .. } | Stage::Checked { .. } => {
                let drive = match self.nearest_with(group, DriveSlot::Second, at, false) {
                    Some(drive) => drive,
                    None => match self.free_spare(at) {
                        Some(slot) => return Some(stored(slot)),
                        // With a full picker the shuttle cannot empty its own group's drives.
                        None => self.nearest_on_panel(DriveSlot::Second, at)?,
                    },
                };
                let to = Destination::Drive(drive, DriveSlot::Second);
                let errand = Errand { kind: TripKind::Collect, platter: key, from, to };
                return (!self.damaged || self.has_way_for(shuttle, &errand)).then_some(errand);
            }
            Stage::Storing { .. } | Stage::Stored { .. } => self.free_spare(at)?,
        };
        Some(stored(to))
    }

    /// Returns the errand for the nearest platter that lies released in a drive and is not needed
    /// there. The group that brought it returns it.
    fn return_errand(&self, group: u16, shuttle: ShuttleIndex) -> Option<Errand> {
        let at = self.fleet.get(shuttle).position();
        let drives = self.partitions.group(group).drives();
        let mut best: Option<(u64, Errand)> = None;
        for &index in drives {
            for slot in DriveSlot::BOTH {
                let Some(errand) = self.return_from(index, slot) else { continue };
                let no_way = self.damaged && !self.has_way_for(shuttle, &errand);
                if no_way || self.is_returned_by_another(group, index, slot) {
                    continue;
                }
                let cost = at.cost_to(self.floor.dock(index, at.shelf));
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, errand));
                }
            }
        }
        best.map(|(_, errand)| errand)
    }

    /// Whether another group that shares the drive brought the platter in a slot, and so returns
    /// it: shuttles that cross each other's shelves wait for each other.
    fn is_returned_by_another(&self, group: u16, drive: DriveIndex, slot: DriveSlot) -> bool {
        let bringer = self.drives.get(drive).bay(slot).brought_by();
        // A shuttle that must charge first does not come for it.
        let bringer = bringer.filter(|shuttle| !self.fleet.get(*shuttle).is_low());
        let bringer = bringer.and_then(|shuttle| self.partitions.group_of_shuttle(shuttle));
        !self.damaged
            && bringer.is_some_and(|bringer| {
                bringer != group && self.partitions.groups_of_drive(drive).contains(&bringer)
            })
    }

    fn return_from(&self, index: DriveIndex, slot: DriveSlot) -> Option<Errand> {
        let drive = self.drives.get(index);
        let key = drive.bay(slot).platter()?;
        let platter = self.shelf.get(key);
        let Stage::Stored { home } = platter.stage() else { return None };
        let due = platter.claim().is_none()
            && drive.can_release(slot)
            && (drive.is_verify_only() || !is_wanted(platter));
        if !due {
            return None;
        }
        let to = if self.is_open(home) {
            home
        } else {
            self.free_spare(self.floor.dock(index, self.floor.slot(home).shelf))?
        };
        let (from, to) = (Source::Drive(index, slot), Destination::Storage(to));
        Some(Errand { kind: TripKind::Return, platter: key, from, to })
    }

    /// Returns the fetch of the next platter of `owner` to a drive of `group`.
    pub(crate) fn fetch_errand(
        &self,
        group: u16,
        owner: u16,
        found: &mut Findings,
    ) -> Option<Errand> {
        if self.partitions.group(owner).queue().is_empty() {
            return None;
        }
        if !self.has_room(group) {
            return None;
        }
        let key = self.choose_platter(group, owner, found)?;
        let Place::Storage(from) = self.shelf.get(key).place() else {
            unreachable!("only platters in slots wait to be fetched");
        };
        let (drive, slot) = self.nearest_drive(group, self.floor.slot(from))?;
        let (from, to) = (Source::Storage(from), Destination::Drive(drive, slot));
        Some(Errand { kind: TripKind::Fetch, platter: key, from, to })
    }

    /// Chooses the platter to fetch among those that wait for a group: the most urgent that can be
    /// reached, or the nearest of the most urgent few. These few are a batch that is served
    /// completely before the next is taken, so that no platter is passed over by more than a batch,
    /// nor for longer than the age bound.
    fn choose_platter(&self, group: u16, owner: u16, found: &mut Findings) -> Option<PlatterKey> {
        let partition = self.partitions.group(owner);
        let near = self.nearest_idle_position(group);
        let old = self.sequence.now().since(partition.batch_began()) >= self.policy.age_bound;
        let mut first: Option<PlatterKey> = None;
        let mut best: Option<(u64, PlatterKey)> = None;
        let mut last = None;
        let mut seen = 0;
        for &(age, key) in partition.queue() {
            if self.policy.hold.get() > 0.0 && self.hold_end(key) > self.sequence.now() {
                break;
            }
            let in_batch = age <= partition.batch_end();
            if best.is_some() && !in_batch && (seen >= self.policy.candidates || last.is_none()) {
                break;
            }
            if !in_batch && first.is_some_and(|first| self.can_wait_for(key, first)) {
                break;
            }
            let Place::Storage(slot) = self.shelf.get(key).place() else { continue };
            if self.zones.is_obscured(slot) {
                found.passed_over = true;
                continue;
            }
            let cost = near.map_or(0, |near| near.cost_to(self.floor.slot(slot)));
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, key));
            }
            if first.is_none() {
                first = Some(key);
                if old && in_batch {
                    break;
                }
            }
            if !in_batch {
                last = Some(age);
                seen += 1;
            }
        }
        let (first, (_, best)) = (first?, best?);
        found.batch = last.map(|age| (owner, age));
        if best != first && last.is_none() {
            let waits = self.sequence.now().since(partition.batch_began()).as_nanos();
            found.passed_over_ns = found.passed_over_ns.max(waits);
        }
        Some(best)
    }

    /// Whether a platter has a longer objective than another and is due later by more than the
    /// other's whole objective: then it does not join its batch. Never true if all reads have one
    /// objective.
    fn can_wait_for(&self, key: PlatterKey, first: PlatterKey) -> bool {
        let [late, early] = [key, first].map(|key| self.shelf.get(key).first_read());
        let (Some(late), Some(early)) = (late, early) else { return false };
        let [longer, shorter] = [late, early].map(|read| read.age.due.since(read.arrived));
        longer > shorter && late.age.due.since(early.age.due) > shorter
    }

    fn nearest_idle_position(&self, group: u16) -> Option<Position> {
        let mut shuttles = self.partitions.group(group).shuttles().iter();
        let idle = shuttles.find(|shuttle| self.fleet.get(**shuttle).is_ready());
        idle.map(|shuttle| self.fleet.get(*shuttle).position())
    }

    /// Returns the errand for the verified platter that has waited longest for its slot.
    fn shelve_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        let slot = DriveSlot::Second;
        let ready = self.partitions.group(group).drives().iter().filter_map(|&at| {
            let drive = self.drives.get(at);
            let key = drive.bay(slot).platter()?;
            let platter = self.shelf.get(key);
            let Stage::Storing { age, home, .. } = platter.stage() else { return None };
            let ready = platter.claim().is_none() && drive.can_release(slot) && self.is_open(home);
            found.passed_over |= ready && self.zones.is_obscured(home);
            (ready && !self.zones.is_obscured(home)).then_some((age, key, at, home))
        });
        let (_, key, at, home) = ready.min_by_key(|(age, ..)| *age)?;
        let (from, to) = (Source::Drive(at, slot), Destination::Storage(home));
        Some(Errand { kind: TripKind::Shelve, platter: key, from, to })
    }

    /// Returns the errand for the oldest new platter of the panel.
    fn collect_errand(&self, group: u16) -> Option<Errand> {
        let slot = DriveSlot::Second;
        let partition = self.partitions.group(group);
        let (_, key) = self.arrivals.first(partition.panel())?;
        let (from, at) = match self.shelf.get(key).place() {
            Place::EjectBay(panel) => (Source::EjectBay(panel), self.floor.eject_bay(panel)),
            Place::Storage(spare) => (Source::Storage(spare), self.floor.slot(spare)),
            Place::Drive(..) | Place::Shuttle(_) => {
                unreachable!("only new platters outside drives are collected")
            }
        };
        if self.damaged && !self.has_way(partition.panel(), at) {
            return None;
        }
        // If customers may have second slots, only a slot that is kept from them.
        let drive = self.nearest_with(group, slot, at, self.has_verify_deadline())?;
        let to = Destination::Drive(drive, slot);
        Some(Errand { kind: TripKind::Collect, platter: key, from, to })
    }

    /// Returns the errand for a platter in a spare slot whose home can be reached again.
    fn displaced_errand(&self, group: u16, found: &mut Findings) -> Option<Errand> {
        let partition = self.partitions.group(group);
        self.shelf.displaced().find_map(|key| {
            let platter = self.shelf.get(key);
            let (Place::Storage(at), Some(home)) = (platter.place(), platter.home()) else {
                return None;
            };
            let due = platter.claim().is_none()
                && platter.reads().is_empty()
                && self.floor.slot(at).panel == partition.panel()
                && self.is_open(home)
                && self.is_open(at);
            found.passed_over |= due && self.zones.is_obscured(at);
            let due = due && !self.zones.is_obscured(at);
            let (from, to) = (Source::Storage(at), Destination::Storage(home));
            due.then_some(Errand { kind: TripKind::Return, platter: key, from, to })
        })
    }

    /// Returns the nearest free spare slot.
    fn free_spare(&self, near: Position) -> Option<SlotIndex> {
        let shape = self.shape();
        let first = u32::from(shape.slots_per_shelf - shape.spare_slots_per_shelf);
        let zones = 0..shape.zone_count();
        let spares = zones.flat_map(|zone| {
            let start = zone * u32::from(shape.slots_per_shelf);
            (first..u32::from(shape.slots_per_shelf)).map(move |at| SlotIndex::new(start + at))
        });
        let free = spares.filter(|slot| {
            self.floor.slot(*slot).panel == near.panel
                && self.shelf.is_spare_free(*slot)
                && self.is_open(*slot)
                && self.can_reach_slot(near, *slot)
        });
        free.min_by_key(|slot| near.cost_to(self.floor.slot(*slot)))
    }

    /// Whether a drive of a group has room for a customer's platter.
    pub(crate) fn has_room(&self, group: u16) -> bool {
        let mut drives = self.partitions.group(group).drives().iter();
        drives.any(|drive| self.free_slot(*drive).is_some())
    }

    /// Returns the slot of a drive that has room for a customer's platter.
    fn free_slot(&self, index: DriveIndex) -> Option<DriveSlot> {
        let drive = self.drives.get(index);
        if drive.is_verify_only() {
            return None;
        }
        let slots = if drive.is_slot_kept() { 1 } else { usize::from(self.policy.customer_slots) };
        DriveSlot::BOTH.iter().take(slots).copied().find(|slot| drive.can_accept(*slot))
    }

    /// Returns the drive with room that is reached soonest; of those without a rival, and of two as
    /// near an empty one before a busy one.
    fn nearest_drive(&self, group: u16, from: Position) -> Option<(DriveIndex, DriveSlot)> {
        let drives = self.partitions.group(group).drives().iter().copied();
        let free_slots = drives.filter_map(|drive| self.free_slot(drive).map(|slot| (drive, slot)));
        let free_slots =
            free_slots.map(|(drive, slot)| (self.has_rival(group, drive), drive, slot));
        let nearest = free_slots.min_by_key(|(rival, drive, slot)| {
            (*rival, from.cost_to(self.floor.dock(*drive, from.shelf)), *slot)
        });
        nearest.map(|(_, drive, slot)| (drive, slot))
    }

    /// Whether another group wants a drive more urgently.
    fn has_rival(&self, group: u16, drive: DriveIndex) -> bool {
        let sharing = self.partitions.groups_of_drive(drive);
        let own = self.partitions.group(group).queue().first();
        sharing.iter().filter(|other| **other != group).any(|other| {
            let first = self.partitions.group(*other).queue().first();
            first.is_some_and(|(age, _)| own.is_none_or(|(mine, _)| age < mine))
        })
    }

    /// Returns the drive with an empty slot that is reached soonest; with `kept_only`, only among
    /// those that keep the slot.
    fn nearest_with(
        &self,
        group: u16,
        slot: DriveSlot,
        from: Position,
        kept_only: bool,
    ) -> Option<DriveIndex> {
        let drives = self.partitions.group(group).drives().iter().copied();
        let empty = drives.filter(|drive| {
            let drive = self.drives.get(*drive);
            drive.can_accept(slot) && (drive.is_slot_kept() || !kept_only)
        });
        empty.min_by_key(|drive| from.cost_to(self.floor.dock(*drive, from.shelf)))
    }

    /// Returns the same for the drives of all groups of a panel.
    fn nearest_on_panel(&self, slot: DriveSlot, from: Position) -> Option<DriveIndex> {
        let groups = self.partitions.groups().iter().filter(|group| group.panel() == from.panel);
        let drives = groups.flat_map(|group| group.drives().iter().copied());
        let empty = drives.filter(|drive| self.drives.get(*drive).can_accept(slot));
        empty.min_by_key(|drive| (from.cost_to(self.floor.dock(*drive, from.shelf)), *drive))
    }

    /// Whether broken machines leave a slot open to some shuttle.
    pub(crate) fn is_open(&self, slot: SlotIndex) -> bool {
        if !self.damaged {
            return true;
        }
        let at = self.floor.slot(slot);
        !self.fleet.traffic().is_barred(&self.fleet.traffic().footprint(at))
            && self.has_way(at.panel, at)
    }

    /// Whether broken machines leave a way to a slot.
    fn can_reach_slot(&self, from: Position, slot: SlotIndex) -> bool {
        !self.damaged || self.fleet.traffic().shelf_around(from, self.floor.slot(slot)).is_some()
    }

    /// Whether a working shuttle of a panel can reach a position.
    pub(crate) fn has_way(&self, panel: PanelIndex, to: Position) -> bool {
        self.fleet.indexed().any(|(index, shuttle)| {
            self.floor.panel_of(index) == panel
                && !shuttle.is_broken()
                && self.fleet.traffic().shelf_around(shuttle.position(), to).is_some()
        })
    }
}
