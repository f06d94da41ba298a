//! Repair from the group of what a tome's own parity cannot rebuild: one source after the other.
//!
//! ```text
//! segment with more bad blocks than parity     change whose old or new block is bad
//!        |                                       |  parities first: their metadata stores
//!        v                                       v
//!   HoldingsWanted --> one member, once its disk spins --> Holdings
//!        |   again for the next, until there are as many as the group has data
//!        v
//!   block recovered by the code, checked against its signature --> written when the disk spins
//! ```
//!
//! Members answer at different times and may be written between. The result then does not match the
//! recorded signature, and further members are asked, or all again later. Only as many blocks are
//! requested as the segment lacks parity for; the rest is rebuilt from the segment. All of it is
//! volatile: what is bad is found again after a restart. Not here: the arithmetic
//! ([`crate::offline_read`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{Instant, Outbox};

use super::jobs::{BlockAddress, Requester, Task};
use super::{Alarm, Answer, Command, RequestId, Tome};
use crate::applied_changes::AppliedChanges;
use crate::limits::{
    HOLDING_REQUESTS_MAX, PUT_BLOCKS_MAX, REPAIR_BACKOFF, REPAIR_BLOCKS_MAX, REPAIR_TIMEOUT,
    RESEND_INTERVAL,
};
use crate::membership_state::MembershipState;
use crate::message::{Held, Message};
use crate::metadata::{Region, Role};
use crate::offline_read::{self, Holding, xor};
use crate::{
    GroupId, Member, Offset, PhysicalBlock, RegionIndex, Result, TomeError, TomeId, Version,
};

/// What to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RepairTarget {
    Segment(RegionIndex, u32),
    Change(RegionIndex, Version),
}

/// A member to ask: for its blocks, or only for what its metadata store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    member: Member,
    is_whole: bool,
}

/// The request in progress.
#[derive(Clone, Debug)]
struct Ask {
    target: RepairTarget,
    group: GroupId,
    round: u64,
    offsets: Vec<Offset>,
    source: Source,
    began: Instant,
    last_request: Instant,
    left: VecDeque<Source>,
    whole: BTreeMap<Member, Vec<Held>>,
    /// Answers of members that were not asked for blocks.
    extra: Vec<Held>,
}

/// When to retry a subject, and how often it was tried.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    until: Instant,
    times: usize,
}

/// State of the repairs from groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupRepairs {
    asking: Option<Ask>,
    attempts: BTreeMap<RepairTarget, Attempts>,
    /// Recovered blocks of segments, still to be written.
    found: BTreeMap<BlockAddress, Vec<u8>>,
    /// A change that a parity knew, or its bad block, recovered.
    parts: BTreeMap<(RegionIndex, Version), Vec<u8>>,
    /// Segments that can be rebuilt with the recovered blocks.
    ready: BTreeSet<(RegionIndex, u32)>,
    /// Changes that an alarm was raised for.
    alarmed: BTreeSet<(RegionIndex, Version)>,
    /// Requests of other members to this one.
    requests: VecDeque<Task>,
}

impl GroupRepairs {
    /// Number of tasks that need a spinning disk.
    pub(super) fn pending(&self) -> usize {
        self.requests.len() + self.ready.len()
    }

    pub(super) fn next_request(&mut self) -> Option<Task> {
        self.requests.pop_front()
    }

    /// Returns a recovered block.
    pub(super) fn found(&self, at: BlockAddress) -> Option<&Vec<u8>> {
        self.found.get(&at)
    }

    /// Returns what was recovered for a change.
    pub(super) fn part(&self, region: RegionIndex, version: Version) -> Option<&Vec<u8>> {
        self.parts.get(&(region, version))
    }

    /// Forgets a change that every parity has.
    pub(super) fn forget(&mut self, region: RegionIndex, version: Version) {
        self.parts.remove(&(region, version));
        self.alarmed.remove(&(region, version));
        self.attempts.remove(&RepairTarget::Change(region, version));
    }

    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let asks = self.asking.as_ref().map(|ask| ask.last_request + RESEND_INTERVAL);
        let rests = self
            .attempts
            .values()
            .map(|attempts| attempts.until)
            .filter(|until| *until > now)
            .min();
        asks.or(rests)
    }

    fn back_off(&mut self, now: Instant, target: RepairTarget) {
        let attempts = self.attempts.entry(target).or_default();
        *attempts = Attempts { until: now + REPAIR_BACKOFF, times: attempts.times + 1 };
    }
}

impl Tome {
    /// Requests what is to be recovered, while no client waits for the disk.
    pub(super) fn continue_repair(&mut self, out: &mut Outbox<Command>) {
        if !self.tasks.is_empty() {
            return;
        }
        match &self.repairs.asking {
            None => self.begin_repair(out),
            Some(ask) if self.now.since(ask.began) >= REPAIR_TIMEOUT => self.next_source(out),
            Some(ask) if self.now.since(ask.last_request) >= RESEND_INTERVAL => {
                self.request_holdings(out)
            }
            Some(_) => {}
        }
    }

    /// Chooses what to recover: segments before changes, for an unreadable block is worse than an
    /// unprotected one.
    fn target(&self) -> Option<RepairTarget> {
        let bad = self.lost_segments.iter().filter(|(_, bad)| !bad.is_empty());
        let segments = bad.map(|((region, segment), _)| RepairTarget::Segment(*region, *segment));
        let changes =
            self.deltas.lost().map(|(region, version)| RepairTarget::Change(region, version));
        let rests = |target: &RepairTarget| {
            self.repairs.attempts.get(target).is_some_and(|attempts| self.now < attempts.until)
        };
        let holds_slot = |target: &RepairTarget| {
            let (RepairTarget::Segment(region, _) | RepairTarget::Change(region, _)) = target;
            let standing = self.metadata.region(*region).map(Region::membership_state);
            matches!(standing, Some(MembershipState::Member | MembershipState::Frozen(_)))
        };
        segments.chain(changes).find(|target| holds_slot(target) && !rests(target))
    }

    fn begin_repair(&mut self, out: &mut Outbox<Command>) {
        let Some(target) = self.target() else { return };
        let (index, offsets) = match target {
            RepairTarget::Segment(region, segment) => (region, self.blocks_needed(region, segment)),
            RepairTarget::Change(region, version) => {
                let offset = self.pending(region, version).map(|pending| pending.offset);
                (region, offset.into_iter().collect())
            }
        };
        let Some(region) = self.metadata.region(index) else { return };
        let group = region.group();
        let all = (0..group.split().total()).map(|member| Member::at(member as usize));
        let others = all.filter(|member| *member != region.member());
        let mut left = VecDeque::new();
        if matches!(target, RepairTarget::Change(..)) {
            let data = group.split().data();
            let parities = others.clone().filter(|member| u32::from(member.get()) >= data);
            left.extend(parities.map(|member| Source { member, is_whole: false }));
        }
        left.extend(others.map(|member| Source { member, is_whole: true }));
        let Some(source) = left.pop_front() else { return };
        let (group, now) = (group.id(), self.now);
        self.repairs.asking = Some(Ask {
            target,
            group,
            round: 0,
            offsets,
            source,
            began: now,
            last_request: now,
            left,
            whole: BTreeMap::new(),
            extra: Vec::new(),
        });
        self.request_holdings(out);
    }

    /// Returns the blocks that a segment needs from its group: as many as it lacks parity for,
    /// different ones at each try.
    fn blocks_needed(&self, region: RegionIndex, segment: u32) -> Vec<Offset> {
        let Some(bad) = self.lost_segments.get(&(region, segment)) else { return Vec::new() };
        let is_found = |offset: &&Offset| self.repairs.found.contains_key(&(region, **offset));
        let found = bad.iter().filter(is_found).count();
        let parity = self.metadata.layout().segment().parity() as usize;
        let count = bad.len().saturating_sub(parity + found).clamp(1, REPAIR_BLOCKS_MAX);
        let mut missing: Vec<Offset> = bad.iter().filter(|o| !is_found(o)).copied().collect();
        let times = self
            .repairs
            .attempts
            .get(&RepairTarget::Segment(region, segment))
            .map_or(0, |t| t.times);
        let turn = times % missing.len().max(1);
        missing.rotate_left(turn);
        missing.truncate(count);
        missing
    }

    fn request_holdings(&mut self, out: &mut Outbox<Command>) {
        self.rounds += 1;
        let Some(ask) = self.repairs.asking.as_mut() else { return };
        // A resent request keeps its number: a member that is working on it does it once.
        if ask.round == 0 {
            ask.round = self.rounds;
        }
        ask.last_request = self.now;
        let Some((_, region)) = self.metadata.region_of(ask.group) else { return };
        let to = region.group().slots()[ask.source.member.as_usize()].tome;
        let (group, round, is_whole) = (ask.group, ask.round, ask.source.is_whole);
        let offsets = ask.offsets.clone();
        let message = Message::HoldingsWanted { group, round, offsets, is_whole };
        out.push(Command::Send { to, message });
    }

    fn next_source(&mut self, out: &mut Outbox<Command>) {
        let Some(ask) = self.repairs.asking.as_mut() else { return };
        if let Some(source) = ask.left.pop_front() {
            (ask.source, ask.began, ask.round) = (source, self.now, 0);
            self.request_holdings(out);
            return;
        }
        let target = ask.target;
        self.repairs.asking = None;
        self.repairs.back_off(self.now, target);
        if let RepairTarget::Change(region, version) = target
            && self.repairs.alarmed.insert((region, version))
        {
            out.push(Command::Alarm(Alarm::ChangeLost { region, version }));
        }
    }

    /// Handles a member's holdings.
    pub(super) fn handle_holdings(
        &mut self,
        from: TomeId,
        round: u64,
        held: Option<Vec<Held>>,
        out: &mut Outbox<Command>,
    ) {
        let block_len = self.block_len();
        let Some(ask) = self.repairs.asking.as_mut() else { return };
        let slots = self.metadata.region_of(ask.group).map(|(_, region)| region.group());
        let Some(group) = slots else { return };
        let slot = group.slots()[ask.source.member.as_usize()];
        if round != ask.round || slot.tome != from {
            return;
        }
        let source = ask.source;
        let fits = |held: &Vec<Held>| {
            held.len() == ask.offsets.len()
                && held.iter().all(|held| {
                    (held.block.len() == block_len || !source.is_whole)
                        && held.changes.iter().all(|change| change.bytes.len() == block_len)
                })
        };
        match held.filter(fits) {
            Some(held) if source.is_whole => {
                ask.whole.insert(source.member, held);
            }
            Some(held) => ask.extra.extend(held),
            None => {}
        }
        if !self.evaluate() {
            self.next_source(out);
        }
    }

    /// Returns whether the answers are enough.
    fn evaluate(&mut self) -> bool {
        let Some(ask) = self.repairs.asking.clone() else { return true };
        let is_enough = match ask.target {
            RepairTarget::Segment(region, segment) => self.evaluate_segment(&ask, region, segment),
            RepairTarget::Change(region, version) => self.evaluate_change(&ask, region, version),
        };
        if is_enough {
            self.repairs.asking = None;
        }
        is_enough
    }

    fn evaluate_segment(&mut self, ask: &Ask, index: RegionIndex, segment: u32) -> bool {
        let Some(region) = self.metadata.region(index) else { return false };
        let recorded = |offset: &Offset| region.tree().block(*offset);
        let made: Vec<Option<Vec<u8>>> = ask
            .offsets
            .iter()
            .enumerate()
            .map(|(at, offset)| recovered(ask, region, at, &[recorded(offset)]))
            .collect();
        let is_enough = made.iter().all(Option::is_some);
        for (offset, made) in ask.offsets.iter().zip(made) {
            self.repairs.found.extend(made.map(|bytes| ((index, *offset), bytes)));
        }
        let Some(bad) = self.lost_segments.get(&(index, segment)) else { return true };
        let found = bad.iter().filter(|o| self.repairs.found.contains_key(&(index, **o))).count();
        if bad.len() <= found + self.metadata.layout().segment().parity() as usize {
            self.repairs.ready.insert((index, segment));
            self.repairs.back_off(self.now, ask.target);
            return true;
        }
        is_enough
    }

    fn evaluate_change(&mut self, ask: &Ask, index: RegionIndex, version: Version) -> bool {
        let Some(region) = self.metadata.region(index) else { return false };
        let Some(list) = region.pending() else { return false };
        // It was confirmed meanwhile.
        let Some(pending) = list.get(version) else { return true };
        let held = ask.whole.values().flatten().chain(&ask.extra);
        let own = held.flat_map(|held| &held.changes).find(|change| {
            (change.member, change.version) == (region.member(), version)
                && signature(&change.bytes) == pending.change
        });
        let later = list.iter().filter(|(v, p)| *v >= version && p.offset == pending.offset);
        let latest = region.tree().block(pending.offset);
        let old = later.fold(latest, |sum, (_, pending)| sum ^ pending.change);
        let part = own.map(|change| change.bytes.clone());
        let part = part.or_else(|| {
            // The old block or the new one, or the latest without the change: parities may have
            // applied a later one already.
            recovered(ask, region, 0, &[old, old ^ pending.change, latest ^ pending.change])
        });
        let Some(part) = part else { return false };
        self.repairs.parts.insert((index, version), part);
        self.repairs.back_off(self.now, ask.target);
        self.deltas.retry_lost(index, Some(version));
        true
    }

    /// Returns the next repair: requests of other members first, then reads of segments that can be
    /// rebuilt.
    pub(super) fn next_repair(&mut self) -> Option<Task> {
        if let Some(hold) = self.repairs.next_request() {
            return Some(hold);
        }
        let (region, segment) = self.repairs.ready.pop_first()?;
        let offsets = self.metadata.layout().segment_offsets(segment);
        Some(Task::Scrub { blocks: offsets.map(|offset| (region, offset)).collect(), next: None })
    }

    /// Records that a segment is repaired.
    pub(super) fn repaired(&mut self, region: RegionIndex, segment: u32) {
        if self.lost_segments.remove(&(region, segment)).is_none() {
            return;
        }
        let offsets: BTreeSet<Offset> = self.metadata.layout().segment_offsets(segment).collect();
        self.repairs.found.retain(|(of, offset), _| *of != region || !offsets.contains(offset));
        let target = RepairTarget::Segment(region, segment);
        self.repairs.attempts.remove(&target);
        self.repairs.ready.remove(&(region, segment));
        self.repairs.asking.take_if(|ask| ask.target == target);
        self.deltas.retry_lost(region, None);
    }

    /// Handles another member's request for what this one knows of some offsets.
    pub(super) fn hold(
        &mut self,
        from: TomeId,
        message: (GroupId, u64, Vec<Offset>, bool),
        out: &mut Outbox<Command>,
    ) {
        let (group, round, offsets, is_whole) = message;
        let Some((_, region)) = self.metadata.region_of(group) else { return };
        let is_target = region.frozen().is_some_and(|planned| planned.to.tome == from);
        let is_slot = region.group().slots().iter().any(|slot| slot.tome == from);
        let is_block = |offset: &Offset| self.metadata.layout().in_segment(*offset).is_ok();
        let segment = self.metadata.layout().segment().total() as usize;
        let most = if is_target { segment } else { REPAIR_BLOCKS_MAX };
        let fits = offsets.len() <= most && offsets.iter().all(is_block);
        if !is_slot && !is_target {
            self.reject_unknown_sender(from, group, out);
            return;
        }
        if !fits {
            out.push(Command::Alarm(Alarm::Foreign { from, group }));
            return;
        }
        if !is_whole {
            let held = offsets.iter().map(|offset| from_metadata(region, *offset)).collect();
            let message = Message::Holdings { group, round, held: Some(held) };
            out.push(Command::Send { to: from, message });
            return;
        }
        let hold = Task::Hold { to: Requester::Tome(from, round), group, offsets };
        let is_there = self.repairs.requests.contains(&hold)
            || self.job.as_ref().is_some_and(|job| *job.task() == hold);
        if !is_there && self.repairs.requests.len() < HOLDING_REQUESTS_MAX {
            self.repairs.requests.push_back(hold);
        }
    }

    /// Returns the physical blocks, beside the latest blocks, from which a member's changes are
    /// computed.
    pub(super) fn holding_blocks(&self, group: GroupId, offsets: &[Offset]) -> Vec<PhysicalBlock> {
        let Some((_, region)) = self.metadata.region_of(group) else { return Vec::new() };
        let pending = region.pending().into_iter().flat_map(|list| list.iter());
        let here = pending.filter(|(_, pending)| offsets.contains(&pending.offset));
        here.flat_map(|(_, pending)| pending.old.into_iter().chain([pending.new])).collect()
    }

    /// Answers with what was read.
    pub(super) fn send_holdings(
        &self,
        (to, group): (Requester, GroupId),
        offsets: &[Offset],
        loaded: &BTreeMap<BlockAddress, Vec<u8>>,
        extra: BTreeMap<PhysicalBlock, Option<Vec<u8>>>,
        out: &mut Outbox<Command>,
    ) {
        let Some((index, region)) = self.metadata.region_of(group) else {
            if let Requester::Client(request) = to {
                let answer = Answer::Refused(TomeError::NoGroup { group });
                out.push(Command::Answer { request, answer });
            }
            return;
        };
        let mut physical_blocks = extra;
        for offset in offsets {
            if let Some(physical_block) = region.physical_block(*offset) {
                physical_blocks.insert(physical_block, loaded.get(&(index, *offset)).cloned());
            }
        }
        let mut read = |physical_block| physical_blocks.get(&physical_block).cloned().flatten();
        let all =
            offsets.iter().map(|o| offline_read::holding(&self.metadata, group, *o, &mut read));
        // A block that is ahead of the parities by a change whose bytes are lost is of no use.
        let waiting = |offset: Offset| {
            let list = region.pending().into_iter().flat_map(|list| list.iter());
            list.filter(|(_, pending)| pending.offset == offset).count()
        };
        let is_known = |(held, offset): &(Result<Holding>, &Offset)| {
            let known = |held: &Holding| {
                region.pending().is_none() || held.changes.len() == waiting(**offset)
            };
            held.as_ref().is_ok_and(known)
        };
        let known = all.zip(offsets).map(|pair| is_known(&pair).then_some(pair.0));
        let all: Option<Vec<Held>> = known.map(|held| held?.ok().map(Held::from)).collect();
        out.push(match (to, all) {
            (Requester::Tome(to, round), held) => {
                Command::Send { to, message: Message::Holdings { group, round, held } }
            }
            (Requester::Client(request), Some(held)) => {
                Command::Answer { request, answer: Answer::Held { member: region.member(), held } }
            }
            (Requester::Client(request), None) => {
                Command::Answer { request, answer: Answer::Refused(TomeError::Silent { group }) }
            }
        });
    }

    /// Queues a client's request for what this member knows of some offsets.
    pub(super) fn queue_holding_request(
        &mut self,
        request: RequestId,
        group: GroupId,
        offsets: Vec<Offset>,
    ) -> Result<()> {
        let region = self.metadata.region_of(group).filter(|(_, region)| {
            matches!(
                region.membership_state(),
                MembershipState::Member | MembershipState::Frozen(_)
            )
        });
        region.ok_or(TomeError::NoGroup { group })?;
        let have = offsets.len();
        if have > PUT_BLOCKS_MAX {
            return Err(TomeError::Count { what: "offsets", have, need: PUT_BLOCKS_MAX });
        }
        offsets.iter().try_for_each(|o| self.metadata.layout().in_segment(*o).map(drop))?;
        self.queue(Task::Hold { to: Requester::Client(request), group, offsets })
    }
}

/// Returns the block at a position of a request's offsets, if the answers yield one that matches
/// one of these signatures.
fn recovered(ask: &Ask, region: &Region, at: usize, recorded: &[Signature]) -> Option<Vec<u8>> {
    let whole = ask.whole.iter();
    let mut holdings: Vec<Holding> =
        whole.map(|(member, held)| held[at].clone().holding(*member)).collect();
    let extra = ask.extra.iter().flat_map(|held| &held.changes);
    let extra = extra.map(|change| ((change.member, change.version), change.bytes.clone()));
    holdings.first_mut()?.changes.extend(extra);
    let folded: Vec<_> = match region.role() {
        Role::Data(_) => Vec::new(),
        Role::Parity { applied, .. } => applied.iter().map(AppliedChanges::summary).collect(),
    };
    let group = region.group();
    let (split, member) = (group.split(), region.member());
    let made = offline_read::recover_as(group.id(), split, member, &folded, &holdings).ok()?;
    recorded.contains(&signature(&made)).then_some(made)
}

/// Returns what the metadata store has of an offset.
fn from_metadata(region: &Region, offset: Offset) -> Held {
    let here = region.known().filter(|(_, _, stored)| stored.change.offset == offset);
    let changes = here.map(|(member, version, stored)| crate::message::KnownChange {
        member,
        version,
        bytes: stored.bytes.clone(),
    });
    Held { block: Vec::new(), changes: changes.collect(), folded: Vec::new() }
}

/// Returns the bytes of a change, from the blocks read or from what was recovered for it.
pub(super) fn change_bytes(
    recorded: Signature,
    parts: &[Option<Vec<u8>>],
    part: Option<&Vec<u8>>,
    latest: Option<&Vec<u8>>,
    block_len: usize,
) -> Option<Vec<u8>> {
    let mut all = parts.iter();
    let sum = all.try_fold(vec![0; block_len], |sum, part| Some(xor(&sum, part.as_ref()?)));
    let with = |part: &Vec<u8>| {
        let good = parts.iter().flatten().chain(latest).map(|block| xor(block, part));
        [part.clone()].into_iter().chain(good).collect::<Vec<_>>()
    };
    let others = part.map(with).unwrap_or_default();
    sum.into_iter().chain(others).find(|bytes| signature(bytes) == recorded)
}
