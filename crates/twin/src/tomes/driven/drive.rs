//! Drives the tomes of a set: passes events to them and executes their commands.
//!
//! Not here: what clients do ([`super::clients`], [`super::reads`]) and what fails
//! ([`super::faults`]).

use std::collections::BTreeMap;
use std::mem::discriminant;

use fulgurite_tome::group::{Groups, Move};
use fulgurite_tome::token::{self, Fence, FromKeeper, Keeper, ToKeeper, TokenId};
use fulgurite_tome::whole::{Gathering, Wanted};
use fulgurite_tome::{
    Answer, Command, Event, Layout, Offset, RegionIndex, RequestId, Spot, Tome, TomeId,
};
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, Seed};

use super::accounts::Counts;
use super::clients::Sessions;
use super::fill::{Filled, Kept, fill};
use super::machine::{Node, Times, blocks_answered, blocks_told};
use super::reads::Readings;
use crate::Error;
use crate::engine::{Observer, Stage};
use crate::tomes::result::Accounts;
use crate::tomes::run::{Arrival, Next, Planned, Seen, Tomes};
use crate::tomes::{RunResult, Scenario};
use crate::workload::{Draws, Exponentials};

/// Minimum delay of a timer of a tome or of the token manager.
const TIMER_MIN: Duration = Duration::from_millis(100);
/// Tomes per token, as the token manager counts.
const TOMES_OF_TOKEN: u32 = fulgurite_tome::limits::AWAKE_SHARE;

/// A pending event.
#[derive(Debug)]
pub(crate) enum Happening {
    /// An event of a tome.
    Tome {
        tome: usize,
        event: Event,
    },
    ToKeeper {
        tome: usize,
        message: ToKeeper,
    },
    Timer {
        tome: usize,
    },
    KeeperTimer,
    /// An answer reaches a client.
    Answered {
        request: RequestId,
        answer: Answer,
    },
    /// A client starts a session.
    Session,
    /// A client retries an object that was refused.
    Again {
        session: usize,
        object: usize,
    },
    /// A writer writes an object of an episode.
    Episode {
        writer: u32,
        episode: usize,
    },
    /// An object is read.
    Read,
    /// All objects of an episode are read.
    Job,
    /// Blocks go bad.
    Spoil,
}

/// The purpose of a client's request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Put {
        session: usize,
        object: usize,
    },
    Get {
        read: usize,
    },
    Hold {
        read: usize,
    },
    /// Members are spun up for a repair; their answers are ignored, and they report again in their
    /// turn.
    Wake,
}

/// Random streams.
#[derive(Debug)]
pub(crate) struct Random {
    pub(crate) gaps: Exponentials,
    pub(crate) objects: Draws,
    pub(crate) tomes: Draws,
    pub(crate) episodes: Draws,
    pub(crate) bad: Draws,
    pub(crate) bad_gaps: Exponentials,
}

/// A set of tomes, each with its machine, and the token manager.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) scenario: Scenario,
    pub(crate) layout: Layout,
    pub(crate) groups: Groups,
    pub(crate) nodes: Vec<Node>,
    pub(crate) times: Times,
    keeper: Keeper,
    keeper_timer: Option<Instant>,
    fence: Fence,
    /// The tome whose disk spins under each token.
    turning: BTreeMap<TokenId, usize>,
    happenings: Vec<Option<Happening>>,
    unused: Vec<u32>,
    pub(crate) accounts: Accounts,
    pub(crate) counts: Counts,
    pub(crate) contents: Seed,
    pub(crate) objects: Vec<Kept>,
    /// Free data blocks of each tome.
    pub(crate) free: Vec<u64>,
    pub(crate) requests: BTreeMap<RequestId, Asked>,
    pub(crate) sessions: Sessions,
    pub(crate) readings: Readings,
    pub(crate) random: Random,
    /// Bad blocks, with the times of their occurrence and discovery.
    pub(crate) bad: BTreeMap<(usize, RegionIndex, Offset), super::faults::Bad>,
    /// Physical blocks of regions being rebuilt.
    pub(crate) built: BTreeMap<(usize, RegionIndex, Offset), Spot>,
    /// Member slots that are moving, and since when.
    pub(crate) moving: Vec<(Move, Instant)>,
    /// Physical blocks of the last read of each tome.
    pub(crate) reading: Vec<Vec<Spot>>,
    steps: u64,
    pub(crate) is_over: bool,
}

impl Driven {
    pub(crate) fn new(scenario: &Scenario, seed: &Seed) -> Result<Self, Error> {
        let contents = seed.child(b"contents");
        let Filled { layout, groups, awake, disks, objects } = fill(scenario, &contents)?;
        let mut nodes = Vec::new();
        for (awake, disk) in awake.into_iter().zip(disks) {
            let own = seed.child(b"tomes").child(&awake.id().get().to_le_bytes());
            let tome = Tome::new(Instant::ZERO, awake, own).map_err(|error| Error::Parameter {
                field: "driven",
                value: error.to_string(),
                expected: "a set that can be made",
            })?;
            nodes.push(Node::new(tome, disk));
        }
        let tomes = scenario.tokens() * TOMES_OF_TOKEN;
        let mut driven = Self {
            times: Times::new(scenario),
            free: Vec::new(),
            keeper: Keeper::new(Instant::ZERO, tomes, &BTreeMap::new()),
            keeper_timer: None,
            fence: Fence::default(),
            turning: BTreeMap::new(),
            happenings: Vec::new(),
            unused: Vec::new(),
            accounts: Accounts::default(),
            counts: Counts::default(),
            contents,
            objects,
            requests: BTreeMap::new(),
            sessions: Sessions::default(),
            readings: Readings::default(),
            random: Random {
                gaps: Exponentials::new(seed, b"reads"),
                objects: Draws::new(seed, b"read objects"),
                tomes: Draws::new(seed, b"chosen tomes"),
                episodes: Draws::new(seed, b"episodes"),
                bad: Draws::new(seed, b"bad blocks"),
                bad_gaps: Exponentials::new(seed, b"bad"),
            },
            bad: BTreeMap::new(),
            built: BTreeMap::new(),
            moving: Vec::new(),
            reading: vec![Vec::new(); nodes.len()],
            steps: 0,
            is_over: false,
            scenario: scenario.clone(),
            layout,
            groups,
            nodes,
        };
        driven.count_room();
        Ok(driven)
    }

    pub(crate) fn arrive<O: Observer<Tomes>>(
        &mut self,
        arrival: Arrival,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        stage.note(&arrival);
        match arrival {
            Arrival::Begin => {
                (0..self.nodes.len()).for_each(|tome| self.set_timer(tome, stage));
                self.begin_clients(stage);
                self.begin_reads(stage);
                self.plan_spoil(stage);
                if self.scenario.one_fails {
                    self.lose(0, stage);
                }
            }
            Arrival::Fails { tome } => self.lose(tome as usize, stage),
            Arrival::End => {
                self.check();
                self.is_over = true;
            }
        }
    }

    pub(crate) fn happen<O: Observer<Tomes>>(
        &mut self,
        index: u32,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        self.unused.push(index);
        let Some(happening) = self.happenings[index as usize].take() else { return };
        match happening {
            Happening::Tome { tome, event } => self.step(tome, event, stage),
            Happening::ToKeeper { tome, message } => {
                self.keep(token::Event::Told { tome: id(tome), message }, stage);
            }
            Happening::Timer { tome } => {
                if self.nodes[tome].timer == Some(stage.now()) {
                    self.nodes[tome].timer = None;
                    self.step(tome, Event::Timer, stage);
                }
            }
            Happening::KeeperTimer => {
                if self.keeper_timer == Some(stage.now()) {
                    self.keeper_timer = None;
                    self.keep(token::Event::Timer, stage);
                }
            }
            Happening::Answered { request, answer } => self.answered(request, answer, stage),
            Happening::Session => self.begin_session(stage),
            Happening::Again { session, object } => self.put(session, object, stage),
            Happening::Episode { writer, episode } => self.write_of(writer, episode, stage),
            Happening::Read => self.next_read(stage),
            Happening::Job => self.next_job(stage),
            Happening::Spoil => self.spoil(stage),
        }
    }

    /// Schedules an event.
    pub(crate) fn plan<O: Observer<Tomes>>(
        &mut self,
        at: Instant,
        happening: Happening,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let index = match self.unused.pop() {
            Some(index) => {
                self.happenings[index as usize] = Some(happening);
                index
            }
            None => {
                self.happenings.push(Some(happening));
                u32::try_from(self.happenings.len() - 1).unwrap_or(u32::MAX)
            }
        };
        stage.put(at, Planned(Next::Driven(index)));
    }

    /// Passes an event to a tome and executes its commands.
    pub(crate) fn step<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        event: Event,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let now = stage.now();
        let node = &mut self.nodes[tome];
        let Some(core) = node.tome.as_mut() else { return };
        let kind = discriminant(&event);
        if matches!(event, Event::Up) {
            node.is_up = true;
        }
        if matches!(event, Event::Down | Event::UpFailed) {
            let token = node.turning.take();
            let was = token.and_then(|token| self.turning.remove(&token));
            assert_eq!(was, Some(tome), "what stands still turned under its token");
            self.accounts.spins(now, -1);
            stage.show(Seen::Spins(-1));
        }
        let mut out = Outbox::new();
        core.step(now, event, &mut out);
        let mut sum = 0_u64;
        for command in out.drain() {
            sum = sum.wrapping_mul(31).wrapping_add(weight(&command));
            self.execute(tome, command, stage);
        }
        stage.note(&(tome, kind, sum));
        self.steps += 1;
        if self.steps.is_multiple_of(self.scenario.driven.checked_each) {
            self.check();
        }
        self.set_timer(tome, stage);
    }

    fn execute<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        command: Command,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let now = stage.now();
        let computes = self.times.computing(&command);
        if computes > Duration::ZERO {
            self.nodes[tome].works(now, computes);
        }
        match command {
            Command::Commit(rows) => self.committed(tome, &rows, now),
            Command::SpinUp { token, epoch } => {
                let admitted = self.fence.admit(token, epoch, id(tome));
                assert!(admitted.is_ok(), "a disk turns under a lease that is one");
                let other = self.turning.insert(token, tome);
                assert_eq!(other, None, "two turn under one token");
                self.nodes[tome].turning = Some(token);
                let spinning = self.accounts.spins(now, 1);
                assert!(spinning <= self.scenario.tokens(), "a disk turns with a token");
                stage.show(Seen::Spins(1));
                let up = Happening::Tome { tome, event: Event::Up };
                self.plan(now + self.scenario.spin_up, up, stage);
            }
            Command::SpinDown => {
                self.nodes[tome].is_up = false;
                let at = self.nodes[tome].works(now, self.scenario.driven.spin_down);
                self.plan(at, Happening::Tome { tome, event: Event::Down }, stage);
            }
            Command::Read { job, spots } => self.read(tome, job, &spots, stage),
            Command::Gather { job, spots, wanted } => {
                self.gather(tome, job, (&spots, wanted), stage);
            }
            Command::Write { spot, bytes } => {
                assert!(self.nodes[tome].turning.is_some(), "no disk is written that is still");
                let seeks = self.nodes[tome].seeks(&[spot]);
                self.nodes[tome].works(now, self.times.disk(1, seeks));
                self.nodes[tome].disk[spot.get() as usize] = Some(bytes);
                self.counts.blocks_written += 1;
            }
            Command::Tell { to, message } => {
                let blocks = blocks_told(&message);
                self.counts.blocks_sent += blocks;
                let at = self.nodes[tome].sends(now, blocks, &self.times);
                let event = Event::Told { from: id(tome), message };
                self.plan(at, Happening::Tome { tome: to.get() as usize, event }, stage);
            }
            Command::Keeper(message) => {
                let at = now + self.times.latency;
                self.plan(at, Happening::ToKeeper { tome, message }, stage);
            }
            Command::Answer { request, answer } => {
                let blocks = blocks_answered(&answer);
                self.counts.blocks_sent += blocks;
                let at = self.nodes[tome].sends(now, blocks, &self.times);
                self.plan(at, Happening::Answered { request, answer }, stage);
            }
            Command::Alarm(alarm) => self.alarm(tome, &alarm, stage),
        }
    }

    fn read<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        job: u64,
        spots: &[Spot],
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let disk = &self.nodes[tome].disk;
        let blocks = spots.iter().map(|spot| disk[spot.get() as usize].clone()).collect();
        self.answer_read(tome, spots, Event::Read { job, blocks }, stage);
    }

    /// Reads blocks into one object, verifying each.
    fn gather<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        job: u64,
        (spots, wanted): (&[Spot], Wanted),
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let disk = &self.nodes[tome].disk;
        let mut gathering = Gathering::new(wanted);
        let is_whole = spots.iter().all(|spot| {
            let read = |block: &mut [u8]| {
                block.copy_from_slice(disk[spot.get() as usize].as_ref().ok_or(())?);
                Ok::<_, ()>(())
            };
            matches!(gathering.next(read), Ok(Some(_)))
        });
        let whole = gathering.finish().filter(|_| is_whole);
        self.answer_read(tome, spots, Event::Gathered { job, whole }, stage);
    }

    /// Schedules the end of a disk read.
    fn answer_read<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        spots: &[Spot],
        event: Event,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let node = &mut self.nodes[tome];
        assert!(node.turning.is_some(), "no disk is read that is still");
        let seeks = node.seeks(spots);
        let at = node.works(stage.now(), self.times.disk(spots.len() as u64, seeks));
        self.counts.blocks_read += spots.len() as u64;
        self.found_bad(tome, spots, at);
        self.reading[tome] = spots.to_vec();
        self.plan(at, Happening::Tome { tome, event }, stage);
    }

    fn keep<O: Observer<Tomes>>(&mut self, event: token::Event, stage: &mut Stage<'_, Tomes, O>) {
        let now = stage.now();
        let mut out = Outbox::new();
        self.keeper.step(now, event, &mut out);
        self.keeper.check();
        for command in out.drain() {
            if let token::Command::Tell { tome, message } = command {
                self.tell(now + self.times.latency, tome, message, stage);
            }
        }
        if let Some(at) = self.keeper.deadline().map(|at| at.max(now + TIMER_MIN))
            && self.keeper_timer.is_none_or(|timer| at < timer)
        {
            self.keeper_timer = Some(at);
            self.plan(at, Happening::KeeperTimer, stage);
        }
    }

    fn tell<O: Observer<Tomes>>(
        &mut self,
        at: Instant,
        tome: TomeId,
        message: FromKeeper,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let (tome, event) = (tome.get() as usize, Event::Keeper(message));
        self.plan(at, Happening::Tome { tome, event }, stage);
    }

    fn set_timer<O: Observer<Tomes>>(&mut self, tome: usize, stage: &mut Stage<'_, Tomes, O>) {
        let deadline = self.nodes[tome].tome.as_ref().and_then(Tome::deadline);
        let Some(at) = deadline.map(|at| at.max(stage.now() + TIMER_MIN)) else { return };
        if self.nodes[tome].timer.is_none_or(|timer| at < timer) {
            self.nodes[tome].timer = Some(at);
            self.plan(at, Happening::Timer { tome }, stage);
        }
    }

    /// Removes a lost tome. Returns whether its disk was spinning.
    pub(crate) fn stop(&mut self, tome: usize, now: Instant) -> bool {
        let node = &mut self.nodes[tome];
        (node.tome, node.is_up) = (None, false);
        let Some(token) = node.turning.take() else { return false };
        self.turning.remove(&token);
        self.accounts.spins(now, -1);
        true
    }

    pub(crate) fn result(mut self, ended: crate::engine::Ended) -> RunResult {
        self.count_end(ended.at);
        let mut result = std::mem::take(&mut self.accounts).result(&self.scenario, ended);
        let blocks = self.layout.region_data_blocks();
        let data: u32 = self.groups.iter().map(|group| group.split().data()).sum();
        let block = crate::tomes::scenario::bytes(self.scenario.driven.block);
        result.room = f64::from(blocks) * f64::from(data) * block;
        result.driven = self.counts.result(block);
        result
    }
}

/// Returns the id of a tome.
pub(crate) fn id(tome: usize) -> TomeId {
    TomeId::new(u32::try_from(tome).unwrap_or(u32::MAX))
}

/// Returns a number that depends on a command, for the hash.
fn weight(command: &Command) -> u64 {
    if let Command::Read { spots, .. } = command {
        return spots.iter().map(|spot| u64::from(spot.get())).sum::<u64>() + 1;
    }
    if let Command::Write { spot, .. } = command {
        return u64::from(spot.get()) + (1 << 33);
    }
    if let Command::Tell { to, message } = command {
        return u64::from(to.get()) + (2 << 33) + (blocks_told(message) << 40);
    }
    u64::from(matches!(command, Command::SpinUp { .. })) + (3 << 33)
}
