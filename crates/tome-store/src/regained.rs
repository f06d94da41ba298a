//! Inventory of a disk whose tome lost its metadata store, at the operator's request, and its
//! result at the next start.
//!
//! Not here: how it is done ([`fulgurite_tomes`]).

use std::time::Duration;

use fulgurite_tome::TomeId;
use fulgurite_tomes::RegainedTome;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Result, TomeStore, Work};

/// Poll interval for progress.
const LOOK: Duration = Duration::from_millis(200);

/// Result of the inventory of a tome's disk after its metadata store was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// The tome.
    pub tome: u32,
    /// Whether its metadata store was rebuilt already: if not, the next start does it.
    pub is_regained: bool,
    /// Pieces of objects that it has then.
    pub pieces: u64,
    /// Blocks to be rebuilt from their segments or their groups.
    pub bad: u64,
    /// Why it is incomplete, what was lost, and what does not agree, a line each.
    pub problems: Vec<String>,
}

impl TomeStore {
    /// Runs the inventory of the disk of a tome whose metadata store is lost, and returns when it
    /// is complete.
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

    /// Returns what this start has rebuilt of a tome; `None` if nothing.
    #[must_use]
    pub fn regained(&self, tome: TomeId) -> Option<Surveyed> {
        let found = self.set().regained().iter().find(|regained| regained.tome == tome)?;
        let RegainedTome { objects: pieces, bad, .. } = *found;
        let problems = found.told();
        Some(Surveyed { tome: tome.get(), is_regained: true, pieces, bad, problems })
    }
}
