//! The read drives: what is in their slots, what they face and what they do.
//!
//! ```text
//!   slot:   empty --expected--> platter inside --mounted--> facing --head at a track--> ...
//!             ^---- taken ------------'  ^---- unmounted ------'
//! ```
//!
//! Only a platter inside can be mounted, only a mounted platter can be faced, and a slot expects
//! one platter at a time. Not here: what a drive does next (`drive_dispatch.rs`) and whether it
//! should insist on verifying (`verification.rs`).

use fulgurite_units::{DriveIndex, Instant, ShuttleIndex, TrackIndex};

use crate::control::sequence::{Actor, actor};
use crate::control::state::PlatterKey;
use crate::control::{Action, CommandId, DriveSlot};

/// All drives, by index.
#[derive(Clone, Debug)]
pub(crate) struct Drives(Vec<Drive>);

/// One read drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drive {
    bays: [Bay; 2],
    /// The slot whose mounted platter the optics face.
    facing: Option<DriveSlot>,
    /// The track of the faced platter that can be read without a seek.
    head: Option<TrackIndex>,
    work: Option<Work>,
    /// Whether its second slot is kept for a new platter.
    is_slot_kept: bool,
    /// Whether it verifies and does nothing else, because its new platter would be late otherwise.
    is_verify_only: bool,
    broken: bool,
}

/// One slot of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bay {
    platter: Option<PlatterKey>,
    mounted: bool,
    /// The shuttle that is bringing a platter here.
    reserved: Option<ShuttleIndex>,
    /// The shuttle that brought the platter inside, if known; unknown after a restart.
    brought_by: Option<ShuttleIndex>,
}

/// What a drive is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) command: CommandId,
    pub(crate) action: Action,
    pub(crate) began: Instant,
    /// Whether it was asked to stop early.
    pub(crate) halting: bool,
}

impl Bay {
    /// The platter inside.
    pub(crate) const fn platter(&self) -> Option<PlatterKey> {
        self.platter
    }

    /// Whether the platter inside is mounted.
    pub(crate) const fn is_mounted(&self) -> bool {
        self.mounted
    }

    /// The shuttle that is bringing a platter here.
    pub(crate) const fn reserved(&self) -> Option<ShuttleIndex> {
        self.reserved
    }

    /// The shuttle that brought the platter inside, if known; unknown after a restart.
    pub(crate) const fn brought_by(&self) -> Option<ShuttleIndex> {
        self.brought_by
    }
}

impl Drive {
    pub(crate) const fn bay(&self, slot: DriveSlot) -> &Bay {
        &self.bays[slot.as_usize()]
    }

    /// The slot whose mounted platter the optics face.
    pub(crate) const fn facing(&self) -> Option<DriveSlot> {
        self.facing
    }

    /// The platter that the optics face.
    pub(crate) fn faced(&self) -> Option<PlatterKey> {
        self.facing.and_then(|slot| self.bay(slot).platter)
    }

    /// The track of the faced platter that can be read without a seek.
    pub(crate) const fn head(&self) -> Option<TrackIndex> {
        self.head
    }

    pub(crate) const fn work(&self) -> Option<Work> {
        self.work
    }

    /// Whether its second slot is kept for a new platter.
    pub(crate) const fn is_slot_kept(&self) -> bool {
        self.is_slot_kept
    }

    /// Whether it verifies and does nothing else.
    pub(crate) const fn is_verify_only(&self) -> bool {
        self.is_verify_only
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether a shuttle may take the platter of a slot: it is neither mounted nor being mounted or
    /// unmounted.
    pub(crate) fn can_release(&self, slot: DriveSlot) -> bool {
        let at_work = self.work.is_some_and(|work| match work.action {
            Action::Mount { slot: busy, .. } | Action::Unmount { slot: busy, .. } => busy == slot,
            Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. }
            | Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. }
            | Action::Charge { .. } => false,
        });
        !at_work && !self.bay(slot).mounted
    }

    /// Whether a shuttle may start out for this slot with a platter.
    pub(crate) fn can_accept(&self, slot: DriveSlot) -> bool {
        let bay = self.bay(slot);
        !self.broken && bay.platter.is_none() && bay.reserved.is_none()
    }

    /// Reserves a slot for the platter that a shuttle brings.
    pub(crate) const fn reserve(&mut self, slot: DriveSlot, from: ShuttleIndex) {
        self.bay_mut(slot).reserved = Some(from);
    }

    /// Cancels the reservation of a slot.
    pub(crate) const fn cancel_reservation(&mut self, slot: DriveSlot) {
        self.bay_mut(slot).reserved = None;
    }

    /// Receives the platter that the shuttle brought.
    pub(crate) const fn receive(&mut self, slot: DriveSlot, key: PlatterKey, from: ShuttleIndex) {
        let bay = self.bay_mut(slot);
        (bay.reserved, bay.brought_by) = (None, Some(from));
        bay.platter = Some(key);
    }

    /// Puts a platter inside, however it got there.
    pub(crate) fn hold(&mut self, slot: DriveSlot, key: PlatterKey, mounted: bool) {
        let bay = self.bay_mut(slot);
        (bay.platter, bay.mounted) = (Some(key), mounted);
    }

    /// Removes the platter inside. A drive does not insist on a platter that is gone.
    pub(crate) fn empty(&mut self, slot: DriveSlot) -> Option<PlatterKey> {
        if slot == DriveSlot::Second {
            self.is_verify_only = false;
        }
        let bay = self.bay_mut(slot);
        bay.brought_by = None;
        bay.platter.take()
    }

    /// Marks the platter as mounted. The optics face it, unless they may face the other one.
    pub(crate) fn mounted(&mut self, slot: DriveSlot) {
        self.bay_mut(slot).mounted = true;
        if self.facing.is_none() && !self.bay(slot.other()).mounted {
            self.face(slot);
        }
    }

    pub(crate) fn unmounted(&mut self, slot: DriveSlot) {
        self.bay_mut(slot).mounted = false;
        if self.facing == Some(slot) {
            (self.facing, self.head) = (None, None);
        }
    }

    /// Turns the optics to a slot.
    pub(crate) const fn face(&mut self, slot: DriveSlot) {
        (self.facing, self.head) = (Some(slot), None);
    }

    pub(crate) const fn set_head(&mut self, head: Option<TrackIndex>) {
        self.head = head;
    }

    pub(crate) const fn begin(&mut self, command: CommandId, action: Action, began: Instant) {
        self.work = Some(Work { command, action, began, halting: false });
    }

    /// Marks the current command as asked to stop early; returns it, if there is one.
    pub(crate) fn halt(&mut self) -> Option<CommandId> {
        let work = self.work.as_mut()?;
        work.halting = true;
        Some(work.command)
    }

    /// Ends its work and returns it.
    pub(crate) const fn end(&mut self) -> Option<Work> {
        self.work.take()
    }

    /// Sets whether the second slot is kept for a new platter; returns whether it was.
    pub(crate) const fn keep_slot(&mut self, is_slot_kept: bool) -> bool {
        std::mem::replace(&mut self.is_slot_kept, is_slot_kept)
    }

    /// Sets whether the drive insists on verifying; returns whether it did.
    pub(crate) const fn set_verify_only(&mut self, is_verify_only: bool) -> bool {
        std::mem::replace(&mut self.is_verify_only, is_verify_only)
    }

    pub(crate) const fn mark_broken(&mut self) {
        (self.broken, self.is_verify_only) = (true, false);
    }

    /// Marks the drive as repaired, with the platters inside, none of them mounted.
    pub(crate) fn mark_repaired(&mut self) {
        self.broken = false;
        (self.facing, self.head) = (None, None);
        self.bays.iter_mut().for_each(|bay| bay.mounted = false);
    }

    const fn bay_mut(&mut self, slot: DriveSlot) -> &mut Bay {
        &mut self.bays[slot.as_usize()]
    }

    /// Asserts that what it holds, expects, faces and does is consistent.
    fn check(&self, index: DriveIndex) {
        for slot in DriveSlot::BOTH {
            let bay = self.bay(slot);
            let empty = bay.platter.is_none();
            assert!(!empty || !bay.mounted, "drive {index} has nothing mounted in {slot:?}");
            let second = !empty && bay.reserved.is_some();
            assert!(!second, "drive {index} expects a second platter in {slot:?}");
        }
        let facing = self.facing;
        let mounted = facing.is_none_or(|slot| self.bay(slot).mounted);
        assert!(mounted, "drive {index} faces {facing:?}, which is not mounted");
        assert!(
            self.head.is_none() || facing.is_some(),
            "drive {index} has a track position without a platter"
        );
        if let Some(work) = self.work {
            assert_eq!(actor(work.command), Actor::Drive(index), "{} is another's", work.command);
            assert!(!self.broken, "drive {index} is broken but has work");
        }
    }
}

impl Drives {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Drive::default(); count])
    }

    #[inline]
    pub(crate) fn get(&self, index: DriveIndex) -> &Drive {
        &self.0[index.as_usize()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: DriveIndex) -> &mut Drive {
        &mut self.0[index.as_usize()]
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn indexed(&self) -> impl Iterator<Item = (DriveIndex, &Drive)> + Clone {
        (0..).map(DriveIndex::new).zip(&self.0)
    }

    pub(crate) fn is_any_broken(&self) -> bool {
        self.0.iter().any(|drive| drive.broken)
    }

    pub(crate) fn is_any_working(&self) -> bool {
        self.0.iter().any(|drive| !drive.broken)
    }

    pub(crate) fn check(&self) {
        self.indexed().for_each(|(index, drive)| drive.check(index));
    }
}
