//! Simulated machines for the tests: they panic at every command that no machine could carry out,
//! and track by themselves where each platter is and what each shuttle covers.
//!
//! Shuttles have bodies here. Where a slot is and what a body covers is computed from the shape
//! alone, not with `floor.rs` or `traffic.rs`; a moving body covers its whole way.

use std::collections::BTreeMap;

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};

use crate::control::floor::Floor;
use crate::control::{
    Action, Destination, DriveSlot, Fault, LibraryShape, Machine, PanelIndex, Source,
};

/// Panel, shelf, and an interval on it in micrometers.
pub(super) type Interval = (u16, u16, u64, u64);

#[derive(Clone, Debug)]
pub(super) struct World {
    shape: LibraryShape,
    /// Rail position and shelves of each drive.
    docks: Vec<(u16, u64, std::ops::Range<u16>)>,
    pub(super) storage: BTreeMap<SlotIndex, PlatterId>,
    pub(super) ejected: BTreeMap<PlatterId, PanelIndex>,
    pub(super) shuttles: Vec<RealShuttle>,
    pub(super) drives: Vec<RealDrive>,
    /// Tracks verified of each new platter.
    pub(super) verified: BTreeMap<PlatterId, u32>,
    rails: Vec<Interval>,
    /// Whether shuttles exist; without them platters appear in drives by themselves.
    pub(super) has_shuttles: bool,
}

#[derive(Clone, Debug)]
pub(super) struct RealShuttle {
    pub(super) panel: u16,
    pub(super) rail: u64,
    pub(super) shelf: u16,
    pub(super) picker: Option<PlatterId>,
    pub(super) broken: bool,
    /// Its current action.
    doing: Option<Action>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RealDrive {
    pub(super) bays: BTreeMap<DriveSlot, (PlatterId, Mounted)>,
    facing: Option<DriveSlot>,
    head: Option<TrackIndex>,
    pub(super) broken: bool,
    doing: Option<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mounted {
    No,
    Yes,
}

impl World {
    pub(super) fn new(floor: &Floor) -> Self {
        let shape = floor.shape().clone();
        let count = shape.panels * shape.shuttles_per_panel;
        let shuttles = (0..count).map(|index| {
            let at = floor.start(ShuttleIndex::new(index));
            RealShuttle {
                panel: at.panel.get(),
                rail: at.rail.get(),
                shelf: at.shelf.get(),
                picker: None,
                broken: false,
                doing: None,
            }
        });
        let docks = floor.drives().iter();
        let docks =
            docks.map(|site| (site.panel.get(), site.rail.get(), site.shelves.clone())).collect();
        let world = Self {
            docks,
            storage: BTreeMap::new(),
            ejected: BTreeMap::new(),
            shuttles: shuttles.collect(),
            drives: floor.drives().iter().map(|_| RealDrive::default()).collect(),
            verified: BTreeMap::new(),
            rails: Vec::new(),
            has_shuttles: true,
            shape,
        };
        world.assert_apart();
        world
    }

    /// Asserts that every machine is idle and every platter in a slot.
    pub(super) fn assert_at_rest(&self) {
        for (index, shuttle) in self.shuttles.iter().enumerate() {
            assert!(shuttle.picker.is_none() && shuttle.doing.is_none(), "{index}: {shuttle:?}");
        }
        for (index, drive) in self.drives.iter().enumerate() {
            assert!(drive.bays.is_empty() && drive.doing.is_none(), "{index}: {drive:?}");
        }
        assert!(self.ejected.is_empty(), "platters are left in the eject bay: {:?}", self.ejected);
    }

    /// Returns where a shuttle stands to reach a slot: the slots of a shelf share the width of
    /// their rack.
    fn slot_position(&self, slot: SlotIndex) -> (u16, u64, u16) {
        let shape = &self.shape;
        let address = shape.address(slot).expect("there is such a slot");
        let racks_before = u64::from(1 + shape.read_racks.div_ceil(2) + address.rack.get());
        let width = u64::from(shape.rack_width_mm) * 1000;
        let step = width / u64::from(shape.slots_per_shelf);
        let rail = racks_before * width + u64::from(address.position) * step + step / 2;
        (address.panel.get(), rail, address.shelf.get())
    }

    /// Returns what a shuttle covers, standing or on its way.
    fn body(&self, shuttle: &RealShuttle) -> Vec<Interval> {
        let half = u64::from(self.shape.shuttle_width_mm) * 500;
        let interval = |shelf: u16, a: u64, b: u64| {
            (shuttle.panel, shelf, a.min(b).saturating_sub(half), a.max(b) + half)
        };
        let (rail, shelf) = (shuttle.rail, shuttle.shelf);
        match shuttle.doing {
            Some(Action::Move { to, .. }) => vec![interval(shelf, rail, to.get())],
            Some(Action::Crab { to, .. }) => {
                vec![interval(shelf, rail, rail), interval(to.get(), rail, rail)]
            }
            _ => vec![interval(shelf, rail, rail)],
        }
    }

    /// Updates the position of a moving shuttle, which no longer covers what is behind it.
    pub(super) fn passed(&mut self, shuttle: ShuttleIndex, at: u64) {
        self.shuttles[shuttle.as_usize()].rail = at;
    }

    /// Asserts that no two bodies overlap.
    fn assert_apart(&self) {
        let bodies: Vec<_> = self.shuttles.iter().map(|shuttle| self.body(shuttle)).collect();
        for (index, body) in bodies.iter().enumerate() {
            for (other, other_body) in bodies.iter().enumerate().skip(index + 1) {
                for interval in body {
                    let hit = other_body.iter().find(|candidate| overlap(interval, candidate));
                    assert_eq!(hit, None, "shuttles {index} and {other} collide at {interval:?}");
                }
            }
        }
    }

    fn assert_stands(&self, shuttle: ShuttleIndex, at: (u16, u64, u16)) {
        let real = &self.shuttles[shuttle.as_usize()];
        assert_eq!((real.panel, real.shelf), (at.0, at.2), "shuttle {shuttle} stands elsewhere");
        // Slot positions are rounded to whole micrometers in another order here.
        let off = real.rail.abs_diff(at.1);
        assert!(off <= 4096, "shuttle {shuttle} stands {off} um off");
    }

    fn assert_docked(&self, shuttle: ShuttleIndex, drive: DriveIndex) {
        let (panel, rail, shelves) = &self.docks[drive.as_usize()];
        let real = &self.shuttles[shuttle.as_usize()];
        assert_eq!((real.panel, real.rail), (*panel, *rail), "shuttle {shuttle} is not docked");
        assert!(shelves.contains(&real.shelf), "shuttle {shuttle} does not reach {drive}");
    }

    fn eject_bay_position(&self, panel: PanelIndex) -> (u16, u64, u16) {
        let rail = u64::from(self.shape.rack_width_mm) * 500;
        (panel.get(), rail, self.shape.shelves_per_panel / 2)
    }

    /// Starts a command: its machine must be free and able to begin.
    pub(super) fn start(&mut self, action: &Action) {
        assert!(!self.is_broken(action), "{action:?} is given to a broken machine");
        let doing = self.doing(action);
        assert!(doing.is_none(), "{action:?} is given to a machine at work: {doing:?}");
        *doing = Some(*action);
        match *action {
            Action::Move { shuttle, from, .. } => {
                assert_eq!(self.shuttles[shuttle.as_usize()].rail, from.get());
                self.assert_way(shuttle);
            }
            Action::Crab { shuttle, from, to } => {
                assert_eq!(self.shuttles[shuttle.as_usize()].shelf, from.get());
                assert_eq!(from.get().abs_diff(to.get()), 1, "one shelf at a time");
                assert!(to.get() < self.shape.shelves_per_panel, "there is no shelf {to}");
                self.assert_way(shuttle);
            }
            Action::Pick { shuttle, platter, from } => {
                let picker = self.shuttles[shuttle.as_usize()].picker;
                assert_eq!(
                    picker, None,
                    "shuttle {shuttle} picks {platter} while it carries another"
                );
                match from {
                    Source::EjectBay(panel) => {
                        self.assert_stands(shuttle, self.eject_bay_position(panel));
                    }
                    Source::Storage(slot) => self.assert_stands(shuttle, self.slot_position(slot)),
                    Source::Drive(drive, _) => self.assert_docked(shuttle, drive),
                }
            }
            Action::Place { shuttle, platter, to } => {
                let picker = self.shuttles[shuttle.as_usize()].picker;
                assert_eq!(picker, Some(platter), "shuttle {shuttle} places what it has");
                match to {
                    Destination::Storage(slot) => {
                        self.assert_stands(shuttle, self.slot_position(slot));
                    }
                    Destination::Drive(drive, _) => self.assert_docked(shuttle, drive),
                }
            }
            Action::Charge { shuttle } => {
                let at = &self.shuttles[shuttle.as_usize()];
                let mut docks = self.docks.iter();
                let docked = docks.any(|(panel, rail, shelves)| {
                    (at.panel, at.rail) == (*panel, *rail) && shelves.contains(&at.shelf)
                });
                assert!(docked, "shuttle {shuttle} charges where there is no power: {at:?}");
            }
            Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. } => self.start_drive(action),
        }
    }

    fn start_drive(&mut self, action: &Action) {
        match *action {
            Action::Mount { drive, slot, platter } if self.has_shuttles => {
                assert_eq!(self.bay(drive, slot), Some((platter, Mounted::No)));
            }
            Action::Mount { drive, slot, platter } => self.appear(drive, slot, platter),
            Action::Unmount { drive, slot, platter } => {
                assert_eq!(self.bay(drive, slot), Some((platter, Mounted::Yes)));
            }
            Action::Switch { drive, to } => {
                assert!(matches!(self.bay(drive, to), Some((_, Mounted::Yes))));
                assert_ne!(
                    self.drives[drive.as_usize()].facing,
                    Some(to),
                    "a switch to a slot without a mounted platter"
                );
            }
            Action::Seek { drive, platter, .. } => self.assert_facing(drive, platter),
            Action::Read { drive, platter, tracks, .. } => {
                self.assert_facing(drive, platter);
                let head = self.drives[drive.as_usize()].head;
                assert_eq!(head, Some(tracks.first), "drive {drive} is at another track");
            }
            Action::VerifyPass { drive, platter, tracks, .. } => {
                self.assert_facing(drive, platter);
                let facing = self.drives[drive.as_usize()].facing;
                assert_eq!(facing, Some(DriveSlot::Second), "new platters use the second slot");
                let done = self.verified.get(&platter).copied().unwrap_or(0);
                assert_eq!(tracks.first.get(), done, "no track is skipped or verified twice");
            }
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. }
            | Action::Charge { .. } => unreachable!("shuttles do this"),
        }
    }

    /// Puts a platter into the drive as soon as it is mounted, without shuttles, and takes it away
    /// as soon as another is.
    fn appear(&mut self, drive: DriveIndex, slot: DriveSlot, platter: PlatterId) {
        self.storage.retain(|_, stored| *stored != platter);
        self.ejected.remove(&platter);
        let before = self.drives[drive.as_usize()].bays.insert(slot, (platter, Mounted::No));
        let released = before.is_none_or(|(_, mounted)| mounted == Mounted::No);
        assert!(released, "drive {drive} has {before:?} mounted");
    }

    /// Completes a command.
    pub(super) fn complete(&mut self, action: &Action, tracks_done: Option<u32>) {
        *self.doing(action) = None;
        match *action {
            Action::Move { shuttle, to, .. } => {
                self.shuttles[shuttle.as_usize()].rail = to.get();
            }
            Action::Crab { shuttle, to, .. } => {
                self.shuttles[shuttle.as_usize()].shelf = to.get();
            }
            Action::Charge { .. } => {}
            Action::Pick { shuttle, platter, from } => {
                self.take(platter, from);
                self.shuttles[shuttle.as_usize()].picker = Some(platter);
            }
            Action::Place { shuttle, platter, to } => {
                self.put(platter, to);
                self.shuttles[shuttle.as_usize()].picker = None;
            }
            Action::Mount { drive, slot, platter } => {
                let drive = &mut self.drives[drive.as_usize()];
                let is_only = drive.bays.values().all(|(_, mounted)| *mounted == Mounted::No);
                drive.bays.insert(slot, (platter, Mounted::Yes));
                if is_only {
                    (drive.facing, drive.head) = (Some(slot), None);
                }
            }
            Action::Unmount { drive, slot, platter } => {
                let drive = &mut self.drives[drive.as_usize()];
                drive.bays.insert(slot, (platter, Mounted::No));
                if drive.facing == Some(slot) {
                    (drive.facing, drive.head) = (None, None);
                }
            }
            Action::Switch { drive, to } => {
                let drive = &mut self.drives[drive.as_usize()];
                (drive.facing, drive.head) = (Some(to), None);
            }
            Action::Seek { drive, track, .. } => {
                self.drives[drive.as_usize()].head = Some(track);
            }
            Action::Read { drive, tracks, .. } => {
                self.drives[drive.as_usize()].head = tracks.end();
            }
            Action::VerifyPass { drive, platter, .. } => {
                self.drives[drive.as_usize()].head = None;
                *self.verified.entry(platter).or_default() += tracks_done.unwrap();
            }
        }
    }

    /// Whether a platter is anywhere.
    pub(super) fn has(&self, platter: PlatterId) -> bool {
        self.ejected.contains_key(&platter)
            || self.storage.values().any(|stored| *stored == platter)
            || self.shuttles.iter().any(|shuttle| shuttle.picker == Some(platter))
            || self.drives.iter().any(|drive| drive.bays.values().any(|bay| bay.0 == platter))
    }

    /// Whether a shuttle reaches into a storage slot whose platter is gone.
    pub(super) fn lacks(&self, action: &Action) -> bool {
        let Action::Pick { platter, from: Source::Storage(slot), .. } = action else {
            return false;
        };
        self.storage.get(slot) != Some(platter)
    }

    /// Fails a command without any effect. Returns its machine if that is broken now.
    pub(super) fn fail(&mut self, action: &Action, fault: Fault) -> Option<Machine> {
        let machine = machine_of(action);
        let stuck = matches!(action, Action::Unmount { .. } | Action::Switch { .. });
        let broken = stuck || fault_breaks(fault);
        if broken {
            self.break_down(machine);
            return Some(machine);
        }
        *self.doing(action) = None;
        if let (Action::Pick { platter, from, .. }, Fault::PlatterMissing) = (*action, fault) {
            // Another had taken it away before, for good.
            if !self.lacks(action) {
                self.take(platter, from);
            }
        }
        if let Action::Seek { drive, .. } | Action::Read { drive, .. } = *action {
            self.drives[drive.as_usize()].head = None;
        }
        None
    }

    /// Stops everything; operations in progress had no effect.
    pub(super) fn stop_all(&mut self) {
        self.shuttles.iter_mut().for_each(|shuttle| shuttle.doing = None);
        for drive in &mut self.drives {
            (drive.doing, drive.facing, drive.head) = (None, None, None);
        }
    }

    /// Stops a machine where it is; a moving shuttle may be anywhere on its way.
    pub(super) fn break_down(&mut self, machine: Machine) {
        match machine {
            Machine::Shuttle(index) => self.shuttles[index.as_usize()].broken = true,
            Machine::Drive(index) => {
                let drive = &mut self.drives[index.as_usize()];
                drive.broken = true;
                drive.doing = None;
            }
            Machine::Rail { panel, shelf, from, to } => {
                self.rails.push((panel.get(), shelf.get(), from.get(), to.get()));
            }
        }
    }

    /// Repairs a machine, as if it had not begun its last operation.
    pub(super) fn repair(&mut self, machine: Machine) {
        match machine {
            Machine::Shuttle(index) => {
                let shuttle = &mut self.shuttles[index.as_usize()];
                (shuttle.broken, shuttle.doing) = (false, None);
            }
            Machine::Drive(index) => {
                let drive = &mut self.drives[index.as_usize()];
                (drive.broken, drive.facing, drive.head) = (false, None, None);
                drive.bays.values_mut().for_each(|(_, mounted)| *mounted = Mounted::No);
            }
            Machine::Rail { panel, shelf, from, to } => {
                let interval = (panel.get(), shelf.get(), from.get(), to.get());
                let at = self.rails.iter().position(|rail| *rail == interval);
                self.rails.swap_remove(at.expect("only broken rails are repaired"));
            }
        }
    }

    /// Returns the broken machines.
    pub(super) fn broken(&self) -> Vec<Machine> {
        let shuttles = (0..).map(ShuttleIndex::new).zip(&self.shuttles);
        let shuttles = shuttles.filter(|(_, s)| s.broken).map(|(i, _)| Machine::Shuttle(i));
        let drives = (0..).map(DriveIndex::new).zip(&self.drives);
        let drives = drives.filter(|(_, d)| d.broken).map(|(i, _)| Machine::Drive(i));
        let rails = self.rails.iter().map(|&(panel, shelf, from, to)| Machine::Rail {
            panel: PanelIndex::new(panel),
            shelf: crate::control::ShelfIndex::new(shelf),
            from: crate::control::RailPosition::new(from),
            to: crate::control::RailPosition::new(to),
        });
        shuttles.chain(drives).chain(rails).collect()
    }

    /// Asserts that the way of a shuttle is free and enters no broken rail.
    fn assert_way(&self, shuttle: ShuttleIndex) {
        self.assert_apart();
        let real = &self.shuttles[shuttle.as_usize()];
        let entered = self.body(real).into_iter().filter(|(_, shelf, ..)| {
            !matches!(real.doing, Some(Action::Crab { .. })) || *shelf != real.shelf
        });
        for interval in entered {
            let rail = self.rails.iter().find(|rail| overlap(rail, &interval));
            assert_eq!(rail, None, "shuttle {shuttle} enters a broken rail at {interval:?}");
        }
    }

    fn take(&mut self, platter: PlatterId, from: Source) {
        match from {
            Source::EjectBay(panel) => {
                assert_eq!(self.ejected.remove(&platter), Some(panel), "{platter} is not ejected");
            }
            Source::Storage(slot) => {
                assert_eq!(self.storage.remove(&slot), Some(platter), "{platter} is not in {slot}");
            }
            Source::Drive(drive, slot) => {
                let bay = self.drives[drive.as_usize()].bays.remove(&slot);
                assert_eq!(bay, Some((platter, Mounted::No)), "{platter} is not released");
            }
        }
    }

    fn put(&mut self, platter: PlatterId, to: Destination) {
        match to {
            Destination::Storage(slot) => {
                let before = self.storage.insert(slot, platter);
                assert_eq!(before, None, "{platter} is pushed into a full slot {slot}");
            }
            Destination::Drive(drive, slot) => {
                let bays = &mut self.drives[drive.as_usize()].bays;
                let before = bays.insert(slot, (platter, Mounted::No));
                assert_eq!(before, None, "{platter} is pushed into a full drive {drive}");
            }
        }
    }

    /// Asserts that the platter is mounted and the optics face it.
    fn assert_facing(&self, drive: DriveIndex, platter: PlatterId) {
        let real = &self.drives[drive.as_usize()];
        let faced = real.facing.and_then(|slot| real.bays.get(&slot));
        assert_eq!(faced, Some(&(platter, Mounted::Yes)), "drive {drive} faces another platter");
    }

    fn bay(&self, drive: DriveIndex, slot: DriveSlot) -> Option<(PlatterId, Mounted)> {
        self.drives[drive.as_usize()].bays.get(&slot).copied()
    }

    fn is_broken(&self, action: &Action) -> bool {
        match machine_of(action) {
            Machine::Shuttle(index) => self.shuttles[index.as_usize()].broken,
            Machine::Drive(index) => self.drives[index.as_usize()].broken,
            Machine::Rail { .. } => unreachable!("rails do nothing"),
        }
    }

    fn doing(&mut self, action: &Action) -> &mut Option<Action> {
        match machine_of(action) {
            Machine::Shuttle(index) => &mut self.shuttles[index.as_usize()].doing,
            Machine::Drive(index) => &mut self.drives[index.as_usize()].doing,
            Machine::Rail { .. } => unreachable!("rails do nothing"),
        }
    }
}

const fn fault_breaks(fault: Fault) -> bool {
    matches!(fault, Fault::ShuttleBroken | Fault::BatteryFlat | Fault::DriveBroken)
}

/// Returns the machine that carries out an operation.
pub(super) fn machine_of(action: &Action) -> Machine {
    match *action {
        Action::Move { shuttle, .. }
        | Action::Crab { shuttle, .. }
        | Action::Pick { shuttle, .. }
        | Action::Place { shuttle, .. }
        | Action::Charge { shuttle } => Machine::Shuttle(shuttle),
        Action::Mount { drive, .. }
        | Action::Unmount { drive, .. }
        | Action::Switch { drive, .. }
        | Action::Seek { drive, .. }
        | Action::Read { drive, .. }
        | Action::VerifyPass { drive, .. } => Machine::Drive(drive),
    }
}

fn overlap(a: &Interval, b: &Interval) -> bool {
    (a.0, a.1) == (b.0, b.1) && a.2 < b.3 && b.2 < a.3
}
