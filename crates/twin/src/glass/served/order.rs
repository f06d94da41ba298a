//! The order of fetches, in a log and in the twin: what of it timing alone explains.
//!
//! A visit has a head, the piece that it began for; other pieces that wait at its platter go along.
//! Of one retrieval heads are taken in the order in which they are due. So of two pieces that are
//! heads of visits in both, whose restores are of one retrieval, and which nothing disturbed (no
//! failure, no second request), the order is the same in both but where one of them was not asked
//! for yet when the other was fetched. Which pieces go along, and when, is timing's.

use std::collections::BTreeMap;

use fulgurite_restore::{PieceId, Retrieval};
use fulgurite_units::Instant;
use serde::Serialize;

use super::restores::Course;

/// Heads of a retrieval that are compared, each with each, at most.
const HEADS_MAX: usize = 4096;

/// Two orders of fetches beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Order {
    /// Visits of platters in the log,
    pub visits_served: u64,
    /// and in the twin.
    pub visits_twin: u64,
    /// Pieces that visits began for in both.
    pub heads: u64,
    /// Pairs of them, of one retrieval and not disturbed.
    pub pairs: u64,
    /// Of these, pairs in another order, one of which was not asked for when the other was fetched.
    pub by_timing: u64,
    /// And pairs in another order that this does not explain: a bug of a driver.
    pub unexplained: u64,
}

/// A piece that a visit began for, and when, and when its restore was asked for.
#[derive(Clone, Copy, Debug)]
struct Head {
    asked: Instant,
    fetched: Instant,
    /// Among all visits.
    number: usize,
}

fn heads(course: &Course) -> BTreeMap<PieceId, (Retrieval, Head)> {
    let mut heads = BTreeMap::new();
    for (number, (fetched, _, pieces)) in course.visits.iter().enumerate() {
        let Some(piece) = pieces.first() else { continue };
        let Some((asked, retrieval)) = course.asked.get(&piece.restore) else { continue };
        let head = Head { asked: *asked, fetched: *fetched, number };
        heads.entry(*piece).or_insert((*retrieval, head));
    }
    heads
}

/// Holds the order of fetches in the twin against that of the log.
pub(super) fn compare(served: &Course, twin: &Course) -> Order {
    let (in_log, in_twin) = (heads(served), heads(twin));
    let mut lanes: BTreeMap<Retrieval, Vec<[Head; 2]>> = BTreeMap::new();
    let mut order = Order {
        visits_served: served.visits.len() as u64,
        visits_twin: twin.visits.len() as u64,
        ..Order::default()
    };
    for (piece, (retrieval, head)) in in_log {
        let Some((_, other)) = in_twin.get(&piece) else { continue };
        order.heads += 1;
        let of = &piece.restore;
        if !served.disturbed.contains(of) && !twin.disturbed.contains(of) {
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
                let by_timing =
                    second[0].asked > first[0].fetched || first[1].asked > second[1].fetched;
                order.by_timing += u64::from(by_timing);
                order.unexplained += u64::from(!by_timing);
            }
        }
    }
    order
}
