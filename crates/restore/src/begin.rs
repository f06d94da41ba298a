//! Which pieces begin now: the first that is due, and what lies with it.
//!
//! Of each retrieval so much is under way that the drives of its tier are busy with it, so an
//! urgent restore never waits for others to end, and no tier for another. Among retrievals, and for
//! room on the disk, what is due first comes first, and while it finds no room it lets nobody pass:
//! so everything has its turn. Room is taken for a copy as a whole, so that what has begun can
//! always end.

use fulgurite_units::{ByteCount, Outbox};

use crate::controller::{Lane, Restores, UnderWay, Visit};
use crate::limits::{UNDER_WAY_BYTES, VISIT_PIECES_MAX, VISITS_PER_DRIVE};
use crate::restore::{Age, Held, Step};
use crate::{Capacity, Command, PieceId, Retrieval};

impl Lane {
    /// Whether another visit may begin.
    fn wants_more(&self, of: &Capacity) -> bool {
        self.visits < of.drives * VISITS_PER_DRIVE
            || (self.bytes < of.bytes.get() && self.pieces < of.pieces)
    }

    fn head(&self) -> Option<(Age, PieceId)> {
        self.queue.first().copied()
    }
}

impl Restores {
    /// Begins visits until enough is under way, or there is no room.
    pub(crate) fn begin(&mut self, out: &mut Outbox<Command>) {
        while let Some((_, head)) = self.next_head() {
            if !self.may_take(head) {
                return;
            }
            self.fetch(head, out);
        }
    }

    /// The piece due first, of retrievals of which more may begin.
    pub(crate) fn next_head(&self) -> Option<(Age, PieceId)> {
        let lanes = self.lanes.iter().zip(&self.tiers);
        let lanes = lanes.flat_map(|(of, tier)| of.iter().map(move |lane| (lane, tier)));
        lanes.filter(|(lane, tier)| lane.wants_more(tier)).filter_map(|(lane, _)| lane.head()).min()
    }

    /// What copies may take while one of a retrieval begins: the others are for what is more
    /// urgent, which so finds room at once.
    pub(crate) const fn room_of(&self, retrieval: Retrieval) -> u64 {
        let room = self.room.get();
        match retrieval {
            Retrieval::Bulk => room / 2,
            Retrieval::Standard => room / 4 * 3,
            Retrieval::Expedited => room,
        }
    }

    /// Whether a piece may begin as far as room for its copy is concerned. Room that there cannot
    /// be is not waited for: the driver tries, and has to say so.
    pub(crate) fn may_take(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        self.has_room(piece) || restore.bytes.get() > self.room_of(restore.retrieval)
    }

    fn has_room(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        let with_it = self.taken.saturating_add(restore.bytes.get());
        restore.is_begun || with_it <= self.room_of(restore.retrieval)
    }

    /// Begins a visit for a piece, and takes along what waits at the same place, in the order in
    /// which it is due.
    fn fetch(&mut self, head: PieceId, out: &mut Outbox<Command>) {
        let restore = &self.restores[&head.restore];
        let (retrieval, mut due) = (restore.retrieval, restore.age.due);
        let (tier, place) = (self.held(head).tier, self.held(head).place);
        let number = self.next_visit;
        self.next_visit += 1;
        self.lane(tier, retrieval).visits += 1;
        let (mut pieces, mut bytes) = (Vec::new(), ByteCount::ZERO);
        for piece in self.neighbors(head) {
            if piece != head && (bytes >= UNDER_WAY_BYTES || !self.has_room(piece)) {
                continue;
            }
            due = due.min(self.restores[&piece.restore].age.due);
            bytes += self.held(piece).bytes;
            self.take(piece, number);
            pieces.push(piece);
        }
        self.visits.insert(number, Visit { tier, retrieval, left: pieces.len() });
        out.push(Command::Fetch { place, pieces, due });
    }

    /// A piece, and others that wait at its place. One that failed goes alone: whatever is wrong
    /// with it shall not befall others again.
    fn neighbors(&self, head: PieceId) -> Vec<PieceId> {
        let held = self.held(head);
        let goes_along = |piece: &PieceId| *piece != head && self.held(*piece).failures == 0;
        let waiting = held.place.filter(|_| held.failures == 0);
        let waiting =
            waiting.and_then(|place| self.places.get(&(held.tier, place))).into_iter().flatten();
        let others = waiting.map(|(_, piece)| *piece).filter(goes_along);
        std::iter::once(head).chain(others).take(VISIT_PIECES_MAX).collect()
    }

    /// A piece is under way from now on, and its copy holds its room.
    fn take(&mut self, piece: PieceId, visit: u64) {
        self.unqueue(piece);
        let Held { tier, bytes, .. } = *self.held(piece);
        self.held_mut(piece).step = Step::UnderWay;
        let restore = self.restore_mut(piece.restore);
        restore.under_way += 1;
        let (retrieval, begins, copy) = (restore.retrieval, !restore.is_begun, restore.bytes);
        restore.is_begun = true;
        if begins {
            self.taken += copy.get();
        }
        self.under_way.insert(piece, UnderWay { visit, tier, retrieval, bytes });
        let lane = self.lane(tier, retrieval);
        lane.pieces += 1;
        lane.bytes += bytes.get();
    }
}
