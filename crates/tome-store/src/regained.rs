//! A disk that an operator has read whole, since the awake store of its tome is lost, and what
//! comes of it at the next start.
//!
//! Not here: how it is done ([`fulgurite_tomes`]).

use std::time::Duration;

use fulgurite_tome::TomeId;
use fulgurite_tomes::RegainedTome;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Result, TomeStore, Work};

/// How often it is looked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// What came of reading the disk of a tome whose awake store is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Which tome.
    pub tome: u32,
    /// Whether its awake store was made again already: if not, the next start does it.
    pub is_regained: bool,
    /// Pieces of objects that it has then.
    pub pieces: u64,
    /// Blocks that are made anew, out of their segments or their groups.
    pub bad: u64,
    /// Why it was not read whole, what was lost, and what does not agree, a line each.
    pub problems: Vec<String>,
}

impl TomeStore {
    /// Has the disk of a tome read whole whose awake store is lost, and returns when it was.
    ///
    /// # Errors
    /// As [`fulgurite_tomes::TomeSet::survey`].
    pub fn survey<'a>(&'a self, tome: TomeId, work: &'a Work) -> BoxFuture<'a, Result<Surveyed>> {
        Box::pin(async move {
            let slot = self.set().layout().block_bytes();
            let mut surveyed = self.set().survey(tome)?;
            while !surveyed.is_whole() && surveyed.trouble.is_none() {
                work.tell(surveyed.read * slot, surveyed.of * slot);
                tokio::time::sleep(LOOK).await;
                surveyed = self.set().surveyed(tome).unwrap_or(surveyed);
            }
            let problems = surveyed.trouble.into_iter().collect();
            Ok(Surveyed { tome: tome.get(), is_regained: false, pieces: 0, bad: 0, problems })
        })
    }

    /// What this start has made again of a tome; nothing if it did not.
    #[must_use]
    pub fn regained(&self, tome: TomeId) -> Option<Surveyed> {
        let found = self.set().regained().iter().find(|regained| regained.tome == tome)?;
        let RegainedTome { objects: pieces, bad, .. } = *found;
        let problems = found.told();
        Some(Surveyed { tome: tome.get(), is_regained: true, pieces, bad, problems })
    }
}
