//! The state machine: applies an event, queues what has finished its backoff, and starts what may
//! start.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox};

use crate::limits::{COPY_REST, PIECE_REST, PIECE_TRIES_MAX};
use crate::restore::{Age, Held, Restore, Step, rest};
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
    pub(crate) taken: u64,
    pub(crate) restores: BTreeMap<RestoreId, Restore>,
    /// By tier, then by retrieval class.
    pub(crate) lanes: Vec<[Lane; 3]>,
    /// Unfinished restores in any state, by retrieval class.
    pub(crate) counts: [usize; 3],
    /// Waiting pieces by place.
    pub(crate) places: BTreeMap<(TierIndex, Place), BTreeSet<(Age, PieceId)>>,
    /// Pieces in backoff, by the end of it.
    pub(crate) resting: BTreeSet<(Instant, PieceId)>,
    /// Pieces in flight: fetched and not answered, including those of forgotten restores.
    pub(crate) under_way: BTreeMap<PieceId, UnderWay>,
    pub(crate) visits: BTreeMap<u64, Visit>,
    pub(crate) next_visit: u64,
}

/// The queue of one retrieval class in one tier, and how much of it is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) queue: BTreeSet<(Age, PieceId)>,
    pub(crate) visits: usize,
    pub(crate) pieces: usize,
    pub(crate) bytes: u64,
}

/// A piece that is being fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub(crate) visit: u64,
    pub(crate) tier: TierIndex,
    /// The class that it counts against. A restore that became more urgent meanwhile has another.
    pub(crate) retrieval: Retrieval,
    pub(crate) bytes: ByteCount,
}

/// A fetch in flight: pieces that are fetched together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
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
        self.wake();
        self.begin(out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.resting.first().map(|(until, _)| *until)
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
        Self::of_tiers(vec![Capacity::of_drives(drives)])
    }

    /// Creates one for these tiers.
    ///
    /// # Panics
    /// If there is no tier, or one from which nothing could ever be fetched.
    #[must_use]
    pub fn of_tiers(tiers: Vec<Capacity>) -> Self {
        assert!(!tiers.is_empty(), "what is fetched comes from a tier");
        assert!(tiers.iter().all(Capacity::is_possible), "what is fetched needs a drive");
        Self {
            lanes: tiers.iter().map(|_| Default::default()).collect(),
            counts: [0; 3],
            tiers,
            now: Instant::ZERO,
            sequence: 0,
            room: ByteCount::new(u64::MAX),
            taken: 0,
            restores: BTreeMap::new(),
            places: BTreeMap::new(),
            resting: BTreeSet::new(),
            under_way: BTreeMap::new(),
            visits: BTreeMap::new(),
            next_visit: 0,
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
    pub const fn taken(&self) -> ByteCount {
        ByteCount::new(self.taken)
    }

    /// Whether a piece is being fetched and was not answered.
    #[must_use]
    pub fn is_under_way(&self, piece: PieceId) -> bool {
        self.under_way.contains_key(&piece)
    }

    /// Whether a restore was requested and is not finished.
    #[must_use]
    pub fn is_known(&self, restore: RestoreId) -> bool {
        self.restores.contains_key(&restore)
    }

    /// Whether the tiers of all these pieces exist.
    pub(crate) fn has_tiers_of(&self, pieces: &[Piece]) -> bool {
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
                let age = Age { due: retrieval.due(at), sequence: self.sequence };
                self.sequence += 1;
                if self.restores.contains_key(&restore) {
                    self.urge(restore, retrieval, age);
                } else {
                    self.accept(restore, retrieval, age, &pieces);
                }
            }
            Event::Came { piece } => self.came(piece, out),
            Event::Failed { piece } => self.failed(piece, out),
            Event::Committed { restore } => {
                self.require_complete(restore);
                self.remove(restore);
            }
            Event::Lost { restore } => {
                self.require_complete(restore);
                self.begin_anew(restore);
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

    fn accept(&mut self, id: RestoreId, retrieval: Retrieval, age: Age, pieces: &[Piece]) {
        assert!(!pieces.is_empty(), "restore {id} is for something, if only of no bytes");
        assert!(self.has_tiers_of(pieces), "restore {id} is of tiers that there are");
        let restore = Restore {
            retrieval,
            age,
            pieces: pieces.iter().copied().map(Held::new).collect(),
            bytes: pieces.iter().map(|piece| piece.bytes).sum(),
            left: pieces.len(),
            under_way: 0,
            is_begun: false,
            gives_up: false,
            rounds: 0,
        };
        self.restores.insert(id, restore);
        self.counts[retrieval.index()] += 1;
        ids(id, pieces.len()).for_each(|piece| self.queue(piece));
    }

    /// Makes a known restore more urgent. Never less: the earliest promise holds.
    fn urge(&mut self, id: RestoreId, retrieval: Retrieval, age: Age) {
        let known = &self.restores[&id];
        let (old, pieces) = (known.age, known.pieces.len());
        let retrieval = retrieval.max(known.retrieval);
        let age = if age.due < old.due { age } else { old };
        let waiting: Vec<PieceId> =
            ids(id, pieces).filter(|piece| self.held(*piece).step == Step::Waiting).collect();
        waiting.iter().for_each(|piece| self.unqueue(*piece));
        self.counts[self.restores[&id].retrieval.index()] -= 1;
        self.counts[retrieval.index()] += 1;
        let known = self.restore_mut(id);
        (known.retrieval, known.age) = (retrieval, age);
        waiting.iter().for_each(|piece| self.queue(*piece));
    }

    fn came(&mut self, piece: PieceId, out: &mut Outbox<Command>) {
        self.answered(piece);
        if !self.restores.contains_key(&piece.restore) {
            return;
        }
        self.held_mut(piece).step = Step::Came;
        let restore = self.restore_mut(piece.restore);
        restore.under_way -= 1;
        restore.left -= 1;
        if restore.left == 0 {
            out.push(Command::Commit { restore: piece.restore });
        }
        self.give_up_if_due(piece.restore, out);
    }

    fn failed(&mut self, piece: PieceId, out: &mut Outbox<Command>) {
        self.answered(piece);
        if !self.restores.contains_key(&piece.restore) {
            return;
        }
        let held = self.held_mut(piece);
        held.failures += 1;
        let failures = held.failures;
        let restore = self.restore_mut(piece.restore);
        restore.under_way -= 1;
        restore.gives_up |= failures >= PIECE_TRIES_MAX;
        self.rest(piece, rest(PIECE_REST, failures));
        self.give_up_if_due(piece.restore, out);
    }

    /// Stops a restore with a piece that failed too often: nothing more of it is fetched. When
    /// nothing of it is in flight it releases its space and backs off as a whole.
    fn give_up_if_due(&mut self, id: RestoreId, out: &mut Outbox<Command>) {
        let restore = &self.restores[&id];
        if !restore.gives_up {
            return;
        }
        let (under_way, count) = (restore.under_way, restore.pieces.len());
        let failures = PIECE_TRIES_MAX.saturating_add(restore.rounds);
        for piece in ids(id, count) {
            match self.held(piece).step {
                Step::Waiting => self.unqueue(piece),
                Step::Resting(_) => self.unrest(piece),
                Step::Stopped | Step::UnderWay | Step::Came => continue,
            }
            self.held_mut(piece).step = Step::Stopped;
        }
        if under_way == 0 {
            self.rest_whole(id, rest(PIECE_REST, failures));
            out.push(Command::Forget { restore: id });
        }
    }

    /// Starts a restore over because its copy was lost.
    fn begin_anew(&mut self, id: RestoreId) {
        let rounds = self.restores[&id].rounds;
        self.rest_whole(id, rest(COPY_REST, rounds.saturating_add(1)));
    }

    /// Discards all that has arrived of a restore; all of it is fetched again after a backoff.
    fn rest_whole(&mut self, id: RestoreId, time: Duration) {
        self.release(id);
        let restore = self.restore_mut(id);
        assert_eq!(restore.under_way, 0, "restore {id} rests with pieces under way");
        restore.rounds = restore.rounds.saturating_add(1);
        restore.left = restore.pieces.len();
        restore.gives_up = false;
        for piece in ids(id, restore.left) {
            self.unrest(piece);
            self.held_mut(piece).failures = 0;
            self.rest(piece, time);
        }
    }

    /// Removes a restore, except for its pieces in flight.
    fn remove(&mut self, id: RestoreId) {
        self.release(id);
        for piece in ids(id, self.restores[&id].pieces.len()) {
            self.unrest(piece);
            if self.held(piece).step == Step::Waiting {
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
        if std::mem::take(&mut restore.is_begun) {
            self.taken -= restore.bytes.get();
        }
    }

    /// Removes an answered piece from those in flight.
    fn answered(&mut self, piece: PieceId) {
        let known = self.under_way.remove(&piece);
        let UnderWay { visit, tier, retrieval, bytes } =
            known.unwrap_or_else(|| panic!("piece {piece} was not to be fetched"));
        let lane = self.lane(tier, retrieval);
        lane.pieces -= 1;
        lane.bytes -= bytes.get();
        let Some(of) = self.visits.get_mut(&visit) else { return };
        of.left -= 1;
        if of.left == 0 {
            let (tier, began_for) = (of.tier, of.retrieval);
            self.visits.remove(&visit);
            self.lane(tier, began_for).visits -= 1;
        }
    }

    /// Queues the pieces whose backoff has ended.
    fn wake(&mut self) {
        while let Some(&(until, piece)) = self.resting.first()
            && until <= self.now
        {
            self.unrest(piece);
            self.queue(piece);
        }
    }

    fn rest(&mut self, piece: PieceId, time: Duration) {
        let until = self.now + time;
        self.held_mut(piece).step = Step::Resting(until);
        self.resting.insert((until, piece));
    }

    fn unrest(&mut self, piece: PieceId) {
        if let Step::Resting(until) = self.held(piece).step {
            self.resting.remove(&(until, piece));
        }
    }

    /// Queues a piece.
    fn queue(&mut self, piece: PieceId) {
        let restore = &self.restores[&piece.restore];
        let (age, retrieval) = (restore.age, restore.retrieval);
        let held = self.held_mut(piece);
        held.step = Step::Waiting;
        let (tier, place) = (held.tier, held.place);
        if let Some(place) = place {
            self.places.entry((tier, place)).or_default().insert((age, piece));
        }
        self.lane(tier, retrieval).queue.insert((age, piece));
    }

    /// Removes a piece from its queue; the caller sets its next step.
    pub(crate) fn unqueue(&mut self, piece: PieceId) {
        let restore = &self.restores[&piece.restore];
        let (age, retrieval) = (restore.age, restore.retrieval);
        let (tier, place) = (self.held(piece).tier, self.held(piece).place);
        let was_there = self.lane(tier, retrieval).queue.remove(&(age, piece));
        assert!(was_there, "piece {piece} waits where it says");
        if let Some(place) = place.map(|place| (tier, place))
            && let Some(waiting) = self.places.get_mut(&place)
        {
            waiting.remove(&(age, piece));
            if waiting.is_empty() {
                self.places.remove(&place);
            }
        }
    }

    pub(crate) fn held(&self, piece: PieceId) -> &Held {
        &self.restores[&piece.restore].pieces[piece.index as usize]
    }

    pub(crate) fn held_mut(&mut self, piece: PieceId) -> &mut Held {
        &mut self.restore_mut(piece.restore).pieces[piece.index as usize]
    }

    pub(crate) fn restore_mut(&mut self, id: RestoreId) -> &mut Restore {
        self.restores.get_mut(&id).unwrap_or_else(|| panic!("restore {id} is known"))
    }

    fn require_complete(&self, id: RestoreId) {
        assert!(self.is_complete(id), "restore {id} was not to be committed");
    }
}

/// Returns the piece ids of a restore.
pub(crate) fn ids(restore: RestoreId, count: usize) -> impl Iterator<Item = PieceId> + use<> {
    (0..).take(count).map(move |index| PieceId { restore, index })
}
