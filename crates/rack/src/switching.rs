//! Switches from one group to the next: down, up, and open for work.
//!
//! ```text
//! Still --bring_up--> Rising --open--> Up --sink--> Sinking --settle--> Still
//! ```
//!
//! A group opens when each of its disks has come up or failed once, or taken too long. Disks that
//! fail are tried again while the group is up, a few times. Then they back off, each time longer,
//! and are tried with their group again, since a disk that failed once may recover.

use fulgurite_units::{Duration, Instant, Outbox};

use crate::event::Command;
use crate::limits::{RISE_REST, RISE_REST_MAX, RISE_TRIES};
use crate::places::Motion;
use crate::rack::Rack;
use crate::state::Phase;
use crate::{GroupId, Members, PlaceId};

impl Rack {
    /// Does everything a class can do now.
    pub(crate) fn advance(&mut self, index: usize, out: &mut Outbox<Command>) {
        let class = &mut self.classes[index];
        let was_busy = class.was_busy;
        class.fair.charge(self.now, was_busy);
        loop {
            let goes_on = match self.classes[index].phase {
                Phase::Still => self.bring_up(index, out),
                Phase::Rising { group, since } => self.open(index, group, since, out),
                Phase::Up { group, since } => self.serve(index, group, since, out),
                Phase::Sinking { group } => self.settle(index, group, out),
            };
            if !goes_on {
                break;
            }
        }
        let wake_at = self.wake_at(index);
        let class = &mut self.classes[index];
        class.was_busy = class.is_busy();
        class.wake_at = wake_at;
    }

    /// Begins to bring up the next group.
    fn bring_up(&mut self, index: usize, out: &mut Outbox<Command>) -> bool {
        if self.policy.spins_up_in_turn && self.somebody_rises_beside(index) {
            return false;
        }
        let Some((group, cause)) = self.next_target(index, out) else { return false };
        let class = &mut self.classes[index];
        class.cause = cause;
        class.phase = Phase::Rising { group, since: self.now };
        class.idle_since = None;
        self.counters.switches += 1;
        self.ask_budget(group, cause.1, out);
        for position in self.wanted(group).positions() {
            self.raise(group, position, true, out);
        }
        true
    }

    /// Whether another class of the same half is spinning up.
    pub(crate) fn somebody_rises_beside(&self, index: usize) -> bool {
        let half = self.classes[index].half;
        self.classes.iter().enumerate().any(|(other, class)| {
            let rises = |group: GroupId| !self.groups[group.as_usize()].rising.is_empty();
            other != index && class.half == half && class.phase.group().is_some_and(rises)
        })
    }

    /// Commands a disk to spin up, if it may. With `is_first` its group waits for it.
    pub(crate) fn raise(
        &mut self,
        id: GroupId,
        position: usize,
        is_first: bool,
        out: &mut Outbox<Command>,
    ) {
        let group = &mut self.groups[id.as_usize()];
        let place = group.places[position];
        let spot = self.places.spot(place);
        if !spot.may_rise(self.now) {
            return;
        }
        match spot.motion {
            Motion::Still if self.places.has_room(place) => {}
            Motion::Still => {
                group.blocked = group.blocked.with(position);
                return;
            }
            Motion::Stuck { .. } => {}
            Motion::Rising | Motion::Spinning | Motion::Sinking => return,
        }
        if !is_first && !self.has_room(id, position) {
            return;
        }
        self.stuck.retain(|stuck| *stuck != place);
        let group = &mut self.groups[id.as_usize()];
        self.places.set(place, Motion::Rising);
        let spot = self.places.spot_mut(place);
        (spot.tries, spot.rest_until) = (0, None);
        group.rising = group.rising.with(position);
        group.resting = group.resting.without(position);
        group.blocked = group.blocked.without(position);
        if is_first {
            group.first = group.first.with(position);
        }
        self.tell_to_rise(id, place, out);
    }

    fn tell_to_rise(&mut self, group: GroupId, place: PlaceId, out: &mut Outbox<Command>) {
        let (op, kind) = self.classes[self.groups[group.as_usize()].class].cause;
        self.counters.spin_ups += 1;
        self.places.spot_mut(place).woken += 1;
        self.charge(place);
        out.push(Command::SpinUp { place, op, kind });
    }

    /// Spins up disks of a spinning group that could not be spun up before.
    pub(crate) fn fill(&mut self, id: GroupId, out: &mut Outbox<Command>) {
        let group = &self.groups[id.as_usize()];
        for position in group.resting.or(group.blocked).positions() {
            self.raise(id, position, false, out);
        }
    }

    /// Spins up a disk that is back, if its group spins.
    pub(crate) fn rejoin(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        let seat = self.assignment.seat(place);
        if self.classes[self.groups[seat.group.as_usize()].class].phase.group() == Some(seat.group)
        {
            self.raise(seat.group, seat.position, false, out);
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
        self.let_beside_rise(index, out);
        true
    }

    /// Spins a group down.
    pub(crate) fn sink(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) {
        let group = &mut self.groups[id.as_usize()];
        let moving = group.up.or(group.rising);
        (group.up, group.rising, group.first) = (Members::NONE, Members::NONE, Members::NONE);
        (group.blocked, group.late) = (Members::NONE, Members::NONE);
        group.sinking = group.sinking.or(moving);
        for position in moving.positions() {
            let place = group.places[position];
            self.places.set(place, Motion::Sinking);
            out.push(Command::SpinDown { place });
        }
        let class = &mut self.classes[index];
        class.phase = Phase::Sinking { group: id };
        class.switch_since = self.now;
        class.idle_since = None;
        self.let_beside_rise(index, out);
    }

    fn settle(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        if !self.groups[id.as_usize()].sinking.is_empty() {
            return false;
        }
        self.classes[index].phase = Phase::Still;
        self.let_beside_rise(index, out);
        true
    }

    /// Advances the classes that waited for this one to finish spinning up.
    fn let_beside_rise(&mut self, index: usize, out: &mut Outbox<Command>) {
        if !self.policy.spins_up_in_turn {
            return;
        }
        let half = self.classes[index].half;
        for other in 0..self.classes.len() {
            let class = &self.classes[other];
            if other != index && class.half == half && class.phase == Phase::Still {
                self.advance(other, out);
            }
        }
    }

    pub(crate) fn came_up(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.spot(place).motion != Motion::Rising {
            return;
        }
        self.places.set(place, Motion::Spinning);
        let spot = self.places.spot_mut(place);
        (spot.tries, spot.failures, spot.rest_until) = (0, 0, None);
        let seat = self.assignment.seat(place);
        let group = &mut self.groups[seat.group.as_usize()];
        group.still(seat.position);
        group.up = group.up.with(seat.position);
        let class = group.class;
        self.advance_in_turn(class, out);
    }

    pub(crate) fn stayed_down(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.spot(place).motion != Motion::Rising {
            return;
        }
        let seat = self.assignment.seat(place);
        let group = &mut self.groups[seat.group.as_usize()];
        let class = group.class;
        group.still(seat.position);
        self.places.set(place, Motion::Still);
        let has_room = self.places.has_room(place);
        let may_again = self.has_room(seat.group, seat.position);
        let spot = self.places.spot_mut(place);
        spot.tries += 1;
        let group = &mut self.groups[seat.group.as_usize()];
        if spot.tries >= RISE_TRIES || !may_again {
            spot.failures = spot.failures.saturating_add(1);
            spot.rest_until = Some(self.now + rest(spot.failures));
            group.resting = group.resting.with(seat.position);
            self.lowered(seat.group, out);
        } else if has_room {
            group.rising = group.rising.with(seat.position);
            self.places.set(place, Motion::Rising);
            self.tell_to_rise(seat.group, place, out);
        } else {
            group.blocked = group.blocked.with(seat.position);
        }
        self.advance_in_turn(class, out);
    }

    pub(crate) fn came_down(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        match self.places.spot(place).motion {
            Motion::Sinking => {}
            Motion::Stuck { .. } => self.stuck.retain(|stuck| *stuck != place),
            Motion::Still | Motion::Rising | Motion::Spinning => return,
        }
        self.places.set(place, Motion::Still);
        self.places.spot_mut(place).failures = 0;
        let seat = self.assignment.seat(place);
        let group = &mut self.groups[seat.group.as_usize()];
        group.still(seat.position);
        let class = group.class;
        self.advance(class, out);
    }

    pub(crate) fn stayed_up(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.spot(place).motion != Motion::Sinking {
            return;
        }
        let spot = self.places.spot_mut(place);
        spot.failures = spot.failures.saturating_add(1);
        let again = self.now + rest(spot.failures);
        self.places.set(place, Motion::Stuck { again });
        self.stuck.push(place);
        let seat = self.assignment.seat(place);
        let group = &mut self.groups[seat.group.as_usize()];
        group.still(seat.position);
        let class = group.class;
        self.advance(class, out);
    }

    /// Handles an external spin-up: the disk joins its group if that spins, else it is spun down.
    pub(crate) fn woken(&mut self, place: PlaceId, out: &mut Outbox<Command>) {
        if self.places.spot(place).motion != Motion::Still {
            return;
        }
        self.places.set(place, Motion::Stuck { again: self.now + RISE_REST });
        self.places.spot_mut(place).is_woken = true;
        self.charge(place);
        self.stuck.push(place);
        self.rejoin(place, out);
        if matches!(self.places.spot(place).motion, Motion::Stuck { .. }) {
            out.push(Command::SpinDown { place });
        }
    }

    /// Repeats the command to disks that did not spin down.
    pub(crate) fn tell_the_stuck(&mut self, out: &mut Outbox<Command>) {
        for place in &self.stuck {
            let spot = self.places.spot_mut(*place);
            if let Motion::Stuck { again } = spot.motion
                && again <= self.now
            {
                spot.failures = spot.failures.saturating_add(1);
                spot.motion = Motion::Stuck { again: self.now + rest(spot.failures) };
                out.push(Command::SpinDown { place: *place });
            }
        }
    }

    /// Advances a class, and those that wait for it to finish spinning up.
    fn advance_in_turn(&mut self, class: usize, out: &mut Outbox<Command>) {
        self.advance(class, out);
        self.let_beside_rise(class, out);
    }

    /// Returns when a class has to be advanced although no event arrives.
    fn wake_at(&self, index: usize) -> Option<Instant> {
        let class = &self.classes[index];
        let patience = class.inits.front().and_then(|group| {
            Some(self.groups[group.as_usize()].init?.since + self.policy.init_patience)
        });
        let (first, second) = match class.phase {
            Phase::Still | Phase::Sinking { .. } => (None, None),
            Phase::Rising { since, .. } => (Some(since + self.policy.rise_limit), None),
            Phase::Up { group, since } => {
                let known = &self.groups[group.as_usize()];
                let until = |at| self.places.spot(known.places[at]).rest_until;
                let rested = known.resting.positions().filter_map(until).min();
                let waits = (!known.rising.is_empty()).then(|| since + self.patience());
                let late = self.late_until(group).filter(|_| !known.rising.is_empty());
                let look = self.looks_on(group);
                let waits = waits.filter(|at| *at > self.now);
                (rested, waits.into_iter().chain(late).chain(look).min())
            }
        };
        let idle = class.idle_since.zip(self.policy.idle).map(|(since, idle)| since + idle);
        let all = [patience, first, second, idle, self.held_until(index)];
        all.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// Returns when an operation that is delayed for batching or by its budget is to be done.
    pub(crate) fn held_until(&self, index: usize) -> Option<Instant> {
        let class = &self.classes[index];
        let is_moving = matches!(class.phase, Phase::Rising { .. } | Phase::Sinking { .. });
        if is_moving || !class.running.is_empty() {
            return None;
        }
        let look = self.look(index);
        let starts = [&class.client, &class.background].map(|line| line.starts(&look));
        starts.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// Returns how long operations wait for disks of an open group that are still coming up.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.policy.rise_limit.as_nanos() * u64::from(RISE_TRIES))
    }
}

/// Returns the backoff after this many failures.
fn rest(failures: u32) -> Duration {
    let doubled = RISE_REST.as_nanos().checked_shl(failures.saturating_sub(1).min(32));
    Duration::from_nanos(doubled.unwrap_or(u64::MAX)).min(RISE_REST_MAX)
}
