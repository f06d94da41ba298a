//! Multipart uploads: parts in any order and any number of times, joined by one transaction.
//!
//! A part is a body of its own, with its own key, from the moment it is uploaded; completing an
//! upload moves rows, not bytes. The log gets the object's entries before the commit:
//!
//! ```text
//! read the parts -----> entries of the object into the log, sync --> commit, if the parts are
//!        ^                                                           still those  --> answer
//!        `------------------------------ else, a few times ---------------'
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, ReadView, Transaction};
use fulgurite_units::{ObjectId, UnixTime, UploadId};
use md5::{Digest as _, Md5};

use crate::bodies::cipher::random_bytes;
use crate::bodies::digest::{BodyDigest, BodyDigests, Checksum, ChecksumAlgorithm};
use crate::bodies::entry::{Entry, PartEntry};
use crate::bodies::ingest::{BodyEntry, Ingest, truncate_to_seconds};
use crate::bodies::log::{EntryWriter, Extent, LogKind};
use crate::limits::{COMPLETE_TRIES_MAX, PART_BYTES_MIN, PART_NUMBER_MAX};
use crate::model::classes::Home;
use crate::model::labels::Labels;
use crate::model::names::{BucketName, ObjectKey, ObjectName, VersionId};
use crate::model::object::{
    BodyClaim, CompletedPart, ObjectInfo, PartInfo, UploadInfo, UploadOptions, WriteCondition,
};
use crate::objects::body::ObjectReader;
use crate::objects::commit::{check_condition, insert_object, retire_body};
use crate::objects::put::check_meta;
use crate::rows::accounting::{Retired, account, account_bodies};
use crate::rows::lookup::{find_object, require_bucket, rows_in};
use crate::rows::{self, BodyRow, CHECKSUMS, ObjectRow, PARTS, PartRow, Place, UPLOADS, UploadRow};
use crate::state::ArchiveState;
use crate::tiers::AcknowledgedCopies;
use crate::{ArchiveError, Result};

/// The upload that a request names.
#[derive(Clone, Debug)]
pub(crate) struct UploadName {
    pub(crate) bucket: BucketName,
    pub(crate) key: ObjectKey,
    pub(crate) upload: UploadId,
}

impl UploadName {
    fn row_key(&self) -> Vec<u8> {
        rows::upload_key(self.bucket.as_str(), self.key.as_str(), self.upload)
    }

    pub(crate) fn find(&self, view: &dyn ReadView) -> Result<UploadRow> {
        match rows::get(view, UPLOADS, &self.row_key())? {
            Some(row) => Ok(row),
            None => {
                require_bucket(view, &self.bucket)?;
                Err(ArchiveError::NoSuchUpload { upload: self.upload.to_string() })
            }
        }
    }

    /// Returns the log of its parts: its home's, except for staged parts that a recovery found
    /// after their class had become online.
    fn log(&self, view: &dyn ReadView, upload: &UploadRow) -> Result<LogKind> {
        let range = KeyRange::prefix(&self.upload.to_bytes());
        let first: Vec<(Vec<u8>, PartRow)> = rows_in(view, PARTS, &range, 1)?;
        let found = first.iter().find_map(|(_, part)| part.body.in_log());
        Ok(found.map_or_else(|| upload.home.log(), |log| log.kind))
    }

    pub(crate) fn parts(&self, view: &dyn ReadView) -> Result<Vec<(u32, PartRow)>> {
        let range = KeyRange::prefix(&self.upload.to_bytes());
        let found: Vec<(Vec<u8>, PartRow)> = rows_in(view, PARTS, &range, usize::MAX)?;
        found.into_iter().map(|(key, row)| Ok((part_number(&key)?, row))).collect()
    }
}

fn part_number(key: &[u8]) -> Result<u32> {
    let mut reader = fulgurite_catalog::keys::KeyReader::new(key);
    reader.fixed::<16>()?;
    Ok(reader.u32()?)
}

fn upload_info(key: &str, upload_id: UploadId, row: &UploadRow) -> UploadInfo {
    UploadInfo {
        upload_id,
        key: key.to_owned(),
        initiated: row.initiated,
        class: row.class,
        algorithm: row.algorithm,
        full_object: row.full_object,
    }
}

fn part_info(number: u32, row: &PartRow) -> PartInfo {
    PartInfo {
        number,
        bytes: row.body.bytes,
        etag: hex::encode(row.md5),
        modified: row.modified,
        checksum: row.checksum.clone(),
    }
}

pub(crate) async fn create(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    options: UploadOptions,
) -> Result<UploadInfo> {
    check_meta(&options.meta)?;
    let upload = UploadId::from_random(random_bytes()?);
    let name = UploadName { bucket: bucket.clone(), key: key.clone(), upload };
    let row = UploadRow {
        initiated: truncate_to_seconds(state.now()),
        class: options.class,
        meta: options.meta,
        algorithm: options.algorithm,
        full_object: options.full_object,
        home: state.config.classes.home(options.class)?.clone(),
    };
    let info = upload_info(key.as_str(), upload, &row);
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        require_bucket(tx, &name.bucket)?;
        rows::put(tx, UPLOADS, name.row_key(), &row)
    };
    state.committer.commit(commit).await?;
    Ok(info)
}

/// A part of a multipart upload being written. Dropped before `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct PartWriter {
    state: Arc<ArchiveState>,
    name: UploadName,
    number: u32,
    upload: UploadRow,
    bucket_created: UnixTime,
    ingest: Ingest,
}

impl PartWriter {
    pub(crate) fn begin(
        state: &Arc<ArchiveState>,
        name: UploadName,
        number: u32,
        mut claim: BodyClaim,
    ) -> Result<Self> {
        if !(1..=PART_NUMBER_MAX).contains(&number) {
            return Err(ArchiveError::InvalidArgument {
                what: format!("part number {number} is not between 1 and {PART_NUMBER_MAX}"),
            });
        }
        let upload = name.find(&*state.kv)?;
        claim.algorithm =
            upload.algorithm.or(claim.algorithm).or(Some(ChecksumAlgorithm::Crc64Nvme));
        if let (Some(wanted), Some(sent)) = (upload.algorithm, &claim.checksum)
            && wanted != sent.algorithm
        {
            return Err(ArchiveError::InvalidArgument {
                what: format!("the upload's checksum algorithm is {}", wanted.name()),
            });
        }
        let bucket_created = require_bucket(&*state.kv, &name.bucket)?.created;
        let log = name.log(&*state.kv, &upload)?;
        let ingest = Ingest::begin(state, log, claim)?;
        Ok(Self { state: Arc::clone(state), name, number, upload, bucket_created, ingest })
    }

    /// Adds the next bytes of the part.
    ///
    /// # Errors
    /// When the part exceeds its declared length, the archive is full or the disk fails.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.ingest.write(bytes).await
    }

    /// Ends the part; it replaces an earlier part of the same number.
    ///
    /// # Errors
    /// When a claim does not hold, the upload is gone, or the disk fails.
    pub async fn finish(self, trailer: Option<Checksum>) -> Result<PartInfo> {
        let task = tokio::spawn(self.commit(trailer));
        task.await
            .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
    }

    async fn commit(self, trailer: Option<Checksum>) -> Result<PartInfo> {
        let Self { state, name, number, upload, bucket_created, ingest } = self;
        let modified = truncate_to_seconds(state.now());
        let describe = |digests: &BodyDigests, digest: u64| {
            let entry = PartEntry {
                bucket: name.bucket.to_string(),
                bucket_created,
                key: name.key.to_string(),
                upload_id: name.upload,
                initiated: upload.initiated,
                class: upload.class,
                meta: upload.meta,
                algorithm: upload.algorithm,
                full_object: upload.full_object,
                number,
                body_bytes: digests.bytes,
                body_digest: digest,
                md5: digests.md5,
                modified,
                checksum: digests.checksum.clone(),
            };
            (BodyEntry::Part(entry), ())
        };
        let (staged, ()) = ingest.finish(trailer, describe).await?;
        let row = PartRow {
            body: staged.row.clone(),
            md5: staged.digests.md5,
            modified,
            checksum: staged.digests.checksum.clone(),
        };
        let info = part_info(number, &row);
        let commit = move |tx: &mut Transaction<'_>| -> Result<Retired> {
            name.find(tx)?;
            let key = rows::part_key(name.upload, number);
            let mut retired = Retired::default();
            if let Some(old) = rows::get::<PartRow>(tx, PARTS, &key)? {
                retire_body(tx, &old.body, &mut retired)?;
            }
            account_bodies(tx, std::slice::from_ref(&row.body))?;
            rows::put(tx, PARTS, key, &row)?;
            Ok(retired)
        };
        let outcome = state.committer.commit(commit).await;
        let retired = staged.settle(outcome)?;
        state.runtime.fail.pass("part-committed");
        state.finish_retired(retired).await?;
        Ok(info)
    }
}

/// UploadPartCopy: copies a part from a readable object.
pub(crate) async fn copy_part(
    state: &Arc<ArchiveState>,
    mut reader: ObjectReader,
    name: UploadName,
    number: u32,
) -> Result<PartInfo> {
    let claim = BodyClaim { bytes: Some(reader.bytes), ..BodyClaim::default() };
    let mut writer = PartWriter::begin(state, name, number, claim)?;
    while let Some(bytes) = reader.next().await {
        writer.write(bytes?).await?;
    }
    writer.finish(None).await
}

/// Selects the listed parts from the uploaded ones.
pub(crate) fn choose(
    uploaded: Vec<(u32, PartRow)>,
    listed: &[CompletedPart],
) -> Result<(Vec<PartRow>, Vec<PartRow>)> {
    let mut left: BTreeMap<u32, PartRow> = uploaded.into_iter().collect();
    let mut chosen: Vec<PartRow> = Vec::with_capacity(listed.len());
    let mut previous = 0;
    for part in listed {
        if part.number <= previous {
            return Err(ArchiveError::InvalidPartOrder { part: part.number });
        }
        previous = part.number;
        let row = left
            .remove(&part.number)
            .filter(|row| hex::encode(row.md5) == part.etag)
            .filter(|row| part.checksum.as_ref().is_none_or(|c| row.checksum.as_ref() == Some(c)))
            .ok_or(ArchiveError::InvalidPart { part: part.number })?;
        chosen.push(row);
    }
    let Some((_, but_last)) = chosen.split_last() else {
        return Err(ArchiveError::InvalidArgument { what: "no parts are listed".to_owned() });
    };
    for (row, part) in but_last.iter().zip(listed) {
        if row.body.bytes < PART_BYTES_MIN {
            let (part, bytes) = (part.number, row.body.bytes);
            return Err(ArchiveError::EntityTooSmall { part, bytes, min: PART_BYTES_MIN });
        }
    }
    Ok((chosen, left.into_values().collect()))
}

/// Computes the ETag of a multipart object: MD5 of the parts' MD5s, and their count.
pub(crate) fn multipart_etag(parts: &[PartRow]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part.md5);
    }
    format!("{}-{}", hex::encode(md5.finalize()), parts.len())
}

/// Computes the object's checksum from its parts': over the full object for CRCs that combine,
/// otherwise over the concatenated part checksums.
pub(crate) fn multipart_checksum(upload: &UploadRow, parts: &[PartRow]) -> Option<Checksum> {
    let algorithm = upload.algorithm.unwrap_or(ChecksumAlgorithm::Crc64Nvme);
    let values: Option<Vec<&Checksum>> = parts
        .iter()
        .map(|part| part.checksum.as_ref().filter(|c| c.algorithm == algorithm))
        .collect();
    let values = values?;
    if (upload.full_object || upload.algorithm.is_none())
        && let Some(crc) = combinable_crc(algorithm)
    {
        let whole = parts.iter().zip(&values).fold(None, |sum: Option<u64>, (part, value)| {
            let next = be_value(&value.value);
            Some(
                sum.map_or(next, |sum| crc_fast::checksum_combine(crc, sum, next, part.body.bytes)),
            )
        })?;
        #[expect(clippy::big_endian_bytes, reason = "S3 shows CRCs big-endian")]
        let bytes = whole.to_be_bytes();
        let value = bytes[8 - algorithm.value_bytes()..].to_vec();
        return Some(Checksum { algorithm, value, composite_parts: None });
    }
    let mut digest = BodyDigest::new(Some(algorithm));
    for value in &values {
        digest.update(&value.value);
    }
    let checksum = digest.finish().checksum?;
    Some(Checksum { composite_parts: u32::try_from(parts.len()).ok(), ..checksum })
}

const fn combinable_crc(algorithm: ChecksumAlgorithm) -> Option<crc_fast::CrcAlgorithm> {
    match algorithm {
        ChecksumAlgorithm::Crc32 => Some(crc_fast::CrcAlgorithm::Crc32IsoHdlc),
        ChecksumAlgorithm::Crc32c => Some(crc_fast::CrcAlgorithm::Crc32Iscsi),
        ChecksumAlgorithm::Crc64Nvme => Some(crc_fast::CrcAlgorithm::Crc64Nvme),
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => None,
    }
}

fn be_value(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

pub(crate) fn check_object_checksum(
    claimed: Option<&Checksum>,
    actual: Option<&Checksum>,
) -> Result<()> {
    let Some(claimed) = claimed else { return Ok(()) };
    match actual {
        Some(actual) if actual.algorithm == claimed.algorithm && actual.value == claimed.value => {
            Ok(())
        }
        _ => Err(ArchiveError::BadDigest {
            algorithm: claimed.algorithm.name(),
            expected: claimed.text(),
            actual: actual.map_or_else(|| "not kept".to_owned(), Checksum::text),
        }),
    }
}

/// The parameters of CompleteMultipartUpload.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) name: UploadName,
    pub(crate) listed: Vec<CompletedPart>,
    pub(crate) condition: WriteCondition,
    pub(crate) checksum: Option<Checksum>,
}

pub(crate) async fn complete(
    state: &Arc<ArchiveState>,
    completion: Completion,
) -> Result<ObjectInfo> {
    let now = state.now();
    let (key, shared) = (completion.name.key.to_string(), Arc::clone(state));
    let join = PendingCompletion {
        object_id: ObjectId::from_random(random_bytes()?),
        modified: truncate_to_seconds(now),
        completion,
    };
    let task = tokio::spawn(complete_serialized(shared, Arc::new(join)));
    let row = task
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })??;
    Ok(row.info(&key, now))
}

/// Retries until the parts do not change between log write and commit.
async fn complete_serialized(
    state: Arc<ArchiveState>,
    join: Arc<PendingCompletion>,
) -> Result<ObjectRow> {
    let _guard = state.completion_locks.turn(join.completion.name.upload).await;
    // Copies that one attempt put into the tier stay for the next.
    let mut copies_kept = Vec::new();
    for _ in 0..COMPLETE_TRIES_MAX {
        let (shared, wanted) = (Arc::clone(&state), Arc::clone(&join));
        let written =
            tokio::task::spawn_blocking(move || wanted.write_entries(&shared)).await.map_err(
                |e| ArchiveError::Internal { what: format!("a worker panicked: {e}") },
            )??;
        let Some(WrittenEntries { entries, places, row, parts }) = written else {
            // A repeated request gets the same answer.
            return join.find_done(&*state.kv);
        };
        state.runtime.fail.pass("complete-logged");
        let name = &join.completion.name;
        let name = ObjectName::new(&name.bucket, &name.key, row.version);
        let acknowledged = AcknowledgedCopies::upload(&state, &name, &row, &parts).await?;
        copies_kept.extend(acknowledged.clone());
        let wanted = Arc::clone(&join);
        let commit = move |tx: &mut Transaction<'_>| {
            let made = wanted.commit(tx, &places)?;
            if let (Some((row, _)), Some(there)) = (&made, &acknowledged) {
                there.settle(tx, &row.home)?;
            }
            Ok(made)
        };
        let outcome = state.committer.commit(commit).await;
        match &outcome {
            Ok(Some(_)) => entries.keep(),
            // If the catalog itself failed, it is unknown whether the rows were committed.
            Err(ArchiveError::Catalog(_)) => entries.keep_unconfirmed(),
            Ok(None) | Err(_) => drop(entries),
        }
        let Some((row, retired)) = outcome? else { continue };
        state.runtime.fail.pass("complete-committed");
        state.finish_retired(retired).await?;
        state.notify_pipeline();
        return Ok(row);
    }
    let what = format!("parts of upload \"{}\" keep changing", join.completion.name.upload);
    Err(ArchiveError::Busy { what })
}

/// A completion, with the id and time of its future object.
#[derive(Debug)]
struct PendingCompletion {
    object_id: ObjectId,
    modified: UnixTime,
    completion: Completion,
}

/// An object made of parts.
#[derive(Debug)]
struct JoinedObject {
    row: ObjectRow,
    chosen: Vec<PartRow>,
    dropped: Vec<PartRow>,
}

/// What an attempt wrote to the log for an object made of parts.
#[derive(Debug)]
struct WrittenEntries {
    entries: EntryWriter,
    places: BTreeMap<ObjectId, Extent>,
    row: ObjectRow,
    parts: Vec<(BodyRow, Option<Checksum>)>,
}

impl PendingCompletion {
    /// Returns the object that the upload became, if it was completed before.
    fn find_done(&self, view: &dyn ReadView) -> Result<ObjectRow> {
        let name = &self.completion.name;
        find_object(view, &name.bucket, &name.key)?
            .filter(|row| row.upload_id == Some(name.upload))
            .ok_or_else(|| ArchiveError::NoSuchUpload { upload: name.upload.to_string() })
    }

    /// Builds the object from the parts in the catalog; `None` when it exists already.
    fn join(&self, view: &dyn ReadView) -> Result<Option<JoinedObject>> {
        let name = &self.completion.name;
        let current = find_object(view, &name.bucket, &name.key)?;
        let upload = match name.find(view) {
            Ok(upload) => upload,
            Err(error) => {
                return match current.filter(|row| row.upload_id == Some(name.upload)) {
                    Some(_) => Ok(None),
                    None => Err(error),
                };
            }
        };
        let (chosen, dropped) = choose(name.parts(view)?, &self.completion.listed)?;
        check_condition(&self.completion.condition, current.as_ref(), &name.key, &name.bucket)?;
        let checksum = multipart_checksum(&upload, &chosen);
        check_object_checksum(self.completion.checksum.as_ref(), checksum.as_ref())?;
        let count = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        let row = ObjectRow {
            object_id: self.object_id,
            bytes: chosen.iter().map(|part| part.body.bytes).sum(),
            etag: multipart_etag(&chosen),
            modified: self.modified,
            class: upload.class,
            meta: upload.meta,
            checksum,
            part_count: Some(count),
            body_count: count,
            bodies_staged: if upload.home == Home::Online { 0 } else { count },
            upload_id: Some(name.upload),
            restore: None,
            version: VersionId::NULL,
            labels: Labels::default(),
            home: upload.home,
        };
        Ok(Some(JoinedObject { row, chosen, dropped }))
    }

    /// Writes the object's entry for each body to the log, and syncs. Blocks.
    fn write_entries(&self, state: &Arc<ArchiveState>) -> Result<Option<WrittenEntries>> {
        let view = state.kv.snapshot();
        let Some(JoinedObject { row, chosen, .. }) = self.join(&*view)? else { return Ok(None) };
        let name = &self.completion.name;
        let created = require_bucket(&*view, &name.bucket)?.created;
        let object_name = ObjectName::new(&name.bucket, &name.key, row.version);
        let now = state.now();
        let mut writer = state.log(log_of(&chosen, &row)).entry_writer();
        let mut places = BTreeMap::new();
        for (index, PartRow { body, checksum, .. }) in (0..).zip(&chosen) {
            let secret = state.keys.load(body.key_slot, body.body_id)?;
            let place = (index, body.bytes, body.digest);
            let entry = Entry::build(object_name.clone(), created, &row, place);
            let entry = entry.with_part(checksum.clone());
            let entry = entry.record(&secret, body.body_id, now)?;
            places.insert(body.body_id, writer.write(body.body_id, &entry)?);
        }
        writer.sync_blocking()?;
        let parts = chosen.into_iter().map(|part| (part.body, part.checksum)).collect();
        Ok(Some(WrittenEntries { entries: writer, places, row, parts }))
    }

    /// Creates the object if its bodies still have the entries at `places` in the log.
    fn commit(
        &self,
        tx: &mut Transaction<'_>,
        places: &BTreeMap<ObjectId, Extent>,
    ) -> Result<Option<(ObjectRow, Retired)>> {
        let name = &self.completion.name;
        let Some(JoinedObject { row, chosen, dropped }) = self.join(tx)? else { return Ok(None) };
        let kind = log_of(&chosen, &row);
        let mut bodies = Vec::with_capacity(chosen.len());
        for (index, PartRow { mut body, checksum, .. }) in (0..).zip(chosen) {
            let Some(&place) = places.get(&body.body_id) else { return Ok(None) };
            if let Place::Log(log) = &mut body.place {
                log.framing.push(place);
            }
            bodies.push(body);
            if let Some(checksum) = checksum {
                rows::put(tx, CHECKSUMS, rows::body_key(row.object_id, index), &checksum)?;
            }
        }
        let entries: Vec<Extent> = places.values().copied().collect();
        account(tx, kind, &entries, true)?;
        let mut retired = insert_object(tx, &name.bucket, &name.key, row.clone(), bodies)?;
        for part in dropped {
            retire_body(tx, &part.body, &mut retired)?;
        }
        delete_upload_rows(tx, name)?;
        Ok(Some((row, retired)))
    }
}

/// Returns the log that all parts of an object are in.
fn log_of(parts: &[PartRow], object: &ObjectRow) -> LogKind {
    let first = parts.iter().find_map(|part| part.body.in_log());
    first.map_or_else(|| object.home.log(), |log| log.kind)
}

fn delete_upload_rows(tx: &mut Transaction<'_>, name: &UploadName) -> Result<()> {
    let parts = KeyRange::prefix(&name.upload.to_bytes());
    for (key, _) in tx.range(PARTS, &parts, Direction::Ascending, usize::MAX)? {
        tx.delete(PARTS, key)?;
    }
    Ok(tx.delete(UPLOADS, name.row_key())?)
}

pub(crate) async fn abort(state: &Arc<ArchiveState>, name: UploadName) -> Result<()> {
    let commit = move |tx: &mut Transaction<'_>| -> Result<Retired> {
        name.find(tx)?;
        let mut retired = Retired::default();
        for (_, part) in name.parts(tx)? {
            retire_body(tx, &part.body, &mut retired)?;
        }
        delete_upload_rows(tx, &name)?;
        // Also if it had no parts: the upload's row contains a name.
        rows::mark_for_purge(tx)?;
        Ok(retired)
    };
    // A separate task, so that a client that disconnects leaves no keys and no space behind.
    let shared = Arc::clone(state);
    let task = async move {
        let retired = shared.committer.commit(commit).await?;
        shared.finish_retired(retired).await
    };
    tokio::spawn(task)
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
}

/// Lists uploads in progress after a marker, ordered by key and upload id.
pub(crate) fn list_uploads(
    state: &ArchiveState,
    bucket: &BucketName,
    prefix: &str,
    after: Option<(String, Option<UploadId>)>,
    limit: usize,
) -> Result<(Vec<UploadInfo>, bool)> {
    require_bucket(&*state.kv, bucket)?;
    let mut range = rows::object_prefix(bucket.as_str(), prefix);
    if let Some((key, upload)) = after {
        // Without an upload id the marker covers every upload of its key.
        let upload = upload.unwrap_or_else(|| UploadId::from_bytes([0xFF; 16]));
        range = range.after(&rows::upload_key(bucket.as_str(), &key, upload));
    }
    let mut found: Vec<(Vec<u8>, UploadRow)> = rows_in(&*state.kv, UPLOADS, &range, limit + 1)?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let uploads = found
        .iter()
        .map(|(row_key, row)| {
            let (key, upload) = rows::parse_upload_key(row_key)?;
            Ok(upload_info(&key, upload, row))
        })
        .collect::<Result<_>>()?;
    Ok((uploads, is_more))
}

/// Lists parts of an upload after number `after`.
pub(crate) fn list_parts(
    state: &ArchiveState,
    name: &UploadName,
    after: u32,
    limit: usize,
) -> Result<(UploadInfo, Vec<PartInfo>, bool)> {
    let upload = name.find(&*state.kv)?;
    let range =
        KeyRange::prefix(&name.upload.to_bytes()).after(&rows::part_key(name.upload, after));
    let mut found: Vec<(Vec<u8>, PartRow)> = rows_in(&*state.kv, PARTS, &range, limit + 1)?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let parts = found
        .iter()
        .map(|(key, row)| Ok(part_info(part_number(key)?, row)))
        .collect::<Result<_>>()?;
    Ok((upload_info(name.key.as_str(), name.upload, &upload), parts, is_more))
}

#[cfg(test)]
mod tests;
