//! What must hold after every event. A violation is a bug of this crate, or of a driver that
//! answers what was not requested; so each is an assertion.
//!
//! Each rule is recomputed from the restores and their pieces alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::controller::{Restores, ids};
use crate::limits::PIECE_TRIES_MAX;
use crate::restore::{Held, Restore, Step};
use crate::{PieceId, RestoreId, Retrieval};

impl Restores {
    pub(crate) fn check_invariants(&self) {
        for (id, restore) in &self.restores {
            check_restore(*id, restore);
        }
        self.check_queues();
        self.check_under_way();
        self.check_room();
        self.check_nothing_left_undone();
    }

    fn pieces(&self) -> impl Iterator<Item = (PieceId, &Restore, &Held)> {
        self.restores.iter().flat_map(|(id, restore)| {
            ids(*id, restore.pieces.len())
                .zip(&restore.pieces)
                .map(move |(piece, held)| (piece, restore, held))
        })
    }

    /// Checks that the queues hold exactly the waiting pieces, and `resting` exactly those in
    /// backoff.
    fn check_queues(&self) {
        let mut queues: Vec<[BTreeSet<_>; 3]> = vec![Default::default(); self.tiers.len()];
        let mut places: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut resting = BTreeSet::new();
        for (piece, restore, held) in self.pieces() {
            match held.step {
                Step::Waiting => {
                    queues[held.tier.get()][restore.retrieval.index()].insert((restore.age, piece));
                    if let Some(place) = held.place {
                        places.entry((held.tier, place)).or_default().insert((restore.age, piece));
                    }
                }
                Step::Resting(until) => {
                    assert!(until > self.now, "piece {piece} has rested for long enough");
                    resting.insert((until, piece));
                }
                Step::Stopped | Step::UnderWay | Step::Came => {}
            }
        }
        for (queue, lane) in queues.iter().flatten().zip(self.lanes.iter().flatten()) {
            assert_eq!(*queue, lane.queue, "a queue holds what waits");
        }
        assert_eq!(places, self.places, "places know what waits there");
        assert_eq!(resting, self.resting, "what rests is known");
    }

    /// Checks that every piece in flight belongs to a fetch and is counted in its retrieval class.
    fn check_under_way(&self) {
        let mut left: BTreeMap<u64, usize> = BTreeMap::new();
        let mut under_way = vec![[(0, 0, 0); 3]; self.tiers.len()];
        for of in self.under_way.values() {
            *left.entry(of.visit).or_default() += 1;
            let lane = &mut under_way[of.tier.get()][of.retrieval.index()];
            lane.0 += 1;
            lane.1 += of.bytes.get();
        }
        let known: BTreeMap<u64, usize> =
            self.visits.iter().map(|(number, visit)| (*number, visit.left)).collect();
        assert_eq!(left, known, "visits end with their last piece");
        for visit in self.visits.values() {
            under_way[visit.tier.get()][visit.retrieval.index()].2 += 1;
        }
        for retrieval in Retrieval::URGENT_FIRST {
            for (lanes, counted) in self.lanes.iter().zip(&under_way) {
                let lane = &lanes[retrieval.index()];
                let known = (lane.pieces, lane.bytes, lane.visits);
                assert_eq!(known, counted[retrieval.index()], "{retrieval:?}");
            }
            let restores = self.restores.values().filter(|of| of.retrieval == retrieval).count();
            assert_eq!(self.counts[retrieval.index()], restores, "restores of {retrieval:?}");
        }
        for (piece, _, held) in self.pieces() {
            let is_known = self.under_way.contains_key(&piece);
            assert_eq!(held.step == Step::UnderWay, is_known, "piece {piece} says where it is");
        }
    }

    fn check_room(&self) {
        let begun = self.restores.values().filter(|restore| restore.is_begun);
        let taken: u64 = begun.map(|restore| restore.bytes.get()).sum();
        assert_eq!(taken, self.taken, "room is taken by what has begun");
    }

    /// Checks that everything that may start has started.
    fn check_nothing_left_undone(&self) {
        if let Some((_, head)) = self.next_head() {
            assert!(!self.may_take(head), "piece {head} could begin");
        }
    }
}

fn check_restore(id: RestoreId, restore: &Restore) {
    let count = |is: fn(&Held) -> bool| restore.pieces.iter().filter(|held| is(held)).count();
    let left = count(|held| held.step != Step::Came);
    assert_eq!(restore.left, left, "restore {id} knows what did not come");
    let under_way = count(|held| held.step == Step::UnderWay);
    assert_eq!(restore.under_way, under_way, "restore {id} knows what is under way");
    let bytes: u64 = restore.pieces.iter().map(|held| held.bytes.get()).sum();
    assert_eq!(restore.bytes.get(), bytes, "restore {id} knows its bytes");
    let holds = under_way > 0 || left < restore.pieces.len();
    assert!(restore.is_begun || !holds, "restore {id} has room for what came and comes");
    let most = restore.pieces.iter().map(|held| held.failures).max().unwrap_or(0);
    assert_eq!(restore.gives_up, most >= PIECE_TRIES_MAX, "restore {id} gives up in time");
    assert!(!restore.gives_up || under_way > 0, "restore {id} has given up");
    let goes_on = count(|held| matches!(held.step, Step::Waiting | Step::Resting(_)));
    assert!(!restore.gives_up || goes_on == 0, "restore {id} fetches nothing more");
    let stopped = count(|held| held.step == Step::Stopped);
    assert!(restore.gives_up || stopped == 0, "restore {id} goes on");
}
