//! The paper's bound "NS" (Silica, section 7.2): a drive gets the next platter as soon as one of
//! its slots is free, and returns it instantly. Only the twin runs this; no machine can.

use fulgurite_units::{DriveIndex, Outbox};

use crate::control::controller::Library;
use crate::control::drive_dispatch::is_wanted;
use crate::control::state::{Place, PlatterKey, Stage};
use crate::control::{DriveSlot, Outcome, Output};

impl Library {
    /// Takes away what a drive no longer needs, and gives it the next platters.
    pub(crate) fn exchange_without_shuttles(
        &mut self,
        index: DriveIndex,
        out: &mut Outbox<Output>,
    ) {
        if self.drives.get(index).is_broken() {
            return;
        }
        for slot in DriveSlot::BOTH {
            self.take_away(index, slot, out);
            let drive = self.drives.get(index);
            if drive.can_accept(slot)
                && !drive.is_verify_only()
                && let Some(key) = self.next_platter_for(slot)
            {
                self.bring(key, index, slot);
            }
        }
    }

    fn take_away(&mut self, index: DriveIndex, slot: DriveSlot, out: &mut Outbox<Output>) {
        let drive = self.drives.get(index);
        let Some(key) = drive.bay(slot).platter().filter(|_| drive.can_release(slot)) else {
            return;
        };
        let platter = self.shelf.get(key);
        let home = match platter.stage() {
            Stage::Stored { .. } if is_wanted(platter) && !drive.is_verify_only() => return,
            Stage::Stored { home } => home,
            Stage::Storing { request, home, .. } => {
                self.shelf.set_stage(key, Stage::Stored { home });
                self.finish(request, Outcome::Stored, out);
                home
            }
            Stage::Unverified { .. } | Stage::Checked { .. } => return,
        };
        self.drives.get_mut(index).empty(slot);
        self.shelf.set_place(key, Place::Storage(home));
        self.settle(key);
    }

    /// Returns the next platter for a slot: of customers first, then a new one into the second
    /// slot; the other way round if customers may have both slots.
    pub(crate) fn next_platter_for(&self, slot: DriveSlot) -> Option<PlatterKey> {
        let customers = slot.as_usize() < usize::from(self.policy.customer_slots);
        let stored = self.partitions.group(0).queue().first().copied().filter(|_| customers);
        let new = || {
            let first = self.arrivals.oldest();
            first.filter(|_| slot == DriveSlot::Second)
        };
        let next = if self.has_verify_deadline() { new().or(stored) } else { stored.or_else(new) };
        next.map(|(_, key)| key)
    }

    fn bring(&mut self, key: PlatterKey, index: DriveIndex, slot: DriveSlot) {
        match self.shelf.get(key).place() {
            Place::EjectBay(panel) => self.arrivals.take(panel),
            Place::Storage(_) => self.counters.fetches += 1,
            Place::Drive(..) | Place::Shuttle(_) => {
                unreachable!("only waiting platters are fetched")
            }
        }
        self.shelf.set_place(key, Place::Drive(index, slot));
        self.settle(key);
        self.drives.get_mut(index).hold(slot, key, false);
        self.mark_pace_stale_if_new(key);
    }

    /// Gives waiting platters to the drives with room, the lowest index first.
    pub(crate) fn dispatch_without_shuttles(&mut self, out: &mut Outbox<Output>) {
        let count = u16::try_from(self.drives.len()).unwrap_or(u16::MAX);
        for index in (0..count).map(DriveIndex::new) {
            if !DriveSlot::BOTH.iter().any(|slot| self.next_platter_for(*slot).is_some()) {
                return;
            }
            let drive = self.drives.get(index);
            if DriveSlot::BOTH.iter().any(|slot| drive.can_accept(*slot)) {
                self.dispatch_drive(index, out);
            }
        }
    }
}
