//! The order of fetches in a log and in the twin, and how much of the difference timing explains.
//!
//! A visit has a head, the piece that started it; other pieces waiting for its platter are read in
//! the same visit. Heads of one retrieval class are taken in the order of their deadlines. Consider
//! two pieces that are heads in both, whose restores have the same class, and which nothing
//! disturbed (no failure, no second request). Their order must be the same in both, unless one was
//! requested only after the other was fetched. Which other pieces join a visit, and when, depends
//! on timing.

use std::collections::BTreeMap;

use fulgurite_restore::{PieceId, Retrieval};
use fulgurite_units::Instant;
use serde::Serialize;

use super::restore_log::RestoreHistory;

/// Maximum number of heads per class that are compared pairwise.
const HEADS_MAX: usize = 4096;

/// Comparison of two orders of fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FetchOrder {
    /// Visits to platters in the log.
    pub visits_served: u64,
    /// Visits to platters in the twin.
    pub visits_twin: u64,
    /// Pieces that started a visit in both.
    pub heads: u64,
    /// Pairs of these of one class, undisturbed.
    pub pairs: u64,
    /// Pairs in a different order in which one was requested only after the other was fetched.
    pub by_timing: u64,
    /// Pairs in a different order that this does not explain: a bug of a driver.
    pub unexplained: u64,
}

/// A piece that started a visit, with the times of the fetch and of its restore's request.
#[derive(Clone, Copy, Debug)]
struct VisitHead {
    requested: Instant,
    fetched: Instant,
    /// Index among all visits.
    number: usize,
}

fn heads(history: &RestoreHistory) -> BTreeMap<PieceId, (Retrieval, VisitHead)> {
    let mut heads = BTreeMap::new();
    for (number, (fetched, _, pieces)) in history.visits.iter().enumerate() {
        let Some(piece) = pieces.first() else { continue };
        let Some((requested, retrieval)) = history.requested.get(&piece.restore) else { continue };
        let head = VisitHead { requested: *requested, fetched: *fetched, number };
        heads.entry(*piece).or_insert((*retrieval, head));
    }
    heads
}

/// Compares the order of fetches in the twin with that of the log.
pub(super) fn compare(served: &RestoreHistory, twin: &RestoreHistory) -> FetchOrder {
    let (in_log, in_twin) = (heads(served), heads(twin));
    let mut lanes: BTreeMap<Retrieval, Vec<[VisitHead; 2]>> = BTreeMap::new();
    let mut order = FetchOrder {
        visits_served: served.visits.len() as u64,
        visits_twin: twin.visits.len() as u64,
        ..FetchOrder::default()
    };
    for (piece, (retrieval, head)) in in_log {
        let Some((_, other)) = in_twin.get(&piece) else { continue };
        order.heads += 1;
        let restore = &piece.restore;
        if !served.disturbed.contains(restore) && !twin.disturbed.contains(restore) {
            lanes.entry(retrieval).or_default().push([head, *other]);
        }
    }
    for lane in lanes.values_mut() {
        lane.sort_by_key(|[served, _]| served.number);
        lane.truncate(HEADS_MAX);
        for (number, first) in lane.iter().enumerate() {
            for second in &lane[number + 1..] {
                order.pairs += 1;
                if first[1].number < second[1].number {
                    continue;
                }
                let by_timing = second[0].requested > first[0].fetched
                    || first[1].requested > second[1].fetched;
                order.by_timing += u64::from(by_timing);
                order.unexplained += u64::from(!by_timing);
            }
        }
    }
    order
}
