//! Switches from one group to the next: down, up, and open for work.
//!
//! ```text
//! Stopped --bring_up--> SpinningUp --open--> Up --sink--> SpinningDown --settle--> Stopped
//! ```
//!
//! A group opens when each of its disks has come up or failed once, or taken too long. Disks that
//! fail are tried again while the group is up, a few times. Then they back off, each time longer,
//! and are tried with their group again, since a disk that failed once may recover.

use fulgurite_units::{Duration, Instant, Outbox};

use crate::event::Command;
use crate::limits::{SPIN_UP_ATTEMPTS, SPIN_UP_BACKOFF, SPIN_UP_BACKOFF_MAX};
use crate::places::SpinState;
use crate::rack::Rack;
use crate::state::Phase;
use crate::{GroupId, Members, PlaceId};

impl Rack {
    /// Does everything a class can do now.
    pub(crate) fn advance(&mut self, index: usize, out: &mut Outbox<Command>) {
        let class = &mut self.classes[index];
        let was_busy = class.was_busy;
        class.fair_share.charge(self.now, was_busy);
        loop {
            let has_more = match self.classes[index].phase {
                Phase::Stopped => self.bring_up(index, out),
                Phase::SpinningUp { group, since } => self.open(index, group, since, out),
                Phase::Up { group, since } => self.serve(index, group, since, out),
                Phase::SpinningDown { group } => self.settle(index, group, out),
            };
            if !has_more {
                break;
            }
        }
        let timer_at = self.timer_at(index);
        let class = &mut self.classes[index];
        class.was_busy = class.is_busy();
        class.timer_at = timer_at;
    }

    /// Begins to bring up the next group.
    fn bring_up(&mut self, index: usize, out: &mut Outbox<Command>) -> bool {
        if self.policy.spins_up_in_turn && self.is_neighbor_spinning_up(index) {
            return false;
        }
        let Some((group, cause)) = self.next_target(index, out) else { return false };
        let class = &mut self.classes[index];
        class.cause = cause;
        class.phase = Phase::SpinningUp { group, since: self.now };
        class.idle_since = None;
        self.counters.switches += 1;
        self.report_overdraft(group, cause.1, out);
        for position in self.disks_to_spin_up(group).positions() {
            self.spin_up_disk(group, position, true, out);
        }
        true
    }

    /// Whether another class of the same half is spinning up.
    pub(crate) fn is_neighbor_spinning_up(&self, index: usize) -> bool {
        let within_unit = self.classes[index].within_unit;
        self.classes.iter().enumerate().any(|(other, class)| {
            let is_spinning_up =
                |group: GroupId| !self.groups[group.as_usize()].spinning_up.is_empty();
            other != index
                && class.within_unit == within_unit
                && class.phase.group().is_some_and(is_spinning_up)
        })
    }

    /// Commands a disk to spin up, if it may. With `is_first` its group waits for it.
    pub(crate) fn spin_up_disk(
        &mut self,
        id: GroupId,
        position: usize,
        is_first: bool,
        out: &mut Outbox<Command>,
    ) {
        let group = &mut self.groups[id.as_usize()];
        let place = group.places[position];
        let disk = self.places.disk(place);
        if !disk.can_spin_up(self.now) {
            return;
        }
        match disk.spin_state {
            SpinState::Stopped if self.places.has_capacity(place) => {}
            SpinState::Stopped => {
                group.blocked = group.blocked.with(position);
                return;
            }
            SpinState::Stuck { .. } => {}
            SpinState::SpinningUp | SpinState::Spinning | SpinState::SpinningDown => return,
        }
        if !is_first && !self.has_spin_up_budget(id, position) {
            return;
        }
        self.stuck.retain(|stuck| *stuck != place);
        let group = &mut self.groups[id.as_usize()];
        self.places.set(place, SpinState::SpinningUp);
        let disk = self.places.disk_mut(place);
        (disk.tries, disk.backoff_until) = (0, None);
        group.spinning_up = group.spinning_up.with(position);
        group.in_backoff = group.in_backoff.without(position);
        group.blocked = group.blocked.without(position);
        if is_first {
            group.first = group.first.with(position);
        }
        self.command_spin_up(id, place, out);
    }

    fn command_spin_up(&mut self, group: GroupId, place: PlaceId, out: &mut Outbox<Command>) {
        let (op, kind) = self.classes[self.groups[group.as_usize()].class].cause;
        self.counters.spin_ups += 1;
        self.places.disk_mut(place).spun_up += 1;
        self.charge(place);
        out.push(Command::SpinUp { place, op, kind });
    }

    /// Spins up disks of a spinning group that could not be spun up before.
    pub(crate) fn spin_up_missing(&mut self, id: GroupId, out: &mut Outbox<Command>) {
        let group = &self.groups[id.as_usize()];
        for position in group.in_backoff.union(group.blocked).positions() {
            self.spin_up_disk(id, position, false, out);
        }
    }

    /// Spins up a disk that is back, if its group spins.
    pub(crate) fn rejoin(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        let slot = self.assignment.slot(place);
        if self.classes[self.groups[slot.group.as_usize()].class].phase.group() == Some(slot.group)
        {
            self.spin_up_disk(slot.group, slot.position, false, out);
        }
    }

    /// Opens a group for work when there is nothing left to wait for.
    fn open(
        &mut self,
        index: usize,
        id: GroupId,
        since: Instant,
        out: &mut Outbox<Command>,
    ) -> bool {
        let is_awaited = !self.groups[id.as_usize()].first.is_empty()
            && self.now < since + self.policy.rise_limit;
        if is_awaited && !self.is_enough(index, id) {
            return false;
        }
        let group = &mut self.groups[id.as_usize()];
        group.first = Members::NONE;
        let class = &mut self.classes[index];
        class.phase = Phase::Up { group: id, since: self.now };
        class.is_fresh = true;
        class.measured.switched(self.now.since(class.switch_since));
        self.advance_waiting_classes(index, out);
        true
    }

    /// Spins a group down.
    pub(crate) fn spin_down_group(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) {
        let group = &mut self.groups[id.as_usize()];
        let moving = group.up.union(group.spinning_up);
        (group.up, group.spinning_up, group.first) = (Members::NONE, Members::NONE, Members::NONE);
        (group.blocked, group.late) = (Members::NONE, Members::NONE);
        group.spinning_down = group.spinning_down.union(moving);
        for position in moving.positions() {
            let place = group.places[position];
            self.places.set(place, SpinState::SpinningDown);
            out.push(Command::SpinDown { place });
        }
        let class = &mut self.classes[index];
        class.phase = Phase::SpinningDown { group: id };
        class.switch_since = self.now;
        class.idle_since = None;
        self.advance_waiting_classes(index, out);
    }

    fn settle(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        if !self.groups[id.as_usize()].spinning_down.is_empty() {
            return false;
        }
        self.classes[index].phase = Phase::Stopped;
        self.advance_waiting_classes(index, out);
        true
    }

    /// Advances the classes that waited for this one to finish spinning up.
    fn advance_waiting_classes(&mut self, index: usize, out: &mut Outbox<Command>) {
        if !self.policy.spins_up_in_turn {
            return;
        }
        let within_unit = self.classes[index].within_unit;
        for other in 0..self.classes.len() {
            let class = &self.classes[other];
            if other != index && class.within_unit == within_unit && class.phase == Phase::Stopped {
                self.advance(other, out);
            }
        }
    }

    pub(crate) fn handle_up(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.disk(place).spin_state != SpinState::SpinningUp {
            return;
        }
        self.places.set(place, SpinState::Spinning);
        let disk = self.places.disk_mut(place);
        (disk.tries, disk.failures, disk.backoff_until) = (0, 0, None);
        let slot = self.assignment.slot(place);
        let group = &mut self.groups[slot.group.as_usize()];
        group.mark_stopped(slot.position);
        group.up = group.up.with(slot.position);
        let class = group.class;
        self.advance_in_turn(class, out);
    }

    pub(crate) fn handle_up_failed(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.disk(place).spin_state != SpinState::SpinningUp {
            return;
        }
        let slot = self.assignment.slot(place);
        let group = &mut self.groups[slot.group.as_usize()];
        let class = group.class;
        group.mark_stopped(slot.position);
        self.places.set(place, SpinState::Stopped);
        let has_capacity = self.places.has_capacity(place);
        let can_retry = self.has_spin_up_budget(slot.group, slot.position);
        let disk = self.places.disk_mut(place);
        disk.tries += 1;
        let group = &mut self.groups[slot.group.as_usize()];
        if disk.tries >= SPIN_UP_ATTEMPTS || !can_retry {
            disk.failures = disk.failures.saturating_add(1);
            disk.backoff_until = Some(self.now + backoff(disk.failures));
            group.in_backoff = group.in_backoff.with(slot.position);
            self.handle_degraded(slot.group, out);
        } else if has_capacity {
            group.spinning_up = group.spinning_up.with(slot.position);
            self.places.set(place, SpinState::SpinningUp);
            self.command_spin_up(slot.group, place, out);
        } else {
            group.blocked = group.blocked.with(slot.position);
        }
        self.advance_in_turn(class, out);
    }

    pub(crate) fn handle_down(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        match self.places.disk(place).spin_state {
            SpinState::SpinningDown => {}
            SpinState::Stuck { .. } => self.stuck.retain(|stuck| *stuck != place),
            SpinState::Stopped | SpinState::SpinningUp | SpinState::Spinning => return,
        }
        self.places.set(place, SpinState::Stopped);
        self.places.disk_mut(place).failures = 0;
        let slot = self.assignment.slot(place);
        let group = &mut self.groups[slot.group.as_usize()];
        group.mark_stopped(slot.position);
        let class = group.class;
        self.advance(class, out);
    }

    pub(crate) fn handle_down_failed(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.disk(place).spin_state != SpinState::SpinningDown {
            return;
        }
        let disk = self.places.disk_mut(place);
        disk.failures = disk.failures.saturating_add(1);
        let retry_at = self.now + backoff(disk.failures);
        self.places.set(place, SpinState::Stuck { retry_at });
        self.stuck.push(place);
        let slot = self.assignment.slot(place);
        let group = &mut self.groups[slot.group.as_usize()];
        group.mark_stopped(slot.position);
        let class = group.class;
        self.advance(class, out);
    }

    /// Handles an external spin-up: the disk joins its group if that spins, else it is spun down.
    pub(crate) fn spun_up(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.disk(place).spin_state != SpinState::Stopped {
            return;
        }
        self.places.set(place, SpinState::Stuck { retry_at: self.now + SPIN_UP_BACKOFF });
        self.places.disk_mut(place).is_external = true;
        self.charge(place);
        self.stuck.push(place);
        self.rejoin(place, out);
        if matches!(self.places.disk(place).spin_state, SpinState::Stuck { .. }) {
            out.push(Command::SpinDown { place });
        }
    }

    /// Repeats the command to disks that did not spin down.
    pub(crate) fn retry_stuck(&mut self, out: &mut Outbox<Command>) {
        for place in &self.stuck {
            let disk = self.places.disk_mut(*place);
            if let SpinState::Stuck { retry_at } = disk.spin_state
                && retry_at <= self.now
            {
                disk.failures = disk.failures.saturating_add(1);
                disk.spin_state = SpinState::Stuck { retry_at: self.now + backoff(disk.failures) };
                out.push(Command::SpinDown { place: *place });
            }
        }
    }

    /// Advances a class, and those that wait for it to finish spinning up.
    fn advance_in_turn(&mut self, class: usize, out: &mut Outbox<Command>) {
        self.advance(class, out);
        self.advance_waiting_classes(class, out);
    }

    /// Returns when a class has to be advanced although no event arrives.
    fn timer_at(&self, index: usize) -> Option<Instant> {
        let class = &self.classes[index];
        let patience = class.inits.front().and_then(|group| {
            Some(self.groups[group.as_usize()].init?.since + self.policy.init_patience)
        });
        let (first, second) = match class.phase {
            Phase::Stopped | Phase::SpinningDown { .. } => (None, None),
            Phase::SpinningUp { since, .. } => (Some(since + self.policy.rise_limit), None),
            Phase::Up { group, since } => {
                let known = &self.groups[group.as_usize()];
                let until = |at| self.places.disk(known.places[at]).backoff_until;
                let backoff_ends = known.in_backoff.positions().filter_map(until).min();
                let waits = (!known.spinning_up.is_empty()).then(|| since + self.patience());
                let late = self.late_until(group).filter(|_| !known.spinning_up.is_empty());
                let view = self.init_waits_until(group);
                let waits = waits.filter(|at| *at > self.now);
                (backoff_ends, waits.into_iter().chain(late).chain(view).min())
            }
        };
        let idle = class.idle_since.zip(self.policy.idle).map(|(since, idle)| since + idle);
        let all = [patience, first, second, idle, self.delayed_until(index)];
        all.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// Returns when an operation that is delayed for batching or by its budget is to be done.
    pub(crate) fn delayed_until(&self, index: usize) -> Option<Instant> {
        let class = &self.classes[index];
        let is_moving =
            matches!(class.phase, Phase::SpinningUp { .. } | Phase::SpinningDown { .. });
        if is_moving || !class.running.is_empty() {
            return None;
        }
        let view = self.view(index);
        let switches =
            [&class.client, &class.background].map(|side_queue| side_queue.next_switch(&view));
        switches.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// Returns how long operations wait for disks of an open group that are still coming up.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.policy.rise_limit.as_nanos() * u64::from(SPIN_UP_ATTEMPTS))
    }
}

/// Returns the backoff after this many failures.
fn backoff(failures: u32) -> Duration {
    let doubled = SPIN_UP_BACKOFF.as_nanos().checked_shl(failures.saturating_sub(1).min(32));
    Duration::from_nanos(doubled.unwrap_or(u64::MAX)).min(SPIN_UP_BACKOFF_MAX)
}
