//! Deltas in flight to parities, and deltas received.
//!
//! ```text
//! data member                         parity member
//!   Delta (disk spins) ------------->  committed to the metadata store
//!   <----------------------- Stored    (the data member may sleep now)
//!                                      applied when its own disk spins, in one commit
//!   <----------------------- Folded
//!   Query, when unsure ------------->  Unknown, Stored or Folded
//! ```
//!
//! So two disks need not spin at a time, and one token is enough for a set: a delta waits in the
//! metadata store. A data member has at most [`DELTA_WINDOW`] versions of a region in flight, which
//! bounds what waits. An old block is free when every parity has applied its change. Not here:
//! jobs.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::signature;
use fulgurite_units::{Instant, Outbox};

use super::group_repair::change_bytes;
use super::jobs::{BlockAddress, Task};
use super::{Alarm, Answer, Command, Tome};
use crate::consistency::{Change, Nodes};
use crate::limits::{
    APPLY_BATCH, DELTA_WINDOW, DELTAS_STORED_MAX, DESCENT_NODES_MAX, POLL_INTERVAL, RESEND_INTERVAL,
};
use crate::membership_state::MembershipState;
use crate::message::{Message, Status};
use crate::metadata::{Region, Role, Row, TomeMetadata};
use crate::pending::{Parities, Pending};
use crate::{Member, Offset, RegionIndex, Result, TomeError, TomeId, Version};

/// A change and one parity that lacks it.
type Key = (RegionIndex, Version, u8);

/// What is known of a change at a parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaState {
    /// The parity is to be queried, and was last at that time.
    Query { last: Option<Instant> },
    /// The parity does not have it.
    Send,
    /// It was sent at that time, without an answer yet.
    Sent { at: Instant },
    /// The parity stores it, as it last reported at that time.
    Stored { at: Instant },
    /// It can no longer be computed.
    Lost,
}

/// All changes that parities lack, by region. What a tome asks for at each of its steps is counted
/// when a region changes: the number of changes must not slow down every step.
#[derive(Clone, Debug, Default)]
pub(super) struct Deltas(BTreeMap<RegionIndex, RegionDeltas>);

/// The changes of one region.
#[derive(Clone, Debug, Default)]
struct RegionDeltas {
    all: BTreeMap<(Version, u8), DeltaState>,
    window: Window,
}

/// A summary of the oldest versions of a region, which are worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    /// Number of deltas to send.
    unsent_count: usize,
    /// Number of those sent without an answer.
    sent: usize,
    /// Number of those that cannot be computed.
    lost: usize,
    /// When a parity is to be queried next.
    deadline: Option<Instant>,
}

impl RegionDeltas {
    /// Returns the changes of the oldest versions.
    fn in_window(&self) -> impl Iterator<Item = (&(Version, u8), &DeltaState)> {
        let (mut last, mut versions) = (None, 0);
        self.all.iter().take_while(move |((version, _), _)| {
            if last.replace(*version) != Some(*version) {
                versions += 1;
            }
            versions <= DELTA_WINDOW
        })
    }

    fn summary(&self) -> Window {
        let mut window = Window::default();
        for (_, state) in self.in_window() {
            match state {
                DeltaState::Send => window.unsent_count += 1,
                DeltaState::Sent { .. } => window.sent += 1,
                DeltaState::Lost => window.lost += 1,
                DeltaState::Query { .. } | DeltaState::Stored { .. } => {}
            }
            window.deadline = window.deadline.into_iter().chain(state.due()).min();
        }
        window
    }
}

impl DeltaState {
    /// Returns when the parity is to be queried.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Query { last } => Some(last.map_or(Instant::ZERO, |at| at + RESEND_INTERVAL)),
            Self::Sent { at } => Some(*at + RESEND_INTERVAL),
            Self::Stored { at } => Some(*at + POLL_INTERVAL),
            Self::Send | Self::Lost => None,
        }
    }
}

impl Deltas {
    /// Returns the state after a start: what parities have is unknown.
    pub(super) fn new(metadata: &TomeMetadata) -> Self {
        let mut deltas = Self::default();
        for (index, _) in metadata.regions() {
            deltas.group_changed(metadata, index);
        }
        deltas
    }

    /// Updates after writes to regions: new changes are unsent, and merged ones are dropped.
    pub(super) fn written(
        &mut self,
        metadata: &TomeMetadata,
        regions: impl Iterator<Item = RegionIndex>,
    ) {
        for index in regions {
            let Some(region) = metadata.region(index) else { continue };
            let waits = |version| region.pending().is_some_and(|p| p.get(version).is_some());
            self.update(index, |all| {
                all.retain(|(version, _), _| waits(*version));
                for key in keys(region) {
                    all.entry(key).or_insert(DeltaState::Send);
                }
            });
        }
    }

    /// Queries the new holder after a member slot of a region's group moved.
    pub(super) fn group_changed(&mut self, metadata: &TomeMetadata, index: RegionIndex) {
        let region = metadata.region(index);
        self.update(index, |all| {
            let changes = region.into_iter().flat_map(keys);
            *all = changes.map(|key| (key, DeltaState::Query { last: None })).collect();
        });
    }

    /// Changes a region's changes, and counts them.
    fn update<T>(
        &mut self,
        region: RegionIndex,
        change: impl FnOnce(&mut BTreeMap<(Version, u8), DeltaState>) -> T,
    ) -> T {
        let own = self.0.entry(region).or_default();
        let changed = change(&mut own.all);
        own.window = own.summary();
        if own.all.is_empty() {
            self.0.remove(&region);
        }
        changed
    }

    fn get(&self, (region, version, parity): Key) -> Option<DeltaState> {
        self.0.get(&region)?.all.get(&(version, parity)).copied()
    }

    /// Records what is known of a change.
    fn set(&mut self, (region, version, parity): Key, state: DeltaState) {
        self.update(region, |all| all.insert((version, parity), state));
    }

    /// Whether something is to be sent, or is sent without an answer.
    pub(super) fn has_unsent(&self) -> bool {
        self.0.values().any(|region| region.window.unsent_count + region.window.sent > 0)
    }

    /// Number of deltas to send.
    pub(super) fn unsent_count(&self) -> usize {
        self.0.values().map(|region| region.window.unsent_count).sum()
    }

    pub(super) fn give_up(&mut self, region: RegionIndex, version: Version, parity: u8) {
        let key = (region, version, parity);
        if self.get(key).is_some() {
            self.set(key, DeltaState::Lost);
        }
    }

    /// Returns the changes that cannot be computed.
    pub(super) fn lost(&self) -> impl Iterator<Item = (RegionIndex, Version)> {
        let lost = self.in_window(|window| window.lost > 0);
        lost.filter(|(_, state)| *state == DeltaState::Lost)
            .map(|((region, version, _), _)| (region, version))
    }

    /// Retries what could not be computed: one change of a region, or all.
    pub(super) fn retry_lost(&mut self, region: RegionIndex, only: Option<Version>) {
        self.update(region, |all| {
            for ((version, _), state) in all {
                let is_meant = only.is_none_or(|only| only == *version);
                if is_meant && *state == DeltaState::Lost {
                    *state = DeltaState::Send;
                }
            }
        });
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|region| region.window.deadline).min()
    }

    /// Returns the changes of the oldest versions of each region that `has` something to look for.
    fn in_window(&self, has: fn(&Window) -> bool) -> impl Iterator<Item = (Key, DeltaState)> {
        let regions = self.0.iter().filter(move |(_, region)| has(&region.window));
        regions.flat_map(|(index, region)| {
            let window = region.in_window();
            window.map(|((version, parity), state)| ((*index, *version, *parity), *state))
        })
    }
}

/// Returns a region's changes, once for each parity that lacks them.
fn keys(region: &Region) -> impl Iterator<Item = (Version, u8)> {
    let holds_slot = *region.membership_state() != MembershipState::Left;
    let pending = region.pending().filter(|_| holds_slot).into_iter().flat_map(|list| list.iter());
    pending.flat_map(move |(version, pending)| {
        pending.missing.numbers().map(move |parity| (version, parity))
    })
}

impl Tome {
    pub(super) fn pending(&self, region: RegionIndex, version: Version) -> Option<Pending> {
        self.metadata.region(region)?.pending()?.get(version).copied()
    }

    /// Returns the next send: everything to one parity before anything to the next.
    pub(super) fn next_send(&self) -> Option<Task> {
        let all = self.deltas.in_window(|window| window.unsent_count > 0);
        let unsent_count = all.filter(|(_, state)| *state == DeltaState::Send).map(|(key, _)| key);
        let first =
            unsent_count.min_by_key(|(region, version, parity)| (*parity, *region, *version));
        first.map(|(region, version, parity)| Task::Send { region, version, parity })
    }

    /// Queries parities whose status is unknown or outdated.
    pub(super) fn query_parities(&mut self, out: &mut Outbox<Command>) {
        let now = self.now;
        if self.deltas.deadline().is_none_or(|due| due > now) {
            return;
        }
        let due = self.deltas.in_window(|window| window.deadline.is_some());
        let due = due.filter(|(_, state)| state.due().is_some_and(|due| due <= now));
        let due: Vec<Key> = due.map(|(key, _)| key).collect();
        for key in due {
            let (index, version, parity) = key;
            let Some(region) = self.metadata.region(index) else { continue };
            let Some(pending) = region.pending() else { continue };
            query(region, version, pending.floor(region.latest()), parity, out);
            let state = match self.deltas.get(key) {
                Some(DeltaState::Stored { .. }) => DeltaState::Stored { at: now },
                _ => DeltaState::Query { last: Some(now) },
            };
            self.deltas.set(key, state);
        }
    }

    /// Computes a delta from the blocks read, and sends it.
    pub(super) fn finish_send(
        &mut self,
        (index, version, parity): Key,
        extra: Vec<Option<Vec<u8>>>,
        loaded: &BTreeMap<BlockAddress, Vec<u8>>,
        out: &mut Outbox<Command>,
    ) {
        let Some(pending) = self.pending(index, version) else { return };
        let physical_block =
            self.metadata.region(index).and_then(|region| region.physical_block(pending.offset));
        let latest = loaded.get(&(index, pending.offset));
        let new = latest.filter(|_| physical_block == Some(pending.new)).cloned().map(Some);
        let parts: Vec<Option<Vec<u8>>> = new.into_iter().chain(extra).collect();
        let (part, len) = (self.repairs.part(index, version), self.block_len());
        let Some(bytes) = change_bytes(pending.change, &parts, part, latest, len) else {
            // The group is asked for what is bad.
            self.deltas.give_up(index, version, parity);
            return;
        };
        if !pending.is_sent {
            self.commit(vec![Row::Sent { region: index, version }], out);
        }
        let Some(region) = self.metadata.region(index) else { return };
        let floor = region.pending().map_or(Version::NONE, |list| list.floor(region.latest()));
        let change = Change { offset: pending.offset, version, signature: pending.change };
        let (group, member) = (region.group().id(), region.member());
        let message = Message::Delta { group, member, change, floor, bytes };
        out.push(Command::Send { to: region.group().parity_tome(parity), message });
        self.deltas.set((index, version, parity), DeltaState::Sent { at: self.now });
    }

    /// Handles a message of another tome.
    pub(super) fn handle_message(
        &mut self,
        from: TomeId,
        message: Message,
        out: &mut Outbox<Command>,
    ) {
        let group = message.group();
        let Some(message) = self.handle_move_message(from, message, out) else { return };
        let Some((index, region)) = self.metadata.region_of(group) else {
            out.push(Command::Alarm(Alarm::Foreign { from, group }));
            return;
        };
        if matches!(region.membership_state(), MembershipState::Building(_) | MembershipState::Left)
        {
            // It does not act for the member slot; only answers to a rebuild's requests are for it.
            if let Message::Holdings { round, held, .. } = message
                && self.rebuild_state.has_request(round)
            {
                self.handle_segment(from, round, held, out);
            }
            return;
        }
        match message {
            Message::Delta { member, change, floor, bytes, .. } => {
                if !is_from(region, member, from) && !Self::is_shared(region, member, from) {
                    self.reject_unknown_sender(from, group, out);
                    return;
                }
                if !self.fits(&change, &bytes) {
                    out.push(Command::Alarm(Alarm::Foreign { from, group }));
                    return;
                }
                self.raise_floor(index, member, floor, out);
                match self.store(index, member, change, bytes, out) {
                    Ok(status) => self.send_status(index, from, change.version, status, out),
                    Err(_) => out.push(Command::Alarm(Alarm::Foreign { from, group })),
                }
            }
            Message::Query { member, version, floor, .. } => {
                if !is_from(region, member, from) {
                    self.reject_unknown_sender(from, group, out);
                    return;
                }
                self.raise_floor(index, member, floor, out);
                let status = self.status_of(index, member, version);
                self.send_status(index, from, version, status, out);
            }
            Message::Status { parity, version, status, .. } => {
                let parities = region.group().split().parity();
                if u32::from(parity) < parities && region.group().parity_tome(parity) == from {
                    self.handle_status(index, version, parity, status, out);
                }
            }
            Message::ReportWanted { .. } | Message::NodesWanted { .. } => {
                if let Some(message) = self.check_reply(&message) {
                    out.push(Command::Send { to: from, message });
                }
            }
            Message::Report { .. } | Message::Nodes { .. } => {
                self.handle_check_reply(from, message, out);
            }
            Message::HoldingsWanted { round, offsets, is_whole, .. } => {
                self.hold(from, (group, round, offsets, is_whole), out);
            }
            Message::Holdings { round, held, .. } => self.handle_holdings(from, round, held, out),
            Message::Freeze(_)
            | Message::Ready { .. }
            | Message::Share { .. }
            | Message::Thaw(_)
            | Message::Moved(_)
            | Message::Learned { .. } => {}
        }
    }

    /// Whether a delta is of a data block and matches its signature.
    fn fits(&self, change: &Change, bytes: &[u8]) -> bool {
        let layout = self.metadata.layout();
        layout.in_segment(change.offset).is_ok()
            && !layout.is_parity(change.offset)
            && bytes.len() == self.block_len()
            && signature(bytes) == change.signature
    }

    /// Raises the floor, below which a data member reports that every parity has everything.
    fn raise_floor(
        &mut self,
        region: RegionIndex,
        member: Member,
        floor: Version,
        out: &mut Outbox<Command>,
    ) {
        let known = self.metadata.region(region).map(Region::role);
        let Some(Role::Parity { applied, .. }) = known else { return };
        // What this parity has not applied cannot be applied everywhere.
        let unapplied = self.metadata.region(region).into_iter().flat_map(Region::stored);
        let first = unapplied
            .filter(|(of, _, stored)| *of == member && !stored.is_applied)
            .map(|(_, version, _)| version)
            .min();
        let floor = first.map_or(floor, |first| floor.min(first));
        if applied.get(member.as_usize()).is_some_and(|known| floor > known.summary().floor) {
            self.commit(vec![Row::Floor { region, member, floor }], out);
        }
    }

    /// Stores a delta that arrived, if it is new.
    fn store(
        &mut self,
        region: RegionIndex,
        member: Member,
        change: Change,
        bytes: Vec<u8>,
        out: &mut Outbox<Command>,
    ) -> Result<Status> {
        let stored = self.metadata.region(region).into_iter().flat_map(Region::stored);
        let from_member: Vec<_> = stored.filter(|(of, _, _)| *of == member).collect();
        if let Some((_, version, known)) = from_member.iter().find(|(_, v, _)| *v == change.version)
        {
            if known.change != change {
                return Err(TomeError::ConflictingChange {
                    offset: change.offset,
                    version: *version,
                });
            }
            return Ok(if known.is_applied { Status::Folded } else { Status::Stored });
        }
        // Later deltas are kept until this one arrives, applied or not: they must not crowd it out.
        let older = from_member.iter().filter(|(_, version, _)| *version < change.version).count();
        let is_full = older >= DELTA_WINDOW || from_member.len() >= DELTAS_STORED_MAX;
        match self.status_of(region, member, change.version) {
            Status::Unknown if is_full => Ok(Status::Full),
            Status::Unknown => {
                self.commit(vec![Row::Stored { region, member, change, bytes }], out);
                Ok(Status::Stored)
            }
            known @ (Status::Full | Status::Stored | Status::Folded) => Ok(known),
        }
    }

    fn status_of(&self, region: RegionIndex, member: Member, version: Version) -> Status {
        let Some(region) = self.metadata.region(region) else { return Status::Unknown };
        let Role::Parity { applied, stored } = region.role() else { return Status::Unknown };
        let known = stored.get(&(member, version));
        if known.is_some_and(|stored| !stored.is_applied) {
            return Status::Stored;
        }
        let is_applied = applied.get(member.as_usize()).is_some_and(|a| a.summary().has(version));
        if is_applied { Status::Folded } else { Status::Unknown }
    }

    fn send_status(
        &self,
        region: RegionIndex,
        to: TomeId,
        version: Version,
        status: Status,
        out: &mut Outbox<Command>,
    ) {
        let Some(region) = self.metadata.region(region) else { return };
        let Some(parity) = region.parity() else { return };
        let message = Message::Status { group: region.group().id(), parity, version, status };
        out.push(Command::Send { to, message });
    }

    /// Handles the status of a change at a parity.
    fn handle_status(
        &mut self,
        region: RegionIndex,
        version: Version,
        parity: u8,
        status: Status,
        out: &mut Outbox<Command>,
    ) {
        let now = self.now;
        let key = (region, version, parity);
        let Some(state) = self.deltas.get(key) else { return };
        match status {
            Status::Unknown if state == DeltaState::Lost => {}
            Status::Unknown => self.deltas.set(key, DeltaState::Send),
            Status::Full => self.deltas.set(key, DeltaState::Query { last: Some(now) }),
            Status::Stored => self.deltas.set(key, DeltaState::Stored { at: now }),
            Status::Folded => {
                self.deltas.update(region, |all| all.remove(&(version, parity)));
                self.confirm(key, out);
            }
        }
    }

    fn confirm(&mut self, (region, version, parity): Key, out: &mut Outbox<Command>) {
        let before = self.pending(region, version);
        self.commit(vec![Row::Confirmed { region, version, parity }], out);
        let Some(done) = before.filter(|_| self.pending(region, version).is_none()) else { return };
        self.repairs.forget(region, version);
        // The old block is no longer needed, nor the new one if it was rewritten.
        let latest =
            self.metadata.region(region).and_then(|region| region.physical_block(done.offset));
        let left = done
            .old
            .into_iter()
            .chain([done.new])
            .filter(|physical_block| Some(*physical_block) != latest);
        self.free_blocks(region, &left.collect::<Vec<_>>());
        self.announce_floor(region, out);
        let metadata = &self.metadata;
        self.awaiting_protection.retain(|name, request| {
            let is_protected = metadata.is_protected(name);
            if is_protected {
                out.push(Command::Answer { request: *request, answer: Answer::Protected });
            }
            !is_protected
        });
    }

    /// Lets parities forget what they keep for each other, once nothing is in flight. If that
    /// message is lost, the next delta repeats it.
    pub(super) fn announce_floor(&self, region: RegionIndex, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(region) else { return };
        let Some(pending) = region.pending().filter(|pending| pending.is_empty()) else { return };
        if !Self::accepts_blocks(region) {
            return;
        }
        for parity in Parities::all(region.group().split()).numbers() {
            query(region, region.latest(), pending.floor(region.latest()), parity, out);
        }
    }

    /// Returns the stored deltas that can be applied now.
    fn unapplied(&self) -> impl Iterator<Item = (RegionIndex, Member, Version, Offset)> {
        let layout = self.metadata.layout();
        let all = self.metadata.regions().flat_map(|(index, region)| {
            region.stored().filter(|(_, _, stored)| !stored.is_applied).map(
                move |(member, version, stored)| (index, member, version, stored.change.offset),
            )
        });
        let is_backed_off = self.apply_backoff.is_some_and(|until| self.now < until);
        all.filter(move |(index, _, _, offset)| {
            if is_backed_off {
                return false;
            }
            let at = layout.in_segment(*offset);
            at.is_ok_and(|at| !self.lost_segments.contains_key(&(*index, at.segment)))
        })
    }

    /// Number of deltas that can be applied now.
    pub(super) fn pending_applies(&self) -> usize {
        self.unapplied().count()
    }

    /// Returns deltas of one region to apply together: by offset, for those of one offset change
    /// the same block, whichever member they come from; and no more than there is room to write.
    pub(super) fn next_apply(&self) -> Option<Task> {
        let (region, ..) = self.unapplied().next()?;
        let own = self.unapplied().filter(|(of, ..)| *of == region);
        let mut own: Vec<(Offset, Member, Version)> =
            own.map(|(_, member, version, offset)| (offset, member, version)).collect();
        own.sort_unstable();
        let mut offsets: Vec<Offset> = own.iter().map(|(offset, ..)| *offset).collect();
        offsets.dedup();
        offsets.truncate(APPLY_BATCH);
        let has_room = |offsets: &[Offset]| {
            let places: Vec<BlockAddress> =
                offsets.iter().map(|offset| (region, *offset)).collect();
            self.with_parity(&places).is_ok_and(|all| self.check_room(all.len()).is_ok())
        };
        while offsets.len() > 1 && !has_room(&offsets) {
            offsets.truncate(offsets.len() / 2);
        }
        let last = *offsets.last()?;
        let own = own.into_iter().take_while(|(offset, ..)| *offset <= last);
        let deltas = own.map(|(_, member, version)| (member, version)).collect();
        Some(Task::ApplyDeltas { region, deltas })
    }

    pub(super) fn apply_targets(
        &self,
        region: RegionIndex,
        deltas: &[(Member, Version)],
    ) -> Vec<BlockAddress> {
        let deltas: BTreeSet<_> = deltas.iter().copied().collect();
        let stored = self.metadata.region(region).into_iter().flat_map(Region::stored);
        let own = stored.filter(|(member, version, _)| deltas.contains(&(*member, *version)));
        own.map(|(_, _, stored)| (region, stored.change.offset)).collect()
    }

    /// Applies deltas to parity and records them as applied, in one commit.
    pub(super) fn finish_apply(
        &mut self,
        index: RegionIndex,
        deltas: &[(Member, Version)],
        loaded: &BTreeMap<BlockAddress, Vec<u8>>,
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        let Some(region) = self.metadata.region(index) else { return Ok(()) };
        let Some(parity) = region.parity() else { return Ok(()) };
        let code = crate::segment::SegmentCode::new(region.group().split())?;
        let mut changes: BTreeMap<Offset, Vec<u8>> = BTreeMap::new();
        let wanted: BTreeSet<_> = deltas.iter().copied().collect();
        for (member, version, stored) in region.stored() {
            if wanted.contains(&(member, version)) {
                let zeros = || vec![0; stored.bytes.len()];
                let sum = changes.entry(stored.change.offset).or_insert_with(zeros);
                code.add(parity.into(), member.as_usize(), &stored.bytes, sum)?;
            }
        }
        let slots = region.group().slots().to_vec();
        let staged = self.stage(&BTreeMap::from([(index, changes)]), loaded, out)?;
        let folded = deltas.iter().map(|(member, version)| Row::Folded {
            region: index,
            member: *member,
            version: *version,
        });
        self.commit(staged.rows.into_iter().chain(folded).collect(), out);
        for (region, physical_blocks) in &staged.left {
            self.free_blocks(*region, physical_blocks);
        }
        for (member, version) in deltas {
            let to = slots[member.as_usize()].tome;
            self.send_status(index, to, *version, Status::Folded, out);
        }
        Ok(())
    }
}

/// Queries a parity about a change of a region, and sends it the floor.
fn query(region: &Region, version: Version, floor: Version, parity: u8, out: &mut Outbox<Command>) {
    let (group, member) = (region.group().id(), region.member());
    let message = Message::Query { group, member, version, floor };
    out.push(Command::Send { to: region.group().parity_tome(parity), message });
}

/// Whether a tome is the data member that it claims to be.
fn is_from(region: &Region, member: Member, from: TomeId) -> bool {
    let is_data = u32::from(member.get()) < region.group().split().data();
    is_data && region.parity().is_some() && region.group().slots()[member.as_usize()].tome == from
}

/// Returns nodes of a region's tree, unless too many are requested.
pub(super) fn nodes(region: &Region, level: u32, indexes: &[u32]) -> Option<Nodes> {
    let node = |index: &u32| {
        let found = region.tree().node(level as usize, *index as usize);
        found.unwrap_or_default()
    };
    let fits = indexes.len() <= DESCENT_NODES_MAX;
    fits.then(|| Nodes { epoch: region.epoch(), signatures: indexes.iter().map(node).collect() })
}
