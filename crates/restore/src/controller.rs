//! The state machine: an event is applied, what has rested for long enough waits again, and what
//! may begin begins.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox};

use crate::limits::{COPY_REST, PIECE_REST, PIECE_TRIES_MAX};
use crate::restore::{Age, Held, Restore, Step, rest};
use crate::{Capacity, Command, Event, Piece, PieceId, Place, RestoreId, Retrieval, TierIndex};

/// The controller of all restores, whatever tiers they come from.
#[derive(Clone, Debug)]
pub struct Restores {
    pub(crate) tiers: Vec<Capacity>,
    pub(crate) now: Instant,
    sequence: u64,
    /// Bytes of copies that may be under way.
    pub(crate) room: ByteCount,
    /// Bytes of copies of restores that have begun.
    pub(crate) taken: u64,
    pub(crate) restores: BTreeMap<RestoreId, Restore>,
    /// By tier, then by retrieval.
    pub(crate) lanes: Vec<[Lane; 3]>,
    /// Restores known, in whatever state, by retrieval.
    pub(crate) counts: [usize; 3],
    /// Pieces that wait, where they are.
    pub(crate) places: BTreeMap<(TierIndex, Place), BTreeSet<(Age, PieceId)>>,
    /// Pieces that rest, by the end of it.
    pub(crate) resting: BTreeSet<(Instant, PieceId)>,
    /// Pieces that were to be fetched and were not answered, those of forgotten restores too.
    pub(crate) under_way: BTreeMap<PieceId, UnderWay>,
    pub(crate) visits: BTreeMap<u64, Visit>,
    pub(crate) next_visit: u64,
}

/// What waits of one retrieval in one tier, and how much of it is under way.
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
    /// Whose bytes it counts among: a restore that is urged on meanwhile has another one.
    pub(crate) retrieval: Retrieval,
    pub(crate) bytes: ByteCount,
}

/// Pieces that are fetched together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) tier: TierIndex,
    /// Of the piece that it began for.
    pub(crate) retrieval: Retrieval,
    /// Pieces that were not answered.
    pub(crate) left: usize,
}

impl Controller for Restores {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        // A driver's clock may be read out of order; rests must not begin in the past.
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
    /// Nothing is asked for, and there is room for everything. There is one tier, of so many
    /// drives.
    ///
    /// # Panics
    /// If there is no drive.
    #[must_use]
    pub fn new(drives: usize) -> Self {
        Self::of_tiers(vec![Capacity::of_drives(drives)])
    }

    /// The same with these tiers.
    ///
    /// # Panics
    /// If there is none, or one from which nothing could ever be fetched.
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

    /// The tiers that it keeps busy.
    #[must_use]
    pub fn tiers(&self) -> &[Capacity] {
        &self.tiers
    }

    /// Restores of a retrieval that are not done: a driver need not ask for more than it wants to
    /// hold.
    #[must_use]
    pub const fn count(&self, retrieval: Retrieval) -> usize {
        self.counts[retrieval.index()]
    }

    /// Bytes of copies of restores that have begun.
    #[must_use]
    pub const fn taken(&self) -> ByteCount {
        ByteCount::new(self.taken)
    }

    /// Whether a piece is to be fetched and was not answered.
    #[must_use]
    pub fn is_under_way(&self, piece: PieceId) -> bool {
        self.under_way.contains_key(&piece)
    }

    /// Whether a restore was asked for and is not done.
    #[must_use]
    pub fn is_known(&self, restore: RestoreId) -> bool {
        self.restores.contains_key(&restore)
    }

    /// Whether these are pieces of tiers that there are.
    pub(crate) fn has_tiers_of(&self, pieces: &[Piece]) -> bool {
        pieces.iter().all(|piece| piece.tier.get() < self.tiers.len())
    }

    /// Whether a restore is to be committed.
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

    /// A restore that is known is wanted sooner. Never later: what was promised first holds.
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

    /// A restore with a piece that failed too often fetches nothing more, and as soon as nothing of
    /// it is under way it gives its room back and rests as a whole.
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

    /// A copy came to nothing.
    fn begin_anew(&mut self, id: RestoreId) {
        let rounds = self.restores[&id].rounds;
        self.rest_whole(id, rest(COPY_REST, rounds.saturating_add(1)));
    }

    /// Nothing of a restore is there any more; all of it is fetched again, later.
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

    /// Takes everything of a restore away but what is under way.
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

    /// The room of its copy is free for others.
    fn release(&mut self, id: RestoreId) {
        let restore = self.restore_mut(id);
        if std::mem::take(&mut restore.is_begun) {
            self.taken -= restore.bytes.get();
        }
    }

    /// A piece that was under way is not any more.
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

    /// What has rested for long enough waits again.
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

    /// A piece waits from now on.
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

    /// A piece does not wait any more; its caller says what it does.
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

/// The pieces of a restore.
pub(crate) fn ids(restore: RestoreId, count: usize) -> impl Iterator<Item = PieceId> + use<> {
    (0..).take(count).map(move |index| PieceId { restore, index })
}
