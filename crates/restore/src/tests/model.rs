//! Compares the controller with a simple model: one flat list, scanned from end to end for each
//! decision.

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox, UnixTime};
use proptest::prelude::*;

use crate::limits::{
    COPY_REST, PIECE_REST, PIECE_TRIES_MAX, UNDER_WAY_BYTES, VISIT_PIECES_MAX, VISITS_PER_DRIVE,
};
use crate::restore::rest;
use crate::{
    Capacity, Command, Event, Piece, PieceId, Place, RestoreId, Restores, Retrieval, TierIndex,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Waiting,
    Resting(Instant),
    Stopped,
    /// In the fetch with this number.
    Fetched(u64),
    There,
}

#[derive(Clone, Debug)]
struct Part {
    id: PieceId,
    piece: Piece,
    is: Is,
    failures: u32,
}

#[derive(Clone, Debug)]
struct Whole {
    id: RestoreId,
    retrieval: Retrieval,
    due: UnixTime,
    order: u64,
    rounds: u32,
    has_room: bool,
    gives_up: bool,
}

/// A piece in flight: its fetch, the lane that it counts against, bytes.
type Away = (PieceId, u64, (TierIndex, Retrieval), u64);

#[derive(Clone, Debug, Default)]
struct Simple {
    tiers: Vec<Capacity>,
    now: Instant,
    room: u64,
    asked: u64,
    visits: Vec<(TierIndex, Retrieval)>,
    wholes: Vec<Whole>,
    parts: Vec<Part>,
    away: Vec<Away>,
}

impl Simple {
    fn whole(&mut self, id: RestoreId) -> &mut Whole {
        self.wholes.iter_mut().find(|whole| whole.id == id).unwrap()
    }

    fn part(&mut self, id: PieceId) -> &mut Part {
        self.parts.iter_mut().find(|part| part.id == id).unwrap()
    }

    fn bytes(&self, id: RestoreId) -> u64 {
        let of = self.parts.iter().filter(|part| part.id.restore == id);
        of.map(|part| part.piece.bytes.get()).sum()
    }

    fn taken(&self) -> u64 {
        let holders = self.wholes.iter().filter(|whole| whole.has_room);
        holders.map(|whole| self.bytes(whole.id)).sum()
    }

    fn step(&mut self, now: Instant, event: &Event) -> Vec<Command> {
        self.now = self.now.max(now);
        let mut commands = Vec::new();
        match event {
            Event::Asked { restore, retrieval, at, pieces } => {
                self.asked(*restore, *retrieval, *at, pieces);
            }
            Event::Came { piece } => {
                self.away.retain(|away| away.0 != *piece);
                if self.wholes.iter().any(|whole| whole.id == piece.restore) {
                    self.part(*piece).is = Is::There;
                    let mut of = self.parts.iter().filter(|p| p.id.restore == piece.restore);
                    if of.all(|part| part.is == Is::There) {
                        commands.push(Command::Commit { restore: piece.restore });
                    }
                    commands.extend(self.give_up(piece.restore));
                }
            }
            Event::Failed { piece } => {
                self.away.retain(|away| away.0 != *piece);
                if self.wholes.iter().any(|whole| whole.id == piece.restore) {
                    let now = self.now;
                    let part = self.part(*piece);
                    part.failures += 1;
                    part.is = Is::Resting(now + rest(PIECE_REST, part.failures));
                    if part.failures == PIECE_TRIES_MAX {
                        self.whole(piece.restore).gives_up = true;
                    }
                    commands.extend(self.give_up(piece.restore));
                }
            }
            Event::Committed { restore } | Event::Forgotten { restore } => {
                self.wholes.retain(|whole| whole.id != *restore);
                self.parts.retain(|part| part.id.restore != *restore);
            }
            Event::Lost { restore } => {
                let rounds = self.whole(*restore).rounds;
                self.anew(*restore, rest(COPY_REST, rounds + 1));
            }
            Event::Room { bytes } => self.room = bytes.get(),
            Event::Timer => {}
        }
        for part in &mut self.parts {
            if matches!(part.is, Is::Resting(until) if until <= self.now) {
                part.is = Is::Waiting;
            }
        }
        self.begin(&mut commands);
        commands
    }

    fn asked(&mut self, id: RestoreId, retrieval: Retrieval, at: UnixTime, pieces: &[Piece]) {
        let (due, order) = (retrieval.due(at), self.asked);
        self.asked += 1;
        if let Some(whole) = self.wholes.iter_mut().find(|whole| whole.id == id) {
            whole.retrieval = whole.retrieval.max(retrieval);
            if due < whole.due {
                (whole.due, whole.order) = (due, order);
            }
            return;
        }
        let (rounds, has_room, gives_up) = (0, false, false);
        self.wholes.push(Whole { id, retrieval, due, order, rounds, has_room, gives_up });
        for (index, piece) in (0..).zip(pieces) {
            let id = PieceId { restore: id, index };
            self.parts.push(Part { id, piece: *piece, is: Is::Waiting, failures: 0 });
        }
    }

    fn give_up(&mut self, id: RestoreId) -> Option<Command> {
        let whole = self.whole(id).clone();
        let time = rest(PIECE_REST, PIECE_TRIES_MAX + whole.rounds);
        if !whole.gives_up {
            return None;
        }
        for part in self.parts.iter_mut().filter(|part| part.id.restore == id) {
            if matches!(part.is, Is::Waiting | Is::Resting(_)) {
                part.is = Is::Stopped;
            }
        }
        let mut of = self.parts.iter().filter(|part| part.id.restore == id);
        if of.any(|part| matches!(part.is, Is::Fetched(_))) {
            return None;
        }
        self.anew(id, time);
        Some(Command::Forget { restore: id })
    }

    fn anew(&mut self, id: RestoreId, time: Duration) {
        let until = self.now + time;
        let whole = self.whole(id);
        (whole.has_room, whole.gives_up) = (false, false);
        whole.rounds += 1;
        for part in self.parts.iter_mut().filter(|part| part.id.restore == id) {
            (part.is, part.failures) = (Is::Resting(until), 0);
        }
    }

    /// Returns the waiting pieces, ordered by due time.
    fn waiting(&self) -> Vec<(PieceId, Whole, Piece, u32)> {
        let mut waiting: Vec<_> = self
            .parts
            .iter()
            .filter(|part| part.is == Is::Waiting)
            .map(|part| {
                let whole = self.wholes.iter().find(|whole| whole.id == part.id.restore).unwrap();
                (part.id, whole.clone(), part.piece, part.failures)
            })
            .collect();
        waiting.sort_by_key(|(id, whole, ..)| (whole.due, whole.order, *id));
        waiting
    }

    fn wants_more(&self, lane: (TierIndex, Retrieval)) -> bool {
        let away = self.away.iter().filter(|away| away.2 == lane);
        let (pieces, bytes) = (away.clone().count(), away.map(|away| away.3).sum::<u64>());
        let visits = (0u64..)
            .zip(&self.visits)
            .filter(|(number, of)| **of == lane && self.away.iter().any(|away| away.1 == *number));
        let of = &self.tiers[lane.0.get()];
        visits.count() < of.drives * VISITS_PER_DRIVE
            || bytes < of.bytes.get() && pieces < of.pieces
    }

    fn share(&self, retrieval: Retrieval) -> u64 {
        match retrieval {
            Retrieval::Bulk => self.room / 2,
            Retrieval::Standard => self.room / 4 * 3,
            Retrieval::Expedited => self.room,
        }
    }

    fn fits(&self, whole: &Whole) -> bool {
        let is_held = self.wholes.iter().any(|of| of.id == whole.id && of.has_room);
        is_held || self.taken() + self.bytes(whole.id) <= self.share(whole.retrieval)
    }

    fn begin(&mut self, commands: &mut Vec<Command>) {
        loop {
            let waiting = self.waiting();
            let mut open = waiting
                .iter()
                .filter(|(_, whole, piece, _)| self.wants_more((piece.tier, whole.retrieval)));
            let Some((head, whole, piece, failures)) = open.next() else { return };
            if !self.fits(whole) && self.bytes(whole.id) <= self.share(whole.retrieval) {
                return;
            }
            let number = self.visits.len() as u64;
            self.visits.push((piece.tier, whole.retrieval));
            let mut others: Vec<_> = waiting
                .iter()
                .filter(|(id, _, other, failed)| {
                    let is_near = piece.place.is_some()
                        && (piece.tier, piece.place) == (other.tier, other.place);
                    *failures == 0 && is_near && id != head && *failed == 0
                })
                .collect();
            others.truncate(VISIT_PIECES_MAX - 1);
            let (mut pieces, mut bytes, mut due) = (Vec::new(), 0, whole.due);
            let this = (*head, whole.clone(), *piece, *failures);
            for (id, whole, piece, _) in std::iter::once(&this).chain(others) {
                if id != head && (bytes >= UNDER_WAY_BYTES.get() || !self.fits(whole)) {
                    continue;
                }
                self.whole(whole.id).has_room = true;
                self.part(*id).is = Is::Fetched(number);
                let lane = (piece.tier, whole.retrieval);
                self.away.push((*id, number, lane, piece.bytes.get()));
                due = due.min(whole.due);
                bytes += piece.bytes.get();
                pieces.push(*id);
            }
            commands.push(Command::Fetch { place: piece.place, pieces, due });
        }
    }
}

/// The next step of a test; numbers are taken modulo the number of candidates.
#[derive(Clone, Debug)]
enum Act {
    Ask(Retrieval, u64, Vec<(bool, Option<u8>, u64)>),
    AskAgain(usize, Retrieval),
    Came(usize),
    Failed(usize),
    End(usize, u8),
    Forget(usize),
    Room(u64),
    Pass(u64),
}

fn retrieval() -> impl Strategy<Value = Retrieval> {
    prop::sample::select(Retrieval::URGENT_FIRST.to_vec())
}

fn act() -> impl Strategy<Value = Act> {
    let mib = prop_oneof![Just(0), 1u64..40, 100u64..400];
    let piece = (any::<bool>(), prop::option::weighted(0.9, 0u8..6), mib);
    prop_oneof![
        4 => (retrieval(), 0u64..50_000, prop::collection::vec(piece, 1..5))
            .prop_map(|(retrieval, at, pieces)| Act::Ask(retrieval, at, pieces)),
        1 => (any::<usize>(), retrieval()).prop_map(|(which, how)| Act::AskAgain(which, how)),
        5 => any::<usize>().prop_map(Act::Came),
        3 => any::<usize>().prop_map(Act::Failed),
        3 => (any::<usize>(), 0u8..4).prop_map(|(which, how)| Act::End(which, how)),
        1 => any::<usize>().prop_map(Act::Forget),
        1 => (0u64..2000).prop_map(Act::Room),
        3 => (0u64..200).prop_map(Act::Pass),
    ]
}

/// Both controllers, given the same events.
struct Pair {
    controller: Restores,
    simple: Simple,
    now: Instant,
    next: u64,
}

impl Pair {
    fn event(&mut self, act: &Act) -> Option<Event> {
        let pick = |count: usize, which: usize| (count > 0).then(|| which % count);
        let away = |which| pick(self.simple.away.len(), which).map(|at| self.simple.away[at].0);
        let known = |which| pick(self.simple.wholes.len(), which).map(|at| &self.simple.wholes[at]);
        match act {
            Act::Ask(retrieval, at, pieces) => {
                let restore = RestoreId::new(self.next);
                self.next += 1;
                let pieces = pieces.iter().map(|&(of_queue, place, mib)| Piece {
                    tier: TierIndex(u32::from(of_queue)),
                    place: place.map(|place| Place::new(place.into())),
                    offset: None,
                    bytes: ByteCount::mib(mib),
                });
                let (at, pieces) = (super::at(*at), pieces.collect());
                Some(Event::Asked { restore, retrieval: *retrieval, at, pieces })
            }
            Act::AskAgain(which, retrieval) => {
                let (restore, at) = (known(*which)?.id, super::at(25_000));
                let pieces = Vec::new();
                Some(Event::Asked { restore, retrieval: *retrieval, at, pieces })
            }
            Act::Came(which) => Some(Event::Came { piece: away(*which)? }),
            Act::Failed(which) => Some(Event::Failed { piece: away(*which)? }),
            Act::End(which, how) => {
                let complete: Vec<RestoreId> = self.simple.wholes.iter().map(|w| w.id).collect();
                let is_there = |id: &RestoreId| {
                    let mut of = self.simple.parts.iter().filter(|part| part.id.restore == *id);
                    of.all(|part| part.is == Is::There)
                };
                let complete: Vec<RestoreId> = complete.into_iter().filter(is_there).collect();
                let restore = complete[pick(complete.len(), *which)?];
                let lost = *how == 0;
                Some(if lost { Event::Lost { restore } } else { Event::Committed { restore } })
            }
            Act::Forget(which) => Some(Event::Forgotten { restore: known(*which)?.id }),
            Act::Room(mib) => Some(Event::Room { bytes: ByteCount::mib(*mib) }),
            Act::Pass(seconds) => {
                self.now = self.now + Duration::from_secs(*seconds);
                Some(Event::Timer)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decisions_are_those_of_a_simple_controller(
        drives in 1usize..3,
        queue in 1usize..6,
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let tiers = vec![Capacity::of_drives(drives), Capacity::of_queue(queue)];
        let simple = Simple { tiers: tiers.clone(), room: u64::MAX, ..Simple::default() };
        let (controller, now) = (Restores::of_tiers(tiers), Instant::ZERO);
        let mut pair = Pair { controller, simple, now, next: 0 };
        for act in acts {
            let Some(event) = pair.event(&act) else { continue };
            let expected = pair.simple.step(pair.now, &event);
            let mut out = Outbox::new();
            pair.controller.step(pair.now, event.clone(), &mut out);
            pair.controller.check();
            prop_assert_eq!(out.as_slice(), &expected[..], "after {:?}", event);
            prop_assert_eq!(pair.controller.taken().get(), pair.simple.taken());
        }
    }
}
