//! The budget of spin-ups. Each disk is charged for its own spin-ups. A group without budget is not
//! spun up, except for an initialization or a rebuild of endangered data.
//!
//! A group waits for its most-used disk. Past spin-ups are passed in at the start
//! ([`Rack::record_past_spin_ups`]), so that a restart does not reset the budget.

use fulgurite_units::{Duration, Instant, Outbox};

use crate::event::{Command, OpKind};
use crate::rack::Rack;
use crate::token_bucket::Allowance;
use crate::{GroupId, PlaceId};

impl Rack {
    /// Records past spin-ups of a disk before the controller gets any operation: their age as of
    /// `now` and their number, oldest first.
    pub fn record_past_spin_ups(
        &mut self,
        now: Instant,
        place: PlaceId,
        spin_ups: impl IntoIterator<Item = (Duration, u32)>,
    ) {
        let Some(token_bucket) = self.token_bucket else { return };
        self.now = self.now.max(now);
        let full_at = token_bucket.full_after(self.now, spin_ups);
        let disk = self.places.disk_mut(place);
        disk.full_at = disk.full_at.max(full_at);
        self.update_full_at(place);
    }

    /// Returns when any operation may spin up a group; none if it may now, or there is no budget.
    ///
    /// # Panics
    /// If the rack has no such group.
    #[must_use]
    pub fn over_budget_until(&self, group: GroupId) -> Option<Instant> {
        Some(self.allowance(group)?.plain).filter(|from| *from > self.now)
    }

    /// Charges a spin-up of a disk.
    pub(crate) fn charge(&mut self, place: PlaceId) {
        let Some(token_bucket) = self.token_bucket else { return };
        token_bucket.charge(&mut self.places.disk_mut(place).full_at, self.now);
        self.update_full_at(place);
    }

    /// Reports a spin-up of a group that exceeds its budget.
    pub(crate) fn report_overdraft(
        &mut self,
        group: GroupId,
        kind: OpKind,
        out: &mut Outbox<Command>,
    ) {
        if self.allowance(group).is_some_and(|allowance| allowance.soon > self.now) {
            self.counters.overdrawn += 1;
            out.push(Command::Overdrawn { group, kind });
        }
    }

    /// Whether the budget allows a disk to be spun up again, or to join its group that is up.
    pub(crate) fn has_spin_up_budget(&self, group: GroupId, position: usize) -> bool {
        let Some(token_bucket) = self.token_bucket else { return true };
        let known = &self.groups[group.as_usize()];
        let (_, kind) = self.classes[known.class].cause;
        let full_at = self.places.disk(known.places[position]).full_at;
        let allowance = token_bucket.allowance(full_at, self.is_in_danger(group));
        let goes_on = kind == OpKind::Init || (kind == OpKind::Rebuild && allowance.in_danger);
        goes_on || allowance.soon <= self.now
    }

    /// Updates when a group may be spun up, in the queues of its class.
    pub(crate) fn refresh_allowance(&mut self, group: GroupId) {
        let Some(allowance) = self.allowance(group) else { return };
        let known = &self.groups[group.as_usize()];
        let (class, number) = (known.class, known.number);
        self.classes[class].client.set_allowance(number, allowance);
        self.classes[class].background.set_allowance(number, allowance);
    }

    fn update_full_at(&mut self, place: PlaceId) {
        let full_at = self.places.disk(place).full_at;
        let id = self.assignment.slot(place).group;
        let group = &mut self.groups[id.as_usize()];
        group.full_at = group.full_at.max(full_at);
        self.refresh_allowance(id);
    }

    fn allowance(&self, group: GroupId) -> Option<Allowance> {
        let full_at = self.groups[group.as_usize()].full_at;
        Some(self.token_bucket?.allowance(full_at, self.is_in_danger(group)))
    }

    /// Whether one more lost disk may leave a blob of the group without redundancy.
    fn is_in_danger(&self, group: GroupId) -> bool {
        let group = &self.groups[group.as_usize()];
        let away = group.lost.union(group.in_backoff).count();
        away > 0 && away + 1 >= self.redundancy
    }
}
