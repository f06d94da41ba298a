//! Chooses the tome for a new object, so that objects that are read together need few spin-ups.
//!
//! ```text
//! affinity group placed lately, its tome not too full ----> the same tome, asleep or not
//! else, or without a group: spinning ones, then all ------> the one with the most room
//! ```
//!
//! Objects put by one account, into one folder or by one upload within an hour are more likely to
//! be read together. On one tome they take one spin-up, on many tomes many. Three limits bound the
//! cost: older puts do not count; a run of one affinity group ends after this many blocks, so that
//! reading it all is not one disk's work; and a tome that has much less room than the emptiest is
//! skipped, so that all fill evenly. A pure function of its arguments. Not here: whether a tome can
//! be used, and which objects share an affinity group.

use std::collections::BTreeMap;

use fulgurite_units::{AffinityGroup, Instant};

use crate::TomeId;
use crate::limits::{
    AFFINITY_GROUPS_MAX, AFFINITY_RUN_BLOCKS_MAX, AFFINITY_SPACE_DIVISOR, AFFINITY_WINDOW,
};

/// A tome that could take an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The tome.
    pub tome: TomeId,
    /// Data blocks that no object uses.
    pub free: u64,
    /// Whether its disk is spinning.
    pub is_spinning: bool,
}

/// The last placement of an affinity group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPlacement {
    /// The tome.
    pub tome: TomeId,
    /// Time of the last put.
    pub at: Instant,
    /// Blocks placed there in a row.
    pub blocks: u64,
}

/// Chooses the tome for an object of this many blocks; `None` when none has room.
#[must_use]
pub fn choose(
    candidates: &[Candidate],
    last: Option<&LastPlacement>,
    blocks: u64,
    now: Instant,
) -> Option<TomeId> {
    let with_room = || candidates.iter().filter(|candidate| candidate.free >= blocks);
    let most = with_room().map(|candidate| candidate.free).max()?;
    let affinity = last.filter(|last| {
        now.since(last.at) <= AFFINITY_WINDOW
            && last.blocks.saturating_add(blocks) <= AFFINITY_RUN_BLOCKS_MAX
    });
    let same = affinity.and_then(|last| {
        let is_even = |free: u64| free.saturating_mul(AFFINITY_SPACE_DIVISOR) >= most;
        with_room().find(|candidate| candidate.tome == last.tome && is_even(candidate.free))
    });
    let key = |candidate: &&Candidate| {
        (candidate.is_spinning, candidate.free, std::cmp::Reverse(candidate.tome))
    };
    same.or_else(|| with_room().max_by_key(key)).map(|candidate| candidate.tome)
}

/// The last placement of each affinity group. Safe to forget: then free space decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementHistory(BTreeMap<AffinityGroup, LastPlacement>);

impl PlacementHistory {
    /// Returns the last placement of an affinity group.
    #[must_use]
    pub fn last(&self, affinity: AffinityGroup) -> Option<&LastPlacement> {
        self.0.get(&affinity)
    }

    /// Records that an object of an affinity group was put.
    pub fn record(&mut self, affinity: AffinityGroup, tome: TomeId, blocks: u64, now: Instant) {
        let before = self.0.get(&affinity).filter(|last| last.tome == tome);
        // A run that ended by length or time restarts, even on the same tome.
        let run = before.filter(|last| {
            now.since(last.at) <= AFFINITY_WINDOW
                && last.blocks.saturating_add(blocks) <= AFFINITY_RUN_BLOCKS_MAX
        });
        let blocks = blocks.saturating_add(run.map_or(0, |last| last.blocks));
        if self.0.len() >= AFFINITY_GROUPS_MAX && !self.0.contains_key(&affinity) {
            self.0.retain(|_, last| now.since(last.at) <= AFFINITY_WINDOW);
            let oldest =
                self.0.iter().min_by_key(|(_, last)| last.at).map(|(affinity, _)| *affinity);
            if let Some(oldest) = oldest.filter(|_| self.0.len() >= AFFINITY_GROUPS_MAX) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(affinity, LastPlacement { tome, at: now, blocks });
    }

    /// Number of affinity groups known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
