//! Which tome takes a new object: so that what is read together wakes the same few.
//!
//! ```text
//! kin took one lately, and its tome is not too full -----> the same tome, asleep or not
//! else, or without kin: of those that turn, or of all ---> the one with the most room
//! ```
//!
//! What is put by one account, into one folder or by one upload within an hour is read together
//! more often than what is not; objects of it on one tome take one wake, and on many tomes many.
//! Three bounds have that cost little: what was put longer ago counts as nothing, a run of kin ends
//! after so many blocks, so that reading it all is not one disk's work, and a tome that has much
//! less room than the one with the most is passed over, so that all fill evenly. A pure function of
//! what its caller knows.
//! Not here: whether a tome can be used, and who is kin to whom.

use std::collections::BTreeMap;

use fulgurite_units::{Instant, Kin};

use crate::TomeId;
use crate::limits::{KIN_BLOCKS_MAX, KIN_ROOM_SHARE, KIN_WITHIN, KINS_MAX};

/// A tome that could take an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub tome: TomeId,
    /// Data blocks that no object has.
    pub free: u64,
    /// Whether its disk turns.
    pub turns: bool,
}

/// Where the last of some kin went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// To which tome.
    pub tome: TomeId,
    /// When.
    pub at: Instant,
    /// Blocks of it in a row that went there.
    pub blocks: u64,
}

/// The tome for an object of so many blocks; none when none has room.
#[must_use]
pub fn choose(
    candidates: &[Candidate],
    last: Option<&Last>,
    blocks: u64,
    now: Instant,
) -> Option<TomeId> {
    let with_room = || candidates.iter().filter(|candidate| candidate.free >= blocks);
    let most = with_room().map(|candidate| candidate.free).max()?;
    let kin = last.filter(|last| {
        now.since(last.at) <= KIN_WITHIN && last.blocks.saturating_add(blocks) <= KIN_BLOCKS_MAX
    });
    let same = kin.and_then(|last| {
        let is_even = |free: u64| free.saturating_mul(KIN_ROOM_SHARE) >= most;
        with_room().find(|candidate| candidate.tome == last.tome && is_even(candidate.free))
    });
    let key = |candidate: &&Candidate| {
        (candidate.turns, candidate.free, std::cmp::Reverse(candidate.tome))
    };
    same.or_else(|| with_room().max_by_key(key)).map(|candidate| candidate.tome)
}

/// Where the last of each kin went. It may be forgotten: then the most room decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kins(BTreeMap<Kin, Last>);

impl Kins {
    /// Where the last of a kin went.
    #[must_use]
    pub fn last(&self, kin: Kin) -> Option<&Last> {
        self.0.get(&kin)
    }

    /// An object of a kin was put.
    pub fn note(&mut self, kin: Kin, tome: TomeId, blocks: u64, now: Instant) {
        let before = self.0.get(&kin).filter(|last| last.tome == tome);
        // A run that was ended by its length or by time begins anew, also on the same tome.
        let run = before.filter(|last| {
            now.since(last.at) <= KIN_WITHIN && last.blocks.saturating_add(blocks) <= KIN_BLOCKS_MAX
        });
        let blocks = blocks.saturating_add(run.map_or(0, |last| last.blocks));
        if self.0.len() >= KINS_MAX && !self.0.contains_key(&kin) {
            self.0.retain(|_, last| now.since(last.at) <= KIN_WITHIN);
            let oldest = self.0.iter().min_by_key(|(_, last)| last.at).map(|(kin, _)| *kin);
            if let Some(oldest) = oldest.filter(|_| self.0.len() >= KINS_MAX) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(kin, Last { tome, at: now, blocks });
    }

    /// Kins that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
