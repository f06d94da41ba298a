//! The rack with disks in standby, with the paper's decisions implemented as simply as possible:
//! the reference for the controller (Pelican, OSDI 2014, section 2.2).
//!
//! ```text
//!   a read of another group:  Serve --> Unmount --> SpinUp --> Mount --> Serve
//!                                            (one of a half at a time in the prototype)
//! ```

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant, Seed};

use super::laws::{Laws, seconds, stream};
use super::reference::{Queue, Turns};
use super::result::Times;
use super::run::{Common, Doing, Next, Planned, Rack, Seen};
use super::scenario::{Rebuild, Scenario};
use super::shape::{CLASSES, DISKS_OF_GROUP, class_of, half_of};
use super::share::Kind;
use super::transfers::{Op, OpIndex};
use super::workload::float;
use crate::engine::{Agenda, Observer, Stage};
use crate::workload::Draws;

/// Maximum number of stacks of a failed disk that wait for their rebuild.
const REBUILD_WINDOW: u32 = 64;

/// An event of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
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
pub(crate) struct Walked {
    classes: Vec<Class>,
    laws: Laws,
    times: Draws,
    reorder: f64,
    busy_above: usize,
    /// Classes that wait to spin up, where only one of a half may at a time.
    gates: Option<[VecDeque<usize>; 2]>,
    /// The failed disk, its stacks not requested yet, and those not written yet.
    rebuild: Option<Rebuild>,
    unasked: u32,
    left: u32,
}

/// A class: at most one of its groups is active.
#[derive(Debug)]
struct Class {
    queues: [Queue; 2],
    turns: Turns,
    /// The group that is active, or is spinning down or up.
    group: Option<u32>,
    doing: Doing,
    /// The group to spin up next.
    target: u32,
    /// The operation in service.
    serving: Option<OpIndex>,
    /// When the turn of the current or awaited operation began.
    since: Instant,
    kind: Kind,
}

impl Walked {
    pub(crate) fn new(scenario: &Scenario, seed: &Seed, agenda: &mut Agenda<Planned>) -> Self {
        let of = &scenario.scheduler;
        let class = || Class {
            queues: Default::default(),
            turns: Turns::new(of.rebuild_share, of.turn.as_secs_f64()),
            group: None,
            doing: Doing::Sleep,
            target: 0,
            serving: None,
            since: Instant::ZERO,
            kind: Kind::Read,
        };
        if scenario.rebuild.is_some() {
            let fails = Planned(Next::Group(Happening::Fails));
            agenda.push(scenario.measured()[0], fails);
        }
        let stacks = scenario.rebuild.map_or(0, |rebuild| rebuild.stacks);
        Self {
            classes: (0..CLASSES).map(|_| class()).collect(),
            laws: Laws::new(&scenario.disks),
            times: stream(seed, b"times"),
            reorder: float(of.reorder),
            busy_above: scenario.disks.busy_above as usize,
            gates: of.serial_spin_ups.then(Default::default),
            rebuild: scenario.rebuild,
            unasked: stacks,
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

    pub(crate) fn arrive<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let op = common.ops.get(index);
        let class = class_of(op.group);
        let bytes = op.stack * f64::from(common.scenario.disks.stacks);
        self.submit(index, op.kind, op.group, bytes);
        self.go_on(class, common, stage);
    }

    pub(crate) fn ended<O: Observer<Rack>>(
        &mut self,
        op: &Op,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let class = class_of(op.group);
        let of = &mut self.classes[class];
        of.serving = None;
        of.turns.used(op.kind, stage.now().since(of.since).as_secs_f64());
        of.since = stage.now();
        if op.kind == Kind::Rebuild {
            self.left -= 1;
            let bytes = op.stack * f64::from(common.scenario.disks.read_stacks);
            common.accounts.rebuilt(stage.now(), bytes, self.left);
            self.ask(common, stage.now());
        }
        self.go_on(class, common, stage);
    }

    pub(crate) fn happen<O: Observer<Rack>>(
        &mut self,
        happening: Happening,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        match happening {
            Happening::Fails => {
                common.accounts.rebuild.since = Some(stage.now());
                self.ask(common, stage.now());
                if let Some(rebuild) = self.rebuild {
                    self.go_on(class_of(rebuild.group), common, stage);
                }
            }
            Happening::Step { class } => self.step(usize::from(class), common, stage),
        }
    }

    /// Submits rebuild operations until as many stacks wait as are allowed.
    fn ask(&mut self, common: &mut Common, now: Instant) {
        let Some(Rebuild { group, stack, .. }) = self.rebuild else { return };
        let waiting = self.left - self.unasked;
        let asked = REBUILD_WINDOW.saturating_sub(waiting).min(self.unasked);
        for _ in 0..asked {
            let times = Times::new(now, None);
            let stack = float(stack);
            let index = common.ops.put(Op { kind: Kind::Rebuild, times, group, stack });
            self.submit(index, Kind::Rebuild, group, stack);
        }
        self.unasked -= asked;
    }

    fn submit(&mut self, index: OpIndex, kind: Kind, group: u32, bytes: f64) {
        let of = &mut self.classes[class_of(group)];
        let queue = &mut of.queues[kind as usize];
        if queue.len() == 0 {
            of.turns.wakes(kind);
        }
        queue.insert(index, group, bytes, self.reorder);
    }

    /// Starts the next operation of a class that is idle and not switching.
    fn go_on<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let of = &mut self.classes[class];
        if of.serving.is_some() || !matches!(of.doing, Doing::Sleep | Doing::Serve) {
            return;
        }
        let has = [0, 1].map(|kind: usize| of.queues[kind].len() > 0);
        let Some(mut kind) = of.turns.next(has) else {
            return;
        };
        let awake = of.group.filter(|_| of.doing == Doing::Serve);
        // Client reads of the group being rebuilt are served along with it.
        if kind == Kind::Rebuild && awake.is_some() && of.queues[0].head() == awake {
            kind = Kind::Read;
        }
        let Some(group) = of.queues[kind as usize].head() else { return };
        of.kind = kind;
        of.since = stage.now();
        if awake == Some(group) {
            self.serve(class, common, stage);
        } else {
            self.wake(class, group, common, stage);
        }
    }

    /// Serves the first operation of the queue, whose group is active.
    fn serve<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let of = &mut self.classes[class];
        let Some(index) = of.queues[of.kind as usize].pop() else { return };
        of.serving = Some(index);
        let op = common.ops.get_mut(index);
        op.times.dequeued = of.since;
        assert_eq!(Some(op.group), of.group, "only what is awake is read");
        if op.kind == Kind::Read {
            stage.show(Seen::Begun { group: op.group });
        }
        stage.put(stage.now() + common.transfers.seek(), Planned(Next::Found(index)));
    }

    /// Spins up a group, after the active one is unmounted.
    fn wake<O: Observer<Rack>>(
        &mut self,
        class: usize,
        group: u32,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        self.classes[class].target = group;
        if self.classes[class].group.is_none() {
            self.spin_up_when_free(class, common, stage);
            return;
        }
        let takes = self.laws.unmount.draw_s(&mut self.times);
        self.does(class, Doing::Unmount, seconds(takes), stage);
    }

    /// Handles the end of a class's state change.
    fn step<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        match self.classes[class].doing {
            Doing::Unmount => {
                common.accounts.power.stop(stage.now(), DISKS_OF_GROUP);
                self.is(class, Doing::Sleep, stage);
                self.classes[class].group = None;
                self.spin_up_when_free(class, common, stage);
            }
            Doing::SpinUp => {
                common.accounts.power.turn(stage.now(), DISKS_OF_GROUP);
                let waiting = self.classes[class].queues[Kind::Read as usize].len();
                let is_busy = waiting > self.busy_above;
                let law = if is_busy { &self.laws.mount_busy } else { &self.laws.mount };
                let takes = law.draw_s(&mut self.times);
                self.does(class, Doing::Mount, seconds(takes), stage);
                self.free_gate(class, common, stage);
            }
            Doing::Mount => {
                self.is(class, Doing::Serve, stage);
                // Newer reads may have a better claim, but the active group is served first.
                self.serve_awake(class, common, stage);
            }
            Doing::Sleep | Doing::Serve => unreachable!("nothing was begun"),
        }
    }

    /// Serves the operation for which the group was spun up: it is still first in its queue.
    fn serve_awake<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let of = &self.classes[class];
        assert_eq!(of.queues[of.kind as usize].head(), of.group, "none is put before the first");
        self.serve(class, common, stage);
    }

    fn spin_up_when_free<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let half = half_of(self.classes[class].target);
        if let Some(gates) = &mut self.gates {
            gates[half].push_back(class);
            if gates[half].len() > 1 {
                // It spins up after those ahead of it.
                self.classes[class].doing = Doing::Unmount;
                return;
            }
        }
        self.spin_up(class, common, stage);
    }

    fn free_gate<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let half = half_of(self.classes[class].target);
        let Some(gates) = &mut self.gates else { return };
        gates[half].pop_front();
        if let Some(&next) = gates[half].front() {
            self.spin_up(next, common, stage);
        }
    }

    fn spin_up<O: Observer<Rack>>(
        &mut self,
        class: usize,
        common: &mut Common,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let takes = self.laws.spin_up.draw_s(&mut self.times);
        let together = self.laws.spin_up.together_s(takes);
        let group = self.classes[class].target;
        common.accounts.spun_up(stage.now(), Some(group), DISKS_OF_GROUP);
        common.accounts.power.spin_up(stage.now(), DISKS_OF_GROUP, together);
        self.classes[class].group = Some(group);
        self.does(class, Doing::SpinUp, seconds(takes), stage);
    }

    fn does<O: Observer<Rack>>(
        &mut self,
        class: usize,
        doing: Doing,
        takes: Duration,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        self.is(class, doing, stage);
        let step = Happening::Step { class: u8::try_from(class).unwrap_or(u8::MAX) };
        stage.put(stage.now() + takes, Planned(Next::Group(step)));
    }

    fn is<O: Observer<Rack>>(
        &mut self,
        class: usize,
        doing: Doing,
        stage: &mut Stage<'_, Rack, O>,
    ) {
        let of = &mut self.classes[class];
        of.doing = doing;
        if let Some(group) = of.group {
            let seen = Seen::Group { group, is: doing };
            stage.note(&seen);
            stage.show(seen);
        }
    }
}
