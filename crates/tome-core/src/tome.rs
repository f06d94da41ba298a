//! One tome: how it reacts to events.
//!
//! ```text
//!           clients    tomes    manager   disk: SpinUp, SpinDown, Read
//!              |         |        |         |
//!              v         v        v         v
//!            tasks    deltas    token ---> phase   Standby > SpinningUp > Spinning > SpinningDown
//!              |         |                  |
//!              '----> one job at a time <---'
//!                     read, verify signatures, repair; write elsewhere; commit; answer
//! ```
//!
//! A job reads what it needs, and each block is verified against its signature before use. A bad
//! one is rebuilt from its segment and written elsewhere. Then everything is written to free
//! physical blocks, and one commit switches to them, so a crash at any point leaves the state
//! before or after. Whatever is not in the [`TomeMetadata`] store may be forgotten: client requests
//! are retried, and other tomes are queried for what they have.
//!
//! The disk is read and written only while it spins, and it spins only under a token. When a lease
//! ends the disk spins down whatever is waiting; before that, not while deltas are unsent.

mod budget;
mod checks;
mod deltas;
mod group_repair;
mod jobs;
mod power;
mod rebuild_target;
mod scrub;
mod slot_moves;
mod stage;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox, Seed};

use crate::bitmap::Bitmap;
use crate::event::{Alarm, Answer, Command, Event, RequestId};
use crate::group::Group;
use crate::limits::{IDLE, IDLE_MAX, IDLE_MIN, TASKS_MAX};
use crate::membership_state::MembershipState;
use crate::metadata::{Row, TomeMetadata};
use crate::pending::PendingList;
use crate::segment::SegmentCode;
use crate::token::{Holder, ToTokenManager};
use crate::{Offset, PhysicalBlock, RegionId, RegionIndex, Result, TomeError, TomeId};
pub use budget::Spending;
use deltas::Deltas;
use jobs::{Job, Task};
use power::Phase;

/// A tome of a set.
#[derive(Clone, Debug)]
pub struct Tome {
    metadata: TomeMetadata,
    code: SegmentCode,
    now: Instant,
    phase: Phase,
    holder: Holder,
    /// Since when the disk is in its power state, and why.
    idle_times: power::IdleTimes,
    /// Physical blocks in use, or needed for a change.
    physical_blocks: Bitmap,
    /// Data blocks in use by objects, by region.
    used: BTreeMap<RegionIndex, Bitmap>,
    /// Segments with more bad blocks than parity, and which blocks.
    lost_segments: BTreeMap<(RegionIndex, u32), Vec<Offset>>,
    tasks: VecDeque<(Instant, Task)>,
    /// Reads in a row that overtook requests that waited longer.
    read_overtakes: usize,
    job: Option<Job>,
    jobs: u64,
    deltas: Deltas,
    repairs: group_repair::GroupRepairs,
    rebuild_state: rebuild_target::RebuildState,
    /// Lost tomes, as last reported by the set.
    absent: BTreeSet<TomeId>,
    /// Whether no other disk of the set spins while this one does.
    spins_alone: bool,
    /// How long its disk may idle, if no tome waits for its token.
    idle: Duration,
    /// Whether its disk must spin to find out whether it works.
    probe_requested: bool,
    /// When messages about member slots were last repeated.
    moves_repeated: Option<Instant>,
    /// Requests to answer when their object is protected.
    awaiting_protection: BTreeMap<String, RequestId>,
    scrub: scrub::Scrub,
    budget: budget::Budget,
    /// Backoff after a failure to apply deltas.
    apply_backoff: Option<Instant>,
    checking: Option<checks::Check>,
    /// Requests to other tomes so far.
    rounds: u64,
}

/// Data that is not protected by the tome's groups yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprotected {
    /// Bytes of blocks with a change that some parity lacks.
    pub bytes: ByteCount,
    /// Age of the oldest of them.
    pub age: Duration,
}

impl Tome {
    /// Returns the tome with this metadata store and with its disk standing still. `seed` selects
    /// the blocks of limited scrubs, and must differ at each start.
    ///
    /// # Errors
    /// None for a checked layout; errors of the code are passed on.
    ///
    /// # Panics
    /// When two blocks of the metadata store share a physical block.
    pub fn new(now: Instant, metadata: TomeMetadata, seed: Seed) -> Result<Self> {
        let code = SegmentCode::new(metadata.layout().segment())?;
        let mut physical_blocks =
            Bitmap::new(usize::try_from(metadata.layout().physical_blocks()).unwrap_or(usize::MAX));
        let mut used = BTreeMap::new();
        for (index, region) in metadata.regions() {
            // A set of all physical blocks would be as large as the metadata store of them.
            let pending = region.pending().into_iter().flat_map(|list| list.iter());
            let mut pending_blocks: BTreeSet<PhysicalBlock> = pending
                .flat_map(|(_, pending)| pending.old.into_iter().chain([pending.new]))
                .collect();
            for block in region.physical_blocks() {
                pending_blocks.remove(&block);
                physical_blocks.take(block.get() as usize);
            }
            pending_blocks.iter().for_each(|block| physical_blocks.take(block.get() as usize));
            let mut bitmap = Bitmap::new(metadata.layout().region_blocks() as usize);
            region.used_blocks().for_each(|offset| bitmap.take(offset.as_usize()));
            used.insert(index, bitmap);
        }
        let blocks = metadata.objects().flat_map(|(_, object)| &object.blocks);
        for (region, offset) in blocks {
            let id = RegionId { tome: metadata.id(), index: *region };
            let bitmap = used.get_mut(region).ok_or(TomeError::NoRegion { region: id })?;
            if !bitmap.has(offset.as_usize()) {
                bitmap.take(offset.as_usize());
            }
        }
        let deltas = Deltas::new(&metadata);
        let scrub = scrub::Scrub::new(now, metadata.scrubbed(), seed.child(b"scrub").stream());
        Ok(Self {
            metadata,
            code,
            now,
            phase: Phase::Standby,
            holder: Holder::new(seed.child(b"token").stream().next_u64()),
            idle_times: power::IdleTimes::default(),
            physical_blocks,
            used,
            lost_segments: BTreeMap::new(),
            tasks: VecDeque::new(),
            read_overtakes: 0,
            job: None,
            jobs: 0,
            deltas,
            repairs: group_repair::GroupRepairs::default(),
            rebuild_state: rebuild_target::RebuildState::default(),
            absent: BTreeSet::new(),
            spins_alone: false,
            idle: IDLE,
            probe_requested: false,
            moves_repeated: None,
            awaiting_protection: BTreeMap::new(),
            scrub,
            budget: budget::Budget::default(),
            apply_backoff: None,
            checking: None,
            rounds: 0,
        })
    }

    /// Tells the tome how many tokens the set has; by default it assumes several.
    #[must_use]
    pub fn with_token_count(mut self, count: u32) -> Self {
        self.spins_alone = count == 1;
        self
    }

    /// Sets how long its disk idles before it is spun down: [`IDLE_MIN`] to [`IDLE_MAX`].
    #[must_use]
    pub fn with_idle_timeout(mut self, idle: Duration) -> Self {
        self.idle = idle.clamp(IDLE_MIN, IDLE_MAX);
        self
    }

    /// Spins its disk up as soon as permitted, whatever else it is needed for: it failed, and a
    /// spin-up shows whether it works.
    pub const fn probe_disk(&mut self) {
        self.probe_requested = true;
    }

    /// Its metadata store.
    #[must_use]
    pub const fn metadata(&self) -> &TomeMetadata {
        &self.metadata
    }

    /// Whether its disk is spinning, or was commanded to.
    #[must_use]
    pub const fn is_spinning(&self) -> bool {
        !matches!(self.phase, Phase::Standby)
    }

    /// Returns what its groups do not protect yet.
    #[must_use]
    pub fn unprotected(&self) -> Unprotected {
        let blocks: BTreeSet<(usize, Offset)> = self
            .waiting()
            .enumerate()
            .flat_map(|(region, list)| {
                list.iter().map(move |(_, pending)| (region, pending.offset))
            })
            .collect();
        Unprotected {
            bytes: ByteCount::new(blocks.len() as u64 * self.metadata.layout().block_bytes()),
            age: self.unprotected_age(),
        }
    }

    /// Returns the changes of its regions that wait for parities.
    fn waiting(&self) -> impl Iterator<Item = &PendingList> {
        let members =
            self.metadata.regions().filter(|(_, r)| *r.membership_state() != MembershipState::Left);
        members.filter_map(|(_, region)| region.pending())
    }

    /// Returns the age of the oldest change that its groups do not protect yet.
    fn unprotected_age(&self) -> Duration {
        let oldest = self.waiting().filter_map(PendingList::oldest).min();
        oldest.map_or(Duration::ZERO, |oldest| self.now.since(oldest))
    }

    /// Number of bad blocks not rebuilt yet: their segments have more of them than parity.
    #[must_use]
    pub fn bad_blocks(&self) -> u64 {
        self.lost_segments.values().map(|bad| bad.len().max(1) as u64).sum()
    }

    /// Whether a segment is known to have more bad blocks than parity.
    #[must_use]
    pub fn is_segment_lost(&self, region: RegionIndex, segment: u32) -> bool {
        self.lost_segments.contains_key(&(region, segment))
    }

    /// Applies rows and has them persisted.
    fn commit(&mut self, rows: Vec<Row>, out: &mut Outbox<Command>) {
        for row in &rows {
            self.metadata.apply(row).expect("a tome makes rows that fit its own metadata store");
        }
        out.push(Command::Commit(rows));
    }

    fn join(&mut self, region: RegionIndex, group: Group, out: &mut Outbox<Command>) {
        let row = Row::MemberSlot { region, group };
        let is_new = self.metadata.region(region).is_none();
        if is_new && self.metadata.clone().apply(&row).is_ok() {
            self.commit(vec![row], out);
            self.used.insert(region, Bitmap::new(self.metadata.layout().region_blocks() as usize));
        } else if let Row::MemberSlot { group, .. } = row {
            let is_same = self.metadata.region(region).is_some_and(|known| *known.group() == group);
            if !is_same {
                let (from, group) = (self.metadata.id(), group.id());
                out.push(Command::Alarm(Alarm::Foreign { from, group }));
            }
        }
    }

    fn put(
        &mut self,
        request: RequestId,
        name: String,
        bytes: Vec<u8>,
        avoided: BTreeSet<TomeId>,
    ) -> Result<()> {
        let max = self.metadata.layout().object_blocks_max() * self.metadata.layout().block_bytes();
        if !(1..=max).contains(&(bytes.len() as u64)) {
            return Err(TomeError::ObjectBytes { name, bytes: bytes.len() as u64, max });
        }
        let waits = self.tasks.iter().map(|(_, task)| task).chain(self.job.iter().map(Job::task));
        let is_put = waits.into_iter().any(|task| task.puts(&name));
        if is_put || self.metadata.object(&name).is_some() {
            return Err(TomeError::ObjectExists { name });
        }
        // No disk spins up for an object that has no room.
        let (blocks, split) =
            (bytes.len().div_ceil(self.block_len()), self.metadata.layout().segment());
        let segments = blocks.div_ceil(split.data() as usize);
        self.check_room(blocks + segments * split.parity() as usize)?;
        self.regions_for(blocks, &avoided)?;
        self.queue(Task::Put { request, name, bytes, avoided })
    }

    fn get(&mut self, request: RequestId, name: String) -> Result<()> {
        if self.metadata.object(&name).is_none() {
            return Err(TomeError::NoObject { name });
        }
        self.queue(Task::Get { request, name })
    }

    fn queue(&mut self, task: Task) -> Result<()> {
        if self.tasks.len() >= TASKS_MAX {
            return Err(TomeError::Backlog { what: "requests" });
        }
        self.tasks.push_back((self.now, task));
        Ok(())
    }

    /// Removes an object; its blocks stay as they are until they are rewritten.
    fn delete(&mut self, request: RequestId, name: String, out: &mut Outbox<Command>) {
        let Some(object) = self.metadata.object(&name).cloned() else {
            let answer = Answer::Refused(TomeError::NoObject { name });
            out.push(Command::Answer { request, answer });
            return;
        };
        for (region, offset) in &object.blocks {
            if let Some(bitmap) = self.used.get_mut(region) {
                bitmap.give_back(offset.as_usize());
            }
        }
        self.awaiting_protection.remove(&name);
        self.commit(vec![Row::Removed { name }], out);
        out.push(Command::Answer { request, answer: Answer::Deleted });
    }
}

impl Controller for Tome {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        self.now = self.now.max(now);
        let outcome = match event {
            Event::Put { request, name, bytes, avoided } => {
                Some((request, self.put(request, name, bytes, avoided)))
            }
            Event::Get { request, name } => Some((request, self.get(request, name))),
            Event::Check { request, group } => {
                Some((request, self.check_group(request, group, out)))
            }
            Event::Hold { request, group, offsets } => {
                Some((request, self.queue_holding_request(request, group, offsets)))
            }
            Event::Scrub { request } => {
                self.scrub_all(request, out);
                None
            }
            Event::Delete { request, name } => {
                self.delete(request, name, out);
                None
            }
            Event::Join { region, group } => {
                self.join(region, group, out);
                None
            }
            Event::Rebuild { planned, group } => {
                self.rebuild(planned, &group, out);
                None
            }
            Event::Absent { tomes } => {
                self.absent(tomes, out);
                None
            }
            Event::Adopt { request, region, objects } => {
                Some((request, self.adopt(request, region, objects, out)))
            }
            Event::Received { from, message } => {
                self.handle_message(from, message, out);
                None
            }
            Event::TokenManager(message) => {
                send_to_token_manager(self.holder.handle_message(self.now, message), out);
                None
            }
            Event::Read { job, blocks } => {
                self.read(job, blocks, out);
                None
            }
            Event::ObjectRead { job, whole } => {
                self.object_read(job, whole, out);
                None
            }
            Event::SpunUp => self.power_changed(Phase::SpinningUp, Phase::Spinning),
            Event::SpinUpFailed => self.power_changed(Phase::SpinningUp, Phase::Standby),
            Event::SpunDown => self.power_changed(Phase::SpinningDown, Phase::Standby),
            Event::Timer => None,
        };
        if let Some((request, Err(error))) = outcome {
            out.push(Command::Answer { request, answer: Answer::Refused(error) });
        }
        self.advance(out);
    }

    fn deadline(&self) -> Option<Instant> {
        let own = [
            self.holder.deadline(self.now),
            self.idle_deadline(),
            self.deltas.deadline(),
            self.apply_backoff.filter(|until| *until > self.now),
            self.check_deadline(),
            self.rebuild_deadline(),
            self.moves_deadline(),
            self.repairs.deadline(self.now).filter(|_| self.tasks.is_empty()),
            self.budget.deadline().filter(|until| *until > self.now),
        ];
        let scrub = self.scrub.deadline(self.now, self.metadata.scrubbed().next, self.blocks());
        own.into_iter().flatten().chain([scrub]).min()
    }

    fn check(&self) {
        let mut taken = BTreeSet::new();
        for (_, region) in self.metadata.regions() {
            let pending = region.pending().into_iter().flat_map(|list| list.iter());
            let pending_blocks =
                pending.flat_map(|(_, pending)| pending.old.into_iter().chain([pending.new]));
            let own: BTreeSet<_> = region.physical_blocks().chain(pending_blocks).collect();
            assert!(own.iter().all(|block| taken.insert(*block)), "no physical block has two uses");
        }
        let free = usize::try_from(self.metadata.layout().physical_blocks()).unwrap_or(usize::MAX)
            - taken.len();
        assert_eq!(self.physical_blocks.free(), free, "no physical block is lost or used twice");
        assert!(self.tasks.len() <= TASKS_MAX, "the task queue is bounded");
        let works = self.job.is_some();
        assert!(!works || self.phase == Phase::Spinning, "jobs run only while the disk spins");
    }
}

fn send_to_token_manager(message: Option<ToTokenManager>, out: &mut Outbox<Command>) {
    if let Some(message) = message {
        out.push(Command::TokenManager(message));
    }
}
