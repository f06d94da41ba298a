//! The machines as they really are, in the tests: it panics at every command that no machine could
//! carry out, and knows by itself where each platter is.

use std::collections::BTreeMap;

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};

use crate::floor::{Floor, Position};
use crate::{Action, Destination, DriveSlot, Fault, PanelIndex, Source};

pub(super) struct World {
    pub(super) storage: BTreeMap<SlotIndex, PlatterId>,
    ejected: BTreeMap<PlatterId, PanelIndex>,
    shuttles: Vec<RealShuttle>,
    drives: Vec<RealDrive>,
    /// Tracks verified of each new platter.
    verified: BTreeMap<PlatterId, u32>,
}

struct RealShuttle {
    at: Position,
    hand: Option<PlatterId>,
    busy: bool,
}

#[derive(Default)]
struct RealDrive {
    bays: BTreeMap<DriveSlot, (PlatterId, Mounted)>,
    facing: Option<DriveSlot>,
    head: Option<TrackIndex>,
    busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mounted {
    No,
    Yes,
}

impl World {
    pub(super) fn new(floor: &Floor) -> Self {
        let shuttle = |index| RealShuttle {
            at: floor.start(ShuttleIndex::new(index)),
            hand: None,
            busy: false,
        };
        let count = u16::try_from(floor.partitions().len()).unwrap();
        Self {
            storage: BTreeMap::new(),
            ejected: BTreeMap::new(),
            shuttles: (0..count).map(shuttle).collect(),
            drives: floor.drives().iter().map(|_| RealDrive::default()).collect(),
            verified: BTreeMap::new(),
        }
    }

    pub(super) fn eject(&mut self, panel: PanelIndex, platter: PlatterId) {
        self.ejected.insert(platter, panel);
    }

    pub(super) fn assert_at_rest(&self) {
        assert!(self.shuttles.iter().all(|shuttle| shuttle.hand.is_none() && !shuttle.busy));
        assert!(self.drives.iter().all(|drive| drive.bays.is_empty() && !drive.busy));
        assert!(self.ejected.is_empty(), "platters are left in the eject bay");
    }

    /// A command is given: its machine must be free and able to begin.
    pub(super) fn start(&mut self, floor: &Floor, action: &Action) {
        let busy = self.busy(action);
        assert!(!*busy, "{action:?} is given to a machine at work");
        *busy = true;
        match *action {
            Action::Move { shuttle, from, .. } => assert_eq!(self.at(shuttle).rail, from),
            Action::Crab { shuttle, from, to } => {
                assert_eq!(self.at(shuttle).shelf, from);
                assert_eq!(from.get().abs_diff(to.get()), 1, "one shelf at a time");
            }
            Action::Pick { shuttle, platter, from } => {
                let hand = self.shuttles[shuttle.as_usize()].hand;
                assert_eq!(hand, None, "shuttle {shuttle} picks {platter} with its hand full");
                let place = match from {
                    Source::EjectBay(panel) => floor.eject_bay(panel),
                    Source::Storage(slot) => floor.slot(slot).unwrap(),
                    Source::Drive(drive, _) => floor.dock(drive, shuttle, self.at(shuttle).shelf),
                };
                assert_eq!(self.at(shuttle), place, "shuttle {shuttle} stands elsewhere");
            }
            Action::Place { shuttle, platter, to } => {
                let hand = self.shuttles[shuttle.as_usize()].hand;
                assert_eq!(hand, Some(platter), "shuttle {shuttle} places what it has");
                let place = match to {
                    Destination::Storage(slot) => floor.slot(slot).unwrap(),
                    Destination::Drive(drive, _) => {
                        floor.dock(drive, shuttle, self.at(shuttle).shelf)
                    }
                };
                assert_eq!(self.at(shuttle), place, "shuttle {shuttle} stands elsewhere");
            }
            Action::Mount { drive, slot, platter } => {
                assert_eq!(self.bay(drive, slot), Some((platter, Mounted::No)));
            }
            Action::Unmount { drive, slot, platter } => {
                assert_eq!(self.bay(drive, slot), Some((platter, Mounted::Yes)));
            }
            Action::Switch { drive, to } => {
                assert!(matches!(self.bay(drive, to), Some((_, Mounted::Yes))));
                assert_ne!(self.drives[drive.as_usize()].facing, Some(to), "a switch for nothing");
            }
            Action::Seek { drive, platter, .. } => {
                self.assert_facing(drive, DriveSlot::Customer, platter);
            }
            Action::Read { drive, platter, tracks, .. } => {
                self.assert_facing(drive, DriveSlot::Customer, platter);
                let head = self.drives[drive.as_usize()].head;
                assert_eq!(head, Some(tracks.first), "drive {drive} is at another track");
            }
            Action::VerifyPass { drive, platter, tracks, .. } => {
                self.assert_facing(drive, DriveSlot::Verification, platter);
                let done = self.verified.get(&platter).copied().unwrap_or(0);
                assert_eq!(tracks.first.get(), done, "no track is skipped or verified twice");
            }
        }
    }

    /// A command is carried out.
    pub(super) fn complete(&mut self, floor: &Floor, action: &Action, tracks_done: Option<u32>) {
        *self.busy(action) = false;
        match *action {
            Action::Move { shuttle, to, .. } => self.shuttles[shuttle.as_usize()].at.rail = to,
            Action::Crab { shuttle, to, .. } => self.shuttles[shuttle.as_usize()].at.shelf = to,
            Action::Pick { shuttle, platter, from } => {
                self.take(platter, from);
                self.shuttles[shuttle.as_usize()].hand = Some(platter);
            }
            Action::Place { shuttle, platter, to } => {
                self.put(floor, platter, to);
                self.shuttles[shuttle.as_usize()].hand = None;
            }
            Action::Mount { drive, slot, platter } => {
                let drive = &mut self.drives[drive.as_usize()];
                let alone = drive.bays.values().all(|(_, mounted)| *mounted == Mounted::No);
                drive.bays.insert(slot, (platter, Mounted::Yes));
                if alone {
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
            Action::VerifyPass { platter, .. } => {
                *self.verified.entry(platter).or_default() += tracks_done.unwrap();
            }
        }
    }

    /// Whether a shuttle reaches into a storage slot from which the platter is gone.
    pub(super) fn lacks(&self, action: &Action) -> bool {
        let Action::Pick { platter, from: Source::Storage(slot), .. } = action else {
            return false;
        };
        self.storage.get(slot) != Some(platter)
    }

    /// The machine stops where it is.
    pub(super) fn stop(&mut self, action: &Action) {
        *self.busy(action) = false;
    }

    /// A command failed.
    pub(super) fn fail(&mut self, action: &Action, fault: Fault) {
        self.stop(action);
        if let (Action::Pick { platter, from, .. }, Fault::PlatterMissing) = (*action, fault) {
            // Somebody took it away before, for good.
            if !self.lacks(action) {
                self.take(platter, from);
            }
        }
        if let Action::Seek { drive, .. } | Action::Read { drive, .. } = *action {
            self.drives[drive.as_usize()].head = None;
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

    fn put(&mut self, floor: &Floor, platter: PlatterId, to: Destination) {
        match to {
            Destination::Storage(slot) => {
                assert!(floor.slot(slot).is_some(), "there is no slot {slot}");
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

    fn assert_facing(&self, drive: DriveIndex, slot: DriveSlot, platter: PlatterId) {
        assert_eq!(self.bay(drive, slot), Some((platter, Mounted::Yes)));
        assert_eq!(self.drives[drive.as_usize()].facing, Some(slot), "drive {drive} looks away");
    }

    fn bay(&self, drive: DriveIndex, slot: DriveSlot) -> Option<(PlatterId, Mounted)> {
        self.drives[drive.as_usize()].bays.get(&slot).copied()
    }

    fn at(&self, shuttle: ShuttleIndex) -> Position {
        self.shuttles[shuttle.as_usize()].at
    }

    fn busy(&mut self, action: &Action) -> &mut bool {
        match *action {
            Action::Move { shuttle, .. }
            | Action::Crab { shuttle, .. }
            | Action::Pick { shuttle, .. }
            | Action::Place { shuttle, .. } => &mut self.shuttles[shuttle.as_usize()].busy,
            Action::Mount { drive, .. }
            | Action::Unmount { drive, .. }
            | Action::Switch { drive, .. }
            | Action::Seek { drive, .. }
            | Action::Read { drive, .. }
            | Action::VerifyPass { drive, .. } => &mut self.drives[drive.as_usize()].busy,
        }
    }
}
