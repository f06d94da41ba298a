//! The index: which objects there are, and their pieces, on always-on storage, with the puts in
//! progress and the objects to be removed.
//!
//! ```text
//! space      key                      row
//! store      "set"                    SetRow: the set that it belongs to
//! store      "sequence"               the last sequence number
//! store      "totals"                 Totals: number of objects, and bytes
//! store      "start"                  the latest start of its set that it knows of
//! objects    key of the object        ObjectRow
//! begun      object id                its pieces are being put
//! unwanted   object id                its pieces are to be removed
//! ```
//!
//! Not here: the pieces.

use std::path::Path;
use std::sync::Arc;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::row::{self, Row, rows_in};
use fulgurite_catalog::{
    Batch, Committer, FjallConfig, FjallStore, KeyRange, KeyValue, Space, Transaction,
};
use fulgurite_tier::{Cursor, Mode, ObjectStoreError as _};
use fulgurite_units::{BlobId, Clock, TomeSetId};
use serde::{Deserialize, Serialize};

use crate::objects::limits::{INDEX_PAGE_MAX, SEQUENCES_PER_MS};
use crate::objects::pieces::Pieces;
use crate::objects::{Result, StoreError};

const STORE: Space = Space::new("store");
const OBJECTS: Space = Space::new("objects");
const STARTED_PUTS: Space = Space::new("begun");
const GARBAGE: Space = Space::new("unwanted");
const SPACES: [Space; 4] = [STORE, OBJECTS, STARTED_PUTS, GARBAGE];
const SET_KEY: &[u8] = b"set";
const SEQUENCE_KEY: &[u8] = b"sequence";
const TOTALS_KEY: &[u8] = b"totals";
const START_KEY: &[u8] = b"start";

/// An object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) modified_ms: u64,
    pub(crate) attributes: Vec<(String, String)>,
}

/// The object of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectRow {
    pub(crate) sequence: u64,
    pub(crate) modified_ms: u64,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) pieces: Pieces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SetRow {
    set: TomeSetId,
}

/// Totals of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Row for ObjectRow {
    const VERSION: u8 = 1;
}

impl Row for SetRow {
    const VERSION: u8 = 1;
}

impl Row for Totals {
    const VERSION: u8 = 1;
}

/// The index of a set.
pub(crate) struct Index {
    store: Arc<dyn KeyValue>,
    committer: Committer,
    clock: Clock,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("committer", &self.committer).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens or creates the index of a set; puts in progress become unwanted. Returns whether it is
    /// an older copy, or missing, as `is_older` decides from its latest start: then puts are not
    /// marked as unwanted, since they may have succeeded.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] when it belongs to another set.
    pub(crate) fn open(
        path: &Path,
        set: TomeSetId,
        clock: Clock,
        is_older: impl FnOnce(u64) -> Result<bool>,
    ) -> Result<(Self, bool)> {
        let store = Arc::new(FjallStore::open(path, &SPACES, &FjallConfig::default())?);
        let mut batch = Batch::new();
        match row::get::<SetRow>(&*store, STORE, SET_KEY)? {
            Some(SetRow { set: found }) if found != set => {
                let what = format!("the index belongs to set {found}, not to set {set}");
                return Err(StoreError::Invalid { what });
            }
            Some(_) => {}
            None => batch.put(STORE, SET_KEY, row::encode(&SetRow { set })?)?,
        }
        let is_older = is_older(row::get(&*store, STORE, START_KEY)?.unwrap_or(0))?;
        for (key, started_ms) in
            rows_in::<u64>(&*store, STARTED_PUTS, &KeyRange::all(), usize::MAX)?
        {
            if !is_older {
                batch.put(GARBAGE, key.clone(), row::encode(&started_ms)?)?;
            }
            batch.delete(STARTED_PUTS, key)?;
        }
        store.apply(batch)?;
        let committer = Committer::start(Arc::clone(&store) as Arc<dyn KeyValue>)?;
        Ok((Self { store, committer, clock }, is_older))
    }

    /// Records the number of a start of its set.
    pub(crate) async fn record_start(&self, number: u64) -> Result<()> {
        let record = move |tx: &mut Transaction<'_>| -> Result<()> {
            Ok(row::put(tx, STORE, START_KEY.to_vec(), &number)?)
        };
        self.committer.commit(record).await
    }

    /// Returns the object of a key.
    pub(crate) fn object(&self, key: &str) -> Result<Option<ObjectRow>> {
        Ok(row::get(&*self.store, OBJECTS, key.as_bytes())?)
    }

    /// Returns at most [`INDEX_PAGE_MAX`] objects whose keys begin with `prefix`, in order.
    pub(crate) fn objects(&self, prefix: &str, from: &Cursor) -> Result<Vec<(String, ObjectRow)>> {
        let range = KeyRange::prefix(prefix.as_bytes());
        let range = match from {
            Cursor::Start => range,
            Cursor::After(key) => range.after(key.as_bytes()),
            Cursor::AtOrAfter(key) => range.at_or_after(key),
        };
        let rows = rows_in(&*self.store, OBJECTS, &range, INDEX_PAGE_MAX)?;
        let text = |key: Vec<u8>| {
            let corrupt =
                |_| StoreError::Corrupt { what: "a key of the index is not UTF-8".into() };
            String::from_utf8(key).map_err(corrupt)
        };
        rows.into_iter().map(|(key, row)| Ok((text(key)?, row))).collect()
    }

    /// Returns the totals.
    pub(crate) fn totals(&self) -> Result<Totals> {
        Ok(row::get(&*self.store, STORE, TOTALS_KEY)?.unwrap_or_default())
    }

    /// Records that pieces of an object are about to be put; returns its sequence number.
    pub(crate) async fn begin(&self, id: BlobId) -> Result<u64> {
        let now = self.clock.now().as_millis();
        let begin = move |tx: &mut Transaction<'_>| -> Result<u64> {
            let last: u64 = row::get(tx, STORE, SEQUENCE_KEY)?.unwrap_or(0);
            let next = (now * SEQUENCES_PER_MS).max(last + 1);
            row::put(tx, STORE, SEQUENCE_KEY.to_vec(), &next)?;
            row::put(tx, STARTED_PUTS, id_key(id), &now)?;
            Ok(next)
        };
        self.committer.commit(begin).await
    }

    /// Makes a key refer to an object whose pieces are all there. The previous object becomes
    /// unwanted; if that is newer, it stays and the object itself becomes unwanted.
    pub(crate) async fn put(&self, key: String, row: ObjectRow, mode: Mode) -> Result<()> {
        self.committer.commit(move |tx: &mut Transaction<'_>| put(tx, &key, &row, mode)).await
    }

    /// Removes a key; returns whether it existed.
    pub(crate) async fn delete(&self, key: &str) -> Result<bool> {
        let (key, now) = (key.to_owned(), self.clock.now().as_millis());
        let delete = move |tx: &mut Transaction<'_>| -> Result<bool> {
            let Some(before) = row::get::<ObjectRow>(tx, OBJECTS, key.as_bytes())? else {
                return Ok(false);
            };
            tx.delete(OBJECTS, key.into_bytes())?;
            row::put(tx, GARBAGE, id_key(before.pieces.id), &now)?;
            count(tx, Some(&before), None)?;
            Ok(true)
        };
        self.committer.commit(delete).await
    }

    /// Marks the pieces of a failed put as unwanted.
    pub(crate) async fn give_up(&self, id: BlobId) -> Result<()> {
        let now = self.clock.now().as_millis();
        let give_up = move |tx: &mut Transaction<'_>| -> Result<()> {
            tx.delete(STARTED_PUTS, id_key(id))?;
            Ok(row::put(tx, GARBAGE, id_key(id), &now)?)
        };
        self.committer.commit(give_up).await
    }

    /// Returns objects whose pieces are to be removed, after this one.
    pub(crate) fn garbage(&self, after: Option<BlobId>, limit: usize) -> Result<Vec<BlobId>> {
        let range = KeyRange::all();
        let range = match after {
            Some(id) => range.after(&id_key(id)),
            None => range,
        };
        let rows = rows_in::<u64>(&*self.store, GARBAGE, &range, limit)?;
        rows.into_iter().map(|(key, _)| decode_id(&key)).collect()
    }

    /// Records that all pieces of objects are removed.
    pub(crate) async fn clear_garbage(&self, ids: Vec<BlobId>) -> Result<()> {
        let clear = move |tx: &mut Transaction<'_>| -> Result<()> {
            ids.into_iter().try_for_each(|id| Ok(tx.delete(GARBAGE, id_key(id))?))
        };
        self.committer.commit(clear).await
    }

    /// Forgets an object without pieces, unless its key refers to another one by now.
    pub(crate) async fn forget(&self, key: &str, id: BlobId) -> Result<()> {
        let key = key.to_owned();
        let forget = move |tx: &mut Transaction<'_>| -> Result<()> {
            let known = row::get::<ObjectRow>(tx, OBJECTS, key.as_bytes())?;
            if let Some(known) = known.filter(|known| known.pieces.id == id) {
                tx.delete(OBJECTS, key.into_bytes())?;
                count(tx, Some(&known), None)?;
            }
            Ok(())
        };
        self.committer.commit(forget).await
    }

    /// Adds an object that was found on tomes; returns whether it was new.
    pub(crate) async fn find(&self, key: String, row: ObjectRow) -> Result<bool> {
        let find = move |tx: &mut Transaction<'_>| -> Result<bool> {
            let is_garbage = row::get::<u64>(tx, GARBAGE, &id_key(row.pieces.id))?.is_some();
            let known = row::get::<ObjectRow>(tx, OBJECTS, key.as_bytes())?;
            if is_garbage || known.is_some_and(|known| known.sequence >= row.sequence) {
                return Ok(false);
            }
            let last: u64 = row::get(tx, STORE, SEQUENCE_KEY)?.unwrap_or(0);
            row::put(tx, STORE, SEQUENCE_KEY.to_vec(), &last.max(row.sequence))?;
            put(tx, &key, &row, Mode::Overwrite)?;
            Ok(true)
        };
        self.committer.commit(find).await
    }
}

fn put(tx: &mut Transaction<'_>, key: &str, new: &ObjectRow, mode: Mode) -> Result<()> {
    let before = row::get::<ObjectRow>(tx, OBJECTS, key.as_bytes())?;
    if !mode.is_met(before.as_ref().map(|before| before.sequence)) {
        return Err(StoreError::refused(mode, key));
    }
    tx.delete(STARTED_PUTS, id_key(new.pieces.id))?;
    if before.as_ref().is_some_and(|before| before.sequence > new.sequence) {
        // An older put that completed later: treated as overwritten at once.
        return Ok(row::put(tx, GARBAGE, id_key(new.pieces.id), &new.modified_ms)?);
    }
    if let Some(before) = &before {
        row::put(tx, GARBAGE, id_key(before.pieces.id), &new.modified_ms)?;
    }
    count(tx, before.as_ref(), Some(new))?;
    Ok(row::put(tx, OBJECTS, key.as_bytes().to_vec(), new)?)
}

fn count(
    tx: &mut Transaction<'_>,
    before: Option<&ObjectRow>,
    after: Option<&ObjectRow>,
) -> Result<()> {
    let mut totals: Totals = row::get(tx, STORE, TOTALS_KEY)?.unwrap_or_default();
    if let Some(before) = before {
        totals.objects = totals.objects.saturating_sub(1);
        totals.bytes = totals.bytes.saturating_sub(before.pieces.length());
    }
    if let Some(after) = after {
        totals.objects += 1;
        totals.bytes += after.pieces.length();
    }
    Ok(row::put(tx, STORE, TOTALS_KEY.to_vec(), &totals)?)
}

fn id_key(id: BlobId) -> Vec<u8> {
    id.to_bytes().to_vec()
}

fn decode_id(key: &[u8]) -> Result<BlobId> {
    let mut reader = KeyReader::new(key);
    let id = BlobId::from_bytes(reader.fixed()?);
    reader.finish()?;
    Ok(id)
}
