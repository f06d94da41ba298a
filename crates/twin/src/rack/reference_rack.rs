//! The rack with disks in standby, with the paper's decisions implemented as simply as possible:
//! the reference for the controller (Pelican, OSDI 2014, section 2.2).
//!
//! ```text
//!   a read of another group:  Serve --> Unmount --> SpinUp --> Mount --> Serve
//!                                            (one of a half at a time in the prototype)
//! ```

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant, Seed};

use super::latencies::{GroupLatencies, seconds, stream};
use super::reference_queue::{FairScheduler, Queue};
use super::result::Times;
use super::run::{Common, GroupState, Observation, PendingEvent, Rack, ScheduledEvent};
use super::scenario::{Rebuild, Scenario};
use super::shape::{CLASSES, DISKS_OF_GROUP, class_of, half_of};
use super::share::Kind;
use super::transfers::{Op, OpIndex};
use super::workload::to_f64;
use crate::engine::{Context, EventQueue, Observer};
use crate::workload::Draws;

/// Maximum number of stacks of a failed disk that wait for their rebuild.
const REBUILD_WINDOW: u32 = 64;

/// An event of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupEvent {
    /// A state change of a class is complete.
    Step {
        /// The class.
        class: u8,
    },
    /// A disk fails.
    Fails,
}

/// A rack with disks in standby.
#[derive(Debug)]
pub(crate) struct ReferenceRack {
    classes: Vec<Class>,
    latencies: GroupLatencies,
    times: Draws,
    reorder: f64,
    busy_above: usize,
    /// Classes that wait to spin up, where only one of a half may at a time.
    gates: Option<[VecDeque<usize>; 2]>,
    /// The failed disk, its stacks not requested yet, and those not written yet.
    rebuild: Option<Rebuild>,
    unsubmitted: u32,
    left: u32,
}

/// A class: at most one of its groups is active.
#[derive(Debug)]
struct Class {
    queues: [Queue; 2],
    fair_scheduler: FairScheduler,
    /// The group that is active, or is spinning down or up.
    group: Option<u32>,
    state: GroupState,
    /// The group to spin up next.
    target: u32,
    /// The operation in service.
    serving: Option<OpIndex>,
    /// When the turn of the current or awaited operation began.
    since: Instant,
    kind: Kind,
}

impl ReferenceRack {
    pub(crate) fn new(
        scenario: &Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<ScheduledEvent>,
    ) -> Self {
        let scheduler = &scenario.scheduler;
        let class = || Class {
            queues: Default::default(),
            fair_scheduler: FairScheduler::new(
                scheduler.rebuild_share,
                scheduler.turn.as_secs_f64(),
            ),
            group: None,
            state: GroupState::Sleep,
            target: 0,
            serving: None,
            since: Instant::ZERO,
            kind: Kind::Read,
        };
        if scenario.rebuild.is_some() {
            let fails = ScheduledEvent(PendingEvent::Group(GroupEvent::Fails));
            event_queue.push(scenario.measured()[0], fails);
        }
        let stacks = scenario.rebuild.map_or(0, |rebuild| rebuild.stacks);
        Self {
            classes: (0..CLASSES).map(|_| class()).collect(),
            latencies: GroupLatencies::new(&scenario.disks),
            times: stream(seed, b"times"),
            reorder: to_f64(scheduler.reorder),
            busy_above: scenario.disks.busy_above as usize,
            gates: scheduler.serial_spin_ups.then(Default::default),
            rebuild: scenario.rebuild,
            unsubmitted: stacks,
            left: stacks,
        }
    }

    /// Returns the number of waiting reads in the class of a group.
    pub(crate) fn queued(&self, group: u32) -> u32 {
        let waiting = self.classes[class_of(group)].queues[Kind::Read as usize].len();
        u32::try_from(waiting).unwrap_or(u32::MAX)
    }

    /// Whether no disk waits for its rebuild.
    pub(crate) const fn is_done(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn handle_arrival<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let op = common.ops.get(index);
        let class = class_of(op.group);
        let bytes = op.stack * f64::from(common.scenario.disks.stacks);
        self.submit(index, op.kind, op.group, bytes);
        self.start_next(class, common, ctx);
    }

    pub(crate) fn ended<O: Observer<Rack>>(
        &mut self,
        op: &Op,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let class = class_of(op.group);
        let class_state = &mut self.classes[class];
        class_state.serving = None;
        class_state.fair_scheduler.used(op.kind, ctx.now().since(class_state.since).as_secs_f64());
        class_state.since = ctx.now();
        if op.kind == Kind::Rebuild {
            self.left -= 1;
            let bytes = op.stack * f64::from(common.scenario.disks.read_stacks);
            common.stats.rebuilt(ctx.now(), bytes, self.left);
            self.submit_rebuilds(common, ctx.now());
        }
        self.start_next(class, common, ctx);
    }

    pub(crate) fn handle_event<O: Observer<Rack>>(
        &mut self,
        event: GroupEvent,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        match event {
            GroupEvent::Fails => {
                common.stats.rebuild.since = Some(ctx.now());
                self.submit_rebuilds(common, ctx.now());
                if let Some(rebuild) = self.rebuild {
                    self.start_next(class_of(rebuild.group), common, ctx);
                }
            }
            GroupEvent::Step { class } => self.step(usize::from(class), common, ctx),
        }
    }

    /// Submits rebuild operations until as many stacks wait as are allowed.
    fn submit_rebuilds(&mut self, common: &mut Common, now: Instant) {
        let Some(Rebuild { group, stack, .. }) = self.rebuild else { return };
        let waiting = self.left - self.unsubmitted;
        let count = REBUILD_WINDOW.saturating_sub(waiting).min(self.unsubmitted);
        for _ in 0..count {
            let times = Times::new(now, None);
            let stack = to_f64(stack);
            let index = common.ops.put(Op { kind: Kind::Rebuild, times, group, stack });
            self.submit(index, Kind::Rebuild, group, stack);
        }
        self.unsubmitted -= count;
    }

    fn submit(&mut self, index: OpIndex, kind: Kind, group: u32, bytes: f64) {
        let class_state = &mut self.classes[class_of(group)];
        let queue = &mut class_state.queues[kind as usize];
        if queue.len() == 0 {
            class_state.fair_scheduler.activate(kind);
        }
        queue.insert(index, group, bytes, self.reorder);
    }

    /// Starts the next operation of a class that is idle and not switching.
    fn start_next<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let class_state = &mut self.classes[class];
        if class_state.serving.is_some()
            || !matches!(class_state.state, GroupState::Sleep | GroupState::Serve)
        {
            return;
        }
        let has = [0, 1].map(|kind: usize| class_state.queues[kind].len() > 0);
        let Some(mut kind) = class_state.fair_scheduler.next(has) else {
            return;
        };
        let awake = class_state.group.filter(|_| class_state.state == GroupState::Serve);
        // Client reads of the group being rebuilt are served along with it.
        if kind == Kind::Rebuild && awake.is_some() && class_state.queues[0].head() == awake {
            kind = Kind::Read;
        }
        let Some(group) = class_state.queues[kind as usize].head() else { return };
        class_state.kind = kind;
        class_state.since = ctx.now();
        if awake == Some(group) {
            self.serve(class, common, ctx);
        } else {
            self.activate_group(class, group, common, ctx);
        }
    }

    /// Serves the first operation of the queue, whose group is active.
    fn serve<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let class_state = &mut self.classes[class];
        let Some(index) = class_state.queues[class_state.kind as usize].pop() else { return };
        class_state.serving = Some(index);
        let op = common.ops.get_mut(index);
        op.times.dequeued = class_state.since;
        assert_eq!(Some(op.group), class_state.group, "only an active group is read");
        if op.kind == Kind::Read {
            ctx.notify(Observation::ServiceStarted { group: op.group });
        }
        ctx.put(ctx.now() + common.transfers.seek(), ScheduledEvent(PendingEvent::SeekDone(index)));
    }

    /// Spins up a group, after the active one is unmounted.
    fn activate_group<O: Observer<Rack>>(
        &mut self,
        class: usize,
        group: u32,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        self.classes[class].target = group;
        if self.classes[class].group.is_none() {
            self.spin_up_when_free(class, common, ctx);
            return;
        }
        let takes = self.latencies.unmount.draw_s(&mut self.times);
        self.begin_transition(class, GroupState::Unmount, seconds(takes), ctx);
    }

    /// Handles the end of a class's state change.
    fn step<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        match self.classes[class].state {
            GroupState::Unmount => {
                common.stats.power.stop(ctx.now(), DISKS_OF_GROUP);
                self.set_state(class, GroupState::Sleep, ctx);
                self.classes[class].group = None;
                self.spin_up_when_free(class, common, ctx);
            }
            GroupState::SpinUp => {
                common.stats.power.spun_up(ctx.now(), DISKS_OF_GROUP);
                let waiting = self.classes[class].queues[Kind::Read as usize].len();
                let is_busy = waiting > self.busy_above;
                let law = if is_busy { &self.latencies.mount_busy } else { &self.latencies.mount };
                let takes = law.draw_s(&mut self.times);
                self.begin_transition(class, GroupState::Mount, seconds(takes), ctx);
                self.free_gate(class, common, ctx);
            }
            GroupState::Mount => {
                self.set_state(class, GroupState::Serve, ctx);
                // Newer reads may have a better claim, but the active group is served first.
                self.serve_after_spin_up(class, common, ctx);
            }
            GroupState::Sleep | GroupState::Serve => unreachable!("no state change is in progress"),
        }
    }

    /// Serves the operation for which the group was spun up: it is still first in its queue.
    fn serve_after_spin_up<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let class_state = &self.classes[class];
        assert_eq!(
            class_state.queues[class_state.kind as usize].head(),
            class_state.group,
            "no operation overtakes the first one"
        );
        self.serve(class, common, ctx);
    }

    fn spin_up_when_free<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let half = half_of(self.classes[class].target);
        if let Some(gates) = &mut self.gates {
            gates[half].push_back(class);
            if gates[half].len() > 1 {
                // It spins up after those ahead of it.
                self.classes[class].state = GroupState::Unmount;
                return;
            }
        }
        self.spin_up(class, common, ctx);
    }

    fn free_gate<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let half = half_of(self.classes[class].target);
        let Some(gates) = &mut self.gates else { return };
        gates[half].pop_front();
        if let Some(&next) = gates[half].front() {
            self.spin_up(next, common, ctx);
        }
    }

    fn spin_up<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let takes = self.latencies.spin_up.draw_s(&mut self.times);
        let together = self.latencies.spin_up.total_s(takes);
        let group = self.classes[class].target;
        common.stats.spun_up(ctx.now(), Some(group), DISKS_OF_GROUP);
        common.stats.power.spin_up(ctx.now(), DISKS_OF_GROUP, together);
        self.classes[class].group = Some(group);
        self.begin_transition(class, GroupState::SpinUp, seconds(takes), ctx);
    }

    fn begin_transition<O: Observer<Rack>>(
        &mut self,
        class: usize,
        state: GroupState,
        takes: Duration,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        self.set_state(class, state, ctx);
        let step = GroupEvent::Step { class: u8::try_from(class).unwrap_or(u8::MAX) };
        ctx.put(ctx.now() + takes, ScheduledEvent(PendingEvent::Group(step)));
    }

    fn set_state<O: Observer<Rack>>(
        &mut self,
        class: usize,
        state: GroupState,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let class_state = &mut self.classes[class];
        class_state.state = state;
        if let Some(group) = class_state.group {
            let observation = Observation::Group { group, is: state };
            ctx.record(&observation);
            ctx.notify(observation);
        }
    }
}
