//! Rows of the catalog: their spaces, keys and contents.
//!
//! ```text
//! space       key                                   row
//! meta        name                                  counters, run number, batches of it, sequence
//! buckets     bucket                                BucketRow
//! objects     bucket, key, 16 zeros                 ObjectRow: the current version of a key
//! bodies      object id, index                      BodyRow
//! queue       sequence                              QueueRow: a staged body waiting for glass
//! damaged     sequence                              QueueRow: a staged body not as ingested
//! uploads     bucket, key, upload id                UploadRow
//! parts       upload id, number                     PartRow
//! shreds      body id                               key slot still to be destroyed
//! unconfirmed bucket, key, body id                  UnconfirmedRow: whole in a log, unconfirmed
//! segments    log, segment                          live bytes of the segment
//! restores    object id                             RestoreRow: a restore not yet done
//! failed      object id                             RestoreRow: a restore that was given up
//! expiries    time, object id                       name of the restored copy's object
//! moves       tier, sequence                        QueueRow: a staged body waiting for a tier
//! removals    tier, body id                         key slot of a body to be removed from a tier
//! copies      body id                               tier with a copy of a staged body
//! checksums   object id, index                      Checksum of a part of the object
//! ```
//!
//! Rows of sets and platters belong to the glass tier.
//!
//! An object's row key ends in zeros: it is the current version of the key, whatever its id, so
//! that a listing reads one row for each key that it shows. Docs/formats/rows.md has the bytes,
//! design note 0018 where other versions of a key will be stored.

pub(crate) mod accounting;
mod coding;
pub(crate) mod lookup;
pub(crate) mod tiers;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
pub(crate) use fulgurite_catalog::row::{Row, read};
use fulgurite_catalog::{KeyRange, ReadView, Space, Transaction, row};
use fulgurite_glass::SPACES as GLASS_SPACES;
pub(crate) use fulgurite_glass::Shard;
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use serde::{Deserialize, Serialize};

use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::bodies::log::{Extent, LogKind};
use crate::model::classes::{Home, TierName};
use crate::model::labels::Labels;
use crate::model::names::{BucketName, ObjectName, VersionId};
use crate::model::object::{
    ObjectInfo, ObjectMeta, Residence, RestoreState, Retrieval, StorageClass,
};
use crate::{ArchiveError, Result};

pub(crate) const META: Space = Space::new("meta");
pub(crate) const BUCKETS: Space = Space::new("buckets");
pub(crate) const OBJECTS: Space = Space::new("objects");
pub(crate) const BODIES: Space = Space::new("bodies");
pub(crate) const QUEUE: Space = Space::new("queue");
pub(crate) const DAMAGED: Space = Space::new("damaged");
pub(crate) const UPLOADS: Space = Space::new("uploads");
pub(crate) const PARTS: Space = Space::new("parts");
pub(crate) const SHREDS: Space = Space::new("shreds");
pub(crate) const UNCONFIRMED: Space = Space::new("unconfirmed");
pub(crate) const SEGMENTS: Space = Space::new("segments");
pub(crate) const RESTORES: Space = Space::new("restores");
pub(crate) const FAILED: Space = Space::new("failed");
pub(crate) const EXPIRIES: Space = Space::new("expiries");
pub(crate) const MOVES: Space = Space::new("moves");
pub(crate) const REMOVALS: Space = Space::new("removals");
pub(crate) const COPIES: Space = Space::new("copies");
pub(crate) const CHECKSUMS: Space = Space::new("checksums");

/// Spaces of this crate's rows.
const OWN_SPACES: [Space; 18] = [
    META,
    BUCKETS,
    OBJECTS,
    BODIES,
    QUEUE,
    DAMAGED,
    UPLOADS,
    PARTS,
    SHREDS,
    UNCONFIRMED,
    SEGMENTS,
    RESTORES,
    FAILED,
    EXPIRIES,
    MOVES,
    REMOVALS,
    COPIES,
    CHECKSUMS,
];

/// All spaces to open the store with, including those of the glass tier.
pub(crate) const SPACES: [Space; OWN_SPACES.len() + GLASS_SPACES.len()] = {
    let mut all = [META; OWN_SPACES.len() + GLASS_SPACES.len()];
    let (own, glass) = all.split_at_mut(OWN_SPACES.len());
    own.copy_from_slice(&OWN_SPACES);
    glass.copy_from_slice(&GLASS_SPACES);
    all
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BucketRow {
    pub(crate) created: UnixTime,
}

/// The state of an archived object's restored copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestoreMark {
    pub(crate) days: u32,
    pub(crate) retrieval: Retrieval,
    pub(crate) requested: UnixTime,
    /// Set when the copy is readable.
    pub(crate) expiry: Option<UnixTime>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectRow {
    pub(crate) object_id: ObjectId,
    pub(crate) bytes: u64,
    pub(crate) etag: String,
    pub(crate) modified: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) part_count: Option<u32>,
    pub(crate) body_count: u32,
    /// Bodies not yet wholly in their home; zero for online objects.
    pub(crate) bodies_staged: u32,
    /// The multipart upload that it came from, so that completing is idempotent.
    pub(crate) upload_id: Option<UploadId>,
    pub(crate) restore: Option<RestoreMark>,
    pub(crate) version: VersionId,
    pub(crate) labels: Labels,
    /// Where its bodies are, or go.
    pub(crate) home: Home,
}

impl ObjectRow {
    pub(crate) const fn residence(&self) -> Residence {
        match self.home {
            Home::Online => Residence::Online,
            Home::Glass | Home::Tier(_) if self.bodies_staged > 0 => Residence::Staged,
            Home::Glass => Residence::Glass,
            Home::Tier(_) => Residence::Tier,
        }
    }

    pub(crate) fn info(&self, key: &str, now: UnixTime) -> ObjectInfo {
        let restore = self.restore.and_then(|mark| match mark.expiry {
            None => Some(RestoreState::Ongoing),
            Some(expiry) if expiry > now => Some(RestoreState::Restored { expiry }),
            Some(_) => None,
        });
        ObjectInfo {
            key: key.to_owned(),
            object_id: self.object_id,
            bytes: self.bytes,
            etag: self.etag.clone(),
            modified: self.modified,
            class: self.class,
            meta: self.meta.clone(),
            checksum: self.checksum.clone(),
            part_count: self.part_count,
            restore,
            residence: self.residence(),
        }
    }
}

/// One encrypted body: an object put in one call, or one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BodyRow {
    pub(crate) body_id: ObjectId,
    pub(crate) key_slot: u32,
    /// Plaintext bytes.
    pub(crate) bytes: u64,
    /// CRC-64/NVME of the ciphertext.
    pub(crate) digest: u64,
    pub(crate) place: Place,
    /// Restored copy.
    pub(crate) restored: Option<Vec<Extent>>,
}

/// The one place that the archive relies on for all bytes of a body. It changes in the transaction
/// that frees the staged bytes, so a body is never in two of them. Copies are recorded elsewhere: a
/// restored one beside this, one that acknowledged a put in the space `copies`.
///
/// Glass is a tier, too, but a body lies there as shards with sizes and checksums of their own,
/// while a tier of objects has it whole, under its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    Log(LoggedBody),
    /// Shards on verified, stored platters, in body order.
    Glass(Vec<Shard>),
    /// A tier of objects.
    Tier(TierName),
}

/// A body in the staging or online log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedBody {
    pub(crate) kind: LogKind,
    /// Its ciphertext.
    pub(crate) extents: Vec<Extent>,
    /// Headers, padding and entries beside the ciphertext.
    pub(crate) framing: Vec<Extent>,
    /// The queue it waits in; `None` for an online body, and before its object exists.
    pub(crate) queued: Option<Queued>,
}

/// Where a staged body goes, with its sequence number in the queue for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Queued {
    Glass {
        sequence: u64,
        /// Shards of it that are on glass already, in body order.
        placed: Vec<Shard>,
    },
    Tier {
        sequence: u64,
        tier: TierName,
    },
}

impl LoggedBody {
    /// Creates the location of a body that waits for nothing.
    pub(crate) const fn new(kind: LogKind, extents: Vec<Extent>, framing: Vec<Extent>) -> Self {
        Self { kind, extents, framing, queued: None }
    }

    /// Returns all its extents, with framing; adjacent ones are merged.
    pub(crate) fn all_extents(&self) -> Vec<Extent> {
        let mut all: Vec<Extent> = self.extents.iter().chain(&self.framing).copied().collect();
        all.sort_unstable_by_key(|extent| (extent.segment, extent.offset));
        all.dedup_by(|next, before| {
            let is_next = before.segment == next.segment && before.end() == next.offset;
            before.bytes += if is_next { next.bytes } else { 0 };
            is_next
        });
        all
    }
}

impl BodyRow {
    /// Returns its location in the staging or online log, if it is there.
    pub(crate) const fn in_log(&self) -> Option<&LoggedBody> {
        match &self.place {
            Place::Log(log) => Some(log),
            Place::Glass(_) | Place::Tier(_) => None,
        }
    }

    /// Returns its shards on glass, also of a body that waits for others.
    pub(crate) fn shards(&self) -> &[Shard] {
        match &self.place {
            Place::Glass(shards)
            | Place::Log(LoggedBody {
                queued: Some(Queued::Glass { placed: shards, .. }), ..
            }) => shards,
            Place::Log(_) | Place::Tier(_) => &[],
        }
    }

    /// Returns the tier of objects that has it or that it waits for.
    pub(crate) const fn tier(&self) -> Option<&TierName> {
        match &self.place {
            Place::Tier(tier)
            | Place::Log(LoggedBody { queued: Some(Queued::Tier { tier, .. }), .. }) => Some(tier),
            Place::Log(_) | Place::Glass(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueRow {
    pub(crate) object_id: ObjectId,
    pub(crate) index: u32,
    pub(crate) name: ObjectName,
    pub(crate) arrived: UnixTime,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UploadRow {
    pub(crate) initiated: UnixTime,
    pub(crate) class: StorageClass,
    pub(crate) meta: ObjectMeta,
    pub(crate) algorithm: Option<ChecksumAlgorithm>,
    pub(crate) full_object: bool,
    /// Home of the future object; it determines the log of its parts.
    pub(crate) home: Home,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartRow {
    pub(crate) body: BodyRow,
    pub(crate) md5: [u8; 16],
    pub(crate) modified: UnixTime,
    pub(crate) checksum: Option<Checksum>,
}

/// An unconfirmed body: bytes, key and entry exist, and it is unknown whether it was acknowledged
/// (design note 0010). A put or delete of its name resolves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnconfirmedRow {
    /// The object according to its entry.
    pub(crate) object_id: ObjectId,
    /// Its version of the key in the row's key.
    pub(crate) version: VersionId,
    pub(crate) body: BodyRow,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestoreRow {
    pub(crate) name: ObjectName,
    pub(crate) mark: RestoreMark,
    /// Number of failures, and the last error.
    pub(crate) failures: u32,
    pub(crate) error: Option<String>,
}

/// Names the object of an expiring copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpiryRow {
    pub(crate) name: ObjectName,
}

/// Totals that are updated together with the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) objects_online: u64,
    pub(crate) objects_staged: u64,
    pub(crate) objects_on_glass: u64,
    pub(crate) restored: u64,
    pub(crate) restores_waiting: u64,
    pub(crate) staged_bytes: u64,
    pub(crate) sequence: u64,
    pub(crate) run: u64,
    pub(crate) objects_in_tiers: u64,
    /// Plaintext bytes of bodies that wait for a tier.
    pub(crate) moving_bytes: u64,
}

impl Totals {
    /// Returns the count of objects with this residence.
    pub(crate) const fn objects(&mut self, residence: Residence) -> &mut u64 {
        match residence {
            Residence::Online => &mut self.objects_online,
            Residence::Staged => &mut self.objects_staged,
            Residence::Glass => &mut self.objects_on_glass,
            Residence::Tier => &mut self.objects_in_tiers,
        }
    }
}

/// Reads the row under `key`.
pub(crate) fn get<T: Row>(view: &dyn ReadView, space: Space, key: &[u8]) -> Result<Option<T>> {
    Ok(row::get(view, space, key)?)
}

/// Writes `row` under `key`.
pub(crate) fn put<T: Row>(
    tx: &mut Transaction<'_>,
    space: Space,
    key: Vec<u8>,
    row: &T,
) -> Result<()> {
    Ok(row::put(tx, space, key, row)?)
}

/// Decodes a row.
pub(crate) fn decode<T: Row>(space: Space, bytes: &[u8]) -> Result<T> {
    Ok(row::decode(space, bytes)?)
}

/// The same for bytes read from `view`, which is notified when they do not decode.
pub(crate) fn decode_row<T: Row>(view: &dyn ReadView, space: Space, bytes: &[u8]) -> Result<T> {
    Ok(row::decode_row(view, space, bytes)?)
}

/// Encodes a row.
pub(crate) fn encode<T: Row>(row: &T) -> Result<Vec<u8>> {
    Ok(row::encode(row)?)
}

pub(crate) const KEY_SLOTS_KEY: &[u8] = b"key-slots";

/// Returns the minimum number of slots in the key table: one more than the highest that a row ever
/// named.
pub(crate) fn key_slots(view: &dyn ReadView) -> Result<u32> {
    Ok(get(view, META, KEY_SLOTS_KEY)?.unwrap_or(0))
}

/// Raises that number if these rows name higher slots.
pub(crate) fn raise_key_slots(tx: &mut Transaction<'_>, slots: u32) -> Result<()> {
    if key_slots(tx)? >= slots {
        return Ok(());
    }
    put(tx, META, KEY_SLOTS_KEY.to_vec(), &slots)
}

pub(crate) const UNCONFIRMED_COUNT_KEY: &[u8] = b"unconfirmed";

/// Returns the number of rows in the space `unconfirmed`.
pub(crate) fn unconfirmed_count(view: &dyn ReadView) -> Result<u64> {
    Ok(get(view, META, UNCONFIRMED_COUNT_KEY)?.unwrap_or(0))
}

/// Stores the number of rows in the space `unconfirmed`.
pub(crate) fn set_unconfirmed_count(tx: &mut Transaction<'_>, count: u64) -> Result<()> {
    put(tx, META, UNCONFIRMED_COUNT_KEY.to_vec(), &count)
}

/// Returns the checksum of a part, given the index of its body in the object.
pub(crate) fn part_checksum(
    view: &dyn ReadView,
    object: &ObjectRow,
    index: u32,
) -> Result<Option<Checksum>> {
    if object.part_count.is_none() {
        return Ok(None);
    }
    get(view, CHECKSUMS, &body_key(object.object_id, index))
}

const FAILED_COUNT_KEY: &[u8] = b"failed";

/// Returns the number of restores that were given up.
pub(crate) fn failed_count(view: &dyn ReadView) -> Result<u64> {
    Ok(get(view, META, FAILED_COUNT_KEY)?.unwrap_or(0))
}

/// Stores the number of restores that were given up.
pub(crate) fn set_failed_count(tx: &mut Transaction<'_>, count: u64) -> Result<()> {
    put(tx, META, FAILED_COUNT_KEY.to_vec(), &count)
}

/// The first segment of each log that may hold an entry whose commit had not ended when this was
/// written. It concerns the last run in the catalog; all earlier runs are settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettledRow {
    pub(crate) staging: u32,
    pub(crate) online: u32,
}

impl SettledRow {
    /// Returns the segment of this log.
    pub(crate) const fn first_segment(&self, kind: LogKind) -> u32 {
        match kind {
            LogKind::Staging => self.staging,
            LogKind::Online => self.online,
            LogKind::Restored => 0,
        }
    }
}

const SETTLED_KEY: &[u8] = b"settled";

pub(crate) fn settled(view: &dyn ReadView) -> Result<SettledRow> {
    Ok(get(view, META, SETTLED_KEY)?.unwrap_or_default())
}

pub(crate) fn set_settled(tx: &mut Transaction<'_>, row: SettledRow) -> Result<()> {
    put(tx, META, SETTLED_KEY.to_vec(), &row)
}

pub(crate) const TOTALS_KEY: &[u8] = b"totals";

pub(crate) fn totals(view: &dyn ReadView) -> Result<Totals> {
    Ok(get(view, META, TOTALS_KEY)?.unwrap_or_default())
}

pub(crate) const COMMITS_KEY: &[u8] = b"commits";

/// The age of a catalog: the run of the archive, and the batches that it has written. Every batch
/// contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CatalogAge {
    pub(crate) run: u64,
    pub(crate) commits: u64,
}

impl std::fmt::Display for CatalogAge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "batch {} of run {}", self.commits, self.run)
    }
}

/// Returns the age of a catalog. A recovery counts no batches; a start
/// that was interrupted has counted batches before the totals have its run.
pub(crate) fn catalog_age(view: &dyn ReadView) -> Result<CatalogAge> {
    let counted = CatalogAge { run: totals(view)?.run, commits: 0 };
    Ok(get::<CatalogAge>(view, META, COMMITS_KEY)?.map_or(counted, |age| age.max(counted)))
}

const PURGE_KEY: &[u8] = b"forgetting";

/// Deletions, and how many of them have left the files: see `forget`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PurgeRow {
    /// Incremented by every step of a transaction that removes a name.
    pub(crate) marked: u64,
    /// The value of `marked` when the files were last free of all marked names.
    pub(crate) forgotten: u64,
    pub(crate) tries: u64,
}

impl PurgeRow {
    pub(crate) const fn is_done(&self) -> bool {
        self.marked == self.forgotten
    }
}

pub(crate) fn purge_state(view: &dyn ReadView) -> Result<PurgeRow> {
    Ok(get(view, META, PURGE_KEY)?.unwrap_or_default())
}

/// Changes the state of forgetting and returns what `change` returns.
pub(crate) fn with_purge<T>(
    tx: &mut Transaction<'_>,
    change: impl FnOnce(&mut PurgeRow) -> T,
) -> Result<T> {
    let mut row = purge_state(tx)?;
    let answer = change(&mut row);
    put(tx, META, PURGE_KEY.to_vec(), &row)?;
    Ok(answer)
}

/// Records that a name was removed, so that it is purged from the files in time.
pub(crate) fn mark_for_purge(tx: &mut Transaction<'_>) -> Result<()> {
    with_purge(tx, |row| row.marked += 1)
}

/// Changes the totals within a transaction and returns what `change` returns.
pub(crate) fn with_totals<T>(
    tx: &mut Transaction<'_>,
    change: impl FnOnce(&mut Totals) -> T,
) -> Result<T> {
    let mut row = totals(tx)?;
    let answer = change(&mut row);
    put(tx, META, TOTALS_KEY.to_vec(), &row)?;
    Ok(answer)
}

pub(crate) fn bucket_key(bucket: &str) -> Vec<u8> {
    bucket.as_bytes().to_vec()
}

/// End of an object row's key.
const CURRENT: [u8; 16] = [0; 16];

pub(crate) fn object_key(bucket: &str, key: &str) -> Vec<u8> {
    KeyWriter::new().string(bucket).string(key).fixed(&CURRENT).finish()
}

/// Returns the row key of an object, provided it is the current version.
pub(crate) fn object_key_of(name: &ObjectName) -> Vec<u8> {
    object_key(name.bucket.as_str(), name.key.as_str())
}

/// Parses bucket and key from an object row's key.
pub(crate) fn parse_object_key(bytes: &[u8]) -> Result<(String, String)> {
    let mut reader = KeyReader::new(bytes);
    let bucket = reader.string()?;
    let key = reader.string()?;
    if reader.fixed::<16>()? != CURRENT {
        let what = "the key of an object's row".to_owned();
        return Err(ArchiveError::Corrupt { what });
    }
    reader.finish()?;
    Ok((bucket, key))
}

pub(crate) fn unconfirmed_key(name: &ObjectName, body: ObjectId) -> Vec<u8> {
    let names = KeyWriter::new().string(name.bucket.as_str()).string(name.key.as_str());
    names.fixed(&body.to_bytes()).finish()
}

/// Returns the range of unconfirmed bodies of one name.
pub(crate) fn unconfirmed_range(bucket: &str, key: &str) -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().string(bucket).string(key).finish())
}

/// Parses bucket, key and body from an unconfirmed body's row key.
pub(crate) fn parse_unconfirmed_key(bytes: &[u8]) -> Result<(String, String, ObjectId)> {
    let mut reader = KeyReader::new(bytes);
    let (bucket, key) = (reader.string()?, reader.string()?);
    let body = ObjectId::from_bytes(reader.fixed::<16>()?);
    reader.finish()?;
    Ok((bucket, key, body))
}

/// Returns the range of a bucket's object keys that begin with `prefix`.
pub(crate) fn object_prefix(bucket: &str, prefix: &str) -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().string(bucket).string_prefix(prefix.as_bytes()).finish())
}

pub(crate) fn body_key(object: ObjectId, index: u32) -> Vec<u8> {
    KeyWriter::new().fixed(&object.to_bytes()).u32(index).finish()
}

pub(crate) fn bodies_range(object: ObjectId) -> KeyRange {
    KeyRange::prefix(&object.to_bytes())
}

pub(crate) fn sequence_key(sequence: u64) -> Vec<u8> {
    KeyWriter::new().u64(sequence).finish()
}

/// Records that a bucket is shared with other archives.
pub(crate) fn record_shared(tx: &mut Transaction<'_>, bucket: &BucketName) -> Result<()> {
    put(tx, META, shared_key(bucket), &1u64)
}

/// Removes that record, if there is one.
pub(crate) fn delete_shared_record(tx: &mut Transaction<'_>, bucket: &BucketName) -> Result<()> {
    Ok(tx.delete(META, shared_key(bucket))?)
}

fn shared_key(bucket: &BucketName) -> Vec<u8> {
    KeyWriter::new().string("shared").string(bucket.as_str()).finish()
}

/// Returns the range of records of shared buckets.
pub(crate) fn shared_buckets() -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().string("shared").finish())
}

/// Parses the bucket from the key of such a record.
pub(crate) fn parse_shared_key(key: &[u8]) -> Result<BucketName> {
    let mut reader = KeyReader::new(key);
    reader.string()?;
    BucketName::new(&reader.string()?)
}

/// Returns the key of a body that waits for a tier.
pub(crate) fn move_key(tier: &TierName, sequence: u64) -> Vec<u8> {
    KeyWriter::new().string(tier.as_str()).u64(sequence).finish()
}

/// Returns the range of bodies that wait for a tier.
pub(crate) fn moves_range(tier: &TierName) -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().string(tier.as_str()).finish())
}

/// Parses the sequence number from a move's key.
pub(crate) fn parse_move_key(bytes: &[u8]) -> Result<u64> {
    let mut reader = KeyReader::new(bytes);
    reader.string()?;
    let sequence = reader.u64()?;
    reader.finish()?;
    Ok(sequence)
}

/// Returns the key of a body to be removed from a tier.
pub(crate) fn removal_key(tier: &TierName, body: ObjectId) -> Vec<u8> {
    KeyWriter::new().string(tier.as_str()).fixed(&body.to_bytes()).finish()
}

/// Returns the key of a staged body's copy.
pub(crate) fn copy_key(body: ObjectId) -> Vec<u8> {
    body.to_bytes().to_vec()
}

/// Returns the range of bodies to be removed from a tier.
pub(crate) fn removals_range(tier: &TierName) -> KeyRange {
    moves_range(tier)
}

/// Parses the body from a removal's key.
pub(crate) fn parse_removal_key(bytes: &[u8]) -> Result<ObjectId> {
    let mut reader = KeyReader::new(bytes);
    reader.string()?;
    let body = ObjectId::from_bytes(reader.fixed::<16>()?);
    reader.finish()?;
    Ok(body)
}

pub(crate) fn upload_key(bucket: &str, key: &str, upload: UploadId) -> Vec<u8> {
    KeyWriter::new().string(bucket).string(key).fixed(&upload.to_bytes()).finish()
}

/// Parses object key and upload id from an upload row's key.
pub(crate) fn parse_upload_key(bytes: &[u8]) -> Result<(String, UploadId)> {
    let mut reader = KeyReader::new(bytes);
    reader.string()?;
    let key = reader.string()?;
    let upload = UploadId::from_bytes(reader.fixed::<16>()?);
    reader.finish()?;
    Ok((key, upload))
}

pub(crate) fn part_key(upload: UploadId, number: u32) -> Vec<u8> {
    KeyWriter::new().fixed(&upload.to_bytes()).u32(number).finish()
}

pub(crate) fn segment_key(kind: LogKind, segment: u32) -> Vec<u8> {
    KeyWriter::new().u8(kind.code()).u32(segment).finish()
}

pub(crate) fn expiry_key(expiry: UnixTime, object: ObjectId) -> Vec<u8> {
    KeyWriter::new().u64(expiry.as_millis()).fixed(&object.to_bytes()).finish()
}

/// Parses time and object from an expiry row's key.
pub(crate) fn parse_expiry_key(bytes: &[u8]) -> Result<(UnixTime, ObjectId)> {
    let mut reader = KeyReader::new(bytes);
    let expiry = UnixTime::from_millis(reader.u64()?);
    let object = ObjectId::from_bytes(reader.fixed::<16>()?);
    reader.finish()?;
    Ok((expiry, object))
}

/// Parses the log's code and the segment number from a segment row's key.
pub(crate) fn parse_segment_key(bytes: &[u8]) -> Result<(u8, u32)> {
    let mut reader = KeyReader::new(bytes);
    let code = reader.u8()?;
    let segment = reader.u32()?;
    reader.finish()?;
    Ok((code, segment))
}

#[cfg(test)]
mod tests;
