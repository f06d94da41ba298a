//! Inventory of a disk whose tome lost its metadata store, at the operator's request, and its
//! result at the next start.
//!
//! Not here: how it is done ([`crate`]).

use std::time::Duration;

use fulgurite_tome_core::TomeId;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::RebuiltTome;
use crate::objects::{Progress, Result, TomeStore};

/// Poll interval for progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Result of the inventory of a tome's disk after its metadata store was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryResult {
    /// The tome.
    pub tome: u32,
    /// Whether its metadata store was rebuilt already: if not, the next start does it.
    pub is_rebuilt: bool,
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
    /// As [`crate::TomeSet::inventory`].
    pub fn inventory<'a>(
        &'a self,
        tome: TomeId,
        work: &'a Progress,
    ) -> BoxFuture<'a, Result<InventoryResult>> {
        Box::pin(async move {
            let slot = self.set().layout().block_bytes();
            let mut inventory_progress = self.set().inventory(tome)?;
            while !inventory_progress.is_whole() && inventory_progress.failure.is_none() {
                work.set(inventory_progress.read * slot, inventory_progress.total * slot);
                tokio::time::sleep(POLL_INTERVAL).await;
                inventory_progress =
                    self.set().inventory_progress(tome).unwrap_or(inventory_progress);
            }
            let problems = inventory_progress.failure.into_iter().collect();
            Ok(InventoryResult { tome: tome.get(), is_rebuilt: false, pieces: 0, bad: 0, problems })
        })
    }

    /// Returns what this start has rebuilt of a tome; `None` if nothing.
    #[must_use]
    pub fn rebuilt(&self, tome: TomeId) -> Option<InventoryResult> {
        let found = self.set().rebuilt().iter().find(|rebuilt| rebuilt.tome == tome)?;
        let RebuiltTome { objects: pieces, bad, .. } = *found;
        let problems = found.report_lines();
        Some(InventoryResult { tome: tome.get(), is_rebuilt: true, pieces, bad, problems })
    }
}
