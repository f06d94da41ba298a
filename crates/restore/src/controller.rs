//! The state machine: applies an event, queues what has finished its backoff, and starts what may
//! start.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox};

use crate::limits::{COPY_BACKOFF, PIECE_BACKOFF, PIECE_TRIES_MAX};
use crate::restore::{PieceState, Priority, Restore, Step, backoff};
use crate::{Capacity, Command, Event, Piece, PieceId, Place, RestoreId, Retrieval, TierIndex};

/// The controller of all restores, from all tiers.
#[derive(Clone, Debug)]
pub struct Restores {
    pub(crate) tiers: Vec<Capacity>,
    pub(crate) now: Instant,
    sequence: u64,
    /// Limit on the bytes of copies of restores that have begun.
    pub(crate) room: ByteCount,
    /// Bytes of copies of restores that have begun.
    pub(crate) reserved: u64,
    pub(crate) restores: BTreeMap<RestoreId, Restore>,
    /// By tier, then by retrieval class.
    pub(crate) lanes: Vec<[Lane; 3]>,
    /// Unfinished restores in any state, by retrieval class.
    pub(crate) counts: [usize; 3],
    /// Waiting pieces by place.
    pub(crate) places: BTreeMap<(TierIndex, Place), BTreeSet<(Priority, PieceId)>>,
    /// Pieces in backoff, by the end of it.
    pub(crate) backing_off: BTreeSet<(Instant, PieceId)>,
    /// Pieces in flight: fetched and not answered, including those of forgotten restores.
    pub(crate) in_flight: BTreeMap<PieceId, InFlight>,
    pub(crate) fetches: BTreeMap<u64, Fetch>,
    pub(crate) next_fetch: u64,
}

/// The queue of one retrieval class in one tier, and how much of it is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) queue: BTreeSet<(Priority, PieceId)>,
    pub(crate) fetches: usize,
    pub(crate) pieces: usize,
    pub(crate) bytes: u64,
}

/// A piece that is being fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) fetch: u64,
    pub(crate) tier: TierIndex,
    /// The class that it counts against. A restore that became more urgent meanwhile has another.
    pub(crate) retrieval: Retrieval,
    pub(crate) bytes: ByteCount,
}

/// A fetch in flight: pieces that are fetched together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) tier: TierIndex,
    /// The class of the piece that it was started for.
    pub(crate) retrieval: Retrieval,
    /// Pieces not answered yet.
    pub(crate) left: usize,
}

impl Controller for Restores {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        // Readings of the driver's clock may arrive out of order; backoff must not begin in the
        // past.
        self.now = self.now.max(now);
        self.apply(event, out);
        self.requeue_due();
        self.dispatch(out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.backing_off.first().map(|(until, _)| *until)
    }

    fn check(&self) {
        self.check_invariants();
    }
}

impl Restores {
    /// Creates a controller without restores and with unlimited space, for one tier with this many
    /// drives.
    ///
    /// # Panics
    /// If there is no drive.
    #[must_use]
    pub fn new(drives: usize) -> Self {
        Self::with_tiers(vec![Capacity::for_drives(drives)])
    }

    /// Creates one for these tiers.
    ///
    /// # Panics
    /// If there is no tier, or one from which nothing could ever be fetched.
    #[must_use]
    pub fn with_tiers(tiers: Vec<Capacity>) -> Self {
        assert!(!tiers.is_empty(), "a controller needs at least one tier");
        assert!(tiers.iter().all(Capacity::is_possible), "each tier can fetch something");
        Self {
            lanes: tiers.iter().map(|_| Default::default()).collect(),
            counts: [0; 3],
            tiers,
            now: Instant::ZERO,
            sequence: 0,
            room: ByteCount::new(u64::MAX),
            reserved: 0,
            restores: BTreeMap::new(),
            places: BTreeMap::new(),
            backing_off: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            fetches: BTreeMap::new(),
            next_fetch: 0,
        }
    }

    /// Returns the tiers.
    #[must_use]
    pub fn tiers(&self) -> &[Capacity] {
        &self.tiers
    }

    /// Returns the number of unfinished restores of a retrieval class. A driver need not submit
    /// more than it wants to hold here.
    #[must_use]
    pub const fn count(&self, retrieval: Retrieval) -> usize {
        self.counts[retrieval.index()]
    }

    /// Bytes of copies of restores that have begun.
    #[must_use]
    pub const fn reserved(&self) -> ByteCount {
        ByteCount::new(self.reserved)
    }

    /// Whether a piece is being fetched and was not answered.
    #[must_use]
    pub fn is_in_flight(&self, piece: PieceId) -> bool {
        self.in_flight.contains_key(&piece)
    }

    /// Whether a restore was requested and is not finished.
    #[must_use]
    pub fn is_known(&self, restore: RestoreId) -> bool {
        self.restores.contains_key(&restore)
    }

    /// Whether the tiers of all these pieces exist.
    pub(crate) fn has_tiers_for(&self, pieces: &[Piece]) -> bool {
        pieces.iter().all(|piece| piece.tier.get() < self.tiers.len())
    }

    /// Whether all pieces of a restore have arrived, so that it is to be committed.
    #[must_use]
    pub fn is_complete(&self, restore: RestoreId) -> bool {
        self.restores.get(&restore).is_some_and(|known| known.left == 0)
    }

    pub(crate) fn lane(&mut self, tier: TierIndex, retrieval: Retrieval) -> &mut Lane {
        &mut self.lanes[tier.get()][retrieval.index()]
    }

    fn apply(&mut self, event: Event, out: &mut Outbox<Command>) {
        match event {
            Event::Asked { restore, retrieval, at, pieces } => {
                let priority = Priority { due: retrieval.due(at), sequence: self.sequence };
                self.sequence += 1;
                if self.restores.contains_key(&restore) {
                    self.expedite(restore, retrieval, priority);
                } else {
                    self.accept(restore, retrieval, priority, &pieces);
                }
            }
            Event::Came { piece } => self.on_arrival(piece, out),
            Event::Failed { piece } => self.on_failure(piece, out),
            Event::Committed { restore } => {
                self.require_complete(restore);
                self.remove(restore);
            }
            Event::Lost { restore } => {
                self.require_complete(restore);
                self.start_over(restore);
            }
            Event::Forgotten { restore } => {
                if self.restores.contains_key(&restore) {
                    self.remove(restore);
                }
            }
            Event::Room { bytes } => self.room = bytes,
            Event::Timer => {}
        }
    }

    fn accept(
        &mut self,
        id: RestoreId,
        retrieval: Retrieval,
        priority: Priority,
        pieces: &[Piece],
    ) {
        assert!(!pieces.is_empty(), "restore {id} has at least one piece");
        assert!(self.has_tiers_for(pieces), "restore {id} names only existing tiers");
        let restore = Restore {
            retrieval,
            priority,
            pieces: pieces.iter().copied().map(PieceState::new).collect(),
            bytes: pieces.iter().map(|piece| piece.bytes).sum(),
            left: pieces.len(),
            in_flight: 0,
            is_admitted: false,
            is_giving_up: false,
            rounds: 0,
        };
        self.restores.insert(id, restore);
        self.counts[retrieval.index()] += 1;
        ids(id, pieces.len()).for_each(|piece| self.queue(piece));
    }

    /// Makes a known restore more urgent. Never less: the earliest promise holds.
    fn expedite(&mut self, id: RestoreId, retrieval: Retrieval, priority: Priority) {
        let known = &self.restores[&id];
        let (old, pieces) = (known.priority, known.pieces.len());
        let retrieval = retrieval.max(known.retrieval);
        let priority = if priority.due < old.due { priority } else { old };
        let waiting: Vec<PieceId> =
            ids(id, pieces).filter(|piece| self.state(*piece).step == Step::Waiting).collect();
        waiting.iter().for_each(|piece| self.unqueue(*piece));
        self.counts[self.restores[&id].retrieval.index()] -= 1;
        self.counts[retrieval.index()] += 1;
        let known = self.restore_mut(id);
        (known.retrieval, known.priority) = (retrieval, priority);
        waiting.iter().for_each(|piece| self.queue(*piece));
    }

    fn on_arrival(&mut self, piece: PieceId, out: &mut Outbox<Command>) {
        self.remove_answered(piece);
        if !self.restores.contains_key(&piece.restore) {
            return;
        }
        self.state_mut(piece).step = Step::Arrived;
        let restore = self.restore_mut(piece.restore);
        restore.in_flight -= 1;
        restore.left -= 1;
        if restore.left == 0 {
            out.push(Command::Commit { restore: piece.restore });
        }
        self.give_up_if_due(piece.restore, out);
    }

    fn on_failure(&mut self, piece: PieceId, out: &mut Outbox<Command>) {
        self.remove_answered(piece);
        if !self.restores.contains_key(&piece.restore) {
            return;
        }
        let state = self.state_mut(piece);
        state.failures += 1;
        let failures = state.failures;
        let restore = self.restore_mut(piece.restore);
        restore.in_flight -= 1;
        restore.is_giving_up |= failures >= PIECE_TRIES_MAX;
        self.backoff(piece, backoff(PIECE_BACKOFF, failures));
        self.give_up_if_due(piece.restore, out);
    }

    /// Stops a restore with a piece that failed too often: nothing more of it is fetched. When
    /// nothing of it is in flight it releases its space and backs off as a whole.
    fn give_up_if_due(&mut self, id: RestoreId, out: &mut Outbox<Command>) {
        let restore = &self.restores[&id];
        if !restore.is_giving_up {
            return;
        }
        let (in_flight, count) = (restore.in_flight, restore.pieces.len());
        let failures = PIECE_TRIES_MAX.saturating_add(restore.rounds);
        for piece in ids(id, count) {
            match self.state(piece).step {
                Step::Waiting => self.unqueue(piece),
                Step::Backoff(_) => self.cancel_backoff(piece),
                Step::Stopped | Step::InFlight | Step::Arrived => continue,
            }
            self.state_mut(piece).step = Step::Stopped;
        }
        if in_flight == 0 {
            self.reset(id, backoff(PIECE_BACKOFF, failures));
            out.push(Command::Forget { restore: id });
        }
    }

    /// Starts a restore over because its copy was lost.
    fn start_over(&mut self, id: RestoreId) {
        let rounds = self.restores[&id].rounds;
        self.reset(id, backoff(COPY_BACKOFF, rounds.saturating_add(1)));
    }

    /// Discards all that has arrived of a restore; all of it is fetched again after a backoff.
    fn reset(&mut self, id: RestoreId, time: Duration) {
        self.release(id);
        let restore = self.restore_mut(id);
        assert_eq!(restore.in_flight, 0, "restore {id} starts over with pieces in flight");
        restore.rounds = restore.rounds.saturating_add(1);
        restore.left = restore.pieces.len();
        restore.is_giving_up = false;
        for piece in ids(id, restore.left) {
            self.cancel_backoff(piece);
            self.state_mut(piece).failures = 0;
            self.backoff(piece, time);
        }
    }

    /// Removes a restore, except for its pieces in flight.
    fn remove(&mut self, id: RestoreId) {
        self.release(id);
        for piece in ids(id, self.restores[&id].pieces.len()) {
            self.cancel_backoff(piece);
            if self.state(piece).step == Step::Waiting {
                self.unqueue(piece);
            }
        }
        if let Some(restore) = self.restores.remove(&id) {
            self.counts[restore.retrieval.index()] -= 1;
        }
    }

    /// Releases the space of its copy.
    fn release(&mut self, id: RestoreId) {
        let restore = self.restore_mut(id);
        if std::mem::take(&mut restore.is_admitted) {
            self.reserved -= restore.bytes.get();
        }
    }

    /// Removes an answered piece from those in flight.
    fn remove_answered(&mut self, piece: PieceId) {
        let known = self.in_flight.remove(&piece);
        let InFlight { fetch, tier, retrieval, bytes } =
            known.unwrap_or_else(|| panic!("piece {piece} is not in flight"));
        let lane = self.lane(tier, retrieval);
        lane.pieces -= 1;
        lane.bytes -= bytes.get();
        let Some(entry) = self.fetches.get_mut(&fetch) else { return };
        entry.left -= 1;
        if entry.left == 0 {
            let (tier, began_for) = (entry.tier, entry.retrieval);
            self.fetches.remove(&fetch);
            self.lane(tier, began_for).fetches -= 1;
        }
    }

    /// Queues the pieces whose backoff has ended.
    fn requeue_due(&mut self) {
        while let Some(&(until, piece)) = self.backing_off.first()
            && until <= self.now
        {
            self.cancel_backoff(piece);
            self.queue(piece);
        }
    }

    fn backoff(&mut self, piece: PieceId, time: Duration) {
        let until = self.now + time;
        self.state_mut(piece).step = Step::Backoff(until);
        self.backing_off.insert((until, piece));
    }

    fn cancel_backoff(&mut self, piece: PieceId) {
        if let Step::Backoff(until) = self.state(piece).step {
            self.backing_off.remove(&(until, piece));
        }
    }

    /// Queues a piece.
    fn queue(&mut self, piece: PieceId) {
        let restore = &self.restores[&piece.restore];
        let (priority, retrieval) = (restore.priority, restore.retrieval);
        let state = self.state_mut(piece);
        state.step = Step::Waiting;
        let (tier, place) = (state.tier, state.place);
        if let Some(place) = place {
            self.places.entry((tier, place)).or_default().insert((priority, piece));
        }
        self.lane(tier, retrieval).queue.insert((priority, piece));
    }

    /// Removes a piece from its queue; the caller sets its next step.
    pub(crate) fn unqueue(&mut self, piece: PieceId) {
        let restore = &self.restores[&piece.restore];
        let (priority, retrieval) = (restore.priority, restore.retrieval);
        let (tier, place) = (self.state(piece).tier, self.state(piece).place);
        let was_there = self.lane(tier, retrieval).queue.remove(&(priority, piece));
        assert!(was_there, "piece {piece} is in its queue");
        if let Some(place) = place.map(|place| (tier, place))
            && let Some(waiting) = self.places.get_mut(&place)
        {
            waiting.remove(&(priority, piece));
            if waiting.is_empty() {
                self.places.remove(&place);
            }
        }
    }

    pub(crate) fn state(&self, piece: PieceId) -> &PieceState {
        &self.restores[&piece.restore].pieces[piece.index as usize]
    }

    pub(crate) fn state_mut(&mut self, piece: PieceId) -> &mut PieceState {
        &mut self.restore_mut(piece.restore).pieces[piece.index as usize]
    }

    pub(crate) fn restore_mut(&mut self, id: RestoreId) -> &mut Restore {
        self.restores.get_mut(&id).unwrap_or_else(|| panic!("restore {id} is unknown"))
    }

    fn require_complete(&self, id: RestoreId) {
        assert!(self.is_complete(id), "restore {id} is not ready to be committed");
    }
}

/// Returns the piece ids of a restore.
pub(crate) fn ids(restore: RestoreId, count: usize) -> impl Iterator<Item = PieceId> + use<> {
    (0..).take(count).map(move |index| PieceId { restore, index })
}
