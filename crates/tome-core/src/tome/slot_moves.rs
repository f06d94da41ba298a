//! What members do while a member slot of their group moves.
//!
//! ```text
//! target                       member
//!   Freeze ------------------->  committed; its region is not written from now on
//!   Share -------------------->  to a parity: send a lost member's change to one that lacks it
//!   <-------------------- Ready  repeated from time to time; quiet when nothing is in flight
//!   Moved -------------------->  committed; it is written again, or has lost its member slot
//!   <------------------ Learned  until then Moved is repeated, however long it is away
//! ```
//!
//! The tome that had the member slot is asked as well: if it answers, it was only offline, and the
//! move is dropped. Not here: what the target does ([`super::rebuild_target`]).

use std::collections::BTreeSet;

use fulgurite_units::{Instant, Outbox};

use super::{Alarm, Answer, Bitmap, Command, RequestId, Task, Tome};
use crate::group::{Group, Move};
use crate::limits::POLL_INTERVAL;
use crate::membership_state::MembershipState;
use crate::message::Message;
use crate::metadata::{Object, Region, Role, Row};
use crate::{GroupId, Member, RegionId, RegionIndex, Result, TomeError, TomeId, Version};

impl Tome {
    /// Handles a message about a member slot; returns any other message.
    pub(super) fn handle_move_message(
        &mut self,
        from: TomeId,
        message: Message,
        out: &mut Outbox<Command>,
    ) -> Option<Message> {
        match message {
            Message::Freeze(planned) => self.freeze(from, planned, out),
            Message::Ready { planned, member, report, is_quiet } => {
                self.ready(from, planned, (member, report, is_quiet), out);
            }
            Message::Share { planned, member, version, parity } => {
                self.share(from, planned, (member, version, parity), out);
            }
            Message::Thaw(planned) => self.thaw(from, planned, out),
            Message::Moved(group) => self.member_slot_moved(from, group, out),
            Message::Learned { group, epoch } => {
                let known = self.metadata.region_of(group);
                let news = known.filter(|(_, region)| region.group().epoch() == epoch);
                let region = news.filter(|(_, r)| r.unnotified().any(|tome| tome == from));
                if let Some((region, _)) = region {
                    self.commit(vec![Row::Learned { region, tome: from }], out);
                    self.announce_floor(region, out);
                }
            }
            other @ (Message::Delta { .. }
            | Message::Query { .. }
            | Message::Status { .. }
            | Message::ReportWanted { .. }
            | Message::Report { .. }
            | Message::NodesWanted { .. }
            | Message::Nodes { .. }
            | Message::HoldingsWanted { .. }
            | Message::Holdings { .. }) => return Some(other),
        }
        None
    }

    fn freeze(&mut self, from: TomeId, planned: Move, out: &mut Outbox<Command>) {
        let Some((index, region)) = self.metadata.region_of(planned.group) else {
            out.push(Command::Alarm(Alarm::Foreign { from, group: planned.group }));
            return;
        };
        let (group, own) = (region.group(), RegionId { tome: self.metadata.id(), index });
        let is_valid = planned.to.tome == from && group.after(&planned).is_ok();
        if !is_valid
            || !matches!(
                region.membership_state(),
                MembershipState::Member | MembershipState::Frozen(_)
            )
        {
            // It may be a late message of a move that was done.
            let is_known = group.slots().contains(&planned.to);
            if !is_known && group.epoch().get() > 0 {
                out.push(Command::Send { to: from, message: Message::Moved(group.clone()) });
            } else if !is_known {
                out.push(Command::Alarm(Alarm::Foreign { from, group: planned.group }));
            }
            return;
        }
        if planned.from != own && region.frozen() != Some(&planned) {
            self.commit(vec![Row::Frozen { region: index, planned: Some(planned) }], out);
        }
        self.send_ready(index, planned, out);
    }

    fn send_ready(&self, index: RegionIndex, planned: Move, out: &mut Outbox<Command>) {
        let Some(region) = self.metadata.region(index) else { return };
        let (member, report) = (region.member(), region.report());
        let is_quiet = self.is_quiet(index, region, &planned);
        let message = Message::Ready { planned, member, report, is_quiet };
        out.push(Command::Send { to: planned.to.tome, message });
    }

    /// Whether nothing is in flight except what only the lost member lacks.
    fn is_quiet(&self, index: RegionIndex, region: &Region, planned: &Move) -> bool {
        let works = self.job.as_ref().is_some_and(|job| job.writes_to(index));
        let data = region.group().split().data();
        let quiet = match region.role() {
            Role::Data(pending) => pending.iter().all(|(_, pending)| {
                let mut missing = pending.missing.numbers();
                missing.all(|parity| u32::from(parity) + data == u32::from(planned.member.get()))
            }),
            Role::Parity { stored, .. } => stored.values().all(|stored| stored.is_applied),
        };
        quiet && !works
    }

    /// Sends a stored change of a lost data member to another parity that lacks it.
    fn share(
        &self,
        from: TomeId,
        planned: Move,
        (member, version, parity): (Member, Version, u8),
        out: &mut Outbox<Command>,
    ) {
        let Some((_, region)) = self.metadata.region_of(planned.group) else { return };
        let group = region.group();
        let is_meant = planned.to.tome == from && region.frozen() == Some(&planned);
        if !is_meant || u32::from(parity) >= group.split().parity() {
            return;
        }
        let mut stored = region.known();
        if let Some((.., stored)) = stored.find(|(of, v, _)| (*of, *v) == (member, version)) {
            let (change, bytes) = (stored.change, stored.bytes.clone());
            // Only the member that made a change knows what may be forgotten.
            let floor = Version::NONE;
            let message = Message::Delta { group: group.id(), member, change, floor, bytes };
            out.push(Command::Send { to: group.parity_tome(parity), message });
        }
    }

    /// Whether a change of a lost data member comes from another parity: only while the region is
    /// frozen for a move, when nothing else is written either.
    pub(super) fn is_shared(region: &Region, member: Member, from: TomeId) -> bool {
        let data = region.group().split().data();
        let is_parity = region.group().slots().iter().skip(data as usize).any(|s| s.tome == from);
        let is_data = u32::from(member.get()) < data;
        region.frozen().is_some() && region.parity().is_some() && is_parity && is_data
    }

    fn thaw(&mut self, from: TomeId, planned: Move, out: &mut Outbox<Command>) {
        let Some((region, known)) = self.metadata.region_of(planned.group) else { return };
        if planned.to.tome == from && known.frozen() == Some(&planned) {
            self.commit(vec![Row::Frozen { region, planned: None }], out);
        }
    }

    fn member_slot_moved(&mut self, from: TomeId, group: Group, out: &mut Outbox<Command>) {
        let Some((index, region)) = self.metadata.region_of(group.id()) else { return };
        let (id, epoch) = (group.id(), group.epoch());
        let is_member = |tome| group.slots().iter().any(|slot| slot.tome == tome);
        // A group with too few members, or with one tome twice, is invalid.
        let is_whole = Group::new(id, group.split(), group.slots().to_vec()).is_ok();
        let fits = is_whole && group.split() == region.group().split();
        if !is_member(from) || !fits {
            out.push(Command::Alarm(Alarm::Foreign { from, group: id }));
            return;
        }
        let own = RegionId { tome: self.metadata.id(), index };
        let is_own = group.member(own) == Some(region.member());
        if region.building().is_some() && !is_own {
            // Another region has the member slot that this one was rebuilt for.
            self.drop_rebuild(index, out);
        } else if epoch > region.group().epoch() && region.building().is_none() {
            self.commit(vec![Row::Regroup { region: index, group }], out);
            self.deltas.group_changed(&self.metadata, index);
            if !is_own {
                out.push(Command::Alarm(Alarm::SlotLost { region: index, group: id }));
            }
        }
        out.push(Command::Send { to: from, message: Message::Learned { group: id, epoch } });
    }

    /// Answers a tome that is not in the group: perhaps it lost its member slot and does not know.
    pub(super) fn reject_unknown_sender(
        &self,
        from: TomeId,
        group: GroupId,
        out: &mut Outbox<Command>,
    ) {
        let known = self.metadata.region_of(group).map(|(_, region)| region.group());
        match known.filter(|group| group.epoch().get() > 0) {
            Some(group) => {
                out.push(Command::Send { to: from, message: Message::Moved(group.clone()) });
            }
            None => out.push(Command::Alarm(Alarm::Foreign { from, group })),
        }
    }

    /// Repeats what others may not have received.
    pub(super) fn repeat_move_messages(&mut self, out: &mut Outbox<Command>) {
        let waits: Vec<RegionIndex> = self.awaiting_move_replies().collect();
        if waits.is_empty()
            || self.moves_repeated.is_some_and(|at| self.now.since(at) < POLL_INTERVAL)
        {
            return;
        }
        self.moves_repeated = Some(self.now);
        for index in waits {
            let Some(region) = self.metadata.region(index) else { continue };
            for to in region.unnotified() {
                let message = Message::Moved(region.group().clone());
                out.push(Command::Send { to, message });
            }
            if let Some(planned) = region.frozen() {
                self.send_ready(index, *planned, out);
            }
        }
    }

    fn awaiting_move_replies(&self) -> impl Iterator<Item = RegionIndex> {
        let all = self.metadata.regions();
        let waits =
            |region: &Region| region.frozen().is_some() || region.unnotified().next().is_some();
        all.filter(move |(_, region)| waits(region)).map(|(index, _)| index)
    }

    pub(super) fn moves_deadline(&self) -> Option<Instant> {
        self.awaiting_move_replies().next()?;
        Some(self.moves_repeated.map_or(self.now, |at| at + POLL_INTERVAL))
    }

    /// Whether a region accepts new blocks: it has its member slot, and its parities know it.
    pub(super) fn accepts_blocks(region: &Region) -> bool {
        let slots = region.group().slots();
        let is_notified = |tome| !slots.iter().any(|slot| slot.tome == tome);
        region.is_member() && !region.is_rebuilt() && region.unnotified().all(is_notified)
    }

    /// Adopts the objects of a rebuilt region, as the set knows them; blocks of no object are free
    /// afterwards.
    pub(super) fn adopt(
        &mut self,
        request: RequestId,
        region: RegionIndex,
        objects: Vec<(String, Object)>,
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        let id = RegionId { tome: self.metadata.id(), index: region };
        let has_slot = |known: &&Region| known.is_member() || known.frozen().is_some();
        let known = self.metadata.region(region).filter(has_slot);
        let known = known.ok_or(TomeError::NoRegion { region: id })?;
        let blocks = self.metadata.layout().region_blocks();
        if known.is_rebuilt() {
            let mut used = Bitmap::new(blocks as usize);
            let mut rows = Vec::new();
            for (name, object) in objects {
                let mut all = object.blocks.iter();
                if let Some((_, offset)) = all.find(|(of, o)| *of != region || o.get() >= blocks) {
                    return Err(TomeError::OffsetOutOfRange { offset: *offset, blocks });
                }
                let places: BTreeSet<usize> =
                    object.blocks.iter().map(|(_, offset)| offset.as_usize()).collect();
                // Of two objects with the same block or name, one was removed, and the set does not
                // know.
                let is_taken = places.iter().any(|place| used.has(*place));
                if is_taken || self.metadata.object(&name).is_some() {
                    continue;
                }
                places.iter().for_each(|place| used.take(*place));
                rows.push(Row::Object { name, object });
            }
            rows.push(Row::Named { region });
            self.commit(rows, out);
            self.used.insert(region, used);
        }
        out.push(Command::Answer { request, answer: Answer::Adopted });
        Ok(())
    }
}

impl super::jobs::Job {
    /// Returns whether it is about to write to a region.
    fn writes_to(&self, region: RegionIndex) -> bool {
        match self.task() {
            Task::Put { .. } => self.places().iter().any(|(of, _)| *of == region),
            Task::ApplyDeltas { region: of, .. } => *of == region,
            Task::Get { .. }
            | Task::Send { .. }
            | Task::Hold { .. }
            | Task::AddSegment { .. }
            | Task::Scrub { .. } => false,
        }
    }
}
