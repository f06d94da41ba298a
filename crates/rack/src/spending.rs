//! The budget of spin-ups. Each disk is charged for its own spin-ups. A group without budget is not
//! spun up, except for an initialization or a rebuild of endangered data.
//!
//! A group waits for its most-used disk. Past spin-ups are passed in at the start
//! ([`Rack::woken_before`]), so that a restart does not reset the budget.

use fulgurite_units::{Duration, Instant, Outbox};

use crate::event::{Command, OpKind};
use crate::meter::Room;
use crate::rack::Rack;
use crate::{GroupId, PlaceId};

impl Rack {
    /// Records past spin-ups of a disk before the controller gets any operation: their age as of
    /// `now` and their number, oldest first.
    pub fn woken_before(
        &mut self,
        now: Instant,
        place: PlaceId,
        wakes: impl IntoIterator<Item = (Duration, u32)>,
    ) {
        let Some(meter) = self.meter else { return };
        self.now = self.now.max(now);
        let full = meter.after(self.now, wakes);
        let spot = self.places.spot_mut(place);
        spot.full = spot.full.max(full);
        self.settle_full(place);
    }

    /// Returns when any operation may spin up a group; none if it may now, or there is no budget.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn rests_until(&self, group: GroupId) -> Option<Instant> {
        Some(self.room(group)?.plain).filter(|from| *from > self.now)
    }

    /// Charges a spin-up of a disk.
    pub(crate) fn charge(&mut self, place: PlaceId) {
        let Some(meter) = self.meter else { return };
        meter.charge(&mut self.places.spot_mut(place).full, self.now);
        self.settle_full(place);
    }

    /// Reports a spin-up of a group that exceeds its budget.
    pub(crate) fn ask_budget(&mut self, group: GroupId, kind: OpKind, out: &mut Outbox<Command>) {
        if self.room(group).is_some_and(|room| room.soon > self.now) {
            self.counters.overdrawn += 1;
            out.push(Command::Overdrawn { group, kind });
        }
    }

    /// Whether the budget allows a disk to be spun up again, or to join its group that is up.
    pub(crate) fn has_room(&self, group: GroupId, position: usize) -> bool {
        let Some(meter) = self.meter else { return true };
        let known = &self.groups[group.as_usize()];
        let (_, kind) = self.classes[known.class].cause;
        let full = self.places.spot(known.places[position]).full;
        let room = meter.room(full, self.is_in_danger(group));
        let goes_on = kind == OpKind::Init || (kind == OpKind::Rebuild && room.in_danger);
        goes_on || room.soon <= self.now
    }

    /// Updates when a group may be spun up, in the queues of its class.
    pub(crate) fn refresh_room(&mut self, group: GroupId) {
        let Some(room) = self.room(group) else { return };
        let known = &self.groups[group.as_usize()];
        let (class, number) = (known.class, known.number);
        self.classes[class].client.set_room(number, room);
        self.classes[class].background.set_room(number, room);
    }

    fn settle_full(&mut self, place: PlaceId) {
        let full = self.places.spot(place).full;
        let id = self.assignment.seat(place).group;
        let group = &mut self.groups[id.as_usize()];
        group.full = group.full.max(full);
        self.refresh_room(id);
    }

    fn room(&self, group: GroupId) -> Option<Room> {
        let full = self.groups[group.as_usize()].full;
        Some(self.meter?.room(full, self.is_in_danger(group)))
    }

    /// Whether one more lost disk may leave a blob of the group without redundancy.
    fn is_in_danger(&self, group: GroupId) -> bool {
        let group = &self.groups[group.as_usize()];
        let away = group.lost.or(group.resting).count();
        away > 0 && away + 1 >= self.redundancy
    }
}
