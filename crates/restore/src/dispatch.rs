//! Chooses which pieces to fetch now: the one due first, and others at the same place.
//!
//! Each retrieval class keeps enough in flight to keep the drives of its tier busy. So an urgent
//! restore never waits for others to end, and no tier waits for another. Across classes, the piece
//! due first goes first, and while its copy does not fit on the disk nothing overtakes it, so
//! nothing starves. Space is reserved for a whole copy, so that every restore that has begun can
//! end.

use fulgurite_units::{ByteCount, Outbox};

use crate::controller::{Fetch, InFlight, Lane, Restores};
use crate::limits::{FETCH_PIECES_MAX, FETCHES_PER_DRIVE, IN_FLIGHT_BYTES};
use crate::restore::{PieceState, Priority, Step};
use crate::{Capacity, Command, PieceId, Retrieval};

impl Lane {
    /// Returns whether another fetch may start.
    fn has_capacity(&self, capacity: &Capacity) -> bool {
        self.fetches < capacity.drives * FETCHES_PER_DRIVE
            || (self.bytes < capacity.bytes.get() && self.pieces < capacity.pieces)
    }

    fn head(&self) -> Option<(Priority, PieceId)> {
        self.queue.first().copied()
    }
}

impl Restores {
    /// Starts fetches until enough is in flight, or space runs out.
    pub(crate) fn dispatch(&mut self, out: &mut Outbox<Command>) {
        while let Some((_, head)) = self.next_head() {
            if !self.can_start(head) {
                return;
            }
            self.fetch(head, out);
        }
    }

    /// Returns the piece due first, among the lanes that may start another fetch.
    pub(crate) fn next_head(&self) -> Option<(Priority, PieceId)> {
        let lanes = self.lanes.iter().zip(&self.tiers);
        let lanes = lanes.flat_map(|(lanes, tier)| lanes.iter().map(move |lane| (lane, tier)));
        lanes
            .filter(|(lane, tier)| lane.has_capacity(tier))
            .filter_map(|(lane, _)| lane.head())
            .min()
    }

    /// Returns how much space copies may take when a restore of this class starts. The remainder is
    /// reserved for more urgent classes, which so find space at once.
    pub(crate) const fn room_limit(&self, retrieval: Retrieval) -> u64 {
        let room = self.room.get();
        match retrieval {
            Retrieval::Bulk => room / 2,
            Retrieval::Standard => room / 4 * 3,
            Retrieval::Expedited => room,
        }
    }

    /// Whether the space for a copy lets its piece start. A copy that can never fit does not wait:
    /// the driver tries it and reports the failure.
    pub(crate) fn can_start(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        self.has_room(piece) || restore.bytes.get() > self.room_limit(restore.retrieval)
    }

    fn has_room(&self, piece: PieceId) -> bool {
        let restore = &self.restores[&piece.restore];
        let with_copy = self.reserved.saturating_add(restore.bytes.get());
        restore.is_admitted || with_copy <= self.room_limit(restore.retrieval)
    }

    /// Starts a fetch for a piece, and adds pieces waiting at the same place, earliest due first.
    fn fetch(&mut self, head: PieceId, out: &mut Outbox<Command>) {
        let restore = &self.restores[&head.restore];
        let (retrieval, mut due) = (restore.retrieval, restore.priority.due);
        let (tier, place) = (self.state(head).tier, self.state(head).place);
        let number = self.next_fetch;
        self.next_fetch += 1;
        self.lane(tier, retrieval).fetches += 1;
        let (mut pieces, mut bytes) = (Vec::new(), ByteCount::ZERO);
        for piece in self.neighbors(head) {
            if piece != head && (bytes >= IN_FLIGHT_BYTES || !self.has_room(piece)) {
                continue;
            }
            due = due.min(self.restores[&piece.restore].priority.due);
            bytes += self.state(piece).bytes;
            self.take(piece, number);
            pieces.push(piece);
        }
        self.fetches.insert(number, Fetch { tier, retrieval, left: pieces.len() });
        out.push(Command::Fetch { place, pieces, due });
    }

    /// Returns a piece and others that wait at its place. A piece that failed is fetched alone, so
    /// that its failure does not affect others again.
    fn neighbors(&self, head: PieceId) -> Vec<PieceId> {
        let state = self.state(head);
        let can_join = |piece: &PieceId| *piece != head && self.state(*piece).failures == 0;
        let waiting = state.place.filter(|_| state.failures == 0);
        let waiting =
            waiting.and_then(|place| self.places.get(&(state.tier, place))).into_iter().flatten();
        let same_place = waiting.map(|(_, piece)| *piece).filter(can_join);
        std::iter::once(head).chain(same_place).take(FETCH_PIECES_MAX).collect()
    }

    /// Marks a piece as in flight and reserves the space of its copy.
    fn take(&mut self, piece: PieceId, fetch: u64) {
        self.unqueue(piece);
        let PieceState { tier, bytes, .. } = *self.state(piece);
        self.state_mut(piece).step = Step::InFlight;
        let restore = self.restore_mut(piece.restore);
        restore.in_flight += 1;
        let (retrieval, begins, copy) = (restore.retrieval, !restore.is_admitted, restore.bytes);
        restore.is_admitted = true;
        if begins {
            self.reserved += copy.get();
        }
        self.in_flight.insert(piece, InFlight { fetch, tier, retrieval, bytes });
        let lane = self.lane(tier, retrieval);
        lane.pieces += 1;
        lane.bytes += bytes.get();
    }
}
