//! Drives the tomes of a set: passes events to them and executes their commands.
//!
//! Not here: what clients do ([`super::clients`], [`super::reads`]) and what fails
//! ([`super::faults`]).

use std::collections::BTreeMap;
use std::mem::discriminant;

use fulgurite_tome_core::group::{Groups, Move};
use fulgurite_tome_core::object_assembler::{ExpectedObject, ObjectAssembler};
use fulgurite_tome_core::token::{
    self, Fence, FromTokenManager, ToTokenManager, TokenId, TokenManager,
};
use fulgurite_tome_core::{
    Answer, Command, Event, Layout, Offset, PhysicalBlock, RegionIndex, RequestId, Tome, TomeId,
};
use fulgurite_units::{Controller as _, Duration, Instant, Outbox, Seed};

use super::clients::Sessions;
use super::initial_state::{InitialSet, StoredObject, fill};
use super::machine::{Node, Times, blocks_in_answer, blocks_in_message};
use super::reads::Readings;
use super::stats::Counts;
use crate::Error;
use crate::engine::{Context, Observer};
use crate::tome::result::Stats;
use crate::tome::run::{Arrival, Observation, PendingEvent, ScheduledEvent, TomeSet};
use crate::tome::{RunResult, Scenario};
use crate::workload::{Draws, Exponentials};

/// Minimum delay of a timer of a tome or of the token manager.
const TIMER_MIN: Duration = Duration::from_millis(100);
/// Tomes per token, as the token manager counts.
const TOMES_OF_TOKEN: u32 = fulgurite_tome_core::limits::TOMES_PER_TOKEN;

/// A pending event.
#[derive(Debug)]
pub(crate) enum SetEvent {
    /// An event of a tome.
    Tome {
        tome: usize,
        event: Event,
    },
    ToTokenManager {
        tome: usize,
        message: ToTokenManager,
    },
    Timer {
        tome: usize,
    },
    TokenManagerTimer,
    /// An answer reaches a client.
    Answered {
        request: RequestId,
        answer: Answer,
    },
    /// A client starts a session.
    Session,
    /// A client retries an object that was refused.
    Retry {
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
    Corrupt,
}

/// The purpose of a client's request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientRequest {
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
    /// Members are spun up for a repair. Their answers are ignored: they report again later.
    SpinUp,
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
    token_manager: TokenManager,
    token_manager_timer: Option<Instant>,
    fence: Fence,
    /// The tome whose disk spins under each token.
    spinning: BTreeMap<TokenId, usize>,
    events: Vec<Option<SetEvent>>,
    free_slots: Vec<u32>,
    pub(crate) stats: Stats,
    pub(crate) counts: Counts,
    pub(crate) contents: Seed,
    pub(crate) objects: Vec<StoredObject>,
    /// Free data blocks of each tome.
    pub(crate) free: Vec<u64>,
    pub(crate) requests: BTreeMap<RequestId, ClientRequest>,
    pub(crate) sessions: Sessions,
    pub(crate) readings: Readings,
    pub(crate) random: Random,
    /// Bad blocks, with the times of their occurrence and discovery.
    pub(crate) bad: BTreeMap<(usize, RegionIndex, Offset), super::faults::BadBlock>,
    /// Physical blocks of regions being rebuilt.
    pub(crate) built: BTreeMap<(usize, RegionIndex, Offset), PhysicalBlock>,
    /// Member slots that are moving, and since when.
    pub(crate) moving: Vec<(Move, Instant)>,
    /// Physical blocks of the last read of each tome.
    pub(crate) reading: Vec<Vec<PhysicalBlock>>,
    steps: u64,
    pub(crate) is_over: bool,
}

impl Driven {
    pub(crate) fn new(scenario: &Scenario, seed: &Seed) -> Result<Self, Error> {
        let contents = seed.child(b"contents");
        let InitialSet { layout, groups, metadata, disks, objects } = fill(scenario, &contents)?;
        let mut nodes = Vec::new();
        for (metadata, disk) in metadata.into_iter().zip(disks) {
            let own = seed.child(b"tomes").child(&metadata.id().get().to_le_bytes());
            let tome =
                Tome::new(Instant::ZERO, metadata, own).map_err(|error| Error::Parameter {
                    field: "driven",
                    value: error.to_string(),
                    expected: "a valid set",
                })?;
            nodes.push(Node::new(tome, disk));
        }
        let tomes = scenario.tokens() * TOMES_OF_TOKEN;
        let mut driven = Self {
            times: Times::new(scenario),
            free: Vec::new(),
            token_manager: TokenManager::new(Instant::ZERO, tomes, &BTreeMap::new()),
            token_manager_timer: None,
            fence: Fence::default(),
            spinning: BTreeMap::new(),
            events: Vec::new(),
            free_slots: Vec::new(),
            stats: Stats::default(),
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
        driven.count_free_space();
        driven.validate_session()?;
        Ok(driven)
    }

    pub(crate) fn handle_arrival<O: Observer<TomeSet>>(
        &mut self,
        arrival: Arrival,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        ctx.record(&arrival);
        match arrival {
            Arrival::Begin => {
                (0..self.nodes.len()).for_each(|tome| self.set_timer(tome, ctx));
                self.begin_clients(ctx);
                self.begin_reads(ctx);
                self.plan_corruption(ctx);
                if self.scenario.one_fails {
                    self.lose(0, ctx);
                }
            }
            Arrival::Fails { tome } => self.lose(tome as usize, ctx),
            Arrival::End => {
                self.check();
                self.is_over = true;
            }
        }
    }

    pub(crate) fn handle_event<O: Observer<TomeSet>>(
        &mut self,
        index: u32,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        self.free_slots.push(index);
        let Some(happening) = self.events[index as usize].take() else { return };
        match happening {
            SetEvent::Tome { tome, event } => self.step(tome, event, ctx),
            SetEvent::ToTokenManager { tome, message } => {
                self.step_token_manager(token::Event::Received { tome: id(tome), message }, ctx);
            }
            SetEvent::Timer { tome } => {
                if self.nodes[tome].timer == Some(ctx.now()) {
                    self.nodes[tome].timer = None;
                    self.step(tome, Event::Timer, ctx);
                }
            }
            SetEvent::TokenManagerTimer => {
                if self.token_manager_timer == Some(ctx.now()) {
                    self.token_manager_timer = None;
                    self.step_token_manager(token::Event::Timer, ctx);
                }
            }
            SetEvent::Answered { request, answer } => self.handle_answer(request, answer, ctx),
            SetEvent::Session => self.begin_session(ctx),
            SetEvent::Retry { session, object } => self.put(session, object, ctx),
            SetEvent::Episode { writer, episode } => {
                self.write_episode_object(writer, episode, ctx)
            }
            SetEvent::Read => self.next_read(ctx),
            SetEvent::Job => self.next_job(ctx),
            SetEvent::Corrupt => self.corrupt(ctx),
        }
    }

    /// Schedules an event.
    pub(crate) fn plan<O: Observer<TomeSet>>(
        &mut self,
        at: Instant,
        happening: SetEvent,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let index = match self.free_slots.pop() {
            Some(index) => {
                self.events[index as usize] = Some(happening);
                index
            }
            None => {
                self.events.push(Some(happening));
                u32::try_from(self.events.len() - 1).unwrap_or(u32::MAX)
            }
        };
        ctx.put(at, ScheduledEvent(PendingEvent::Driven(index)));
    }

    /// Passes an event to a tome and executes its commands.
    pub(crate) fn step<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        event: Event,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let now = ctx.now();
        let node = &mut self.nodes[tome];
        let Some(core) = node.tome.as_mut() else { return };
        let kind = discriminant(&event);
        if matches!(event, Event::SpunUp) {
            node.is_up = true;
        }
        if matches!(event, Event::SpunDown | Event::SpinUpFailed) {
            let token = node.spinning.take();
            let was = token.and_then(|token| self.spinning.remove(&token));
            assert_eq!(was, Some(tome), "a disk that spun down had this token");
            self.stats.change_spinning(now, -1);
            ctx.notify(Observation::SpinningChanged(-1));
        }
        let mut out = Outbox::new();
        core.step(now, event, &mut out);
        let mut sum = 0_u64;
        for command in out.drain() {
            sum = sum.wrapping_mul(31).wrapping_add(weight(&command));
            self.execute(tome, command, ctx);
        }
        ctx.record(&(tome, kind, sum));
        self.steps += 1;
        if self.steps.is_multiple_of(self.scenario.driven.checked_each) {
            self.check();
        }
        self.set_timer(tome, ctx);
    }

    fn execute<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        command: Command,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let now = ctx.now();
        let computes = self.times.computing(&command);
        if computes > Duration::ZERO {
            self.nodes[tome].occupy_board(now, computes);
        }
        match command {
            Command::Commit(rows) => self.committed(tome, &rows, now),
            Command::SpinUp { token, epoch } => {
                let admitted = self.fence.admit(token, epoch, id(tome));
                assert!(admitted.is_ok(), "a disk spins only under a valid lease");
                let other = self.spinning.insert(token, tome);
                assert_eq!(other, None, "two disks spin under one token");
                self.nodes[tome].spinning = Some(token);
                let spinning = self.stats.change_spinning(now, 1);
                assert!(
                    spinning <= self.scenario.tokens(),
                    "more disks spin than there are tokens"
                );
                ctx.notify(Observation::SpinningChanged(1));
                let up = SetEvent::Tome { tome, event: Event::SpunUp };
                self.plan(now + self.scenario.spin_up, up, ctx);
            }
            Command::SpinDown => {
                self.nodes[tome].is_up = false;
                let at = self.nodes[tome].occupy_board(now, self.scenario.driven.spin_down);
                self.plan(at, SetEvent::Tome { tome, event: Event::SpunDown }, ctx);
            }
            Command::Read { job, physical_blocks } => self.read(tome, job, &physical_blocks, ctx),
            Command::ReadObject { job, physical_blocks, wanted } => {
                self.gather(tome, job, (&physical_blocks, wanted), ctx);
            }
            Command::Write { physical_block: block, bytes } => {
                assert!(self.nodes[tome].spinning.is_some(), "only a spinning disk is written");
                let seeks = self.nodes[tome].seeks(&[block]);
                self.nodes[tome].occupy_board(now, self.times.disk(1, seeks));
                self.nodes[tome].disk[block.get() as usize] = Some(bytes);
                self.counts.blocks_written += 1;
            }
            Command::Send { to, message } => {
                let blocks = blocks_in_message(&message);
                self.counts.blocks_sent += blocks;
                let at = self.nodes[tome].send(now, blocks, &self.times);
                let event = Event::Received { from: id(tome), message };
                self.plan(at, SetEvent::Tome { tome: to.get() as usize, event }, ctx);
            }
            Command::TokenManager(message) => {
                let at = now + self.times.latency;
                self.plan(at, SetEvent::ToTokenManager { tome, message }, ctx);
            }
            Command::Answer { request, answer } => {
                let blocks = blocks_in_answer(&answer);
                self.counts.blocks_sent += blocks;
                let at = self.nodes[tome].send(now, blocks, &self.times);
                self.plan(at, SetEvent::Answered { request, answer }, ctx);
            }
            Command::Alarm(alarm) => self.alarm(tome, &alarm, ctx),
        }
    }

    fn read<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        job: u64,
        physical_blocks: &[PhysicalBlock],
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let disk = &self.nodes[tome].disk;
        let blocks =
            physical_blocks.iter().map(|block| disk[block.get() as usize].clone()).collect();
        self.answer_read(tome, physical_blocks, Event::Read { job, blocks }, ctx);
    }

    /// Reads blocks into one object, verifying each.
    fn gather<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        job: u64,
        (physical_blocks, wanted): (&[PhysicalBlock], ExpectedObject),
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let disk = &self.nodes[tome].disk;
        let mut gathering = ObjectAssembler::new(wanted);
        let is_whole = physical_blocks.iter().all(|physical_block| {
            let read = |block: &mut [u8]| {
                block.copy_from_slice(disk[physical_block.get() as usize].as_ref().ok_or(())?);
                Ok::<_, ()>(())
            };
            matches!(gathering.next(read), Ok(Some(_)))
        });
        let whole = gathering.finish().filter(|_| is_whole);
        self.answer_read(tome, physical_blocks, Event::ObjectRead { job, whole }, ctx);
    }

    /// Schedules the end of a disk read.
    fn answer_read<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        physical_blocks: &[PhysicalBlock],
        event: Event,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let node = &mut self.nodes[tome];
        assert!(node.spinning.is_some(), "only a spinning disk is read");
        let seeks = node.seeks(physical_blocks);
        let at = node.occupy_board(ctx.now(), self.times.disk(physical_blocks.len() as u64, seeks));
        self.counts.blocks_read += physical_blocks.len() as u64;
        self.record_discovery(tome, physical_blocks, at);
        self.reading[tome] = physical_blocks.to_vec();
        self.plan(at, SetEvent::Tome { tome, event }, ctx);
    }

    fn step_token_manager<O: Observer<TomeSet>>(
        &mut self,
        event: token::Event,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let now = ctx.now();
        let mut out = Outbox::new();
        self.token_manager.step(now, event, &mut out);
        self.token_manager.check();
        for command in out.drain() {
            if let token::Command::Send { tome, message } = command {
                self.deliver_message(now + self.times.latency, tome, message, ctx);
            }
        }
        if let Some(at) = self.token_manager.deadline().map(|at| at.max(now + TIMER_MIN))
            && self.token_manager_timer.is_none_or(|timer| at < timer)
        {
            self.token_manager_timer = Some(at);
            self.plan(at, SetEvent::TokenManagerTimer, ctx);
        }
    }

    fn deliver_message<O: Observer<TomeSet>>(
        &mut self,
        at: Instant,
        tome: TomeId,
        message: FromTokenManager,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let (tome, event) = (tome.get() as usize, Event::TokenManager(message));
        self.plan(at, SetEvent::Tome { tome, event }, ctx);
    }

    fn set_timer<O: Observer<TomeSet>>(&mut self, tome: usize, ctx: &mut Context<'_, TomeSet, O>) {
        let deadline = self.nodes[tome].tome.as_ref().and_then(Tome::deadline);
        let Some(at) = deadline.map(|at| at.max(ctx.now() + TIMER_MIN)) else { return };
        if self.nodes[tome].timer.is_none_or(|timer| at < timer) {
            self.nodes[tome].timer = Some(at);
            self.plan(at, SetEvent::Timer { tome }, ctx);
        }
    }

    /// Removes a lost tome. Returns whether its disk was spinning.
    pub(crate) fn stop(&mut self, tome: usize, now: Instant) -> bool {
        let node = &mut self.nodes[tome];
        (node.tome, node.is_up) = (None, false);
        let Some(token) = node.spinning.take() else { return false };
        self.spinning.remove(&token);
        self.stats.change_spinning(now, -1);
        true
    }

    pub(crate) fn result(mut self, ended: crate::engine::Ended) -> RunResult {
        self.count_end(ended.at);
        let mut result = std::mem::take(&mut self.stats).result(&self.scenario, ended);
        let blocks = self.layout.region_data_blocks();
        let data: u32 = self.groups.iter().map(|group| group.split().data()).sum();
        let block = crate::tome::scenario::bytes(self.scenario.driven.block);
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
    if let Command::Read { physical_blocks, .. } = command {
        return physical_blocks.iter().map(|block| u64::from(block.get())).sum::<u64>() + 1;
    }
    if let Command::Write { physical_block: block, .. } = command {
        return u64::from(block.get()) + (1 << 33);
    }
    if let Command::Send { to, message } = command {
        return u64::from(to.get()) + (2 << 33) + (blocks_in_message(message) << 40);
    }
    u64::from(matches!(command, Command::SpinUp { .. })) + (3 << 33)
}
