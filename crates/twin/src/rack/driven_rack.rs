//! The rack with disks in standby, run by the controller that also serves live: of each class one
//! group is spun up (Pelican, OSDI 2014, section 2.2). This module has only the simulated machines.
//!
//! ```text
//!   Read --> Submit --> controller --> SpinDown --(unmount)-----------> Down
//!                                  --> SpinUp --(spin up, mount)------> Up
//!                                  --> Run --(seek, flow)-------------> Done
//! ```
//!
//! Disks of a group that get the spin-up command together are reported as up together, once the
//! slowest of those needed is up: nothing waits for the others.

use fulgurite_rack_core::{
    Assignment, Budget, Command, Due, Event, GroupId, Loss, Members, Op as Task, OpId, OpKind,
    Order, Part, PlaceId, PlaceState, Policy, Rack as Controller, Refusal, Side, SpinUps, presets,
    solve,
};
use fulgurite_units::{ByteCount, Controller as _, Instant, Outbox, Ratio, Seed};

use super::latencies::{GroupLatencies, seconds, stream};
use super::result::Times;
use super::run::{Common, GroupState, Observation, PendingEvent, Rack, ScheduledEvent};
use super::scenario::{Rebuild, Scenario, ServiceOrder, SpinUpScope};
use super::shape::{CLASSES, DISKS_OF_GROUP, class_of};
use super::share::Kind;
use super::transfers::{Op, OpIndex};
use super::workload::to_f64;
use crate::Error;
use crate::engine::{Context, EventQueue, Observer};
use crate::workload::{Draws, floor};

/// Maximum number of stacks of a failed disk that wait for their rebuild.
const REBUILD_WINDOW: u32 = 64;
/// Bits of an operation's number that hold its slot; the bits above are a counter, because no
/// number is used twice.
const SLOT_BITS: u32 = 20;

/// Tests assert the controller's invariants once per this many operations.
#[cfg(test)]
const CHECKED_EACH: u64 = 256;

/// An event of the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    /// Disks of a group have spun up.
    SpunUp { group: u32, visit: u32, disks: Members },
    /// Disks of a group are mounted.
    Mounted { group: u32, visit: u32, disks: Members },
    /// The disks of a group are unmounted and spun down.
    Stopped { group: u32 },
    /// The controller's timer fires.
    Timer,
    /// A disk fails.
    Fails,
}

/// A rack with disks in standby, and its controller.
#[derive(Debug)]
pub(crate) struct DrivenRack {
    controller: Controller,
    assignment: Assignment,
    out: Outbox<Command>,
    groups: Vec<Group>,
    /// Groups whose disks got a command in the current step.
    commanded: Vec<u32>,
    /// When each class started to switch groups.
    switches_since: [Option<Instant>; CLASSES],
    latencies: GroupLatencies,
    times: Draws,
    /// Draws which disks have stacks of a blob, where only the needed disks are spun up.
    places: Option<Draws>,
    /// The number of the operation in each slot.
    numbers: Vec<u64>,
    orders: u64,
    timer: Option<Instant>,
    busy_above: u32,
    mount_each: bool,
    rebuild: Option<Rebuild>,
    unsubmitted: u32,
    left: u32,
}

/// Disks of a group that got a spin-up or spin-down command.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Commanded to spin up, but not started.
    commanded: Members,
    /// Spinning up or mounting: each by itself where only the needed disks are spun up, else all
    /// together.
    rising: Members,
    /// Those of `rising` that do not spin yet.
    spinning_up: Members,
    /// How often the group was spun down: events planned for earlier visits are obsolete.
    visit: u32,
    /// When each of these disks is spinning, in seconds after the command, where each is mounted
    /// then.
    spinning_at_s: Vec<f64>,
    spinning_down: Members,
    /// Whether any of its disks is up or spinning up.
    is_awake: bool,
}

impl DrivenRack {
    pub(crate) fn new(
        scenario: &Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<ScheduledEvent>,
    ) -> Result<Self, Error> {
        let shape = presets::shape("pelican")?;
        let assignment = solve(&shape)?;
        let controller = Controller::new(&shape, assignment.clone(), policy(scenario));
        if scenario.rebuild.is_some() {
            let fails = ScheduledEvent(PendingEvent::MachineEvent(MachineEvent::Fails));
            event_queue.push(scenario.measured()[0], fails);
        }
        let stacks = scenario.rebuild.map_or(0, |rebuild| rebuild.stacks);
        Ok(Self {
            groups: vec![Group::default(); assignment.groups().len()],
            controller,
            assignment,
            out: Outbox::new(),
            commanded: Vec::new(),
            switches_since: [None; CLASSES],
            latencies: GroupLatencies::new(&scenario.disks),
            times: stream(seed, b"times"),
            places: (scenario.scheduler.spin_ups == SpinUpScope::Needed)
                .then(|| stream(seed, b"places")),
            numbers: Vec::new(),
            orders: 0,
            timer: None,
            busy_above: scenario.disks.busy_above,
            mount_each: scenario.disks.mount_each,
            rebuild: scenario.rebuild,
            unsubmitted: stacks,
            left: stacks,
        })
    }

    /// Returns the number of waiting reads in the class of a group.
    pub(crate) fn queued(&self, group: u32) -> u32 {
        let class = self.assignment.class_of(GroupId::new(group));
        let waiting = self.controller.waiting(class, Side::Client);
        u32::try_from(waiting).unwrap_or(u32::MAX)
    }

    /// Whether no disk waits for its rebuild.
    pub(crate) const fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Submits an operation.
    pub(crate) fn handle_arrival<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let op = *common.ops.get(index);
        let disks = &common.scenario.disks;
        let (kind, enough) = match op.kind {
            Kind::Read => (OpKind::Read, disks.stacks),
            Kind::Rebuild => (OpKind::Rebuild, disks.stacks),
        };
        self.orders += 1;
        let place = index.0 as usize;
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        self.numbers[place] = self.orders << SLOT_BITS | u64::from(index.0);
        let order = Task {
            id: OpId::new(self.numbers[place]),
            group: GroupId::new(op.group),
            kind,
            bytes: ByteCount::new(floor(op.stack * f64::from(disks.stacks))),
            members: self.members(op.group, kind),
            enough,
            due: op.times.promise.map(|promise| op.times.arrived + promise.within),
        };
        self.step(Event::Submit { op: order }, common, ctx);
    }

    /// Returns the disks that an operation can use.
    fn members(&mut self, group: u32, kind: OpKind) -> Members {
        let all = Members::first(DISKS_OF_GROUP as usize);
        let Some(places) = self.places.as_mut().filter(|_| kind == OpKind::Read) else {
            return all;
        };
        // One disk of each set has no stack of a blob.
        self.assignment.sets(GroupId::new(group)).iter().fold(all, |members, set| {
            let drawn = usize::try_from(places.below(set.len() as u64)).unwrap_or_default();
            let left_out = set[drawn];
            members.without(self.assignment.slot(left_out).position)
        })
    }

    /// Handles the end of an operation's flow.
    pub(crate) fn ended<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        op: &Op,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let id = OpId::new(self.numbers[index.0 as usize]);
        if op.kind == Kind::Rebuild {
            self.left -= 1;
            let bytes = op.stack * f64::from(common.scenario.disks.read_stacks);
            common.stats.rebuilt(ctx.now(), bytes, self.left);
            self.submit_rebuilds(common, ctx);
        }
        self.step(Event::Done { op: id }, common, ctx);
    }

    pub(crate) fn handle_event<O: Observer<Rack>>(
        &mut self,
        event: MachineEvent,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        match event {
            MachineEvent::SpunUp { group, visit, .. }
            | MachineEvent::Mounted { group, visit, .. }
                if self.groups[group as usize].visit != visit => {}
            MachineEvent::SpunUp { group, disks, .. } => self.spun_up(group, disks, common, ctx),
            MachineEvent::Mounted { group, disks, .. } => {
                let group_state = &mut self.groups[group as usize];
                group_state.rising = disks.positions().fold(group_state.rising, Members::without);
                if group_state.rising.is_empty() {
                    notify_state(group, GroupState::Serve, ctx);
                }
                self.report_to_controller(group, disks, |place| Event::Up { place }, common, ctx);
            }
            MachineEvent::Stopped { group } => {
                notify_state(group, GroupState::Sleep, ctx);
                let group_state = &mut self.groups[group as usize];
                let spinning_down = std::mem::take(&mut group_state.spinning_down);
                group_state.is_awake = false;
                common.stats.power.stop(ctx.now(), spinning_down.count());
                self.report_to_controller(
                    group,
                    spinning_down,
                    |place| Event::Down { place },
                    common,
                    ctx,
                );
            }
            // A timer that an earlier one has replaced is obsolete.
            MachineEvent::Timer if self.timer == Some(ctx.now()) => {
                self.timer = None;
                self.step(Event::Timer, common, ctx);
            }
            MachineEvent::Timer => {}
            MachineEvent::Fails => self.fails(common, ctx),
        }
    }

    fn spun_up<O: Observer<Rack>>(
        &mut self,
        group: u32,
        disks: Members,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let group_state = &mut self.groups[group as usize];
        group_state.spinning_up = disks.positions().fold(group_state.spinning_up, Members::without);
        let visit = group_state.visit;
        if group_state.spinning_up.is_empty() {
            notify_state(group, GroupState::Mount, ctx);
        }
        common.stats.power.spun_up(ctx.now(), disks.count());
        let is_busy = self.queued(group) > self.busy_above;
        let law = if is_busy { &self.latencies.mount_busy } else { &self.latencies.mount };
        let turning = std::mem::take(&mut self.groups[group as usize].spinning_at_s);
        let takes = match turning.iter().copied().max_by(f64::total_cmp) {
            Some(last) => (law.after_each_s(&turning, &mut self.times) - last).max(0.0),
            None if self.places.is_some() => law.draw_one_s(&mut self.times),
            None => law.draw_s(&mut self.times),
        };
        plan(ctx.now() + seconds(takes), MachineEvent::Mounted { group, visit, disks }, ctx);
    }

    /// Fails a disk in standby or in service; its data must be rebuilt.
    fn fails<O: Observer<Rack>>(&mut self, common: &mut Common, ctx: &mut Context<'_, Rack, O>) {
        let Some(rebuild) = self.rebuild else { return };
        common.stats.rebuild.since = Some(ctx.now());
        let place = self.assignment.places(GroupId::new(rebuild.group))[0];
        let state = self.controller.place_state(place);
        let group_state = &self.groups[rebuild.group as usize];
        let moves = !group_state.rising.union(group_state.spinning_down).is_empty();
        // A disk that is changing state keeps spinning: only its stacks are rebuilt.
        if !moves && rebuild.stacks > 0 {
            let spun_up = u32::from(state == PlaceState::Spinning);
            common.stats.power.stop(ctx.now(), spun_up);
            let (part, loss) = (Part::Place(place), Loss::Gone);
            self.step(Event::Lost { part, loss }, common, ctx);
        }
        self.submit_rebuilds(common, ctx);
    }

    /// Submits rebuild operations until as many stacks wait as are allowed.
    fn submit_rebuilds<O: Observer<Rack>>(
        &mut self,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let Some(Rebuild { group, stack, .. }) = self.rebuild else { return };
        let waiting = self.left - self.unsubmitted;
        let count = REBUILD_WINDOW.saturating_sub(waiting).min(self.unsubmitted);
        self.unsubmitted -= count;
        for _ in 0..count {
            let times = Times::new(ctx.now(), None);
            let op = Op { kind: Kind::Rebuild, times, group, stack: to_f64(stack) };
            let index = common.ops.put(op);
            self.handle_arrival(index, common, ctx);
        }
    }

    /// Reports an event of disks of a group to the controller.
    fn report_to_controller<O: Observer<Rack>>(
        &mut self,
        group: u32,
        disks: Members,
        event: fn(PlaceId) -> Event,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        for position in disks.positions() {
            let place = self.assignment.places(GroupId::new(group))[position];
            self.step(event(place), common, ctx);
        }
    }

    fn step<O: Observer<Rack>>(
        &mut self,
        event: Event,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let mut out = std::mem::take(&mut self.out);
        self.controller.step(ctx.now(), event, &mut out);
        // The check goes through every disk, which is too expensive after each event.
        #[cfg(test)]
        if self.orders.is_multiple_of(CHECKED_EACH) && matches!(event, Event::Submit { .. }) {
            self.controller.check();
        }
        for command in out.as_slice() {
            self.execute(*command, common, ctx);
        }
        out.clear();
        self.out = out;
        while let Some(group) = self.commanded.pop() {
            self.begin(group, common, ctx);
        }
        if let Some(at) = self.controller.deadline()
            && self.timer.is_none_or(|timer| at < timer)
        {
            self.timer = Some(at);
            plan(at, MachineEvent::Timer, ctx);
        }
    }

    fn execute<O: Observer<Rack>>(
        &mut self,
        command: Command,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        match command {
            Command::SpinUp { place, .. } => {
                let position = self.commanded(place, ctx.now());
                let group = self.assignment.slot(place).group.get();
                let group = &mut self.groups[group as usize];
                group.commanded = group.commanded.with(position);
            }
            Command::SpinDown { place } => {
                let position = self.commanded(place, ctx.now());
                let group = self.assignment.slot(place).group.get();
                let group = &mut self.groups[group as usize];
                group.spinning_down = group.spinning_down.with(position);
            }
            Command::Run { op, .. } => self.run(index_of(op), common, ctx),
            Command::Refuse { op, refusal } => {
                let op = common.ops.take(index_of(op));
                let group = op.group;
                match (op.kind, refusal) {
                    (Kind::Read, Refusal::Busy { .. } | Refusal::TooFew { .. }) => {
                        common.stats.rejected(ctx.now());
                        ctx.record(&Observation::Rejected { group });
                        ctx.notify(Observation::Rejected { group });
                    }
                    (Kind::Rebuild, refusal) => {
                        unreachable!(
                            "the controller refused a rebuild within its window: {refusal:?}"
                        )
                    }
                }
            }
            Command::Alarm { .. } | Command::Overdrawn { .. } => {}
        }
    }

    /// Records that a disk got a command. Returns its position in its group.
    fn commanded(&mut self, place: PlaceId, now: Instant) -> usize {
        let slot = self.assignment.slot(place);
        let group = slot.group.get();
        if self.commanded.last() != Some(&group) && !self.commanded.contains(&group) {
            self.commanded.push(group);
        }
        self.switches_since[class_of(group)].get_or_insert(now);
        slot.position
    }

    /// Starts the state change of a group's disks after the commands of a step.
    fn begin<O: Observer<Rack>>(
        &mut self,
        group: u32,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let group_state = &mut self.groups[group as usize];
        let disks = std::mem::take(&mut group_state.commanded);
        if disks.is_empty() {
            // Disks that are spun down before they came up are no longer waited for.
            let unfinished = std::mem::take(&mut group_state.spinning_up).count();
            (group_state.rising, group_state.visit) = (Members::NONE, group_state.visit + 1);
            common.stats.power.spun_up(ctx.now(), unfinished);
            notify_state(group, GroupState::Unmount, ctx);
            let takes = seconds(self.latencies.unmount.draw_s(&mut self.times));
            plan(ctx.now() + takes, MachineEvent::Stopped { group }, ctx);
            return;
        }
        assert!(
            group_state.spinning_down.is_empty(),
            "a group spins up only when none of its disks spins down"
        );
        (group_state.rising, group_state.spinning_up) =
            (group_state.rising.union(disks), group_state.spinning_up.union(disks));
        let visit = group_state.visit;
        if !std::mem::replace(&mut group_state.is_awake, true) {
            notify_state(group, GroupState::SpinUp, ctx);
        }
        if self.places.is_some() {
            for position in disks.positions() {
                let takes = self.latencies.spin_up.draw_one_s(&mut self.times);
                common.stats.power.spin_up(ctx.now(), 1, takes);
                let disks = Members::NONE.with(position);
                let spun_up = MachineEvent::SpunUp { group, visit, disks };
                plan(ctx.now() + seconds(takes), spun_up, ctx);
            }
            common.stats.spun_up(ctx.now(), Some(group), disks.count());
            return;
        }
        let (takes, together) = if self.mount_each {
            group_state.spinning_at_s = self.latencies.spin_up.draw_each_s(&mut self.times);
            (
                group_state.spinning_at_s.iter().copied().fold(0.0, f64::max),
                group_state.spinning_at_s.iter().sum(),
            )
        } else {
            let takes = self.latencies.spin_up.draw_s(&mut self.times);
            (takes, self.latencies.spin_up.total_s(takes))
        };
        common.stats.spun_up(ctx.now(), Some(group), disks.count());
        common.stats.power.spin_up(ctx.now(), disks.count(), together);
        plan(ctx.now() + seconds(takes), MachineEvent::SpunUp { group, visit, disks }, ctx);
    }

    /// Starts an operation: its disks seek to the first bytes.
    fn run<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let op = common.ops.get_mut(index);
        let since = self.switches_since[class_of(op.group)].take();
        op.times.dequeued = since.unwrap_or_else(|| ctx.now()).max(op.times.arrived);
        if op.kind == Kind::Read {
            ctx.notify(Observation::ServiceStarted { group: op.group });
        }
        ctx.put(ctx.now() + common.transfers.seek(), ScheduledEvent(PendingEvent::SeekDone(index)));
    }
}

/// Returns the paper's policy with the settings of a scenario.
fn policy(scenario: &Scenario) -> Policy {
    let scheduler = &scenario.scheduler;
    let order = match scheduler.order {
        ServiceOrder::Batches => Order::Batches,
        ServiceOrder::Due => Order::Due(Due { patience: scheduler.patience, ..Due::default() }),
    };
    let per_day = scheduler.max_spinups_per_day;
    let spin_ups = match scheduler.spin_ups {
        SpinUpScope::All => SpinUps::All,
        SpinUpScope::Needed => SpinUps::Needed { spare: scheduler.spare },
    };
    Policy {
        order,
        spin_ups,
        budget: per_day.map(|max_spinups_per_day| Budget { max_spinups_per_day }),
        reach_bytes: Some(scheduler.reorder),
        background_share: Ratio::new(scheduler.rebuild_share).unwrap_or_default(),
        turn: scheduler.turn,
        client_queue: scheduler.queue_max as usize,
        joins_running: scheduler.joins_running,
        spins_up_in_turn: scheduler.serial_spin_ups,
        ..Policy::pelican()
    }
}

fn index_of(op: OpId) -> OpIndex {
    OpIndex(u32::try_from(op.get() & ((1 << SLOT_BITS) - 1)).unwrap_or(u32::MAX))
}

fn plan<O: Observer<Rack>>(at: Instant, machines: MachineEvent, ctx: &mut Context<'_, Rack, O>) {
    ctx.put(at, ScheduledEvent(PendingEvent::MachineEvent(machines)));
}

fn notify_state<O: Observer<Rack>>(group: u32, is: GroupState, ctx: &mut Context<'_, Rack, O>) {
    let observation = Observation::Group { group, is };
    ctx.record(&observation);
    ctx.notify(observation);
}
