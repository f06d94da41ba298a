//! The rack's own index: which blobs exist, where their stacks are, and what is to be
//! garbage-collected.
//!
//! ```text
//! begin    the blob and where it will go        before the first byte of a stack
//! commit   its key names it; what the key       after all stacks are synced and read back,
//!          named before is unwanted             before the put is acknowledged
//! collect  unwanted stacks go, then their row   when their group spins anyway
//! ```
//!
//! Everything but the bytes of blobs is here, so listing or heading an object spins up no disk.
//! Objects of a few KiB are stored inline. Only stacks that the index lists as unwanted are removed
//! from a disk: an unknown stack may belong to an index that was lost.
//!
//! Write closures run on the catalog's committer. The index has no timing of its own.

mod rows;
mod starts;
mod totals;

use std::path::Path;
use std::sync::Arc;

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{
    Committer, Direction, FjallConfig, FjallStore, KeyRange, KeyValue, ReadView, Space, Transaction,
};
use fulgurite_disks::{GroupId, PlaceId};
use fulgurite_tier::ObjectStoreError as _;
pub use fulgurite_tier::{Cursor, Mode};
use fulgurite_units::{BlobId, ByteCount, Clock, RackId};

use rows::{
    BLOBS, DISKS, INTENTS, IntentRow, OBJECTS, RACK, SCRUB, SPACES, STARTS, UNWANTED, UnwantedRow,
};
pub use rows::{BlobRow, Content, DiskRow, ObjectRow, RackRow, RoomRow, ScrubRow, TotalsRow};
use totals::change_totals;

use crate::format::Coding;
use crate::limits::{INDEX_PAGE_MAX, SEQUENCES_PER_MS};
use crate::{RackError, Result};

/// An object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// When it was put, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Attributes that its writer supplied.
    pub attributes: Vec<(String, String)>,
}

/// A blob to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingBlob {
    /// The blob.
    pub blob: BlobId,
    /// The group that it lies in.
    pub group: GroupId,
    /// Its coding and the places of its stacks.
    pub row: BlobRow,
}

/// Stacks to be garbage-collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwanted {
    /// Their blob.
    pub blob: BlobId,
    /// Index and place of each.
    pub stacks: Vec<(u8, PlaceId)>,
    /// When they became unwanted. It is the blob's own sequence if the blob was being written when
    /// the rack was opened; such a blob was never acknowledged, unless this index is an older copy.
    pub sequence: u64,
    /// Key of the row.
    key: Vec<u8>,
}

/// The index of one rack.
pub struct Index {
    store: Arc<dyn KeyValue>,
    committer: Committer,
    clock: Option<Clock>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("committer", &self.committer).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index in a folder of its own, creating it if there is none.
    ///
    /// # Errors
    /// When the store cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let store = FjallStore::open(path, &SPACES, &FjallConfig::default())?;
        Self::with_store(Arc::new(store))
    }

    /// Creates an index over a store that has its spaces.
    ///
    /// # Errors
    /// When its committer cannot be started.
    pub fn with_store(store: Arc<dyn KeyValue>) -> Result<Self> {
        let committer = Committer::start(Arc::clone(&store))?;
        Ok(Self { store, committer, clock: None })
    }

    /// Adds a clock. Sequences are then at least its time in milliseconds, scaled. So an older copy
    /// of the index reuses no sequence, and what is written after it was restored is newer than
    /// anything written before.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Returns the minimum of the next sequence.
    fn floor(&self) -> u64 {
        self.clock.as_ref().map_or(0, |clock| clock.now().as_millis() * SEQUENCES_PER_MS)
    }

    /// Returns the rack it belongs to; none when it is new.
    ///
    /// # Errors
    /// Those of the store, as for every read.
    pub fn rack(&self) -> Result<Option<RackRow>> {
        Ok(row::get(&*self.store, RACK, RACK_KEY)?)
    }

    /// Assigns a new index to a rack.
    ///
    /// # Errors
    /// [`RackError::Invalid`] when it belongs to another rack.
    pub fn claim(&self, rack: RackId, coding: Coding) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            if let Some(found) = row::get::<RackRow>(tx, RACK, RACK_KEY)? {
                return found.check_matches(rack, coding);
            }
            let row = RackRow::new(rack, coding);
            Ok(row::put(tx, RACK, RACK_KEY.to_vec(), &row)?)
        })
    }

    /// Reassigns an index to another rack if it knows no disk and no object: somebody created a new
    /// index in place of a lost one.
    ///
    /// # Errors
    /// [`RackError::Invalid`] when it knows any.
    pub fn claim_empty(&self, was: RackId, rack: RackId, coding: Coding) -> Result<()> {
        let any = |space| rows_exist(&*self.store, space);
        if any(DISKS)? || any(OBJECTS)? || any(BLOBS)? {
            let detail = format!(
                "the index belongs to rack {was} and knows its disks or objects, so it cannot \
                 be used for rack {rack}"
            );
            return Err(RackError::Invalid { detail });
        }
        let row = RackRow::new(rack, coding);
        self.committer.commit_blocking(move |tx| Ok(row::put(tx, RACK, RACK_KEY.to_vec(), &row)?))
    }

    /// Looks up a key.
    ///
    /// # Errors
    /// Those of the store.
    pub fn object(&self, key: &str) -> Result<Option<ObjectRow>> {
        Ok(row::get(&*self.store, OBJECTS, &object_key(key))?)
    }

    /// Returns at most [`INDEX_PAGE_MAX`] objects whose keys begin with `prefix`, in key order,
    /// starting at `from`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn objects(&self, prefix: &str, from: &Cursor) -> Result<Vec<(String, ObjectRow)>> {
        let range = KeyRange::prefix(prefix.as_bytes());
        let range = match from {
            Cursor::Start => range,
            Cursor::After(key) => range.after(key.as_bytes()),
            Cursor::AtOrAfter(key) => range.at_or_after(key),
        };
        let rows = rows_in(&*self.store, OBJECTS, &range, INDEX_PAGE_MAX)?;
        rows.into_iter().map(|(key, row)| Ok((text(key)?, row))).collect()
    }

    /// Returns where the stacks of a blob are; none when the blob no longer exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn blob(&self, group: GroupId, blob: BlobId) -> Result<Option<BlobRow>> {
        Ok(row::get(&*self.store, BLOBS, &blob_key(group, blob))?)
    }

    /// Returns at most [`INDEX_PAGE_MAX`] blobs of a group, those behind `after`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn blobs(&self, group: GroupId, after: Option<BlobId>) -> Result<Vec<(BlobId, BlobRow)>> {
        self.blobs_up_to(group, after, INDEX_PAGE_MAX)
    }

    /// Like `blobs`, but returns at most `limit` of them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn blobs_up_to(
        &self,
        group: GroupId,
        after: Option<BlobId>,
        limit: usize,
    ) -> Result<Vec<(BlobId, BlobRow)>> {
        let range = KeyRange::prefix(&group_key(group));
        let range = match after {
            Some(blob) => range.after(&blob_key(group, blob)),
            None => range,
        };
        let rows = rows_in(&*self.store, BLOBS, &range, limit)?;
        rows.into_iter().map(|(key, row)| Ok((blob_from_key(&key)?, row))).collect()
    }

    /// Returns the disk last seen in each of the rack's places.
    ///
    /// # Errors
    /// Those of the store.
    pub fn disks(&self) -> Result<Vec<(PlaceId, DiskRow)>> {
        let rows = rows_in(&*self.store, DISKS, &KeyRange::all(), usize::MAX)?;
        rows.into_iter().map(|(key, row)| Ok((place_from_key(&key)?, row))).collect()
    }

    /// Returns the progress of each group's verification. Groups without a row are scheduled from
    /// now on.
    ///
    /// # Errors
    /// Those of the store.
    pub fn scrubs(&self, groups: &[GroupId], now_ms: u64) -> Result<Vec<ScrubRow>> {
        let groups = groups.to_vec();
        self.committer.commit_blocking(move |tx| {
            let row = |group: GroupId| -> Result<ScrubRow> {
                if let Some(row) = row::get(tx, SCRUB, &group_key(group))? {
                    return Ok(row);
                }
                let row = ScrubRow { since_ms: now_ms, ..ScrubRow::default() };
                row::put(tx, SCRUB, group_key(group), &row)?;
                Ok(row)
            };
            groups.into_iter().map(row).collect()
        })
    }

    /// Returns the number of blobs of a group that its running or last verification found damaged
    /// and could not repair.
    ///
    /// # Errors
    /// Those of the store.
    pub fn problems(&self, group: GroupId) -> Result<u64> {
        let row: Option<ScrubRow> = row::get(&*self.store, SCRUB, &group_key(group))?;
        Ok(row.map_or(0, |row| row.problems))
    }

    /// Records that a piece of a group's verification ended at a blob, or, if none, that the whole
    /// group is done.
    ///
    /// # Errors
    /// Those of the store.
    pub fn record_scrub(
        &self,
        group: GroupId,
        after: Option<BlobId>,
        problems: u64,
        now_ms: u64,
    ) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            let mut row: ScrubRow = row::get(tx, SCRUB, &group_key(group))?.unwrap_or_default();
            let before = if row.after.is_some() { row.problems } else { 0 };
            row.problems = before + problems;
            row.after = after;
            if after.is_none() {
                (row.whole_ms, row.is_asked) = (Some(now_ms), false);
            }
            Ok(row::put(tx, SCRUB, group_key(group), &row)?)
        })
    }

    /// Requests a verification of a group from its beginning without delay, or cancels the request.
    ///
    /// # Errors
    /// Those of the store.
    pub fn request_scrub(&self, group: GroupId, is_asked: bool) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            let mut row: ScrubRow = row::get(tx, SCRUB, &group_key(group))?.unwrap_or_default();
            if is_asked {
                row.after = None;
            }
            row.is_asked = is_asked;
            Ok(row::put(tx, SCRUB, group_key(group), &row)?)
        })
    }

    /// Records which disk is in a place.
    ///
    /// # Errors
    /// Those of the store.
    pub fn set_disk(&self, place: PlaceId, row: DiskRow) -> Result<()> {
        let key = place_key(place);
        self.committer.commit_blocking(move |tx| Ok(row::put(tx, DISKS, key, &row)?))
    }

    /// Forgets which disk was in a place.
    ///
    /// # Errors
    /// Those of the store.
    pub fn forget_disk(&self, place: PlaceId) -> Result<()> {
        let key = place_key(place);
        self.committer.commit_blocking(move |tx| {
            tx.delete(STARTS, key.clone())?;
            Ok(tx.delete(DISKS, key)?)
        })
    }

    /// Puts an inline object. Returns its sequence.
    ///
    /// # Errors
    /// [`RackError::Exists`] and [`RackError::Changed`] as `mode` says.
    pub async fn put_inline(&self, object: Object, bytes: Vec<u8>, mode: Mode) -> Result<u64> {
        let floor = self.floor();
        let put = move |tx: &mut Transaction<'_>| {
            let sequence = next_sequence(tx, floor)?;
            put_object(tx, object, Content::Inline(bytes), sequence, mode)?;
            Ok(sequence)
        };
        self.committer.commit(put).await
    }

    /// Records an intent to write stacks of a blob, and returns the blob's sequence.
    ///
    /// # Errors
    /// Those of the store.
    pub fn begin(&self, group: GroupId, blob: BlobId, stacks: Vec<(u8, PlaceId)>) -> Result<u64> {
        let floor = self.floor();
        self.committer.commit_blocking(move |tx| {
            let sequence = next_sequence(tx, floor)?;
            let row = IntentRow::new(group, &stacks);
            row::put(tx, INTENTS, intent_key(blob, sequence), &row)?;
            Ok(sequence)
        })
    }

    /// Records an intent to write more stacks of a blob that was begun.
    ///
    /// # Errors
    /// Those of the store.
    pub fn extend_intent(
        &self,
        group: GroupId,
        blob: BlobId,
        sequence: u64,
        stacks: Vec<(u8, PlaceId)>,
    ) -> Result<()> {
        let blob = (group, blob, sequence);
        self.committer.commit_blocking(move |tx| add_intent(tx, blob, &stacks))
    }

    /// Commits a blob: its key names it from now on. What the key named before becomes unwanted; if
    /// that is newer than this blob, this blob does instead.
    ///
    /// # Errors
    /// [`RackError::Exists`] and [`RackError::Changed`] as `mode` says; the blob is unwanted
    /// then.
    pub fn commit(&self, object: Object, pending: PendingBlob, mode: Mode) -> Result<()> {
        let refused = self.committer.commit_blocking(move |tx| {
            let PendingBlob { blob, group, row } = pending;
            let sequence = row.sequence;
            let (length, content) = (row.length, Content::Blob { group: group.get(), blob });
            end_intent(tx, (group, blob, sequence), &row)?;
            put_blob(tx, group, blob, &row)?;
            let object = (object, length);
            match put_blob_object(tx, object, content, sequence, mode) {
                Ok(()) => Ok(None),
                // Not returned as an error of the closure, which would roll back that the blob is
                // unwanted.
                Err(refused @ (RackError::Exists { .. } | RackError::Changed { .. })) => {
                    let sequence = next_sequence(tx, 0)?;
                    forget_blob(tx, group, blob, sequence)?;
                    Ok(Some(refused))
                }
                Err(error) => Err(error),
            }
        })?;
        refused.map_or(Ok(()), Err)
    }

    /// Abandons a blob that was begun: its stacks become unwanted.
    ///
    /// # Errors
    /// Those of the store.
    pub fn abandon_intent(&self, blob: BlobId, sequence: u64) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            let now = next_sequence(tx, 0)?;
            abandon(tx, &intent_key(blob, sequence), blob, now)
        })
    }

    /// Abandons all blobs that were begun. The rack was just opened, so none is being written.
    ///
    /// # Errors
    /// Those of the store.
    pub fn abandon_intents(&self) -> Result<u64> {
        let mut count = 0;
        loop {
            let page =
                rows_in::<IntentRow>(&*self.store, INTENTS, &KeyRange::all(), INDEX_PAGE_MAX)?;
            if page.is_empty() {
                return Ok(count);
            }
            for (key, _) in page {
                let (blob, sequence) = parse_intent_key(&key)?;
                self.committer.commit_blocking(move |tx| abandon(tx, &key, blob, sequence))?;
                count += 1;
            }
        }
    }

    /// Records that stacks of a blob were rebuilt in these places. Returns whether the blob still
    /// exists; if not, the new stacks become unwanted. For indices in `stay` the old place holds
    /// another owner's file, which does not become unwanted.
    ///
    /// # Errors
    /// Those of the store.
    pub fn record_rebuilt(
        &self,
        group: GroupId,
        blob: BlobId,
        sequence: u64,
        stacks: Vec<(u8, PlaceId)>,
        stay: Vec<u8>,
    ) -> Result<bool> {
        self.committer.commit_blocking(move |tx| {
            let key = blob_key(group, blob);
            let Some(mut row) = row::get::<BlobRow>(tx, BLOBS, &key)? else {
                abandon(tx, &intent_key(blob, sequence), blob, sequence)?;
                return Ok(false);
            };
            // The stacks they replace are garbage-collected along with begun stacks that are not in
            // the row.
            let mut left = Vec::new();
            for (index, place) in stacks {
                let old = row.places.get_mut(usize::from(index)).ok_or_else(bad_key)?;
                let old = old.replace(place.get()).filter(|_| !stay.contains(&index));
                left.extend(old.map(|old| (index, PlaceId::new(old))));
            }
            add_intent(tx, (group, blob, sequence), &left)?;
            end_intent(tx, (group, blob, sequence), &row)?;
            row::put(tx, BLOBS, key, &row)?;
            Ok(true)
        })
    }

    /// Removes an object. Returns whether there was one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let key = object_key(key);
        let floor = self.floor();
        let delete = move |tx: &mut Transaction<'_>| {
            let Some(found) = row::get::<ObjectRow>(tx, OBJECTS, &key)? else { return Ok(false) };
            let sequence = next_sequence(tx, floor)?;
            tx.delete(OBJECTS, key)?;
            if let Content::Blob { group, blob } = found.content {
                forget_blob(tx, GroupId::new(group), blob, sequence)?;
            }
            Ok(true)
        };
        self.committer.commit(delete).await
    }

    /// Returns at most [`INDEX_PAGE_MAX`] sets of unwanted stacks of a group, those behind `after`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn unwanted(&self, group: GroupId, after: Option<&Unwanted>) -> Result<Vec<Unwanted>> {
        let range = KeyRange::prefix(&group_key(group));
        let range = match after {
            Some(last) => range.after(&last.key),
            None => range,
        };
        let rows = rows_in::<UnwantedRow>(&*self.store, UNWANTED, &range, INDEX_PAGE_MAX)?;
        let stacks = |row: UnwantedRow| {
            row.stacks.into_iter().map(|(index, place)| (index, PlaceId::new(place))).collect()
        };
        let to_unwanted = |(key, row): (Vec<u8>, UnwantedRow)| {
            let (blob, sequence) = (blob_from_key(&key)?, sequence_from_key(&key)?);
            Ok(Unwanted { blob, stacks: stacks(row), sequence, key })
        };
        rows.into_iter().map(to_unwanted).collect()
    }

    /// Whether a blob needs a stack that was listed as unwanted, so that it must stay.
    ///
    /// # Errors
    /// Those of the store.
    pub fn needs(&self, group: GroupId, blob: BlobId, index: u8, place: PlaceId) -> Result<bool> {
        let row = self.blob(group, blob)?;
        let at = row.and_then(|row| row.places.get(usize::from(index)).copied().flatten());
        Ok(at == Some(place.get()))
    }

    /// Updates rows after a garbage collection: each of `unwanted` lists the stacks that are left.
    ///
    /// # Errors
    /// Those of the store.
    pub fn collected(&self, unwanted: Vec<Unwanted>) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            for Unwanted { key, stacks, .. } in unwanted {
                if stacks.is_empty() {
                    tx.delete(UNWANTED, key)?;
                } else {
                    let stacks = stacks.into_iter().map(|(index, place)| (index, place.get()));
                    row::put(tx, UNWANTED, key, &UnwantedRow { stacks: stacks.collect() })?;
                }
            }
            Ok(())
        })
    }

    /// Adds a blob that was found on disks and is missing in the index, unless its key names a
    /// newer one. Returns whether it was added.
    ///
    /// # Errors
    /// Those of the store.
    pub fn add_recovered(&self, object: Object, pending: PendingBlob) -> Result<bool> {
        self.committer.commit_blocking(move |tx| {
            let PendingBlob { blob, group, row } = pending;
            let sequence = row.sequence;
            raise_sequence(tx, sequence)?;
            let before = row::get::<ObjectRow>(tx, OBJECTS, &object_key(&object.key))?;
            if before.is_some_and(|before| before.sequence >= sequence) {
                return Ok(false);
            }
            let (length, content) = (row.length, Content::Blob { group: group.get(), blob });
            put_blob(tx, group, blob, &row)?;
            put_blob_object(tx, (object, length), content, sequence, Mode::Overwrite)?;
            Ok(true)
        })
    }
}

const RACK_KEY: &[u8] = b"rack";
const SEQUENCE_KEY: &[u8] = b"sequence";

/// Object keys are stored without a terminator: nothing follows them, and a prefix is a range.
fn object_key(key: &str) -> Vec<u8> {
    key.as_bytes().to_vec()
}

fn group_key(group: GroupId) -> Vec<u8> {
    KeyWriter::new().u32(group.get()).finish()
}

fn blob_key(group: GroupId, blob: BlobId) -> Vec<u8> {
    KeyWriter::new().u32(group.get()).fixed(&blob.to_bytes()).finish()
}

fn intent_key(blob: BlobId, sequence: u64) -> Vec<u8> {
    KeyWriter::new().fixed(&blob.to_bytes()).u64(sequence).finish()
}

/// A blob may have several rows: for stacks replaced by a rebuild, and for the blob itself.
fn unwanted_key(group: GroupId, blob: BlobId, sequence: u64) -> Vec<u8> {
    KeyWriter::new().u32(group.get()).fixed(&blob.to_bytes()).u64(sequence).finish()
}

fn rows_exist(view: &dyn ReadView, space: Space) -> Result<bool> {
    Ok(!view.range(space, &KeyRange::all(), Direction::Ascending, 1)?.is_empty())
}

fn bad_key() -> RackError {
    RackError::Index { detail: "a key of the index has an unknown form".to_owned() }
}

fn text(key: Vec<u8>) -> Result<String> {
    String::from_utf8(key).map_err(|_| bad_key())
}

fn place_key(place: PlaceId) -> Vec<u8> {
    KeyWriter::new().u32(place.get()).finish()
}

#[expect(clippy::big_endian_bytes, reason = "big-endian keys sort by number")]
fn place_from_key(key: &[u8]) -> Result<PlaceId> {
    let key: [u8; 4] = key.try_into().map_err(|_| bad_key())?;
    Ok(PlaceId::new(u32::from_be_bytes(key)))
}

#[expect(clippy::big_endian_bytes, reason = "big-endian keys sort by number")]
fn parse_intent_key(key: &[u8]) -> Result<(BlobId, u64)> {
    let (blob, sequence) = key.split_first_chunk::<16>().ok_or_else(bad_key)?;
    let sequence = u64::from_be_bytes(sequence.try_into().map_err(|_| bad_key())?);
    Ok((BlobId::from_bytes(*blob), sequence))
}

/// Returns the sequence at the end of a key.
#[expect(clippy::big_endian_bytes, reason = "big-endian keys sort by number")]
fn sequence_from_key(key: &[u8]) -> Result<u64> {
    key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes)).ok_or_else(bad_key)
}

/// Returns the blob id in a key that begins with a group.
fn blob_from_key(key: &[u8]) -> Result<BlobId> {
    let blob = key.get(4..).and_then(|rest| rest.first_chunk::<16>()).ok_or_else(bad_key)?;
    Ok(BlobId::from_bytes(*blob))
}

/// Returns one more than the last sequence, and at least `floor`.
fn next_sequence(tx: &mut Transaction<'_>, floor: u64) -> Result<u64> {
    let last: u64 = row::get(tx, RACK, SEQUENCE_KEY)?.unwrap_or(0);
    let next = floor.max(last + 1);
    row::put(tx, RACK, SEQUENCE_KEY.to_vec(), &next)?;
    Ok(next)
}

/// Makes sequences continue behind this one.
fn raise_sequence(tx: &mut Transaction<'_>, sequence: u64) -> Result<()> {
    let last: u64 = row::get(tx, RACK, SEQUENCE_KEY)?.unwrap_or(0);
    Ok(row::put(tx, RACK, SEQUENCE_KEY.to_vec(), &last.max(sequence))?)
}

fn put_object(
    tx: &mut Transaction<'_>,
    object: Object,
    content: Content,
    sequence: u64,
    mode: Mode,
) -> Result<()> {
    let length = match &content {
        Content::Inline(bytes) => ByteCount::new(crate::format::bytes(bytes.len())),
        Content::Blob { .. } => ByteCount::ZERO,
    };
    put_blob_object(tx, (object, length), content, sequence, mode)
}

/// Puts the row of an object and marks the blob it replaces as unwanted. A newer object stays.
fn put_blob_object(
    tx: &mut Transaction<'_>,
    (object, length): (Object, ByteCount),
    content: Content,
    sequence: u64,
    mode: Mode,
) -> Result<()> {
    let key = object_key(&object.key);
    let before = row::get::<ObjectRow>(tx, OBJECTS, &key)?;
    if !mode.is_met(before.as_ref().map(|before| before.sequence)) {
        return Err(RackError::refused(mode, &object.key));
    }
    if before.as_ref().is_some_and(|before| before.sequence > sequence) {
        // Put earlier than the object that is there, but committed later: as if overwritten at
        // once.
        if let Content::Blob { group, blob } = content {
            forget_blob(tx, GroupId::new(group), blob, sequence)?;
        }
        return Ok(());
    }
    if let Some(ObjectRow { content: Content::Blob { group, blob }, .. }) = before {
        forget_blob(tx, GroupId::new(group), blob, sequence)?;
    }
    let Object { modified_ms, attributes, .. } = object;
    let row = ObjectRow { sequence, modified_ms, length, attributes, content };
    Ok(row::put(tx, OBJECTS, key, &row)?)
}

/// Puts the row of a blob, and adds it to the totals if it is new.
fn put_blob(tx: &mut Transaction<'_>, group: GroupId, blob: BlobId, row: &BlobRow) -> Result<()> {
    let key = blob_key(group, blob);
    let before = row::get::<BlobRow>(tx, BLOBS, &key)?;
    row::put(tx, BLOBS, key, row)?;
    match before {
        // Its length is unchanged.
        Some(_) => Ok(()),
        None => change_totals(tx, group, |totals| totals.add(row.length)),
    }
}

/// Removes a blob that no key names any more, and marks its stacks as unwanted.
fn forget_blob(
    tx: &mut Transaction<'_>,
    group: GroupId,
    blob: BlobId,
    sequence: u64,
) -> Result<()> {
    let Some(row) = forget_blob_row(tx, group, blob)? else { return Ok(()) };
    let stacks = (0..).zip(row.places).filter_map(|(index, place)| Some((index, place?)));
    let unwanted = UnwantedRow { stacks: stacks.collect() };
    Ok(row::put(tx, UNWANTED, unwanted_key(group, blob, sequence), &unwanted)?)
}

/// Removes the row of a blob and returns it.
fn forget_blob_row(
    tx: &mut Transaction<'_>,
    group: GroupId,
    blob: BlobId,
) -> Result<Option<BlobRow>> {
    let key = blob_key(group, blob);
    let Some(row) = row::get::<BlobRow>(tx, BLOBS, &key)? else { return Ok(None) };
    tx.delete(BLOBS, key)?;
    change_totals(tx, group, |totals| totals.remove(row.length))?;
    Ok(Some(row))
}

/// Adds stacks to an intent.
fn add_intent(
    tx: &mut Transaction<'_>,
    (group, blob, sequence): (GroupId, BlobId, u64),
    stacks: &[(u8, PlaceId)],
) -> Result<()> {
    let key = intent_key(blob, sequence);
    let mut intent = row::get(tx, INTENTS, &key)?.unwrap_or_else(|| IntentRow::new(group, &[]));
    intent.stacks.extend(IntentRow::new(group, stacks).stacks);
    Ok(row::put(tx, INTENTS, key, &intent)?)
}

/// Ends an intent: its stacks that are not in the blob's row become unwanted.
fn end_intent(
    tx: &mut Transaction<'_>,
    (group, blob, sequence): (GroupId, BlobId, u64),
    row: &BlobRow,
) -> Result<()> {
    let key = intent_key(blob, sequence);
    let Some(mut intent) = row::get::<IntentRow>(tx, INTENTS, &key)? else { return Ok(()) };
    tx.delete(INTENTS, key)?;
    intent.stacks.retain(|&(index, place)| {
        row.places.get(usize::from(index)).copied().flatten() != Some(place)
    });
    if intent.stacks.is_empty() {
        return Ok(());
    }
    let unwanted = UnwantedRow { stacks: intent.stacks };
    Ok(row::put(tx, UNWANTED, unwanted_key(group, blob, sequence), &unwanted)?)
}

/// Abandons the intent under `key`: its stacks become unwanted.
fn abandon(tx: &mut Transaction<'_>, key: &[u8], blob: BlobId, sequence: u64) -> Result<()> {
    let Some(intent) = row::get::<IntentRow>(tx, INTENTS, key)? else { return Ok(()) };
    tx.delete(INTENTS, key.to_vec())?;
    let unwanted = UnwantedRow { stacks: intent.stacks };
    let key = unwanted_key(GroupId::new(intent.group), blob, sequence);
    Ok(row::put(tx, UNWANTED, key, &unwanted)?)
}

#[cfg(test)]
mod tests;
