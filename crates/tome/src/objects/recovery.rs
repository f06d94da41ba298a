//! Rebuilds an index that was lost or is an older copy, from the heads of objects.
//!
//! ```text
//! names of heads --> by tome and place --> many read at a time --> rows that the index lacks
//! ```
//!
//! Each disk spins up once, and reads in the order of its blocks: heads are requested by tome, one
//! tome after the other. Those of a lost tome are read from its groups in the same way, so that a
//! spin-up of a member serves many of them. Not here: how an object is read.

use fulgurite_tier::Cursor;
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ErrorKind, error_chain};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};

use crate::objects::header::Header;
use crate::objects::index::ObjectRow;
use crate::objects::limits::CONCURRENT_HEADS;
use crate::objects::pieces;
use crate::objects::{Progress, Result, TomeStore};

/// What [`TomeStore::recover`] found on tomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Objects that were added to the index.
    pub objects: u64,
    /// Objects that it had, or newer ones of their keys.
    pub known: u64,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

impl TomeStore {
    /// Adds objects to the index that it lacks, by reading the heads of all objects, and removes
    /// those of which no tome has anything: for an index that was lost or is an older copy. Spins
    /// up the tomes that have them.
    ///
    /// # Errors
    /// When the index cannot be written; unreadable heads are reported as problems.
    pub fn recover<'a>(&'a self, work: &'a Progress) -> BoxFuture<'a, Result<Found>> {
        Box::pin(async move {
            let names: Vec<String> = self.set().list();
            let heads = names.into_iter().filter(|name| pieces::id_of_head(name).is_some());
            let heads = self.set().in_disk_order(heads.collect()).await?;
            let (count, block) = (heads.len() as u64, self.set().layout().block_bytes());
            let (mut found, mut read) = (Found::default(), 0);
            work.set(0, count * block);
            let mut reading = stream::iter(heads)
                .map(|name| async move { (self.head(&name).await, name) })
                .buffer_unordered(CONCURRENT_HEADS);
            while let Some((head, name)) = reading.next().await {
                match head {
                    Ok((key, row)) => match self.0.index.find(key, row).await? {
                        true => found.objects += 1,
                        false => found.known += 1,
                    },
                    Err(error) => found.problems.push(format!("{name}: {}", error_chain(&error))),
                }
                read += 1;
                work.set(read * block, count * block);
            }
            drop(reading);
            let (unknown, is_whole) = (self.set().unknown(), found.problems.is_empty());
            if is_whole && unknown.is_empty() {
                self.remove_missing().await?;
            }
            // The set's record of objects has those of a lost tome.
            if is_whole && self.set().has_all_names() {
                self.0.count_index().await?;
            }
            let is_unknown = |tome: TomeId| format!("tome {tome}: its objects are unknown");
            found.problems.extend(unknown.into_iter().map(is_unknown));
            Ok(found)
        })
    }

    /// Returns the row of the object with this head.
    async fn head(&self, name: &str) -> Result<(String, ObjectRow)> {
        let id = pieces::id_of_head(name).ok_or_else(|| crate::objects::StoreError::Corrupt {
            what: format!("\"{name}\" is not the name of a head"),
        })?;
        let bytes = self.0.get_piece(name).await?;
        let (key, row) = Header::read(id, &bytes)?;
        self.0.check_all_pieces(&row.pieces)?;
        Ok((key, row))
    }

    /// Removes objects whose heads no tome has: they were deleted after the index was copied.
    async fn remove_missing(&self) -> Result<()> {
        let mut from = Cursor::Start;
        loop {
            tokio::task::yield_now().await;
            let page = self.0.index.objects("", &from)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            from = Cursor::After(last.clone());
            for (key, row) in page {
                let id = row.pieces.id;
                let head = self.set().tome_of(&pieces::head_name(id));
                if head.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                    self.0.index.forget(&key, id).await?;
                }
            }
        }
    }
}
