//! Finds unconfirmed bodies at startup: bodies with data, key and entry on disk that no row names.
//!
//! ```text
//! a run     | DATA | ENTRY |  synced, key synced --X-- commit      a crash came between
//! a start   entries whose commit may not have ended --> those whose object is not named
//!             --> DIR/unconfirmed, synced        a recovery without the catalog leaves them out
//!             --> rows of the space "unconfirmed" a put or delete of the name resolves them
//! ```
//!
//! Most of these are uploads that were never acknowledged. But if the catalog is a copy from the
//! middle of the last run they were acknowledged, and the two cases look alike. So a start shows
//! none, destroys none, and counts their bytes as live. All of this happens before the first
//! request, so later puts and deletes are newer than all of them.
//!
//! To limit the scan, the catalog stores from which segments on commits may be incomplete
//! ([`crate::state::ArchiveState::record_settled`]).

mod list;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_catalog::{Committer, FjallStore, KeyRange, ReadView, Transaction};
use fulgurite_units::ObjectId;

pub(crate) use self::list::UnconfirmedList;
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::entry::Entry;
use crate::bodies::key_table::{KeyTable, UsedSlot};
use crate::bodies::log::LogKind;
use crate::bodies::log::record::{EntryForm, RecordKind};
use crate::bodies::log::scan::{ScannedRecord, SegmentScan, read_segment_header};
use crate::directory::Paths;
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::model::names::ObjectName;
use crate::recover::evidence::{Bodies, BodyEvidence};
use crate::recover::logs::{self, Segment};
use crate::rows::accounting::account_bodies;
use crate::rows::lookup::rows_in;
use crate::rows::{
    self, BODIES, BodyRow, LoggedBody, OBJECTS, ObjectRow, PARTS, PartRow, Place, SHREDS,
    UNCONFIRMED, UnconfirmedRow,
};
use crate::{ArchiveError, Result};

/// What is open when a start scans for unconfirmed bodies. The logs are not open yet, because the
/// result counts toward the live bytes of their segments.
#[derive(Debug)]
pub(crate) struct StartupScan<'a> {
    pub(crate) paths: Paths,
    pub(crate) kv: &'a FjallStore,
    pub(crate) committer: &'a Committer,
    pub(crate) keys: &'a KeyTable,
    /// The last run that the catalog recorded.
    pub(crate) catalog_run: u64,
}

/// An entry whose object no row names.
#[derive(Debug)]
struct UnconfirmedEntry {
    body: UsedSlot,
    name: ObjectName,
    object_id: ObjectId,
    bytes: u64,
    digest: u64,
    kind: LogKind,
    /// A row names its body otherwise: it is a part of an upload whose completion was interrupted.
    is_claim: bool,
}

impl StartupScan<'_> {
    /// Finds and records the unconfirmed bodies. Blocks.
    pub(crate) fn record_unconfirmed(&self) -> Result<()> {
        let segments = self.segments()?;
        if self.is_behind(&segments) {
            tracing::warn!(
                "the catalog is older than the keys or the logs: later objects are not shown; run \
                 `fulgurite recover --salvage` to find them"
            );
            return Ok(());
        }
        let settled = rows::settled(self.kv)?;
        let of_run: Vec<Segment> =
            segments.into_iter().filter(|s| s.run == Some(self.catalog_run)).collect();
        let is_unsettled =
            |segment: &&Segment| segment.number >= settled.first_segment(segment.kind);
        let unsettled: Vec<Segment> = of_run.iter().filter(is_unsettled).cloned().collect();
        let listed = UnconfirmedList::read(&self.paths)?;
        let mut wanted = with_object_entries(&unsettled)?;
        wanted.extend(listed.iter().map(|(body, _)| body));
        if wanted.is_empty() {
            return Ok(());
        }
        let slots: BTreeMap<ObjectId, UsedSlot> = self
            .keys
            .scan()?
            .into_iter()
            .filter(|slot| wanted.contains(&slot.body))
            .map(|slot| (slot.body, slot))
            .collect();
        let found = self.unconfirmed(&unsettled, &slots)?;
        self.write_list(&listed, &found, &slots)?;
        let rows = self.unconfirmed_rows(found, of_run, unsettled);
        self.commit(rows)
    }

    /// Returns every segment, with the run from its header.
    fn segments(&self) -> Result<Vec<Segment>> {
        let mut segments = logs::segments(&self.paths)?;
        for segment in &mut segments {
            let header = read_segment_header(&segment.path).unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot scan a segment for unconfirmed bodies");
                None
            });
            segment.run = header.map(|header| header.run);
        }
        Ok(segments)
    }

    /// Whether keys or logs are from runs that the catalog never saw: it was restored from a
    /// backup. Anything may have happened since, and a recovery finds it.
    fn is_behind(&self, segments: &[Segment]) -> bool {
        let newest = segments.iter().filter_map(|segment| segment.run).max().unwrap_or(0);
        newest.max(self.keys.newest_key_run()) > self.catalog_run
    }

    /// Returns the entries in `segments` whose keys are in `slots` and whose objects no row names.
    fn unconfirmed(
        &self,
        segments: &[Segment],
        slots: &BTreeMap<ObjectId, UsedSlot>,
    ) -> Result<Vec<UnconfirmedEntry>> {
        let mut found: BTreeMap<(ObjectId, ObjectId), UnconfirmedEntry> = BTreeMap::new();
        let mut parts = None;
        for segment in segments {
            let mut scan = SegmentScan::open(&segment.path, segment.kind, segment.number)?;
            while let Some(record) = scan.next_record()? {
                let Some((body, sealed)) = object_entry(&record) else { continue };
                let Some(&slot) = slots.get(&body) else { continue };
                let key = match self.keys.load(slot.index, body) {
                    Err(ArchiveError::Corrupt { .. }) => continue,
                    key => key?,
                };
                let Ok(entry) = Entry::open(&key, body, sealed) else { continue };
                if self.kv.get(SHREDS, &body.to_bytes())?.is_some() {
                    continue;
                }
                let named = self.named(&entry)?;
                if named.as_ref().is_some_and(|row| row.object_id == entry.object_id) {
                    continue;
                }
                let parts = match &mut parts {
                    Some(parts) => parts,
                    none => none.insert(self.parts()?),
                };
                let is_claim = parts.contains(&body) || self.is_body_of(named.as_ref(), body)?;
                let pair = (body, entry.object_id);
                found.insert(pair, UnconfirmedEntry::new(slot, entry, segment.kind, is_claim));
            }
        }
        Ok(found.into_values().collect())
    }

    fn named(&self, entry: &Entry) -> Result<Option<ObjectRow>> {
        rows::get(self.kv, OBJECTS, &rows::object_key_of(&entry.name))
    }

    fn parts(&self) -> Result<BTreeSet<ObjectId>> {
        let all: Vec<(Vec<u8>, PartRow)> =
            rows_in(self.kv, PARTS, &KeyRange::prefix(b""), usize::MAX)?;
        Ok(all.into_iter().map(|(_, part)| part.body.body_id).collect())
    }

    fn is_body_of(&self, object: Option<&ObjectRow>, body: ObjectId) -> Result<bool> {
        let Some(object) = object else { return Ok(false) };
        let bodies: Vec<(Vec<u8>, BodyRow)> =
            rows_in(self.kv, BODIES, &rows::bodies_range(object.object_id), usize::MAX)?;
        Ok(bodies.iter().any(|(_, row)| row.body_id == body))
    }

    /// Updates the list: adds what was found, and removes bodies that were destroyed or are named.
    fn write_list(
        &self,
        listed: &UnconfirmedList,
        found: &[UnconfirmedEntry],
        slots: &BTreeMap<ObjectId, UsedSlot>,
    ) -> Result<()> {
        let mut list = UnconfirmedList::default();
        for (body, object) in listed.iter().filter(|(body, _)| slots.contains_key(body)) {
            let named: Vec<(Vec<u8>, BodyRow)> =
                rows_in(self.kv, BODIES, &rows::bodies_range(object), 1)?;
            if named.is_empty() {
                list.insert(body, object);
            }
        }
        found
            .iter()
            .for_each(|unconfirmed| list.insert(unconfirmed.body.body, unconfirmed.object_id));
        if list == *listed {
            return Ok(());
        }
        if let Err(error) = list.write(&self.paths) {
            // The list matters only if the catalog is lost too, and a full disk must not keep the
            // archive from starting.
            tracing::warn!(%error, "cannot update the list of unconfirmed bodies");
        }
        Ok(())
    }

    /// Returns the rows of `found`, with all extents of their bodies in the logs.
    fn unconfirmed_rows(
        &self,
        mut found: Vec<UnconfirmedEntry>,
        of_run: Vec<Segment>,
        unsettled: Vec<Segment>,
    ) -> Vec<(Vec<u8>, UnconfirmedRow)> {
        found.retain(|unconfirmed| !unconfirmed.is_claim);
        if found.is_empty() {
            return Vec::new();
        }
        let slots =
            found.iter().map(|unconfirmed| (unconfirmed.body.body, unconfirmed.body)).collect();
        let mut bodies = Bodies::new();
        let none = UnconfirmedList::default();
        logs::scan(unsettled, (self.keys, &slots), &none, &mut bodies, &|_| {});
        let is_whole = |unconfirmed: &UnconfirmedEntry, bodies: &Bodies| {
            let found = bodies.get(&unconfirmed.body.body);
            found.is_some_and(|found| found.log_extents(cipher_bytes(unconfirmed.bytes)).is_some())
        };
        // A long upload began in an earlier segment.
        if !found.iter().all(|unconfirmed| is_whole(unconfirmed, &bodies)) {
            bodies.clear();
            logs::scan(of_run, (self.keys, &slots), &none, &mut bodies, &|_| {});
        }
        found
            .into_iter()
            .map(|unconfirmed| {
                let key = rows::unconfirmed_key(&unconfirmed.name, unconfirmed.body.body);
                let found = bodies.remove(&unconfirmed.body.body).unwrap_or_default();
                (key, unconfirmed.row(&found))
            })
            .collect()
    }

    fn commit(&self, rows: Vec<(Vec<u8>, UnconfirmedRow)>) -> Result<()> {
        for batch in rows.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            self.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
                let mut count = rows::unconfirmed_count(tx)?;
                for (key, row) in batch {
                    // An interrupted start may have written it already.
                    if tx.get(UNCONFIRMED, &key)?.is_some() {
                        continue;
                    }
                    account_bodies(tx, std::slice::from_ref(&row.body))?;
                    rows::put(tx, UNCONFIRMED, key, &row)?;
                    count += 1;
                }
                rows::set_unconfirmed_count(tx, count)
            })?;
        }
        let count = rows::unconfirmed_count(self.kv)?;
        if count > 0 {
            tracing::warn!(
                bodies = count,
                "bodies in the logs have keys, but no row names them: a crash interrupted the \
                 uploads, or the catalog is behind; they are kept until their names are put or \
                 deleted, and `fulgurite recover --salvage` recovers them"
            );
        }
        Ok(())
    }
}

impl UnconfirmedEntry {
    fn new(body: UsedSlot, entry: Entry, kind: LogKind, is_claim: bool) -> Self {
        Self {
            body,
            name: entry.name,
            object_id: entry.object_id,
            bytes: entry.body_bytes,
            digest: entry.body_digest,
            kind,
            is_claim,
        }
    }

    fn row(&self, found: &BodyEvidence) -> UnconfirmedRow {
        let whole = found.log_extents(cipher_bytes(self.bytes));
        // If some of its bytes are lost, the remaining ones are kept all the same.
        let (kind, extents) = whole.unwrap_or_else(|| {
            let of_kind = found.ranges.iter().filter(|range| range.kind == self.kind);
            (self.kind, of_kind.map(|range| range.extent).collect())
        });
        let body = BodyRow {
            body_id: self.body.body,
            key_slot: self.body.index,
            bytes: self.bytes,
            digest: self.digest,
            place: Place::Log(LoggedBody::new(kind, extents, found.framing_in(kind))),
            restored: None,
        };
        UnconfirmedRow { object_id: self.object_id, version: self.name.version, body }
    }
}

/// Returns body id and sealed bytes if the record is an object's entry.
fn object_entry<'a>(record: &ScannedRecord<'a>) -> Option<(ObjectId, &'a [u8])> {
    match *record {
        ScannedRecord::Entry(header, sealed) => match header.kind {
            RecordKind::Entry { form: EntryForm::Object, .. } => Some((header.body, sealed)),
            RecordKind::Entry { form: EntryForm::Part, .. } | RecordKind::Data { .. } => None,
        },
        ScannedRecord::Data(_) | ScannedRecord::Torn(_) => None,
    }
}

fn with_object_entries(segments: &[Segment]) -> Result<BTreeSet<ObjectId>> {
    let mut found = BTreeSet::new();
    for segment in segments {
        let mut scan = SegmentScan::open(&segment.path, segment.kind, segment.number)?;
        while let Some(record) = scan.next_record()? {
            found.extend(object_entry(&record).map(|(body, _)| body));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
