//! One run of a rack: reads arrive, wait for their disks and flow through the links of a server.
//!
//! ```text
//!   Read --full?--> rejected
//!     '--> layout: Pelican (the controller that also serves live), provisioned, straw man
//!            '--> seek --> flow (max-min share of the links) --> ended
//! ```

use fulgurite_units::{Instant, Seed};

use super::driven::{Driven, Machines};
use super::provisioned::Provisioned;
use super::random::Random;
use super::result::{Accounts, RunResult, Times};
use super::scenario::{Configuration, Scenario};
use super::shape::{CLASSES, GROUPS, class_of, half_of};
use super::share::Kind;
use super::transfers::{Op, OpIndex, Ops, Transfers};
use super::walked::{Happening, Walked};
use super::workload::{Read, Reads, float};
use crate::Error;
use crate::engine::{Agenda, Ended, Observer, Stage, System};

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
    pub(crate) accounts: Accounts,
    pub(crate) ops: Ops,
    pub(crate) transfers: Transfers,
}

/// What decides which disks spin.
#[derive(Debug)]
enum Layout {
    Pelican(Box<Driven>),
    Reference(Box<Walked>),
    Provisioned(Provisioned),
    Random(Box<Random>),
}

/// A pending event of a rack.
#[derive(Clone, Copy, Debug)]
pub struct Planned(pub(crate) Next);

/// The kinds of pending events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// The seek of an operation is done.
    Found(OpIndex),
    /// A flow of a server ends, unless something has changed since that was planned.
    Ends { server: u8, version: u64 },
    /// Straw man: the disks in the way of a read are unmounted.
    Unmounted(OpIndex),
    /// Straw man: the disks of a read have spun up.
    Turned(OpIndex),
    /// An event of the rack that is run by the controller.
    Machines(Machines),
    /// An event of the reference.
    Group(Happening),
}

/// Observable events of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// A read arrived.
    Came {
        /// The group of its blob.
        group: u32,
    },
    /// A read was rejected.
    Rejected {
        /// The group.
        group: u32,
    },
    /// The turn of a read came.
    Begun {
        /// The group.
        group: u32,
    },
    /// The first byte of a read was sent.
    FirstByte {
        /// The group.
        group: u32,
    },
    /// The last byte of a read was sent.
    Gone {
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
        is: Doing,
    },
}

/// The state of a group's disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
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
    const NAME: &'static str = "pelican";
    type Scenario = Scenario;
    type Arrival = Read;
    type Next = Planned;
    type Seen<'a> = Seen;
    type Result = RunResult;

    fn new(scenario: &Scenario, seed: &Seed, agenda: &mut Agenda<Planned>) -> Result<Self, Error> {
        scenario.validate()?;
        let mut common = Common {
            scenario: scenario.clone(),
            accounts: Accounts::new(scenario),
            ops: Ops::default(),
            transfers: Transfers::new(&scenario.disks, &scenario.network),
        };
        let layout = match scenario.configuration {
            Configuration::Pelican => {
                Layout::Pelican(Box::new(Driven::new(scenario, seed, agenda)?))
            }
            Configuration::Reference => {
                Layout::Reference(Box::new(Walked::new(scenario, seed, agenda)))
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

    fn arrives_at(arrival: &Read) -> Instant {
        arrival.at
    }

    fn arrive<O: Observer<Self>>(&mut self, read: &Read, stage: &mut Stage<'_, Self, O>) {
        let Read { at, group, size, promise } = *read;
        stage.note(&(Seen::Came { group }, size));
        stage.show(Seen::Came { group });
        let limit = self.common.scenario.scheduler.queue_max;
        let (queued, limit) = match &self.layout {
            // The controller rejects reads itself.
            Layout::Pelican(driven) => (driven.queued(group), u32::MAX),
            Layout::Reference(walked) => (walked.queued(group), limit),
            Layout::Provisioned(provisioned) => (provisioned.queued(group), limit),
            Layout::Random(random) => {
                (random.queued(), limit * u32::try_from(CLASSES).unwrap_or(1))
            }
        };
        self.common.accounts.offered(at, u64::from(queued));
        if queued >= limit {
            self.common.accounts.rejected(at);
            stage.note(&Seen::Rejected { group });
            stage.show(Seen::Rejected { group });
            return;
        }
        let times = Times::new(at, promise);
        let stack = float(size) / f64::from(self.common.scenario.disks.stacks);
        let index = self.common.ops.put(Op { kind: Kind::Read, times, group, stack });
        match &mut self.layout {
            Layout::Pelican(driven) => driven.arrive(index, &mut self.common, stage),
            Layout::Reference(walked) => walked.arrive(index, &mut self.common, stage),
            Layout::Provisioned(of) => of.arrive(index, &mut self.common, stage),
            Layout::Random(random) => random.arrive(index, &mut self.common, stage),
        }
    }

    fn happen<O: Observer<Self>>(&mut self, next: Planned, stage: &mut Stage<'_, Self, O>) {
        match (next.0, &mut self.layout) {
            (Next::Found(index), _) => self.found(index, stage),
            (Next::Ends { server, version }, _) => self.ends(usize::from(server), version, stage),
            (Next::Unmounted(index), Layout::Random(random)) => {
                random.unmounted(index, &mut self.common, stage);
            }
            (Next::Turned(index), Layout::Random(random)) => {
                random.turned(index, &mut self.common, stage);
            }
            (Next::Machines(machines), Layout::Pelican(driven)) => {
                driven.happen(machines, &mut self.common, stage);
            }
            (Next::Group(happening), Layout::Reference(walked)) => {
                walked.happen(happening, &mut self.common, stage);
            }
            (
                Next::Unmounted(_) | Next::Turned(_) | Next::Machines(_) | Next::Group(_),
                Layout::Pelican(_)
                | Layout::Reference(_)
                | Layout::Provisioned(_)
                | Layout::Random(_),
            ) => unreachable!("each layout plans only what is its own"),
        }
    }

    fn is_done(&self) -> bool {
        self.common.ops.is_empty()
            && match &self.layout {
                Layout::Pelican(driven) => driven.is_done(),
                Layout::Reference(walked) => walked.is_done(),
                Layout::Provisioned(_) | Layout::Random(_) => true,
            }
    }

    fn result(self, ended: Ended) -> RunResult {
        self.common.accounts.result(ended)
    }
}

impl Rack {
    /// Sends the first byte of an operation, and starts its flow.
    fn found<O: Observer<Self>>(&mut self, index: OpIndex, stage: &mut Stage<'_, Self, O>) {
        let op = *self.common.ops.get(index);
        let now = stage.now();
        if op.kind == Kind::Read {
            let failed = self.common.scenario.rebuild.map(|rebuild| class_of(rebuild.group));
            let same_class = failed == Some(class_of(op.group));
            self.common.accounts.first_byte(now, op.times, same_class);
            stage.note(&Seen::FirstByte { group: op.group });
            stage.show(Seen::FirstByte { group: op.group });
        }
        let server = self.common.transfers.server_of(half_of(op.group));
        self.common.transfers.begin(now, server, index, &op);
        self.plan_end(server, stage);
    }

    fn ends<O: Observer<Self>>(
        &mut self,
        server: usize,
        version: u64,
        stage: &mut Stage<'_, Self, O>,
    ) {
        if !self.common.transfers.is_current(server, version) {
            return;
        }
        while let Some(index) = self.common.transfers.take_ended(stage.now(), server) {
            self.ended(index, stage);
        }
        self.plan_end(server, stage);
    }

    /// Schedules the end of the flow that ends next.
    fn plan_end<O: Observer<Self>>(&self, server: usize, stage: &mut Stage<'_, Self, O>) {
        if let Some((at, version)) = self.common.transfers.next_end(server) {
            let server = u8::try_from(server).unwrap_or(u8::MAX);
            stage.put(at, Planned(Next::Ends { server, version }));
        }
    }

    fn ended<O: Observer<Self>>(&mut self, index: OpIndex, stage: &mut Stage<'_, Self, O>) {
        let op = self.common.ops.take(index);
        let now = stage.now();
        let disks = &self.common.scenario.disks;
        let read = op.stack * f64::from(disks.read_stacks);
        let seen = match op.kind {
            Kind::Read => {
                let sent = op.stack * f64::from(disks.stacks);
                self.common.accounts.ended(now, op.times, sent, read);
                Seen::Gone { group: op.group }
            }
            Kind::Rebuild => Seen::Rebuilt { group: op.group },
        };
        stage.note(&seen);
        stage.show(seen);
        match &mut self.layout {
            Layout::Pelican(driven) => driven.ended(index, &op, &mut self.common, stage),
            Layout::Reference(walked) => walked.ended(&op, &mut self.common, stage),
            Layout::Provisioned(of) => of.ended(op.group, &mut self.common, stage),
            Layout::Random(random) => random.ended(index, &mut self.common, stage),
        }
    }
}
