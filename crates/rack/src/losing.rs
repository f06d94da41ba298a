//! Handles disks that are lost, and disks that are back.
//!
//! A whole part of a rack is lost at once: a disk, a tray whose fuse blew, a chassis, a server
//! until the other one has taken over its trays, a column whose fan stopped. A place may be lost
//! for several reasons, and is back when the last is over. Operations that are no longer possible
//! are refused at once, with the number of usable disks. The layer that stores blobs rebuilds them.

use std::collections::BTreeSet;

use fulgurite_units::Outbox;

use crate::event::{Command, Loss, Part, Side};
use crate::places::Motion;
use crate::rack::Rack;
use crate::{GroupId, PlaceId};

impl Rack {
    pub(crate) fn lost(&mut self, part: Part, loss: Loss, out: &mut Outbox<Command>) {
        let mut lowered = BTreeSet::new();
        for place in self.places.of(part) {
            let seat = self.assignment.seat(place);
            let is_gone = loss == Loss::Gone;
            if self.places.lose(place, part, is_gone) {
                let group = &mut self.groups[seat.group.as_usize()];
                group.lost = group.lost.with(seat.position);
                group.resting = group.resting.without(seat.position);
                lowered.insert(seat.group);
            }
            match loss {
                Loss::Gone => self.vanish(place),
                Loss::Barred => self.put_down(place, out),
            }
        }
        let mut classes = BTreeSet::new();
        for group in lowered {
            self.lowered(group, out);
            classes.insert(self.groups[group.as_usize()].class);
        }
        classes.into_iter().for_each(|class| self.advance(class, out));
    }

    pub(crate) fn back(&mut self, part: Part, out: &mut Outbox<Command>) {
        let mut classes = BTreeSet::new();
        for place in self.places.of(part) {
            if self.places.regain(place, part) {
                let seat = self.assignment.seat(place);
                let group = &mut self.groups[seat.group.as_usize()];
                group.lost = group.lost.without(seat.position);
                classes.insert(group.class);
                self.refresh_room(seat.group);
                self.rejoin(place, out);
            }
        }
        classes.into_iter().for_each(|class| self.advance(class, out));
    }

    /// Handles a group that has fewer disks: raises an alarm, and refuses what the others cannot
    /// do.
    pub(crate) fn lowered(&mut self, id: GroupId, out: &mut Outbox<Command>) {
        self.refresh_room(id);
        let group = &self.groups[id.as_usize()];
        let (class, number) = (group.class, group.number);
        let away = group.lost.or(group.resting).count();
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
    fn vanish(&mut self, place: PlaceId) {
        self.places.set(place, Motion::Still);
        self.stuck.retain(|stuck| *stuck != place);
        let seat = self.assignment.seat(place);
        self.groups[seat.group.as_usize()].still(seat.position);
    }

    /// Spins down a disk that must stop now.
    fn put_down(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        match self.places.spot(place).motion {
            Motion::Rising | Motion::Spinning => {
                self.places.set(place, Motion::Sinking);
                let seat = self.assignment.seat(place);
                let group = &mut self.groups[seat.group.as_usize()];
                group.still(seat.position);
                group.sinking = group.sinking.with(seat.position);
                out.push(Command::SpinDown { place });
            }
            Motion::Still | Motion::Sinking | Motion::Stuck { .. } => {}
        }
    }
}
