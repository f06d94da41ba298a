//! Rebuild of a region from the others of its group, for the member slot of a lost tome.
//!
//! ```text
//! settle    all others frozen and quiet, or enough of them for an hour     Freeze, Ready
//! stream    one source after the other, some segments at a time            HoldingsWanted
//!           sum += factor * block; the commit that writes it is the checkpoint
//! verify    roots of the sources against that of the sum                   Freeze, Ready
//! slot      the region is a member, and announces it                       Moved
//! ```
//!
//! (Pergamum (FAST 2008), section 4.3.2.) Only the source and the target spin. With a single token
//! they spin in turn: so received segments are buffered in memory, and written when all requested
//! ones are there. Duplicates are recognized by their request number, and a segment is added once,
//! since the checkpoint is in the same commit. When a source is lost before its first segment, the
//! sources already in the sum spin again with the difference of their factors; later the rebuild
//! restarts. Not here: what members do ([`super::slot_moves`]).

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::Signature;
use fulgurite_units::{Instant, Outbox};

use super::jobs::{BlockAddress, Task};
use super::{Alarm, Bitmap, Command, Tome};
use crate::block_multiplier::BlockMultiplier;
use crate::consistency::{AppliedSummary, Report, Side};
use crate::group::{Group, Move};
use crate::limits::{
    REBUILD_BUFFER_BYTES, REBUILD_BUFFER_WAIT, REBUILD_WINDOW_MAX, REPAIR_TIMEOUT, RESEND_INTERVAL,
    SILENT_MEMBER_TIMEOUT, SPIN_DOWN_MARGIN,
};
use crate::membership_state::Building;
use crate::message::{Held, Message};
use crate::metadata::{Region, Row};
use crate::rebuild::{Rebuild, SourceLoss, Step};
use crate::{Member, Offset, RegionIndex, Result, TomeId, Version};

/// Volatile state of a rebuild.
#[derive(Clone, Debug, Default)]
pub(super) struct RebuildState {
    /// When others were asked last, and since when the current step waits.
    last_request: Option<Instant>,
    since: Option<Instant>,
    /// Reports of members that are quiet.
    reports: BTreeMap<Member, Report>,
    /// Last reports of members that are not, and all members that answered.
    not_quiet: BTreeMap<Member, Report>,
    responders: BTreeSet<Member>,
    /// The previous source has until then to spin its disk down.
    pause: Option<Instant>,
    /// Segment requests without an answer.
    rounds: BTreeMap<u64, u32>,
    /// Segments received and not yet added, and since when the first of them waits.
    buffered: BTreeMap<u32, Vec<Vec<u8>>>,
    buffered_since: Option<Instant>,
}

impl RebuildState {
    /// Returns whether an answer belongs to a request of a rebuild.
    pub(super) fn has_request(&self, round: u64) -> bool {
        self.rounds.contains_key(&round)
    }
}

impl Tome {
    /// Starts to rebuild a region for a member slot.
    pub(super) fn rebuild(&mut self, planned: Move, group: &Group, out: &mut Outbox<Command>) {
        let region = planned.to.index;
        let known = self.metadata.region(region).map(Region::group);
        if known
            .is_some_and(|known| known.id() == planned.group && known.slots().contains(&planned.to))
        {
            // Idempotent: it is in progress, or done.
            return;
        }
        let after = group.after(&planned).ok().filter(|_| planned.to.tome == self.metadata.id());
        let is_free = self.metadata.region(region).is_none() && !self.has_slot(group);
        let Some(group) = after.filter(|_| is_free) else {
            let from = self.metadata.id();
            out.push(Command::Alarm(Alarm::Foreign { from, group: planned.group }));
            return;
        };
        let slot = Row::MemberSlot { region, group };
        let building = Building::new(planned, self.now);
        if self.metadata.clone().apply(&slot).is_ok() {
            self.commit(vec![slot, Row::Building { region, building }], out);
            self.used.insert(region, Bitmap::new(self.metadata.layout().region_blocks() as usize));
        }
    }

    fn has_slot(&self, group: &Group) -> bool {
        self.metadata.region_of(group.id()).is_some()
    }

    /// Returns the region to rebuild first.
    fn current_rebuild(&self) -> Option<(RegionIndex, &Region, &Building)> {
        self.metadata
            .regions()
            .find_map(|(index, region)| Some((index, region, region.building()?)))
    }

    /// Whether the disk is needed: all requested segments are there, or have been waited for long
    /// enough.
    pub(super) fn has_buffered_segment(&self) -> bool {
        let is_long = |since| self.now.since(since) >= REBUILD_BUFFER_WAIT;
        let is_next =
            |building: &Building| self.rebuild_state.buffered.contains_key(&building.segment);
        (self.rebuild_state.rounds.is_empty()
            || self.rebuild_state.buffered_since.is_some_and(is_long))
            && self.current_rebuild().is_some_and(|(_, _, building)| is_next(building))
    }

    /// Returns the task for the next of the received segments.
    pub(super) fn next_segment_task(&mut self) -> Option<Task> {
        let (region, _, building) = self.current_rebuild()?;
        let (step, segment) = (building.plan.as_ref()?.next()?, building.segment);
        let blocks = self.rebuild_state.buffered.remove(&segment)?;
        self.rebuild_state.buffered_since.take_if(|_| self.rebuild_state.buffered.is_empty());
        Some(Task::AddSegment { region, step, segment, blocks })
    }

    /// Returns how many segments are requested at a time.
    fn window(&self) -> u32 {
        let layout = self.metadata.layout();
        let bytes = u64::from(layout.segment().data()) * layout.block_bytes();
        let count = REBUILD_BUFFER_BYTES.get() / bytes;
        u32::try_from(count).unwrap_or(u32::MAX).clamp(1, REBUILD_WINDOW_MAX)
    }

    /// Requests what the rebuild needs next, while no client waits for the disk.
    pub(super) fn continue_rebuild(&mut self, out: &mut Outbox<Command>) {
        let Some((index, _, building)) = self.current_rebuild() else { return };
        let works =
            self.job.as_ref().is_some_and(|job| matches!(job.task(), Task::AddSegment { .. }));
        let pauses = self.rebuild_state.pause.is_some_and(|until| self.now < until);
        if works || pauses || !self.tasks.is_empty() {
            return;
        }
        let step = building.plan.as_ref().and_then(Rebuild::next);
        let since = *self.rebuild_state.since.get_or_insert(self.now);
        let is_late = step.is_some() && self.now.since(since) >= REPAIR_TIMEOUT;
        if let (true, Some(step)) = (is_late, step) {
            self.replan_without(index, step.source, out);
            return;
        }
        if step.is_none() && self.now.since(since) >= SILENT_MEMBER_TIMEOUT {
            self.accept_silent(index);
            self.plan_or_verify(index, out);
        }
        let is_again =
            self.rebuild_state.last_request.is_none_or(|at| self.now.since(at) >= RESEND_INTERVAL);
        if is_again {
            self.rebuild_state.last_request = Some(self.now);
        }
        match step {
            Some(step) => self.request_segments(index, step, is_again, out),
            None if is_again => self.request_reports(index, out),
            None => {}
        }
    }

    pub(super) fn rebuild_deadline(&self) -> Option<Instant> {
        self.current_rebuild().filter(|_| self.tasks.is_empty() && !self.has_buffered_segment())?;
        let asks = self.rebuild_state.last_request.map_or(self.now, |at| at + RESEND_INTERVAL);
        Some(self.rebuild_state.pause.map_or(asks, |until| asks.max(until)))
    }

    /// Requests the next segments within the window, and resends requests without an answer.
    fn request_segments(
        &mut self,
        index: RegionIndex,
        step: Step,
        is_again: bool,
        out: &mut Outbox<Command>,
    ) {
        let Some(region) = self.metadata.region(index) else { return };
        let Some(building) = region.building() else { return };
        let to = region.group().slots()[step.source.as_usize()].tome;
        let group = region.group().id();
        let end = self.metadata.layout().parts().segments.min(building.segment + self.window());
        for segment in building.segment..end {
            let pending = self.rebuild_state.rounds.iter().find(|(_, asked)| **asked == segment);
            // A resent request keeps its number.
            let round = match pending {
                Some((round, _)) if is_again => *round,
                Some(_) => continue,
                None if self.rebuild_state.buffered.contains_key(&segment) => continue,
                None => {
                    self.rounds += 1;
                    self.rebuild_state.rounds.insert(self.rounds, segment);
                    self.rounds
                }
            };
            let offsets = self.data_offsets(segment);
            let message = Message::HoldingsWanted { group, round, offsets, is_whole: true };
            out.push(Command::Send { to, message });
        }
    }

    fn data_offsets(&self, segment: u32) -> Vec<Offset> {
        let layout = self.metadata.layout();
        layout.segment_offsets(segment).take(layout.segment().data() as usize).collect()
    }

    fn request_reports(&self, index: RegionIndex, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(index) else { return };
        let Some(building) = region.building() else { return };
        let slots = region.group().slots().iter().enumerate();
        let silent =
            slots.filter(|(at, _)| !self.rebuild_state.reports.contains_key(&Member::at(*at)));
        let tomes = silent.map(|(_, slot)| slot.tome).filter(|tome| *tome != self.metadata.id());
        for to in tomes.chain([building.planned.from.tome]) {
            out.push(Command::Send { to, message: Message::Freeze(building.planned) });
        }
    }

    /// Handles `Ready`: a member is frozen, and perhaps quiet.
    pub(super) fn ready(
        &mut self,
        from: TomeId,
        planned: Move,
        (member, report, is_quiet): (Member, Report, bool),
        out: &mut Outbox<Command>,
    ) {
        let known = self.metadata.region_of(planned.group);
        let own = known.filter(|(index, _)| *index == planned.to.index);
        let Some((index, region)) = own.filter(|_| planned.to.tome == self.metadata.id()) else {
            out.push(Command::Send { to: from, message: Message::Thaw(planned) });
            return;
        };
        if region.building().map(|building| building.planned) != Some(planned) {
            out.push(Command::Send { to: from, message: Message::Moved(region.group().clone()) });
            return;
        }
        if from == planned.from.tome {
            // It was only offline: it keeps its member slot, and is sent what it missed.
            self.drop_rebuild(index, out);
            return;
        }
        let slot = region.group().slots().get(member.as_usize());
        let is_next = region.building().and_then(|b| b.plan.as_ref()?.next()).is_some();
        if slot.is_none_or(|slot| slot.tome != from) || is_next {
            return;
        }
        self.rebuild_state.responders.insert(member);
        if !is_quiet {
            self.rebuild_state.not_quiet.insert(member, report);
        } else {
            self.rebuild_state.not_quiet.remove(&member);
            self.rebuild_state.reports.insert(member, report);
        }
        self.settle_with_available(index, out);
    }

    /// Records which tomes are lost, so that nothing waits for them.
    pub(super) fn absent(&mut self, tomes: BTreeSet<TomeId>, out: &mut Outbox<Command>) {
        if tomes == self.absent {
            return;
        }
        self.absent = tomes;
        let settling = self.current_rebuild().filter(|(_, _, building)| {
            building.plan.as_ref().is_none_or(|plan| plan.next().is_none())
        });
        if let Some(index) = settling.map(|(index, ..)| index) {
            self.settle_with_available(index, out);
        }
    }

    /// Continues when all members are quiet that are not lost.
    fn settle_with_available(&mut self, index: RegionIndex, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(index) else { return };
        let (own, slots) = (region.member(), region.group().slots());
        let others = (0..slots.len()).map(Member::at).filter(|member| *member != own);
        let is_absent = |member: &Member| self.absent.contains(&slots[member.as_usize()].tome);
        let present: BTreeSet<Member> = others.clone().filter(|m| !is_absent(m)).collect();
        let is_all = present.len() + 1 == slots.len();
        if !is_all && present.is_subset(&self.rebuild_state.responders) {
            self.accept_silent(index);
        }
        if present.iter().all(|member| self.rebuild_state.reports.contains_key(member)) {
            self.plan_or_verify(index, out);
        }
    }

    /// Accepts data members as quiet that wait only for silent parities. A data member is never
    /// quiet while another lost parity lacks its changes, and that member slot moves later. All
    /// other members have these changes already, and the result is verified against their reports.
    fn accept_silent(&mut self, index: RegionIndex) {
        let Some(region) = self.metadata.region(index) else { return };
        let (data, target) = (region.group().split().data() as usize, region.member());
        let (responders, slots) = (&self.rebuild_state.responders, region.group().slots());
        let is_absent = |member: Member| self.absent.contains(&slots[member.as_usize()].tome);
        let is_silent = |parity: &u8| {
            let member = Member::at(data + usize::from(*parity));
            member == target || !responders.contains(&member) || is_absent(member)
        };
        let is_quiet = |_: &Member, report: &mut Report| match &report.side {
            Side::Data { unconfirmed, .. } => {
                unconfirmed.iter().all(|change| change.missing.iter().all(is_silent))
            }
            Side::Parity(_) => false,
        };
        let quiet = self.rebuild_state.not_quiet.extract_if(.., is_quiet);
        self.rebuild_state.reports.extend(quiet);
    }

    /// Enough members are quiet: chooses sources, or verifies the result against them.
    fn plan_or_verify(&mut self, index: RegionIndex, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(index) else { return };
        let (group, member, made) = (region.group(), region.member(), region.tree().root());
        let reports = &self.rebuild_state.reports;
        let Some(latest) = agreed_versions(group, reports) else {
            self.request_sharing(index, out);
            return;
        };
        let Some(mut building) = region.building().cloned() else { return };
        let available: BTreeSet<Member> = reports.keys().copied().collect();
        let Some(plan) = &building.plan else {
            let plan = Rebuild::new(group.id(), group.split(), member, &available);
            let Ok(plan) = plan else { return };
            (building.plan, building.latest, building.available) = (Some(plan), latest, available);
            self.checkpoint_and_reset(index, building, out);
            return;
        };
        if !plan.sources().all(|source| available.contains(&source)) {
            if self.rebuild_state.since.is_some_and(|since| self.now.since(since) >= REPAIR_TIMEOUT)
            {
                self.restart_rebuild(index, None, out);
            }
            return;
        }
        let mut roots: BTreeMap<Member, Signature> =
            reports.iter().map(|(member, report)| (*member, report.root)).collect();
        let is_sum = plan.verify_sum(made, &roots).is_ok();
        roots.insert(member, made);
        let is_all = roots.len() == group.slots().len();
        let word: Vec<Signature> = roots.into_values().collect();
        if is_sum && (!is_all || plan.verify(&word).is_ok()) {
            self.take_slot(index, out);
        } else {
            self.restart_rebuild(index, None, out);
        }
    }

    /// Has parities share the changes of a lost data member that were in flight: those that have
    /// one send it to those that lack it, which are quiet again when they have applied it.
    fn request_sharing(&mut self, index: RegionIndex, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(index) else { return };
        let Some(planned) = region.building().map(|building| building.planned) else { return };
        let (group, data) = (region.group().clone(), region.group().split().data());
        let mut receivers: BTreeSet<Member> = BTreeSet::new();
        for share in missing_changes(&group, &self.rebuild_state.reports) {
            let Share { member, version, from, to } = share;
            receivers.insert(to);
            let Ok(parity) = u8::try_from(u32::from(to.get()) - data) else { continue };
            let message = Message::Share { planned, member, version, parity };
            out.push(Command::Send { to: group.slots()[from.as_usize()].tome, message });
        }
        self.rebuild_state.reports.retain(|member, _| !receivers.contains(member));
    }

    /// Takes the member slot once the result is verified.
    fn take_slot(&mut self, region: RegionIndex, out: &mut Outbox<Command>) {
        self.commit(vec![Row::SlotBuilt { region }], out);
        self.rebuild_state = RebuildState::default();
        self.moves_repeated = None;
        let Some(known) = self.metadata.region(region) else { return };
        if let Some(used) = self.used.get_mut(&region) {
            known.used_blocks().for_each(|offset| used.take(offset.as_usize()));
        }
        let group = known.group().id();
        out.push(Command::Alarm(Alarm::Rebuilt { region, group }));
        self.repeat_move_messages(out);
    }

    /// Commits the progress of the rebuild with the blocks that belong to it.
    fn checkpoint(
        &mut self,
        region: RegionIndex,
        building: Building,
        mut rows: Vec<Row>,
        out: &mut Outbox<Command>,
    ) {
        rows.push(Row::Building { region, building });
        self.commit(rows, out);
        (self.rebuild_state.last_request, self.rebuild_state.since) = (None, None);
    }

    /// Commits a checkpoint and forgets all pending requests.
    fn checkpoint_and_reset(
        &mut self,
        region: RegionIndex,
        building: Building,
        out: &mut Outbox<Command>,
    ) {
        self.rebuild_state = RebuildState::default();
        self.checkpoint(region, building, Vec::new(), out);
    }

    /// Discards what was rebuilt so far.
    fn restart_rebuild(
        &mut self,
        region: RegionIndex,
        plan: Option<Rebuild>,
        out: &mut Outbox<Command>,
    ) {
        let Some(known) = self.metadata.region(region) else { return };
        let Some(mut building) = known.building().cloned() else { return };
        known.physical_blocks().for_each(|physical_block| {
            self.physical_blocks.give_back(physical_block.get() as usize)
        });
        (building.plan, building.segment) = (plan, 0);
        self.lost_segments.retain(|(of, _), _| *of != region);
        self.rebuild_state = RebuildState::default();
        self.checkpoint(region, building, vec![Row::Cleared { region }], out);
    }

    /// Replans when a source does not answer or cannot read its blocks.
    fn replan_without(&mut self, region: RegionIndex, source: Member, out: &mut Outbox<Command>) {
        let known = self.metadata.region(region).and_then(Region::building);
        let Some(mut building) = known.cloned() else { return };
        building.available.remove(&source);
        let Some(plan) = building.plan.as_mut().filter(|_| building.segment == 0) else {
            self.restart_rebuild(region, None, out);
            return;
        };
        match plan.lost(&building.available) {
            Ok(SourceLoss::None | SourceLoss::SpinAgain(_)) => {
                self.checkpoint_and_reset(region, building, out);
            }
            Ok(SourceLoss::Restart) => {
                let plan = building.plan.take();
                self.restart_rebuild(region, plan, out);
            }
            Err(_) => self.restart_rebuild(region, None, out),
        }
    }

    /// Drops the rebuild: the tome that had the member slot is back, or another one has it.
    pub(super) fn drop_rebuild(&mut self, region: RegionIndex, out: &mut Outbox<Command>) {
        let Some(known) = self.metadata.region(region) else { return };
        let Some(building) = known.building() else { return };
        let (group, planned) = (known.group().id(), building.planned);
        let tomes = building.tomes_to_notify(known.group());
        known.physical_blocks().for_each(|physical_block| {
            self.physical_blocks.give_back(physical_block.get() as usize)
        });
        self.commit(vec![Row::Dropped { region }], out);
        self.used.remove(&region);
        self.lost_segments.retain(|(of, _), _| *of != region);
        self.rebuild_state = RebuildState::default();
        for to in tomes {
            out.push(Command::Send { to, message: Message::Thaw(planned) });
        }
        out.push(Command::Alarm(Alarm::RebuildDropped { region, group }));
    }

    /// Handles a segment from a source.
    pub(super) fn handle_segment(
        &mut self,
        from: TomeId,
        round: u64,
        held: Option<Vec<Held>>,
        out: &mut Outbox<Command>,
    ) {
        let Some((index, region, building)) = self.current_rebuild() else { return };
        let Some(step) = building.plan.as_ref().and_then(Rebuild::next) else { return };
        if region.group().slots()[step.source.as_usize()].tome != from {
            return;
        }
        let count = self.metadata.layout().segment().data() as usize;
        let Some(segment) = self.rebuild_state.rounds.get(&round).copied() else { return };
        let fits = |held: &Vec<Held>| {
            held.len() == count && held.iter().all(|held| held.block.len() == self.block_len())
        };
        match held.filter(fits) {
            Some(held) => {
                self.rebuild_state.rounds.remove(&round);
                self.rebuild_state
                    .buffered
                    .insert(segment, held.into_iter().map(|h| h.block).collect());
                self.rebuild_state.buffered_since.get_or_insert(self.now);
            }
            None => self.replan_without(index, step.source, out),
        }
    }

    /// Adds a segment of a source to the sum and checkpoints it in one commit.
    pub(super) fn finish_segment(
        &mut self,
        index: RegionIndex,
        (step, segment): (Step, u32),
        blocks: &[Vec<u8>],
        loaded: &BTreeMap<BlockAddress, Vec<u8>>,
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        let Some(region) = self.metadata.region(index) else { return Ok(()) };
        let Some(mut building) = region.building().cloned() else { return Ok(()) };
        let Some(plan) = building.plan.as_mut() else { return Ok(()) };
        if plan.next() != Some(step) || building.segment != segment {
            return Ok(());
        }
        let scaled = BlockMultiplier::new(step.factor)?;
        let mut changes = BTreeMap::new();
        for (offset, block) in self.data_offsets(segment).into_iter().zip(blocks) {
            let mut change = vec![0; block.len()];
            scaled.add(block, &mut change)?;
            changes.insert(offset, change);
        }
        building.segment += 1;
        if building.segment == self.metadata.layout().parts().segments {
            plan.record_added(step.source);
            building.segment = 0;
        }
        let staged = self.stage(&BTreeMap::from([(index, changes)]), loaded, out)?;
        let is_last = building.segment == 0;
        if is_last {
            self.rebuild_state = RebuildState::default();
        }
        let last_request = self.rebuild_state.last_request;
        self.checkpoint(index, building, staged.rows, out);
        // Segments requested ahead are not late because this one was added.
        self.rebuild_state.last_request = last_request.filter(|_| !is_last);
        // The previous source gets time to spin its disk down before the next is asked. With a
        // single token it had done so before this one spun up.
        let pauses = is_last && !self.spins_alone;
        self.rebuild_state.pause = pauses.then(|| self.now + self.idle + SPIN_DOWN_MARGIN);
        for (region, physical_blocks) in &staged.left {
            self.free_blocks(*region, physical_blocks);
        }
        Ok(())
    }

    /// A segment could not be added: too much of the sum itself is bad, or there is no room.
    pub(super) fn rebuild_failed(&mut self, region: RegionIndex, out: &mut Outbox<Command>) {
        if self.lost_segments.keys().any(|(of, _)| *of == region) {
            self.restart_rebuild(region, None, out);
        }
    }
}

/// A change of a data member that one parity has and another lacks.
struct Share {
    member: Member,
    version: Version,
    from: Member,
    to: Member,
}

/// Returns all such changes of data members without a report.
fn missing_changes(group: &Group, reports: &BTreeMap<Member, Report>) -> Vec<Share> {
    let mut shares = Vec::new();
    for member in (0..group.split().data() as usize).map(Member::at) {
        if reports.contains_key(&member) {
            continue;
        }
        let folded = || {
            reports.iter().filter_map(move |(parity, report)| match &report.side {
                Side::Parity(all) => Some((*parity, all.get(member.as_usize())?)),
                Side::Data { .. } => None,
            })
        };
        let mut owners: BTreeMap<Version, Member> = BTreeMap::new();
        for (parity, known) in folded() {
            for change in &known.above {
                owners.entry(change.version).or_insert(parity);
            }
        }
        for (to, known) in folded() {
            let missing = owners.iter().filter(|(version, _)| !known.has(**version));
            let share = |(version, from): (&Version, &Member)| Share {
                member,
                version: *version,
                from: *from,
                to,
            };
            shares.extend(missing.map(share));
        }
    }
    shares
}

/// Returns the last version of each data member, if the quiet members agree on the changes of all
/// others.
fn agreed_versions(group: &Group, reports: &BTreeMap<Member, Report>) -> Option<Vec<Version>> {
    let split = group.split();
    let mut latest = Vec::new();
    for data in (0..split.data() as usize).map(Member::at) {
        if let Some(Side::Data { latest: known, .. }) = reports.get(&data).map(|r| &r.side) {
            latest.push(*known);
            continue;
        }
        let mut folded: Vec<&AppliedSummary> = Vec::new();
        for report in reports.values() {
            if let Side::Parity(all) = &report.side {
                folded.extend(all.get(data.as_usize()));
            }
        }
        let versions: BTreeSet<Version> =
            folded.iter().flat_map(|f| &f.above).map(|change| change.version).collect();
        if !folded.iter().all(|folded| versions.iter().all(|version| folded.has(*version))) {
            return None;
        }
        let below = |folded: &&AppliedSummary| Version::new(folded.floor.get().saturating_sub(1));
        latest.push(folded.iter().map(below).chain(versions.last().copied()).max()?);
    }
    (reports.len() >= split.data() as usize).then_some(latest)
}
