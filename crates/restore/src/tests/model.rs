//! Compares the controller with a simple model: one flat list, scanned from end to end for each
//! decision.

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox, UnixTime};
use proptest::prelude::*;

use crate::limits::{
    COPY_BACKOFF, FETCH_PIECES_MAX, FETCHES_PER_DRIVE, IN_FLIGHT_BYTES, PIECE_BACKOFF,
    PIECE_TRIES_MAX,
};
use crate::restore::backoff;
use crate::{
    Capacity, Command, Event, Piece, PieceId, Place, RestoreId, Restores, Retrieval, TierIndex,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartState {
    Waiting,
    Backoff(Instant),
    Stopped,
    /// In the fetch with this number.
    Fetched(u64),
    Arrived,
}

#[derive(Clone, Debug)]
struct Part {
    id: PieceId,
    piece: Piece,
    state: PartState,
    failures: u32,
}

#[derive(Clone, Debug)]
struct ModelRestore {
    id: RestoreId,
    retrieval: Retrieval,
    due: UnixTime,
    order: u64,
    rounds: u32,
    has_room: bool,
    is_giving_up: bool,
}

/// A piece in flight: its fetch, the lane that it counts against, bytes.
type PieceInFlight = (PieceId, u64, (TierIndex, Retrieval), u64);

#[derive(Clone, Debug, Default)]
struct Model {
    tiers: Vec<Capacity>,
    now: Instant,
    room: u64,
    request_count: u64,
    fetches: Vec<(TierIndex, Retrieval)>,
    restores: Vec<ModelRestore>,
    parts: Vec<Part>,
    in_flight: Vec<PieceInFlight>,
}

impl Model {
    fn entry(&mut self, id: RestoreId) -> &mut ModelRestore {
        self.restores.iter_mut().find(|entry| entry.id == id).unwrap()
    }

    fn part(&mut self, id: PieceId) -> &mut Part {
        self.parts.iter_mut().find(|part| part.id == id).unwrap()
    }

    fn bytes(&self, id: RestoreId) -> u64 {
        let parts = self.parts.iter().filter(|part| part.id.restore == id);
        parts.map(|part| part.piece.bytes.get()).sum()
    }

    fn reserved(&self) -> u64 {
        let holders = self.restores.iter().filter(|entry| entry.has_room);
        holders.map(|entry| self.bytes(entry.id)).sum()
    }

    fn step(&mut self, now: Instant, event: &Event) -> Vec<Command> {
        self.now = self.now.max(now);
        let mut commands = Vec::new();
        match event {
            Event::Asked { restore, retrieval, at, pieces } => {
                self.request(*restore, *retrieval, *at, pieces);
            }
            Event::Came { piece } => {
                self.in_flight.retain(|in_flight| in_flight.0 != *piece);
                if self.restores.iter().any(|entry| entry.id == piece.restore) {
                    self.part(*piece).state = PartState::Arrived;
                    let mut parts = self.parts.iter().filter(|p| p.id.restore == piece.restore);
                    if parts.all(|part| part.state == PartState::Arrived) {
                        commands.push(Command::Commit { restore: piece.restore });
                    }
                    commands.extend(self.give_up(piece.restore));
                }
            }
            Event::Failed { piece } => {
                self.in_flight.retain(|in_flight| in_flight.0 != *piece);
                if self.restores.iter().any(|entry| entry.id == piece.restore) {
                    let now = self.now;
                    let part = self.part(*piece);
                    part.failures += 1;
                    part.state = PartState::Backoff(now + backoff(PIECE_BACKOFF, part.failures));
                    if part.failures == PIECE_TRIES_MAX {
                        self.entry(piece.restore).is_giving_up = true;
                    }
                    commands.extend(self.give_up(piece.restore));
                }
            }
            Event::Committed { restore } | Event::Forgotten { restore } => {
                self.restores.retain(|entry| entry.id != *restore);
                self.parts.retain(|part| part.id.restore != *restore);
            }
            Event::Lost { restore } => {
                let rounds = self.entry(*restore).rounds;
                self.reset(*restore, backoff(COPY_BACKOFF, rounds + 1));
            }
            Event::Room { bytes } => self.room = bytes.get(),
            Event::Timer => {}
        }
        for part in &mut self.parts {
            if matches!(part.state, PartState::Backoff(until) if until <= self.now) {
                part.state = PartState::Waiting;
            }
        }
        self.dispatch(&mut commands);
        commands
    }

    fn request(&mut self, id: RestoreId, retrieval: Retrieval, at: UnixTime, pieces: &[Piece]) {
        let (due, order) = (retrieval.due(at), self.request_count);
        self.request_count += 1;
        if let Some(entry) = self.restores.iter_mut().find(|entry| entry.id == id) {
            entry.retrieval = entry.retrieval.max(retrieval);
            if due < entry.due {
                (entry.due, entry.order) = (due, order);
            }
            return;
        }
        let (rounds, has_room, is_giving_up) = (0, false, false);
        self.restores.push(ModelRestore {
            id,
            retrieval,
            due,
            order,
            rounds,
            has_room,
            is_giving_up,
        });
        for (index, piece) in (0..).zip(pieces) {
            let id = PieceId { restore: id, index };
            self.parts.push(Part { id, piece: *piece, state: PartState::Waiting, failures: 0 });
        }
    }

    fn give_up(&mut self, id: RestoreId) -> Option<Command> {
        let entry = self.entry(id).clone();
        let time = backoff(PIECE_BACKOFF, PIECE_TRIES_MAX + entry.rounds);
        if !entry.is_giving_up {
            return None;
        }
        for part in self.parts.iter_mut().filter(|part| part.id.restore == id) {
            if matches!(part.state, PartState::Waiting | PartState::Backoff(_)) {
                part.state = PartState::Stopped;
            }
        }
        let mut parts = self.parts.iter().filter(|part| part.id.restore == id);
        if parts.any(|part| matches!(part.state, PartState::Fetched(_))) {
            return None;
        }
        self.reset(id, time);
        Some(Command::Forget { restore: id })
    }

    fn reset(&mut self, id: RestoreId, time: Duration) {
        let until = self.now + time;
        let entry = self.entry(id);
        (entry.has_room, entry.is_giving_up) = (false, false);
        entry.rounds += 1;
        for part in self.parts.iter_mut().filter(|part| part.id.restore == id) {
            (part.state, part.failures) = (PartState::Backoff(until), 0);
        }
    }

    /// Returns the waiting pieces, ordered by due time.
    fn waiting(&self) -> Vec<(PieceId, ModelRestore, Piece, u32)> {
        let mut waiting: Vec<_> = self
            .parts
            .iter()
            .filter(|part| part.state == PartState::Waiting)
            .map(|part| {
                let entry = self.restores.iter().find(|entry| entry.id == part.id.restore).unwrap();
                (part.id, entry.clone(), part.piece, part.failures)
            })
            .collect();
        waiting.sort_by_key(|(id, entry, ..)| (entry.due, entry.order, *id));
        waiting
    }

    fn has_capacity(&self, lane: (TierIndex, Retrieval)) -> bool {
        let in_flight = self.in_flight.iter().filter(|in_flight| in_flight.2 == lane);
        let (pieces, bytes) =
            (in_flight.clone().count(), in_flight.map(|in_flight| in_flight.3).sum::<u64>());
        let fetches = (0u64..).zip(&self.fetches).filter(|(number, fetch)| {
            **fetch == lane && self.in_flight.iter().any(|in_flight| in_flight.1 == *number)
        });
        let capacity = &self.tiers[lane.0.get()];
        fetches.count() < capacity.drives * FETCHES_PER_DRIVE
            || bytes < capacity.bytes.get() && pieces < capacity.pieces
    }

    fn share(&self, retrieval: Retrieval) -> u64 {
        match retrieval {
            Retrieval::Bulk => self.room / 2,
            Retrieval::Standard => self.room / 4 * 3,
            Retrieval::Expedited => self.room,
        }
    }

    fn fits(&self, entry: &ModelRestore) -> bool {
        let has_room = self.restores.iter().any(|known| known.id == entry.id && known.has_room);
        has_room || self.reserved() + self.bytes(entry.id) <= self.share(entry.retrieval)
    }

    fn dispatch(&mut self, commands: &mut Vec<Command>) {
        loop {
            let waiting = self.waiting();
            let mut open = waiting
                .iter()
                .filter(|(_, entry, piece, _)| self.has_capacity((piece.tier, entry.retrieval)));
            let Some((head, entry, piece, failures)) = open.next() else { return };
            if !self.fits(entry) && self.bytes(entry.id) <= self.share(entry.retrieval) {
                return;
            }
            let number = self.fetches.len() as u64;
            self.fetches.push((piece.tier, entry.retrieval));
            let mut others: Vec<_> = waiting
                .iter()
                .filter(|(id, _, other, failed)| {
                    let is_near = piece.place.is_some()
                        && (piece.tier, piece.place) == (other.tier, other.place);
                    *failures == 0 && is_near && id != head && *failed == 0
                })
                .collect();
            others.truncate(FETCH_PIECES_MAX - 1);
            let (mut pieces, mut bytes, mut due) = (Vec::new(), 0, entry.due);
            let this = (*head, entry.clone(), *piece, *failures);
            for (id, entry, piece, _) in std::iter::once(&this).chain(others) {
                if id != head && (bytes >= IN_FLIGHT_BYTES.get() || !self.fits(entry)) {
                    continue;
                }
                self.entry(entry.id).has_room = true;
                self.part(*id).state = PartState::Fetched(number);
                let lane = (piece.tier, entry.retrieval);
                self.in_flight.push((*id, number, lane, piece.bytes.get()));
                due = due.min(entry.due);
                bytes += piece.bytes.get();
                pieces.push(*id);
            }
            commands.push(Command::Fetch { place: piece.place, pieces, due });
        }
    }
}

/// The next step of a test; numbers are taken modulo the number of candidates.
#[derive(Clone, Debug)]
enum Action {
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

fn action() -> impl Strategy<Value = Action> {
    let mib = prop_oneof![Just(0), 1u64..40, 100u64..400];
    let piece = (any::<bool>(), prop::option::weighted(0.9, 0u8..6), mib);
    prop_oneof![
        4 => (retrieval(), 0u64..50_000, prop::collection::vec(piece, 1..5))
            .prop_map(|(retrieval, at, pieces)| Action::Ask(retrieval, at, pieces)),
        1 => (any::<usize>(), retrieval()).prop_map(|(which, tier)| Action::AskAgain(which, tier)),
        5 => any::<usize>().prop_map(Action::Came),
        3 => any::<usize>().prop_map(Action::Failed),
        3 => (any::<usize>(), 0u8..4).prop_map(|(which, choice)| Action::End(which, choice)),
        1 => any::<usize>().prop_map(Action::Forget),
        1 => (0u64..2000).prop_map(Action::Room),
        3 => (0u64..200).prop_map(Action::Pass),
    ]
}

/// Both controllers, given the same events.
struct Pair {
    controller: Restores,
    model: Model,
    now: Instant,
    next: u64,
}

impl Pair {
    fn event(&mut self, action: &Action) -> Option<Event> {
        let pick = |count: usize, which: usize| (count > 0).then(|| which % count);
        let in_flight =
            |which| pick(self.model.in_flight.len(), which).map(|at| self.model.in_flight[at].0);
        let known =
            |which| pick(self.model.restores.len(), which).map(|at| &self.model.restores[at]);
        match action {
            Action::Ask(retrieval, at, pieces) => {
                let restore = RestoreId::new(self.next);
                self.next += 1;
                let pieces = pieces.iter().map(|&(for_queue, place, mib)| Piece {
                    tier: TierIndex(u32::from(for_queue)),
                    place: place.map(|place| Place::new(place.into())),
                    offset: None,
                    bytes: ByteCount::mib(mib),
                });
                let (at, pieces) = (super::at(*at), pieces.collect());
                Some(Event::Asked { restore, retrieval: *retrieval, at, pieces })
            }
            Action::AskAgain(which, retrieval) => {
                let (restore, at) = (known(*which)?.id, super::at(25_000));
                let pieces = Vec::new();
                Some(Event::Asked { restore, retrieval: *retrieval, at, pieces })
            }
            Action::Came(which) => Some(Event::Came { piece: in_flight(*which)? }),
            Action::Failed(which) => Some(Event::Failed { piece: in_flight(*which)? }),
            Action::End(which, choice) => {
                let complete: Vec<RestoreId> = self.model.restores.iter().map(|w| w.id).collect();
                let is_there = |id: &RestoreId| {
                    let mut parts = self.model.parts.iter().filter(|part| part.id.restore == *id);
                    parts.all(|part| part.state == PartState::Arrived)
                };
                let complete: Vec<RestoreId> = complete.into_iter().filter(is_there).collect();
                let restore = complete[pick(complete.len(), *which)?];
                let lost = *choice == 0;
                Some(if lost { Event::Lost { restore } } else { Event::Committed { restore } })
            }
            Action::Forget(which) => Some(Event::Forgotten { restore: known(*which)?.id }),
            Action::Room(mib) => Some(Event::Room { bytes: ByteCount::mib(*mib) }),
            Action::Pass(seconds) => {
                self.now = self.now + Duration::from_secs(*seconds);
                Some(Event::Timer)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decisions_match_a_simple_model(
        drives in 1usize..3,
        queue in 1usize..6,
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let tiers = vec![Capacity::for_drives(drives), Capacity::for_queue(queue)];
        let model = Model { tiers: tiers.clone(), room: u64::MAX, ..Model::default() };
        let (controller, now) = (Restores::with_tiers(tiers), Instant::ZERO);
        let mut pair = Pair { controller, model, now, next: 0 };
        for action in actions {
            let Some(event) = pair.event(&action) else { continue };
            let expected = pair.model.step(pair.now, &event);
            let mut out = Outbox::new();
            pair.controller.step(pair.now, event.clone(), &mut out);
            pair.controller.check();
            prop_assert_eq!(out.as_slice(), &expected[..], "after {:?}", event);
            prop_assert_eq!(pair.controller.reserved().get(), pair.model.reserved());
        }
    }
}
