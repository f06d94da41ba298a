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
//! ([`crate::alone`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{Instant, Outbox};

use super::jobs::{Asker, At, Task};
use super::{Alarm, Answer, Command, RequestId, Tome};
use crate::alone::{self, Holding, xor};
use crate::applied::Applied;
use crate::awake::{Region, Role};
use crate::limits::{HOLDS_MAX, MEND_BLOCKS_MAX, MEND_REST, MEND_WITHIN, PUT_BLOCKS_MAX, RESEND};
use crate::message::{Held, Message};
use crate::standing::Standing;
use crate::{GroupId, Member, Offset, RegionIndex, Result, Spot, TomeError, TomeId, Version};

/// What to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
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
    subject: Subject,
    group: GroupId,
    round: u64,
    offsets: Vec<Offset>,
    source: Source,
    began: Instant,
    asked: Instant,
    left: VecDeque<Source>,
    whole: BTreeMap<Member, Vec<Held>>,
    /// Answers of members that were not asked for blocks.
    beside: Vec<Held>,
}

/// When to retry a subject, and how often it was tried.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    until: Instant,
    times: usize,
}

/// State of the repairs from groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Mends {
    asking: Option<Ask>,
    tried: BTreeMap<Subject, Tried>,
    /// Recovered blocks of segments, still to be written.
    found: BTreeMap<At, Vec<u8>>,
    /// A change that a parity knew, or its bad block, recovered.
    parts: BTreeMap<(RegionIndex, Version), Vec<u8>>,
    /// Segments that can be rebuilt with the recovered blocks.
    ready: BTreeSet<(RegionIndex, u32)>,
    /// Changes that an alarm was raised for.
    told: BTreeSet<(RegionIndex, Version)>,
    /// Requests of other members to this one.
    holds: VecDeque<Task>,
}

impl Mends {
    /// Number of tasks that need a spinning disk.
    pub(super) fn pending(&self) -> usize {
        self.holds.len() + self.ready.len()
    }

    pub(super) fn next_hold(&mut self) -> Option<Task> {
        self.holds.pop_front()
    }

    /// Returns a recovered block.
    pub(super) fn found(&self, at: At) -> Option<&Vec<u8>> {
        self.found.get(&at)
    }

    /// Returns what was recovered for a change.
    pub(super) fn part(&self, region: RegionIndex, version: Version) -> Option<&Vec<u8>> {
        self.parts.get(&(region, version))
    }

    /// Forgets a change that every parity has.
    pub(super) fn forget(&mut self, region: RegionIndex, version: Version) {
        self.parts.remove(&(region, version));
        self.told.remove(&(region, version));
        self.tried.remove(&Subject::Change(region, version));
    }

    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let asks = self.asking.as_ref().map(|ask| ask.asked + RESEND);
        let rests = self.tried.values().map(|tried| tried.until).filter(|until| *until > now).min();
        asks.or(rests)
    }

    fn rest(&mut self, now: Instant, subject: Subject) {
        let tried = self.tried.entry(subject).or_default();
        *tried = Tried { until: now + MEND_REST, times: tried.times + 1 };
    }
}

impl Tome {
    /// Requests what is to be recovered, while no client waits for the disk.
    pub(super) fn go_on_mending(&mut self, out: &mut Outbox<Command>) {
        if !self.tasks.is_empty() {
            return;
        }
        match &self.mends.asking {
            None => self.begin_mending(out),
            Some(ask) if self.now.since(ask.began) >= MEND_WITHIN => self.next_source(out),
            Some(ask) if self.now.since(ask.asked) >= RESEND => self.ask_source(out),
            Some(_) => {}
        }
    }

    /// Chooses what to recover: segments before changes, for an unreadable block is worse than an
    /// unprotected one.
    fn subject(&self) -> Option<Subject> {
        let bad = self.broken.iter().filter(|(_, bad)| !bad.is_empty());
        let segments = bad.map(|((region, segment), _)| Subject::Segment(*region, *segment));
        let changes = self.deltas.lost().map(|(region, version)| Subject::Change(region, version));
        let rests = |subject: &Subject| {
            self.mends.tried.get(subject).is_some_and(|tried| self.now < tried.until)
        };
        let is_seated = |subject: &Subject| {
            let (Subject::Segment(region, _) | Subject::Change(region, _)) = subject;
            let standing = self.awake.region(*region).map(Region::standing);
            matches!(standing, Some(Standing::Member | Standing::Frozen(_)))
        };
        segments.chain(changes).find(|subject| is_seated(subject) && !rests(subject))
    }

    fn begin_mending(&mut self, out: &mut Outbox<Command>) {
        let Some(subject) = self.subject() else { return };
        let (index, offsets) = match subject {
            Subject::Segment(region, segment) => (region, self.lacking(region, segment)),
            Subject::Change(region, version) => {
                let offset = self.pending(region, version).map(|pending| pending.offset);
                (region, offset.into_iter().collect())
            }
        };
        let Some(region) = self.awake.region(index) else { return };
        let group = region.group();
        let all = (0..group.split().total()).map(|member| Member::at(member as usize));
        let others = all.filter(|member| *member != region.member());
        let mut left = VecDeque::new();
        if matches!(subject, Subject::Change(..)) {
            let data = group.split().data();
            let parities = others.clone().filter(|member| u32::from(member.get()) >= data);
            left.extend(parities.map(|member| Source { member, is_whole: false }));
        }
        left.extend(others.map(|member| Source { member, is_whole: true }));
        let Some(source) = left.pop_front() else { return };
        let (group, now) = (group.id(), self.now);
        self.mends.asking = Some(Ask {
            subject,
            group,
            round: 0,
            offsets,
            source,
            began: now,
            asked: now,
            left,
            whole: BTreeMap::new(),
            beside: Vec::new(),
        });
        self.ask_source(out);
    }

    /// Returns the blocks that a segment needs from its group: as many as it lacks parity for,
    /// different ones at each try.
    fn lacking(&self, region: RegionIndex, segment: u32) -> Vec<Offset> {
        let Some(bad) = self.broken.get(&(region, segment)) else { return Vec::new() };
        let is_found = |offset: &&Offset| self.mends.found.contains_key(&(region, **offset));
        let found = bad.iter().filter(is_found).count();
        let parity = self.awake.layout().segment().parity() as usize;
        let count = bad.len().saturating_sub(parity + found).clamp(1, MEND_BLOCKS_MAX);
        let mut missing: Vec<Offset> = bad.iter().filter(|o| !is_found(o)).copied().collect();
        let times = self.mends.tried.get(&Subject::Segment(region, segment)).map_or(0, |t| t.times);
        let turn = times % missing.len().max(1);
        missing.rotate_left(turn);
        missing.truncate(count);
        missing
    }

    fn ask_source(&mut self, out: &mut Outbox<Command>) {
        self.rounds += 1;
        let Some(ask) = self.mends.asking.as_mut() else { return };
        // A resent request keeps its number: a member that is working on it does it once.
        if ask.round == 0 {
            ask.round = self.rounds;
        }
        ask.asked = self.now;
        let Some((_, region)) = self.awake.region_of(ask.group) else { return };
        let to = region.group().seats()[ask.source.member.as_usize()].tome;
        let (group, round, is_whole) = (ask.group, ask.round, ask.source.is_whole);
        let offsets = ask.offsets.clone();
        let message = Message::HoldingsWanted { group, round, offsets, is_whole };
        out.push(Command::Tell { to, message });
    }

    fn next_source(&mut self, out: &mut Outbox<Command>) {
        let Some(ask) = self.mends.asking.as_mut() else { return };
        if let Some(source) = ask.left.pop_front() {
            (ask.source, ask.began, ask.round) = (source, self.now, 0);
            self.ask_source(out);
            return;
        }
        let subject = ask.subject;
        self.mends.asking = None;
        self.mends.rest(self.now, subject);
        if let Subject::Change(region, version) = subject
            && self.mends.told.insert((region, version))
        {
            out.push(Command::Alarm(Alarm::ChangeLost { region, version }));
        }
    }

    /// Handles a member's holdings.
    pub(super) fn came_of_mend(
        &mut self,
        from: TomeId,
        round: u64,
        held: Option<Vec<Held>>,
        out: &mut Outbox<Command>,
    ) {
        let block_len = self.block_len();
        let Some(ask) = self.mends.asking.as_mut() else { return };
        let seats = self.awake.region_of(ask.group).map(|(_, region)| region.group());
        let Some(group) = seats else { return };
        let seat = group.seats()[ask.source.member.as_usize()];
        if round != ask.round || seat.tome != from {
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
            Some(held) => ask.beside.extend(held),
            None => {}
        }
        if !self.weigh() {
            self.next_source(out);
        }
    }

    /// Returns whether the answers are enough.
    fn weigh(&mut self) -> bool {
        let Some(ask) = self.mends.asking.clone() else { return true };
        let is_enough = match ask.subject {
            Subject::Segment(region, segment) => self.weigh_segment(&ask, region, segment),
            Subject::Change(region, version) => self.weigh_change(&ask, region, version),
        };
        if is_enough {
            self.mends.asking = None;
        }
        is_enough
    }

    fn weigh_segment(&mut self, ask: &Ask, index: RegionIndex, segment: u32) -> bool {
        let Some(region) = self.awake.region(index) else { return false };
        let noted = |offset: &Offset| region.tree().block(*offset);
        let made: Vec<Option<Vec<u8>>> = ask
            .offsets
            .iter()
            .enumerate()
            .map(|(at, offset)| recovered(ask, region, at, &[noted(offset)]))
            .collect();
        let is_enough = made.iter().all(Option::is_some);
        for (offset, made) in ask.offsets.iter().zip(made) {
            self.mends.found.extend(made.map(|bytes| ((index, *offset), bytes)));
        }
        let Some(bad) = self.broken.get(&(index, segment)) else { return true };
        let found = bad.iter().filter(|o| self.mends.found.contains_key(&(index, **o))).count();
        if bad.len() <= found + self.awake.layout().segment().parity() as usize {
            self.mends.ready.insert((index, segment));
            self.mends.rest(self.now, ask.subject);
            return true;
        }
        is_enough
    }

    fn weigh_change(&mut self, ask: &Ask, index: RegionIndex, version: Version) -> bool {
        let Some(region) = self.awake.region(index) else { return false };
        let Some(list) = region.pending() else { return false };
        // It was confirmed meanwhile.
        let Some(pending) = list.get(version) else { return true };
        let held = ask.whole.values().flatten().chain(&ask.beside);
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
        self.mends.parts.insert((index, version), part);
        self.mends.rest(self.now, ask.subject);
        self.deltas.again(index, Some(version));
        true
    }

    /// Returns the next repair: requests of other members first, then reads of segments that can be
    /// rebuilt.
    pub(super) fn next_mend(&mut self) -> Option<Task> {
        if let Some(hold) = self.mends.next_hold() {
            return Some(hold);
        }
        let (region, segment) = self.mends.ready.pop_first()?;
        let offsets = self.awake.layout().segment_offsets(segment);
        Some(Task::Scrub { blocks: offsets.map(|offset| (region, offset)).collect(), next: None })
    }

    /// Records that a segment is repaired.
    pub(super) fn mended(&mut self, region: RegionIndex, segment: u32) {
        if self.broken.remove(&(region, segment)).is_none() {
            return;
        }
        let offsets: BTreeSet<Offset> = self.awake.layout().segment_offsets(segment).collect();
        self.mends.found.retain(|(of, offset), _| *of != region || !offsets.contains(offset));
        let subject = Subject::Segment(region, segment);
        self.mends.tried.remove(&subject);
        self.mends.ready.remove(&(region, segment));
        self.mends.asking.take_if(|ask| ask.subject == subject);
        self.deltas.again(region, None);
    }

    /// Handles another member's request for what this one knows of some offsets.
    pub(super) fn hold(
        &mut self,
        from: TomeId,
        message: (GroupId, u64, Vec<Offset>, bool),
        out: &mut Outbox<Command>,
    ) {
        let (group, round, offsets, is_whole) = message;
        let Some((_, region)) = self.awake.region_of(group) else { return };
        let is_target = region.frozen().is_some_and(|planned| planned.to.tome == from);
        let is_seat = region.group().seats().iter().any(|seat| seat.tome == from);
        let is_block = |offset: &Offset| self.awake.layout().in_segment(*offset).is_ok();
        let segment = self.awake.layout().segment().total() as usize;
        let most = if is_target { segment } else { MEND_BLOCKS_MAX };
        let fits = offsets.len() <= most && offsets.iter().all(is_block);
        if !is_seat && !is_target {
            self.stranger(from, group, out);
            return;
        }
        if !fits {
            out.push(Command::Alarm(Alarm::Foreign { from, group }));
            return;
        }
        if !is_whole {
            let held = offsets.iter().map(|offset| kept_awake(region, *offset)).collect();
            let message = Message::Holdings { group, round, held: Some(held) };
            out.push(Command::Tell { to: from, message });
            return;
        }
        let hold = Task::Hold { to: Asker::Tome(from, round), group, offsets };
        let is_there = self.mends.holds.contains(&hold)
            || self.job.as_ref().is_some_and(|job| *job.task() == hold);
        if !is_there && self.mends.holds.len() < HOLDS_MAX {
            self.mends.holds.push_back(hold);
        }
    }

    /// Returns the physical blocks, beside the latest blocks, from which a member's changes are
    /// computed.
    pub(super) fn hold_spots(&self, group: GroupId, offsets: &[Offset]) -> Vec<Spot> {
        let Some((_, region)) = self.awake.region_of(group) else { return Vec::new() };
        let pending = region.pending().into_iter().flat_map(|list| list.iter());
        let here = pending.filter(|(_, pending)| offsets.contains(&pending.offset));
        here.flat_map(|(_, pending)| pending.old.into_iter().chain([pending.new])).collect()
    }

    /// Answers with what was read.
    pub(super) fn finish_hold(
        &self,
        (to, group): (Asker, GroupId),
        offsets: &[Offset],
        loaded: &BTreeMap<At, Vec<u8>>,
        beside: BTreeMap<Spot, Option<Vec<u8>>>,
        out: &mut Outbox<Command>,
    ) {
        let Some((index, region)) = self.awake.region_of(group) else {
            if let Asker::Client(request) = to {
                let answer = Answer::Refused(TomeError::NoGroup { group });
                out.push(Command::Answer { request, answer });
            }
            return;
        };
        let mut spots = beside;
        for offset in offsets {
            if let Some(spot) = region.spot(*offset) {
                spots.insert(spot, loaded.get(&(index, *offset)).cloned());
            }
        }
        let mut read = |spot| spots.get(&spot).cloned().flatten();
        let all = offsets.iter().map(|o| alone::holding(&self.awake, group, *o, &mut read));
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
            (Asker::Tome(to, round), held) => {
                Command::Tell { to, message: Message::Holdings { group, round, held } }
            }
            (Asker::Client(request), Some(held)) => {
                Command::Answer { request, answer: Answer::Held { member: region.member(), held } }
            }
            (Asker::Client(request), None) => {
                Command::Answer { request, answer: Answer::Refused(TomeError::Silent { group }) }
            }
        });
    }

    /// Queues a client's request for what this member knows of some offsets.
    pub(super) fn hold_for(
        &mut self,
        request: RequestId,
        group: GroupId,
        offsets: Vec<Offset>,
    ) -> Result<()> {
        let seated = self.awake.region_of(group).filter(|(_, region)| {
            matches!(region.standing(), Standing::Member | Standing::Frozen(_))
        });
        seated.ok_or(TomeError::NoGroup { group })?;
        let have = offsets.len();
        if have > PUT_BLOCKS_MAX {
            return Err(TomeError::Count { what: "offsets", have, need: PUT_BLOCKS_MAX });
        }
        offsets.iter().try_for_each(|o| self.awake.layout().in_segment(*o).map(drop))?;
        self.queue(Task::Hold { to: Asker::Client(request), group, offsets })
    }
}

/// Returns the block at a position of a request's offsets, if the answers yield one that matches
/// one of these signatures.
fn recovered(ask: &Ask, region: &Region, at: usize, noted: &[Signature]) -> Option<Vec<u8>> {
    let whole = ask.whole.iter();
    let mut holdings: Vec<Holding> =
        whole.map(|(member, held)| held[at].clone().holding(*member)).collect();
    let beside = ask.beside.iter().flat_map(|held| &held.changes);
    let beside = beside.map(|change| ((change.member, change.version), change.bytes.clone()));
    holdings.first_mut()?.changes.extend(beside);
    let folded: Vec<_> = match region.role() {
        Role::Data(_) => Vec::new(),
        Role::Parity { applied, .. } => applied.iter().map(Applied::folded).collect(),
    };
    let group = region.group();
    let (split, member) = (group.split(), region.member());
    let made = alone::recover_as(group.id(), split, member, &folded, &holdings).ok()?;
    noted.contains(&signature(&made)).then_some(made)
}

/// Returns what the metadata store has of an offset.
fn kept_awake(region: &Region, offset: Offset) -> Held {
    let here = region.known().filter(|(_, _, stored)| stored.change.offset == offset);
    let changes = here.map(|(member, version, stored)| crate::message::Known {
        member,
        version,
        bytes: stored.bytes.clone(),
    });
    Held { block: Vec::new(), changes: changes.collect(), folded: Vec::new() }
}

/// Returns the bytes of a change, from the blocks read or from what was recovered for it.
pub(super) fn change_bytes(
    noted: Signature,
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
    sum.into_iter().chain(others).find(|bytes| signature(bytes) == noted)
}
