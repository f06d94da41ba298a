//! One run of a rack: reads arrive, wait for their disks and flow through the links of a server.
//!
//! ```text
//!   Read --full?--> rejected
//!     '--> layout: driven (by the controller that also serves live), provisioned, straw man
//!            '--> seek --> flow (max-min share of the links) --> ended
//! ```

use fulgurite_units::{Instant, Seed};

use super::driven_rack::{DrivenRack, MachineEvent};
use super::provisioned_rack::Provisioned;
use super::random_rack::Random;
use super::reference_rack::{GroupEvent, ReferenceRack};
use super::result::{RunResult, Stats, Times};
use super::scenario::{Configuration, Scenario};
use super::shape::{CLASSES, GROUPS, class_of, half_of};
use super::share::Kind;
use super::transfers::{Op, OpIndex, Ops, Transfers};
use super::workload::{Read, Reads, to_f64};
use crate::Error;
use crate::engine::{Context, Ended, EventQueue, Observer, System};

/// A rack of cold disks.
#[derive(Debug)]
pub struct Rack {
    common: Common,
    layout: Layout,
}

/// State shared by all layouts.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) scenario: Scenario,
    pub(crate) stats: Stats,
    pub(crate) ops: Ops,
    pub(crate) transfers: Transfers,
}

/// What decides which disks spin.
#[derive(Debug)]
enum Layout {
    Driven(Box<DrivenRack>),
    Reference(Box<ReferenceRack>),
    Provisioned(Provisioned),
    Random(Box<Random>),
}

/// A pending event of a rack.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledEvent(pub(crate) PendingEvent);

/// The kinds of pending events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PendingEvent {
    /// The seek of an operation is done.
    SeekDone(OpIndex),
    /// A flow of a server ends, unless something has changed since that was planned.
    Ends { server: u8, version: u64 },
    /// Straw man: the disks in the way of a read are unmounted.
    Unmounted(OpIndex),
    /// Straw man: the disks of a read have spun up.
    SpunUp(OpIndex),
    /// An event of the rack that is run by the controller.
    MachineEvent(MachineEvent),
    /// An event of the reference.
    Group(GroupEvent),
}

/// Observable events of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// A read arrived.
    Arrived {
        /// The group of its blob.
        group: u32,
    },
    /// A read was rejected.
    Rejected {
        /// The group.
        group: u32,
    },
    /// The turn of a read came.
    ServiceStarted {
        /// The group.
        group: u32,
    },
    /// The first byte of a read was sent.
    FirstByte {
        /// The group.
        group: u32,
    },
    /// The last byte of a read was sent.
    Departed {
        /// The group.
        group: u32,
    },
    /// A stack of a failed disk was written elsewhere.
    Rebuilt {
        /// The group.
        group: u32,
    },
    /// The state of a group's disks changed.
    Group {
        /// The group.
        group: u32,
        /// The new state.
        is: GroupState,
    },
}

/// The state of a group's disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// They are in standby.
    Sleep,
    /// They are spinning up.
    SpinUp,
    /// They spin, and are being mounted.
    Mount,
    /// They can be read.
    Serve,
    /// They are being unmounted.
    Unmount,
}

impl System for Rack {
    type Scenario = Scenario;
    type Arrival = Read;
    type PendingEvent = ScheduledEvent;
    type Observation<'a> = Observation;
    type Result = RunResult;

    fn new(
        scenario: &Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<ScheduledEvent>,
    ) -> Result<Self, Error> {
        scenario.validate()?;
        let mut common = Common {
            scenario: scenario.clone(),
            stats: Stats::new(scenario),
            ops: Ops::default(),
            transfers: Transfers::new(&scenario.disks, &scenario.network),
        };
        let layout = match scenario.configuration {
            Configuration::Driven => {
                Layout::Driven(Box::new(DrivenRack::new(scenario, seed, event_queue)?))
            }
            Configuration::Reference => {
                Layout::Reference(Box::new(ReferenceRack::new(scenario, seed, event_queue)))
            }
            Configuration::Provisioned => Layout::Provisioned(Provisioned::new(&mut common)),
            Configuration::Random { look_ahead } => {
                Layout::Random(Box::new(Random::new(&scenario.disks, look_ahead, seed)))
            }
        };
        Ok(Self { common, layout })
    }

    fn arrivals(scenario: &Scenario, seed: &Seed) -> Result<impl Iterator<Item = Read>, Error> {
        Reads::new(&scenario.workload, GROUPS, scenario.measured(), seed)
    }

    fn arrival_time(arrival: &Read) -> Instant {
        arrival.at
    }

    fn handle_arrival<O: Observer<Self>>(&mut self, read: &Read, ctx: &mut Context<'_, Self, O>) {
        let Read { at, group, size, promise } = *read;
        ctx.record(&(Observation::Arrived { group }, size));
        ctx.notify(Observation::Arrived { group });
        let limit = self.common.scenario.scheduler.queue_max;
        let (queued, limit) = match &self.layout {
            // The controller rejects reads itself.
            Layout::Driven(driven_rack) => (driven_rack.queued(group), u32::MAX),
            Layout::Reference(reference_rack) => (reference_rack.queued(group), limit),
            Layout::Provisioned(provisioned) => (provisioned.queued(group), limit),
            Layout::Random(random) => {
                (random.queued(), limit * u32::try_from(CLASSES).unwrap_or(1))
            }
        };
        self.common.stats.offered(at, u64::from(queued));
        if queued >= limit {
            self.common.stats.rejected(at);
            ctx.record(&Observation::Rejected { group });
            ctx.notify(Observation::Rejected { group });
            return;
        }
        let times = Times::new(at, promise);
        let stack = to_f64(size) / f64::from(self.common.scenario.disks.stacks);
        let index = self.common.ops.put(Op { kind: Kind::Read, times, group, stack });
        match &mut self.layout {
            Layout::Driven(driven_rack) => driven_rack.handle_arrival(index, &mut self.common, ctx),
            Layout::Reference(reference_rack) => {
                reference_rack.handle_arrival(index, &mut self.common, ctx)
            }
            Layout::Provisioned(queues) => queues.handle_arrival(index, &mut self.common, ctx),
            Layout::Random(random) => random.handle_arrival(index, &mut self.common, ctx),
        }
    }

    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: ScheduledEvent,
        ctx: &mut Context<'_, Self, O>,
    ) {
        match (next.0, &mut self.layout) {
            (PendingEvent::SeekDone(index), _) => self.seek_done(index, ctx),
            (PendingEvent::Ends { server, version }, _) => {
                self.ends(usize::from(server), version, ctx)
            }
            (PendingEvent::Unmounted(index), Layout::Random(random)) => {
                random.unmounted(index, &mut self.common, ctx);
            }
            (PendingEvent::SpunUp(index), Layout::Random(random)) => {
                random.spun_up(index, &mut self.common, ctx);
            }
            (PendingEvent::MachineEvent(machines), Layout::Driven(driven_rack)) => {
                driven_rack.handle_event(machines, &mut self.common, ctx);
            }
            (PendingEvent::Group(happening), Layout::Reference(reference_rack)) => {
                reference_rack.handle_event(happening, &mut self.common, ctx);
            }
            (
                PendingEvent::Unmounted(_)
                | PendingEvent::SpunUp(_)
                | PendingEvent::MachineEvent(_)
                | PendingEvent::Group(_),
                Layout::Driven(_)
                | Layout::Reference(_)
                | Layout::Provisioned(_)
                | Layout::Random(_),
            ) => unreachable!("each layout schedules only its own events"),
        }
    }

    fn is_done(&self) -> bool {
        self.common.ops.is_empty()
            && match &self.layout {
                Layout::Driven(driven_rack) => driven_rack.is_done(),
                Layout::Reference(reference_rack) => reference_rack.is_done(),
                Layout::Provisioned(_) | Layout::Random(_) => true,
            }
    }

    fn result(self, ended: Ended) -> RunResult {
        self.common.stats.result(ended)
    }
}

impl Rack {
    /// Sends the first byte of an operation, and starts its flow.
    fn seek_done<O: Observer<Self>>(&mut self, index: OpIndex, ctx: &mut Context<'_, Self, O>) {
        let op = *self.common.ops.get(index);
        let now = ctx.now();
        if op.kind == Kind::Read {
            let failed = self.common.scenario.rebuild.map(|rebuild| class_of(rebuild.group));
            let same_class = failed == Some(class_of(op.group));
            self.common.stats.first_byte(now, op.times, same_class);
            ctx.record(&Observation::FirstByte { group: op.group });
            ctx.notify(Observation::FirstByte { group: op.group });
        }
        let server = self.common.transfers.server_of(half_of(op.group));
        self.common.transfers.begin(now, server, index, &op);
        self.plan_end(server, ctx);
    }

    fn ends<O: Observer<Self>>(
        &mut self,
        server: usize,
        version: u64,
        ctx: &mut Context<'_, Self, O>,
    ) {
        if !self.common.transfers.is_current(server, version) {
            return;
        }
        while let Some(index) = self.common.transfers.take_ended(ctx.now(), server) {
            self.ended(index, ctx);
        }
        self.plan_end(server, ctx);
    }

    /// Schedules the end of the flow that ends next.
    fn plan_end<O: Observer<Self>>(&self, server: usize, ctx: &mut Context<'_, Self, O>) {
        if let Some((at, version)) = self.common.transfers.next_end(server) {
            let server = u8::try_from(server).unwrap_or(u8::MAX);
            ctx.put(at, ScheduledEvent(PendingEvent::Ends { server, version }));
        }
    }

    fn ended<O: Observer<Self>>(&mut self, index: OpIndex, ctx: &mut Context<'_, Self, O>) {
        let op = self.common.ops.take(index);
        let now = ctx.now();
        let disks = &self.common.scenario.disks;
        let read = op.stack * f64::from(disks.read_stacks);
        let observation = match op.kind {
            Kind::Read => {
                let sent = op.stack * f64::from(disks.stacks);
                self.common.stats.ended(now, op.times, sent, read);
                Observation::Departed { group: op.group }
            }
            Kind::Rebuild => Observation::Rebuilt { group: op.group },
        };
        ctx.record(&observation);
        ctx.notify(observation);
        match &mut self.layout {
            Layout::Driven(driven_rack) => driven_rack.ended(index, &op, &mut self.common, ctx),
            Layout::Reference(reference_rack) => reference_rack.ended(&op, &mut self.common, ctx),
            Layout::Provisioned(queues) => queues.ended(op.group, &mut self.common, ctx),
            Layout::Random(random) => random.ended(index, &mut self.common, ctx),
        }
    }
}
