//! What must hold after every event. A violation is a bug of this crate, or of a driver that
//! answers what was not requested; so each is an assertion.
//!
//! Each rule is recomputed from the restores and their pieces alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::controller::{Restores, ids};
use crate::limits::PIECE_TRIES_MAX;
use crate::restore::{PieceState, Restore, Step};
use crate::{PieceId, RestoreId, Retrieval};

impl Restores {
    pub(crate) fn check_invariants(&self) {
        for (id, restore) in &self.restores {
            check_restore(*id, restore);
        }
        self.check_queues();
        self.check_in_flight();
        self.check_room();
        self.check_work_conserving();
    }

    fn pieces(&self) -> impl Iterator<Item = (PieceId, &Restore, &PieceState)> {
        self.restores.iter().flat_map(|(id, restore)| {
            ids(*id, restore.pieces.len())
                .zip(&restore.pieces)
                .map(move |(piece, state)| (piece, restore, state))
        })
    }

    /// Checks that the queues hold exactly the waiting pieces, and `backing_off` exactly those in
    /// backoff.
    fn check_queues(&self) {
        let mut queues: Vec<[BTreeSet<_>; 3]> = vec![Default::default(); self.tiers.len()];
        let mut places: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut backing_off = BTreeSet::new();
        for (piece, restore, state) in self.pieces() {
            match state.step {
                Step::Waiting => {
                    queues[state.tier.get()][restore.retrieval.index()]
                        .insert((restore.priority, piece));
                    if let Some(place) = state.place {
                        places
                            .entry((state.tier, place))
                            .or_default()
                            .insert((restore.priority, piece));
                    }
                }
                Step::Backoff(until) => {
                    assert!(until > self.now, "the backoff of piece {piece} is over");
                    backing_off.insert((until, piece));
                }
                Step::Stopped | Step::InFlight | Step::Arrived => {}
            }
        }
        for (queue, lane) in queues.iter().flatten().zip(self.lanes.iter().flatten()) {
            assert_eq!(*queue, lane.queue, "each queue holds exactly the waiting pieces");
        }
        assert_eq!(places, self.places, "each place lists exactly its waiting pieces");
        assert_eq!(
            backing_off, self.backing_off,
            "backing_off lists exactly the pieces in backoff"
        );
    }

    /// Checks that every piece in flight belongs to a fetch and is counted in its retrieval class.
    fn check_in_flight(&self) {
        let mut left: BTreeMap<u64, usize> = BTreeMap::new();
        let mut in_flight = vec![[(0, 0, 0); 3]; self.tiers.len()];
        for entry in self.in_flight.values() {
            *left.entry(entry.fetch).or_default() += 1;
            let lane = &mut in_flight[entry.tier.get()][entry.retrieval.index()];
            lane.0 += 1;
            lane.1 += entry.bytes.get();
        }
        let known: BTreeMap<u64, usize> =
            self.fetches.iter().map(|(number, fetch)| (*number, fetch.left)).collect();
        assert_eq!(left, known, "each fetch counts its unanswered pieces");
        for fetch in self.fetches.values() {
            in_flight[fetch.tier.get()][fetch.retrieval.index()].2 += 1;
        }
        for retrieval in Retrieval::URGENT_FIRST {
            for (lanes, counted) in self.lanes.iter().zip(&in_flight) {
                let lane = &lanes[retrieval.index()];
                let known = (lane.pieces, lane.bytes, lane.fetches);
                assert_eq!(known, counted[retrieval.index()], "{retrieval:?}");
            }
            let restores =
                self.restores.values().filter(|entry| entry.retrieval == retrieval).count();
            assert_eq!(self.counts[retrieval.index()], restores, "restores of {retrieval:?}");
        }
        for (piece, _, state) in self.pieces() {
            let is_known = self.in_flight.contains_key(&piece);
            assert_eq!(
                state.step == Step::InFlight,
                is_known,
                "the state of piece {piece} matches the fetches in flight"
            );
        }
    }

    fn check_room(&self) {
        let begun = self.restores.values().filter(|restore| restore.is_admitted);
        let reserved: u64 = begun.map(|restore| restore.bytes.get()).sum();
        assert_eq!(reserved, self.reserved, "exactly begun restores reserve space");
    }

    /// Checks that everything that may start has started.
    fn check_work_conserving(&self) {
        if let Some((_, head)) = self.next_head() {
            assert!(!self.can_start(head), "piece {head} could start but has not");
        }
    }
}

fn check_restore(id: RestoreId, restore: &Restore) {
    let count =
        |is: fn(&PieceState) -> bool| restore.pieces.iter().filter(|state| is(state)).count();
    let left = count(|state| state.step != Step::Arrived);
    assert_eq!(restore.left, left, "restore {id} counts its missing pieces");
    let in_flight = count(|state| state.step == Step::InFlight);
    assert_eq!(restore.in_flight, in_flight, "restore {id} counts its pieces in flight");
    let bytes: u64 = restore.pieces.iter().map(|state| state.bytes.get()).sum();
    assert_eq!(restore.bytes.get(), bytes, "restore {id} counts its bytes");
    let holds = in_flight > 0 || left < restore.pieces.len();
    assert!(
        restore.is_admitted || !holds,
        "restore {id} has reserved space before its first fetch"
    );
    let most = restore.pieces.iter().map(|state| state.failures).max().unwrap_or(0);
    assert_eq!(
        restore.is_giving_up,
        most >= PIECE_TRIES_MAX,
        "restore {id} gives up at the limit of failures"
    );
    assert!(
        !restore.is_giving_up || in_flight > 0,
        "restore {id} gives up only while pieces are in flight"
    );
    let continuing = count(|state| matches!(state.step, Step::Waiting | Step::Backoff(_)));
    assert!(!restore.is_giving_up || continuing == 0, "restore {id} gives up but still fetches");
    let stopped = count(|state| state.step == Step::Stopped);
    assert!(
        restore.is_giving_up || stopped == 0,
        "restore {id} has stopped pieces but does not give up"
    );
}
