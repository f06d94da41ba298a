//! Handles disks that are lost, and disks that are back.
//!
//! A whole part of a rack is lost at once: a disk, a tray whose fuse blew, a chassis, a server
//! until the other one has taken over its trays, a column whose fan stopped. A place may be lost
//! for several reasons, and is back when the last is over. Operations that are no longer possible
//! are refused at once, with the number of usable disks. The layer that stores blobs rebuilds them.

use std::collections::BTreeSet;

use fulgurite_units::Outbox;

use crate::event::{Command, Loss, Part, Side};
use crate::places::SpinState;
use crate::rack::Rack;
use crate::{GroupId, PlaceId};

impl Rack {
    pub(crate) fn handle_lost(&mut self, part: Part, loss: Loss, out: &mut Outbox<Command>) {
        let mut degraded = BTreeSet::new();
        for place in self.places.part_places(part) {
            let slot = self.assignment.slot(place);
            let is_gone = loss == Loss::Gone;
            if self.places.lose(place, part, is_gone) {
                let group = &mut self.groups[slot.group.as_usize()];
                group.lost = group.lost.with(slot.position);
                group.in_backoff = group.in_backoff.without(slot.position);
                degraded.insert(slot.group);
            }
            match loss {
                Loss::Gone => self.mark_gone(place),
                Loss::Barred => self.spin_down_disk(place, out),
            }
        }
        let mut classes = BTreeSet::new();
        for group in degraded {
            self.handle_degraded(group, out);
            classes.insert(self.groups[group.as_usize()].class);
        }
        classes.into_iter().for_each(|class| self.advance(class, out));
    }

    pub(crate) fn handle_back(&mut self, part: Part, out: &mut Outbox<Command>) {
        let mut classes = BTreeSet::new();
        for place in self.places.part_places(part) {
            if self.places.restore(place, part) {
                let slot = self.assignment.slot(place);
                let group = &mut self.groups[slot.group.as_usize()];
                group.lost = group.lost.without(slot.position);
                classes.insert(group.class);
                self.refresh_allowance(slot.group);
                self.rejoin(place, out);
            }
        }
        classes.into_iter().for_each(|class| self.advance(class, out));
    }

    /// Handles a group that has fewer disks: raises an alarm, and refuses what the others cannot
    /// do.
    pub(crate) fn handle_degraded(&mut self, id: GroupId, out: &mut Outbox<Command>) {
        self.refresh_allowance(id);
        let group = &self.groups[id.as_usize()];
        let (class, number) = (group.class, group.number);
        let away = group.lost.union(group.in_backoff).count();
        out.push(Command::Alarm { group: id, away });
        for side in [Side::Client, Side::Background] {
            let mut over = Vec::new();
            let mut queue = std::mem::take(self.classes[class].queue(side));
            queue.remove(number, |op| self.too_few(op).is_some(), |waiting| over.push(waiting.op));
            *self.classes[class].queue(side) = queue;
            for op in over {
                if let Some(refusal) = self.too_few(&op) {
                    self.refuse(op.id, refusal, out);
                }
            }
        }
    }

    /// Records that a disk does not spin, whatever state it was in.
    fn mark_gone(&mut self, place: PlaceId) {
        self.places.set(place, SpinState::Stopped);
        self.stuck.retain(|stuck| *stuck != place);
        let slot = self.assignment.slot(place);
        self.groups[slot.group.as_usize()].mark_stopped(slot.position);
    }

    /// Spins down a disk that must stop now.
    fn spin_down_disk(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        match self.places.disk(place).spin_state {
            SpinState::SpinningUp | SpinState::Spinning => {
                self.places.set(place, SpinState::SpinningDown);
                let slot = self.assignment.slot(place);
                let group = &mut self.groups[slot.group.as_usize()];
                group.mark_stopped(slot.position);
                group.spinning_down = group.spinning_down.with(slot.position);
                out.push(Command::SpinDown { place });
            }
            SpinState::Stopped | SpinState::SpinningDown | SpinState::Stuck { .. } => {}
        }
    }
}
