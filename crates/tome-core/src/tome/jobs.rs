//! Jobs: the blocks of a task are read, verified and repaired; then the task is done.
//!
//! Not here: which deltas to send and apply.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::{Signature, sector_checksum, signature};
use fulgurite_units::Outbox;

use super::{Alarm, Answer, Bitmap, Command, RequestId, Tome};
use crate::limits::{DELTA_WINDOW, PENDING_MAX, READ_OVERTAKES_MAX, RESEND_INTERVAL};
use crate::membership_state::MembershipState;
use crate::message::Message;
use crate::metadata::{Object, Region, Row};
use crate::object_assembler::{ExpectedObject, VerifiedObject};
use crate::pending::{Parities, Pending};
use crate::rebuild::Step;
use crate::segment::SegmentCode;
use crate::{
    GroupId, Member, Offset, PhysicalBlock, RegionIndex, Result, TomeError, TomeId, Version,
};

/// A block of this tome.
pub(super) type BlockAddress = (RegionIndex, Offset);

/// Where the answer about a member's holdings goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    /// Another member, with the number of its request.
    Tome(TomeId, u64),
    /// A client that recovers an object of a lost member.
    Client(RequestId),
}

/// Work that needs a spinning disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Put {
        request: RequestId,
        name: String,
        bytes: Vec<u8>,
        avoided: BTreeSet<TomeId>,
    },
    Get {
        request: RequestId,
        name: String,
    },
    /// Apply stored deltas of one region to its blocks.
    ApplyDeltas {
        region: RegionIndex,
        deltas: Vec<(Member, Version)>,
    },
    /// Send a delta to a parity.
    Send {
        region: RegionIndex,
        version: Version,
        parity: u8,
    },
    /// Answer with what this member knows of some offsets.
    Hold {
        to: Requester,
        group: GroupId,
        offsets: Vec<Offset>,
    },
    /// Add a segment of a source to a region that is being rebuilt.
    AddSegment {
        region: RegionIndex,
        step: Step,
        segment: u32,
        blocks: Vec<Vec<u8>>,
    },
    /// Scrub blocks; `next` is where a full scrub continues afterwards.
    Scrub {
        blocks: Vec<BlockAddress>,
        next: Option<u64>,
    },
}

impl Task {
    /// Returns whether it puts an object of this name.
    pub(super) fn puts(&self, wanted: &str) -> bool {
        matches!(self, Self::Put { name, .. } if name == wanted)
    }

    /// Whether a client waits to read.
    pub(super) const fn reads(&self) -> bool {
        matches!(self, Self::Get { .. } | Self::Hold { to: Requester::Client(_), .. })
    }

    const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Put { request, .. }
            | Self::Get { request, .. }
            | Self::Hold { to: Requester::Client(request), .. } => Some(*request),
            Self::ApplyDeltas { .. }
            | Self::Send { .. }
            | Self::Hold { to: Requester::Tome(..), .. }
            | Self::AddSegment { .. }
            | Self::Scrub { .. } => None,
        }
    }
}

/// A task in progress.
#[derive(Clone, Debug)]
pub(super) struct Job {
    id: u64,
    task: Task,
    /// Blocks that an object is written to.
    places: Vec<BlockAddress>,
    /// Blocks to read and verify.
    wanted: BTreeSet<BlockAddress>,
    /// Additional physical blocks to read, which have no signature of their own.
    extra: Vec<PhysicalBlock>,
    /// Whether whole segments are read to repair bad blocks.
    is_repairing: bool,
    loaded: BTreeMap<BlockAddress, Vec<u8>>,
    loaded_extra: Vec<Option<Vec<u8>>>,
}

impl Job {
    pub(super) const fn task(&self) -> &Task {
        &self.task
    }

    pub(super) fn places(&self) -> &[BlockAddress] {
        &self.places
    }
}

impl Tome {
    /// Returns the next task: clients first, then protection, then scrubs.
    pub(super) fn next_task(&mut self) -> Option<Task> {
        self.next_client_task()
            .or_else(|| self.next_apply())
            .or_else(|| self.next_send())
            .or_else(|| self.next_repair())
            .or_else(|| self.next_segment_task())
            .or_else(|| self.next_scrub())
    }

    /// Returns the next client request: reads overtake puts, which are less urgent, but after a
    /// limited number in a row the request that waited longest is next.
    fn next_client_task(&mut self) -> Option<Task> {
        let read = self.tasks.iter().position(|(_, task)| task.reads());
        let at = read.filter(|_| self.read_overtakes < READ_OVERTAKES_MAX).unwrap_or(0);
        self.read_overtakes = if at == 0 { 0 } else { self.read_overtakes + 1 };
        self.tasks.remove(at).map(|(_, task)| task)
    }

    /// Begins a task by reading what it needs. Returns whether it did; a task that fails at once
    /// does not keep the disk spinning.
    pub(super) fn begin(&mut self, task: Task, out: &mut Outbox<Command>) -> bool {
        self.jobs += 1;
        let mut job = Job {
            id: self.jobs,
            task,
            places: Vec::new(),
            wanted: BTreeSet::new(),
            extra: Vec::new(),
            is_repairing: false,
            loaded: BTreeMap::new(),
            loaded_extra: Vec::new(),
        };
        match self.plan(&mut job) {
            Ok(()) => {
                match self.object_read_plan(&job) {
                    Some((physical_blocks, wanted)) => {
                        out.push(Command::ReadObject { job: job.id, physical_blocks, wanted });
                        self.job = Some(job);
                    }
                    None => self.load(job, out),
                }
                true
            }
            Err(error) => {
                self.fail(job, error, out);
                false
            }
        }
    }

    /// Plans the reads of a job.
    fn plan(&mut self, job: &mut Job) -> Result<()> {
        let layout = *self.metadata.layout();
        match &job.task {
            Task::Put { bytes, avoided, .. } => {
                let blocks = bytes.len().div_ceil(self.block_len());
                job.places = self.choose(blocks, avoided)?;
                job.wanted = self.with_parity(&job.places)?;
                self.check_room(job.wanted.len())?;
            }
            Task::Get { name, .. } => {
                let no_object = || TomeError::NoObject { name: name.clone() };
                let object = self.metadata.object(name).ok_or_else(no_object)?;
                job.wanted = object.blocks.iter().copied().collect();
            }
            Task::ApplyDeltas { region, deltas } => {
                let places = self.apply_targets(*region, deltas);
                job.wanted = self.with_parity(&places)?;
            }
            Task::Send { region, version, .. } => {
                let part = self.repairs.part(*region, *version).map(|part| signature(part));
                let pending = self.pending(*region, *version);
                if part.is_some() && part == pending.map(|pending| pending.change) {
                    // A parity knew the change, so nothing has to be read for it.
                } else if let Some(pending) = self.pending(*region, *version) {
                    // The new block is repaired if needed, while it is the latest at its offset.
                    let at = (*region, pending.offset);
                    let latest = self
                        .metadata
                        .region(*region)
                        .and_then(|r| r.physical_block(pending.offset));
                    if latest == Some(pending.new) || part.is_some() {
                        job.wanted = BTreeSet::from([at]);
                    }
                    if latest != Some(pending.new) {
                        job.extra.push(pending.new);
                    }
                    job.extra.extend(pending.old);
                }
            }
            Task::Hold { group, offsets, .. } => {
                let no_group = TomeError::NoGroup { group: *group };
                let (index, _) = self.metadata.region_of(*group).ok_or(no_group)?;
                job.wanted = offsets.iter().map(|offset| (index, *offset)).collect();
                job.extra = self.holding_blocks(*group, offsets);
            }
            Task::AddSegment { region, segment, .. } => {
                let offsets = layout.segment_offsets(*segment);
                job.wanted = offsets.map(|offset| (*region, offset)).collect();
            }
            Task::Scrub { blocks, .. } => job.wanted = blocks.iter().copied().collect(),
        }
        Ok(())
    }

    /// Returns the physical blocks of an object to read, and what is expected of them.
    fn object_read_plan(&self, job: &Job) -> Option<(Vec<PhysicalBlock>, ExpectedObject)> {
        let Task::Get { name, .. } = &job.task else { return None };
        let object = self.metadata.object(name)?;
        let physical_block = |(region, offset): &BlockAddress| {
            self.metadata.region(*region)?.physical_block(*offset)
        };
        let physical_blocks =
            object.blocks.iter().map(physical_block).collect::<Option<Vec<PhysicalBlock>>>()?;
        let signatures = object.blocks.iter().map(|at| self.signature_of(*at)).collect();
        let block_bytes = self.block_len();
        let Object { bytes, digest, .. } = *object;
        Some((physical_blocks, ExpectedObject { signatures, block_bytes, bytes, digest }))
    }

    /// Answers with the object, or else reads it block by block for repair.
    pub(super) fn object_read(
        &mut self,
        id: u64,
        whole: Option<VerifiedObject>,
        out: &mut Outbox<Command>,
    ) {
        let Some(job) = self.job.take_if(|job| job.id == id) else { return };
        let (Some(whole), Task::Get { request, name }) = (whole, &job.task) else {
            return self.load(job, out);
        };
        if self.metadata.object(name).is_none() {
            let error = TomeError::NoObject { name: name.clone() };
            return self.fail(job, error, out);
        }
        let (request, bytes) = (*request, whole.into_bytes());
        out.push(Command::Answer { request, answer: Answer::Bytes(bytes) });
    }

    /// Returns blocks with the parity of their segments.
    pub(super) fn with_parity(&self, places: &[BlockAddress]) -> Result<BTreeSet<BlockAddress>> {
        let layout = self.metadata.layout();
        let mut wanted = BTreeSet::new();
        for (region, offset) in places {
            let at = layout.in_segment(*offset)?;
            let parity = layout.segment_offsets(at.segment).skip(layout.segment().data() as usize);
            wanted.extend(parity.chain([*offset]).map(|offset| (*region, offset)));
        }
        Ok(wanted)
    }

    fn load(&mut self, job: Job, out: &mut Outbox<Command>) {
        let physical_blocks: Vec<PhysicalBlock> =
            self.written_blocks(&job).map(|(_, s)| s).chain(job.extra.clone()).collect();
        let id = job.id;
        self.job = Some(job);
        if physical_blocks.is_empty() {
            self.read(id, Vec::new(), out);
        } else {
            out.push(Command::Read { job: id, physical_blocks });
        }
    }

    /// Returns the written blocks of a job with their physical blocks.
    fn written_blocks(&self, job: &Job) -> impl Iterator<Item = (BlockAddress, PhysicalBlock)> {
        job.wanted.iter().filter_map(|(region, offset)| {
            let physical_block = self.metadata.region(*region)?.physical_block(*offset)?;
            Some(((*region, *offset), physical_block))
        })
    }

    /// Handles the blocks read for a job.
    pub(super) fn read(
        &mut self,
        id: u64,
        blocks: Vec<Option<Vec<u8>>>,
        out: &mut Outbox<Command>,
    ) {
        let Some(mut job) = self.job.take_if(|job| job.id == id) else { return };
        let length = self.block_len();
        let blocks = blocks.into_iter().map(|block| block.filter(|bytes| bytes.len() == length));
        let mut blocks = blocks.collect::<Vec<_>>().into_iter();
        let written_blocks: Vec<BlockAddress> =
            self.written_blocks(&job).map(|(at, _)| at).collect();
        let mut bad = BTreeSet::new();
        for (at, bytes) in written_blocks.into_iter().zip(blocks.by_ref()) {
            match bytes.filter(|bytes| signature(bytes) == self.signature_of(at)) {
                Some(bytes) => {
                    job.loaded.insert(at, bytes);
                }
                None => {
                    bad.insert(at);
                }
            }
        }
        job.loaded_extra = blocks.collect();
        let loaded = if bad.is_empty() {
            Ok(false)
        } else if job.is_repairing {
            self.heal(&mut job, &bad, out).map(|()| false)
        } else {
            self.extend_to_segments(&mut job, &bad).map(|()| true)
        };
        match loaded {
            Ok(true) => self.load(job, out),
            Ok(false) => self.finish(job, out),
            Err(error) => self.fail(job, error, out),
        }
    }

    /// Extends a job to the whole segments of bad blocks.
    fn extend_to_segments(&self, job: &mut Job, bad: &BTreeSet<BlockAddress>) -> Result<()> {
        job.is_repairing = true;
        for (region, offset) in bad {
            let at = self.metadata.layout().in_segment(*offset)?;
            let offsets = self.metadata.layout().segment_offsets(at.segment);
            job.wanted.extend(offsets.map(|offset| (*region, offset)));
        }
        Ok(())
    }

    /// Rebuilds bad blocks and writes them elsewhere. A segment with too many bad blocks raises an
    /// alarm; a scrub job continues without it.
    fn heal(
        &mut self,
        job: &mut Job,
        bad: &BTreeSet<BlockAddress>,
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        let layout = *self.metadata.layout();
        let mut segments = BTreeSet::new();
        for (region, offset) in bad {
            segments.insert((*region, layout.in_segment(*offset)?.segment));
        }
        for (region, segment) in segments {
            let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
            let signatures: Vec<Signature> =
                offsets.iter().map(|offset| self.signature_of((region, *offset))).collect();
            let zeros = || vec![0; self.block_len()];
            let is_written = |offset: Offset| {
                self.metadata
                    .region(region)
                    .is_some_and(|region| region.physical_block(offset).is_some())
            };
            let mut blocks: Vec<Option<Vec<u8>>> = offsets
                .iter()
                .map(|offset| {
                    let loaded = job.loaded.get(&(region, *offset)).cloned();
                    loaded.or_else(|| (!is_written(*offset)).then(zeros))
                })
                .collect();
            let unread = SegmentCode::bad(&blocks, &signatures);
            for position in &unread {
                let found = self.repairs.found((region, offsets[*position]));
                blocks[*position] = found.cloned().or_else(|| blocks[*position].take());
            }
            match self.code.rebuild(&mut blocks, &signatures) {
                Ok(_) => {
                    self.heal_segment(job, region, &offsets, &unread, &blocks, out)?;
                    self.repaired(region, segment);
                }
                Err(error) => {
                    let bad = unread.iter().map(|position| offsets[*position]);
                    // When signatures form no codeword, none of them tells what to recover.
                    let is_lost = matches!(error, TomeError::SegmentLost { .. });
                    let bad = bad.filter(|_| is_lost).collect();
                    if self.lost_segments.insert((region, segment), bad).is_none() {
                        out.push(Command::Alarm(Alarm::SegmentLost { region, segment }));
                    }
                    if !matches!(job.task, Task::Scrub { .. }) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn heal_segment(
        &mut self,
        job: &mut Job,
        region: RegionIndex,
        offsets: &[Offset],
        healed: &[usize],
        blocks: &[Option<Vec<u8>>],
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        self.check_room(healed.len())?;
        let mut rows = Vec::new();
        let mut left = Vec::new();
        for position in healed {
            let (offset, Some(bytes)) = (offsets[*position], &blocks[*position]) else { continue };
            job.loaded.insert((region, offset), bytes.clone());
            let version = self.metadata.region(region).map_or(Version::NONE, |r| r.version(offset));
            left.extend(
                self.metadata.region(region).and_then(|region| region.physical_block(offset)),
            );
            let physical_block = self.write(bytes.clone(), out)?;
            rows.push(Row::Block {
                region,
                offset,
                physical_block,
                version,
                change: Signature::ZERO,
            });
        }
        self.commit(rows, out);
        self.free_blocks(region, &left);
        out.push(Command::Alarm(Alarm::Healed { region, blocks: healed.len() }));
        Ok(())
    }

    /// Finishes a job whose blocks are read and verified.
    fn finish(&mut self, mut job: Job, out: &mut Outbox<Command>) {
        let done = match &job.task {
            Task::Put { .. } => self.finish_put(&mut job, out),
            Task::Get { request, name } => {
                let (request, bytes) = (*request, self.assemble(&job, name));
                bytes.map(|bytes| {
                    out.push(Command::Answer { request, answer: Answer::Bytes(bytes) });
                })
            }
            Task::ApplyDeltas { region, deltas } => {
                let (region, deltas) = (*region, deltas.clone());
                self.finish_apply(region, &deltas, &job.loaded, out)
            }
            Task::Send { region, version, parity } => {
                let (region, version, parity) = (*region, *version, *parity);
                let extra = std::mem::take(&mut job.loaded_extra);
                self.finish_send((region, version, parity), extra, &job.loaded, out);
                Ok(())
            }
            Task::Hold { to, group, offsets } => {
                let physical_blocks = job.extra.iter().copied();
                let extra = physical_blocks.zip(job.loaded_extra.iter().cloned()).collect();
                self.send_holdings((*to, *group), offsets, &job.loaded, extra, out);
                Ok(())
            }
            Task::AddSegment { region, step, segment, blocks } => {
                self.finish_segment(*region, (*step, *segment), blocks, &job.loaded, out)
            }
            Task::Scrub { next, .. } => {
                if let Some(next) = *next {
                    self.record_scrubbed(next, out);
                }
                Ok(())
            }
        };
        if let Err(error) = done {
            self.fail(job, error, out);
        }
    }

    fn assemble(&self, job: &Job, name: &str) -> Result<Vec<u8>> {
        let no_object = || TomeError::NoObject { name: name.to_owned() };
        let object = self.metadata.object(name).ok_or_else(no_object)?;
        let blocks = object.blocks.iter().filter_map(|at| job.loaded.get(at));
        let mut bytes = Vec::with_capacity(object.blocks.len() * self.block_len());
        blocks.for_each(|block| bytes.extend_from_slice(block));
        bytes.truncate(usize::try_from(object.bytes).unwrap_or(usize::MAX));
        if sector_checksum(&bytes) == object.digest {
            return Ok(bytes);
        }
        Err(TomeError::DigestMismatch { name: name.to_owned() })
    }

    /// Writes an object's blocks and records its name, in one commit.
    fn finish_put(&mut self, job: &mut Job, out: &mut Outbox<Command>) -> Result<()> {
        let Task::Put { request, name, bytes, .. } = &job.task else { return Ok(()) };
        let (request, name, block_len) = (*request, name.clone(), self.block_len());
        let mut changes: BTreeMap<RegionIndex, BTreeMap<Offset, Vec<u8>>> = BTreeMap::new();
        for (at, chunk) in job.places.iter().zip(bytes.chunks(block_len)) {
            let mut change = job.loaded.get(at).cloned().unwrap_or_else(|| vec![0; block_len]);
            change.iter_mut().zip(chunk).for_each(|(old, new)| *old ^= new);
            changes.entry(at.0).or_default().insert(at.1, change);
        }
        let object = Object {
            blocks: job.places.clone(),
            bytes: bytes.len() as u64,
            digest: sector_checksum(bytes),
        };
        let staged = self.stage(&changes, &job.loaded, out)?;
        let mut rows = staged.rows;
        for (at, written) in &staged.data {
            let group = self.metadata.region(at.0).map(|region| region.group().split());
            let pending = Pending {
                offset: at.1,
                old: written.old,
                new: written.new,
                change: written.change,
                missing: group.map(Parities::all).unwrap_or_default(),
                is_sent: false,
                since: self.now,
            };
            rows.push(Row::Pending { region: at.0, version: written.version, pending });
        }
        rows.push(Row::Object { name: name.clone(), object });
        self.commit(rows, out);
        for (region, physical_blocks) in &staged.left {
            self.free_blocks(*region, physical_blocks);
        }
        self.deltas.written(&self.metadata, changes.keys().copied());
        self.awaiting_protection.insert(name, request);
        out.push(Command::Answer { request, answer: Answer::Local });
        job.places.clear();
        Ok(())
    }

    /// Fails a job and reports the error to its client.
    fn fail(&mut self, job: Job, error: TomeError, out: &mut Outbox<Command>) {
        for (region, offset) in &job.places {
            if let Some(bitmap) = self.used.get_mut(region) {
                bitmap.give_back(offset.as_usize());
            }
        }
        if let Some(request) = job.task.request() {
            out.push(Command::Answer { request, answer: Answer::Refused(error) });
        } else if let Task::Send { region, version, parity } = job.task {
            self.deltas.give_up(region, version, parity);
        } else if let Task::Hold { to: Requester::Tome(to, round), group, .. } = job.task {
            let message = Message::Holdings { group, round, held: None };
            out.push(Command::Send { to, message });
        } else if let Task::AddSegment { region, .. } = job.task {
            self.rebuild_failed(region, out);
        } else if let Task::ApplyDeltas { .. } = job.task {
            // There was no room; or a segment is lost, and its deltas are skipped from now on.
            self.apply_backoff = Some(self.now + RESEND_INTERVAL);
        }
    }

    /// Chooses free data blocks for an object, all in one region, so that it moves with that when
    /// its tome is lost.
    fn choose(&mut self, count: usize, avoided: &BTreeSet<TomeId>) -> Result<Vec<BlockAddress>> {
        let layout = *self.metadata.layout();
        for region in self.regions_for(count, avoided)? {
            let Some(bitmap) = self.used.get_mut(&region) else { continue };
            let lost_segments = &self.lost_segments;
            let is_good = |place: usize| {
                let offset = Offset::at(place);
                let segment = layout.in_segment(offset).map_or(0, |at| at.segment);
                !layout.is_parity(offset) && !lost_segments.contains_key(&(region, segment))
            };
            let places: Vec<usize> = (0..count).map_while(|_| bitmap.take_first(is_good)).collect();
            if places.len() == count {
                return Ok(places.into_iter().map(|at| (region, Offset::at(at))).collect());
            }
            places.into_iter().for_each(|place| bitmap.give_back(place));
        }
        Err(TomeError::Full { what: "objects" })
    }

    /// Returns regions with room for this many blocks of an object, in groups without any avoided
    /// tome. Regions with changes in flight that the object can join come first, so that the
    /// parities of few groups have to spin; then the one with the most room.
    pub(super) fn regions_for(
        &self,
        count: usize,
        avoided: &BTreeSet<TomeId>,
    ) -> Result<Vec<RegionIndex>> {
        let layout = self.metadata.layout();
        let parity = (layout.region_blocks() - layout.region_data_blocks()) as usize;
        let mut regions: Vec<(bool, usize, RegionIndex)> = Vec::new();
        let mut is_full = true;
        let is_avoided = |region: &Region| {
            let mut slots = region.group().slots().iter();
            !avoided.is_empty() && slots.any(|slot| avoided.contains(&slot.tome))
        };
        for (index, region) in self.metadata.regions().filter(|(_, region)| !is_avoided(region)) {
            let Some(pending) = region.pending() else { continue };
            let free = self.used.get(&index).map_or(0, Bitmap::free).saturating_sub(parity);
            let has_room =
                |room: usize| *region.membership_state() != MembershipState::Left && room >= count;
            is_full &= !has_room(free);
            let room = free.min(PENDING_MAX - pending.len());
            if Self::accepts_blocks(region) && has_room(room) {
                let goes_along =
                    !pending.is_empty() && pending.len().saturating_add(count) <= DELTA_WINDOW;
                regions.push((goes_along, room, index));
            }
        }
        regions.sort_unstable_by_key(|(along, room, index)| (!*along, Reverse(*room), *index));
        let what = "objects";
        match regions.is_empty() {
            true if is_full => Err(TomeError::Full { what }),
            true => Err(TomeError::Backlog { what }),
            false => Ok(regions.into_iter().map(|(_, _, index)| index).collect()),
        }
    }

    pub(super) fn block_len(&self) -> usize {
        usize::try_from(self.metadata.layout().block_bytes()).unwrap_or(usize::MAX)
    }

    pub(super) fn signature_of(&self, (region, offset): BlockAddress) -> Signature {
        self.metadata.region(region).map_or(Signature::ZERO, |region| region.tree().block(offset))
    }
}
