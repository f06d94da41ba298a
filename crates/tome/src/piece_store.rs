//! Which tome has which object, and where: the set's record, beside what each tome stores itself.
//!
//! ```text
//! space    key          row
//! pieces   tome, name   PieceRow: the object's blocks and digest, and a signature of each block
//! starts   "start"      StartRow: the latest start of the set
//! removals tome, name   RemovalRow: remove the object when its tome is back
//! ```
//!
//! A row is durable before a put returns. When a tome is lost, this store has the names of its
//! objects, and the rebuilt regions get them from here; signatures show which objects are intact
//! there. Rows of a present tome are compared with its own state at each start, so the loss of this
//! store costs something only together with a tome. Not here: objects of tomes in other processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::row::{self, Row, rows_in};
use fulgurite_catalog::{
    Batch, CatalogError, Committer, FjallStore, KeyRange, KeyValue, Space, Transaction,
};
use fulgurite_codes::Signature;
use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::metadata::{Object, TomeMetadata};
use serde::{Deserialize, Serialize};

use crate::limits::LOAD_PAGE_MAX;
use crate::metadata_store::config;
use crate::start_counts::StartRow;
use crate::{Result, TomesError};

const PIECES: Space = Space::new("pieces");
const STARTS: Space = Space::new("starts");
const REMOVALS: Space = Space::new("removals");
const START_KEY: &[u8] = b"start";
/// Folder of the store, beside that of the set.
const STORE: &str = "pieces";

/// An object of a tome, with the signatures of its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLocation {
    /// The object and its location.
    pub(crate) object: Object,
    /// Signatures of its blocks, in order.
    pub(crate) signatures: Vec<[u8; 8]>,
}

/// The stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PieceRow(pub(crate) ObjectLocation);

/// Tombstone of an object of a lost tome. There are no more of them than lost tomes had objects,
/// for each replaces a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovalRow {
    /// Time of the request, in milliseconds since 1970.
    pub(crate) asked_ms: u64,
}

impl Row for RemovalRow {
    const VERSION: u8 = 1;
}

impl Row for PieceRow {
    const VERSION: u8 = 1;
}

impl ObjectLocation {
    /// Returns an object with its signatures in its tome.
    pub(crate) fn new(metadata: &TomeMetadata, object: &Object) -> Self {
        let signature = |(region, offset): &_| {
            let region = metadata.region(*region);
            region.map_or(Signature::ZERO, |region| region.tree().block(*offset)).0
        };
        let signatures = object.blocks.iter().map(signature).collect();
        Self { object: object.clone(), signatures }
    }

    /// Whether all of its blocks in a tome match.
    pub(crate) fn is_whole(&self, metadata: &TomeMetadata) -> bool {
        *self == Self::new(metadata, &self.object)
    }
}

/// Objects of all tomes of a process, on stable storage.
pub(crate) struct PieceStore {
    store: Arc<FjallStore>,
    committer: Committer,
}

impl std::fmt::Debug for PieceStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceStore").finish_non_exhaustive()
    }
}

/// The same while a set is being opened, when nothing else writes to it.
#[derive(Debug)]
pub(crate) struct OpenedPieces(Arc<FjallStore>);

impl OpenedPieces {
    /// Opens the store of a set, or creates it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(STORE);
        match FjallStore::open(&path, &[PIECES, STARTS, REMOVALS], &config()) {
            Err(CatalogError::Locked { path }) => Err(TomesError::InUse { path }),
            opened => Ok(Self(Arc::new(opened?))),
        }
    }

    /// Returns the latest start of its set that it knows of.
    pub(crate) fn start_number(&self) -> Result<StartRow> {
        Ok(row::get(&*self.0, STARTS, START_KEY)?.unwrap_or_default())
    }

    /// Records the number of a start.
    pub(crate) fn record_start(&self, number: StartRow) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(STARTS, START_KEY, row::encode(&number)?)?;
        Ok(self.0.apply(batch)?)
    }

    /// Calls back with each object of a tome.
    pub(crate) fn for_each(
        &self,
        tome: TomeId,
        visit: impl FnMut(String, ObjectLocation),
    ) -> Result<()> {
        for_each(&self.0, tome, visit)
    }

    /// Updates the rows of a tome to its own state; returns how many differed.
    pub(crate) fn reconcile(&self, metadata: &TomeMetadata) -> Result<usize> {
        let tome = metadata.id();
        let objects = metadata.objects();
        let reported = objects
            .map(|(name, object)| (name.to_owned(), ObjectLocation::new(metadata, object)))
            .collect();
        let changes = diff_rows(&self.0, tome, reported)?.into_iter();
        let changes: Vec<_> = changes.map(|(name, placed)| (tome, name, placed)).collect();
        self.change(&changes)?;
        Ok(changes.len())
    }

    /// Stores and deletes rows of objects, some thousands per commit.
    pub(crate) fn change(
        &self,
        changes: &[(TomeId, String, Option<ObjectLocation>)],
    ) -> Result<()> {
        for chunk in changes.chunks(LOAD_PAGE_MAX) {
            let mut batch = Batch::new();
            for (tome, name, placed) in chunk {
                let key = piece_key(*tome, name);
                match placed {
                    Some(placed) => {
                        batch.put(PIECES, key, row::encode(&PieceRow(placed.clone()))?)?;
                    }
                    None => batch.delete(PIECES, key)?,
                }
            }
            self.0.apply(batch)?;
        }
        Ok(())
    }

    /// Returns the names of a tome's objects with tombstones.
    pub(crate) fn removals(&self, tome: TomeId) -> Result<Vec<String>> {
        removals(&self.0, tome)
    }

    /// Deletes tombstones of a tome after their objects were removed.
    pub(crate) fn delete_tombstones(&self, tome: TomeId, names: &[String]) -> Result<()> {
        for chunk in names.chunks(LOAD_PAGE_MAX) {
            let mut batch = Batch::new();
            chunk.iter().try_for_each(|name| batch.delete(REMOVALS, piece_key(tome, name)))?;
            self.0.apply(batch)?;
        }
        Ok(())
    }

    /// Starts the committer, through which writes go from now on.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(self) -> Result<PieceStore> {
        let committer = Committer::start(Arc::clone(&self.0) as Arc<dyn KeyValue>)?;
        Ok(PieceStore { store: self.0, committer })
    }
}

/// Returns the rows of a tome that differ from its own state, as they should be.
fn diff_rows(
    store: &FjallStore,
    tome: TomeId,
    mut reported: BTreeMap<String, ObjectLocation>,
) -> Result<Vec<(String, Option<ObjectLocation>)>> {
    let mut changes: Vec<(String, Option<ObjectLocation>)> = Vec::new();
    for_each(store, tome, |name, stored| match reported.remove(&name) {
        Some(placed) if placed == stored => {}
        other => changes.push((name, other)),
    })?;
    changes.extend(reported.into_iter().map(|(name, placed)| (name, Some(placed))));
    Ok(changes)
}

fn removals(store: &FjallStore, tome: TomeId) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let all = KeyRange::prefix(&tome_key(tome));
    let mut range = all.clone();
    loop {
        let rows = rows_in::<RemovalRow>(store, REMOVALS, &range, LOAD_PAGE_MAX)?;
        let Some((last, _)) = rows.last() else { return Ok(names) };
        range = all.clone().after(last);
        for (key, _) in &rows {
            names.push(name_of(key)?);
        }
    }
}

fn for_each(
    store: &FjallStore,
    tome: TomeId,
    mut visit: impl FnMut(String, ObjectLocation),
) -> Result<()> {
    let all = KeyRange::prefix(&tome_key(tome));
    let mut range = all.clone();
    loop {
        let rows = rows_in::<PieceRow>(store, PIECES, &range, LOAD_PAGE_MAX)?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        range = all.clone().after(last);
        for (key, PieceRow(placed)) in rows {
            visit(name_of(&key)?, placed);
        }
    }
}

impl PieceStore {
    /// Calls back with each object of a tome.
    pub(crate) fn for_each(
        &self,
        tome: TomeId,
        visit: impl FnMut(String, ObjectLocation),
    ) -> Result<()> {
        for_each(&self.store, tome, visit)
    }

    /// Records the number of a start, or of its end; blocks until done.
    pub(crate) fn record_start(&self, number: StartRow) -> Result<()> {
        let record = move |tx: &mut Transaction<'_>| -> Result<()> {
            Ok(row::put(tx, STARTS, START_KEY.to_vec(), &number)?)
        };
        // A task may stop a set; it blocks for the disks just as well.
        futures::executor::block_on(self.committer.commit(record))
    }

    /// Returns the names of a tome's objects with tombstones.
    pub(crate) fn removals(&self, tome: TomeId) -> Result<Vec<String>> {
        removals(&self.store, tome)
    }

    /// Returns the location of a tome's object.
    pub(crate) fn get(&self, tome: TomeId, name: &str) -> Result<Option<ObjectLocation>> {
        let row = row::get::<PieceRow>(&*self.store, PIECES, &piece_key(tome, name))?;
        Ok(row.map(|PieceRow(placed)| placed))
    }

    /// Updates the rows of a tome that is in another process, or has recovered, to its own state.
    /// Objects being put are recorded by their puts.
    pub(crate) fn reconcile(
        &self,
        tome: TomeId,
        reported: BTreeMap<String, ObjectLocation>,
        under_way: &[String],
    ) -> Result<()> {
        let changes = diff_rows(&self.store, tome, reported)?.into_iter();
        let changes = changes.filter(|(name, _)| !under_way.contains(name));
        self.change(changes.map(|(name, placed)| (tome, name, placed)).collect())
    }

    /// Records an object of a tome; durable when this returns.
    pub(crate) async fn record(
        &self,
        tome: TomeId,
        name: &str,
        placed: ObjectLocation,
    ) -> Result<()> {
        let key = piece_key(tome, name);
        let record = move |tx: &mut Transaction<'_>| -> Result<()> {
            Ok(row::put(tx, PIECES, key, &PieceRow(placed))?)
        };
        self.committer.commit(record).await
    }

    /// Deletes the row of an object.
    pub(crate) async fn forget(&self, tome: TomeId, name: &str) -> Result<()> {
        let key = piece_key(tome, name);
        let forget = move |tx: &mut Transaction<'_>| -> Result<()> { Ok(tx.delete(PIECES, key)?) };
        self.committer.commit(forget).await
    }

    /// Replaces the row of an object with a tombstone, for a tome that does not answer.
    pub(crate) async fn defer_removal(
        &self,
        tome: TomeId,
        name: &str,
        asked_ms: u64,
    ) -> Result<()> {
        let key = piece_key(tome, name);
        let defer = move |tx: &mut Transaction<'_>| -> Result<()> {
            tx.delete(PIECES, key.clone())?;
            Ok(row::put(tx, REMOVALS, key, &RemovalRow { asked_ms })?)
        };
        self.committer.commit(defer).await
    }

    /// Deletes a tombstone after the tome removed the object.
    pub(crate) fn delete_tombstone(&self, tome: TomeId, name: &str) -> Result<()> {
        let key = piece_key(tome, name);
        let delete = move |tx: &mut Transaction<'_>| -> Result<()> {
            // A listing that began earlier may have recorded it again.
            tx.delete(PIECES, key.clone())?;
            Ok(tx.delete(REMOVALS, key)?)
        };
        self.committer.commit_blocking(delete)
    }

    /// Stores and deletes rows of objects, some thousands per commit.
    pub(crate) fn change(
        &self,
        changes: Vec<(TomeId, String, Option<ObjectLocation>)>,
    ) -> Result<()> {
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let chunk: Vec<_> = changes.by_ref().take(LOAD_PAGE_MAX).collect();
            let change = move |tx: &mut Transaction<'_>| -> Result<()> {
                for (tome, name, placed) in chunk {
                    let key = piece_key(tome, &name);
                    match placed {
                        Some(placed) => row::put(tx, PIECES, key, &PieceRow(placed))?,
                        None => tx.delete(PIECES, key)?,
                    }
                }
                Ok(())
            };
            self.committer.commit_blocking(change)?;
        }
        Ok(())
    }
}

fn tome_key(tome: TomeId) -> Vec<u8> {
    KeyWriter::new().u32(tome.get()).finish()
}

/// Returns the key of an object; the name is its suffix.
fn piece_key(tome: TomeId, name: &str) -> Vec<u8> {
    let mut key = tome_key(tome);
    key.extend_from_slice(name.as_bytes());
    key
}

fn name_of(key: &[u8]) -> Result<String> {
    let name = key.get(tome_key(TomeId::new(0)).len()..).unwrap_or_default();
    let damaged =
        |_| TomesError::Invalid { what: "a name in the piece store is not UTF-8".to_owned() };
    String::from_utf8(name.to_vec()).map_err(damaged)
}
