//! Chooses which pieces to fetch now: the one due first, and others at the same place.
//!
//! Each retrieval class keeps enough in flight to keep the drives of its tier busy. So an urgent
//! restore never waits for others to end, and no tier waits for another. Across classes, the piece
//! due first goes first, and while its copy does not fit on the disk nothing overtakes it, so
//! nothing starves. Space is reserved for a whole copy, so that every restore that has begun can
//! end.

use fulgurite_units::{ByteCount, Outbox};

use crate::controller::{Lane, Restores, UnderWay, Visit};
use crate::limits::{UNDER_WAY_BYTES, VISIT_PIECES_MAX, VISITS_PER_DRIVE};
use crate::restore::{Age, Held, Step};
use crate::{Capacity, Command, PieceId, Retrieval};

impl Lane {
    /// Returns whether another fetch may start.
    fn wants_more(&self, of: &Capacity) -> bool {
        self.visits < of.drives * VISITS_PER_DRIVE
            || (self.bytes < of.bytes.get() && self.pieces < of.pieces)
    }

    fn head(&self) -> Option<(Age, PieceId)> {
        self.queue.first().copied()
    }
}

impl Restores {
    /// Starts fetches until enough is in flight, or space runs out.
    pub(crate) fn begin(&mut self, out: &mut Outbox<Command>) {
        while let Some((_, head)) = self.next_head() {
            if !self.may_take(head) {
                return;
            }
            self.fetch(head, out);
        }
    }

    /// Returns the piece due first, among the lanes that may start another fetch.
    pub(crate) fn next_head(&self) -> Option<(Age, PieceId)> {
        let lanes = self.lanes.iter().zip(&self.tiers);
        let lanes = lanes.flat_map(|(of, tier)| of.iter().map(move |lane| (lane, tier)));
        lanes.filter(|(lane, tier)| lane.wants_more(tier)).filter_map(|(lane, _)| lane.head()).min()
    }

    /// Returns how much space copies may take when a restore of this class starts. The remainder is
    /// reserved for more urgent classes, which so find space at once.
    pub(crate) const fn room_of(&self, retrieval: Retrieval) -> u64 {
        let room = self.room.get();
        match retrieval {
            Retrieval::Bulk => room / 2,
            Retrieval::Standard => room / 4 * 3,
            Retrieval::Expedited => room,
        }
    }

    /// Whether the space for a copy lets its piece start. A copy that can never fit does not wait:
    /// the driver tries it and reports the failure.
    pub(crate) fn may_take(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        self.has_room(piece) || restore.bytes.get() > self.room_of(restore.retrieval)
    }

    fn has_room(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        let with_it = self.taken.saturating_add(restore.bytes.get());
        restore.is_begun || with_it <= self.room_of(restore.retrieval)
    }

    /// Starts a fetch for a piece, and adds pieces waiting at the same place, earliest due first.
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

    /// Returns a piece and others that wait at its place. A piece that failed is fetched alone, so
    /// that its failure does not affect others again.
    fn neighbors(&self, head: PieceId) -> Vec<PieceId> {
        let held = self.held(head);
        let goes_along = |piece: &PieceId| *piece != head && self.held(*piece).failures == 0;
        let waiting = held.place.filter(|_| held.failures == 0);
        let waiting =
            waiting.and_then(|place| self.places.get(&(held.tier, place))).into_iter().flatten();
        let others = waiting.map(|(_, piece)| *piece).filter(goes_along);
        std::iter::once(head).chain(others).take(VISIT_PIECES_MAX).collect()
    }

    /// Marks a piece as in flight and reserves the space of its copy.
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
