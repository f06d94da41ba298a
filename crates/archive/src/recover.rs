//! Recovery: a catalog out of nothing but platters and keys.
//!
//! ```text
//! every *.glass -> header -> file list (own codes, else its set) -> entries
//! entry + its key -> object, body, shard rows       entry without a key -> deleted; stays so
//! members of sets that are missing -> their lists from the set -> the same
//! ```
//!
//! What lies only in staging, online or restored logs is not on glass and does not return: a set
//! of logs without a catalog is not readable. An object returns when all of its bodies do.

mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fulgurite_catalog::Transaction;
use fulgurite_glass::{
    GlassError, ListEntry, ListReader, Member, PlatterHeader, PlatterReader, SetDecoder,
    TrackBuffer,
};
use fulgurite_units::{ArchiveId, ObjectId, PlatterId, SetId, SlotIndex, UnixTime};

use self::run::unbroken;
use crate::config::ArchiveConfig;
use crate::entry::Entry;
use crate::key_files;
use crate::key_table::{KeyTable, UsedSlot};
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::medium::MediumHandle;
use crate::platter_files::{PlatterFileSource, PlatterFiles};
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, OBJECTS, ObjectRow, PLATTERS, PlatterRow, SETS,
    SHREDS, SLOTS, SetRow, SetState, Shard,
};
use crate::store::{Layout, Store, is_empty_dir};
use crate::write_set::error_chain;
use crate::{ArchiveError, Result};

type Reader = PlatterReader<PlatterFileSource>;

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecoverProgress {
    /// Platters whose file lists were read.
    pub platters: u64,
    /// Platters there are to read.
    pub platters_total: u64,
    /// Entries found.
    pub entries: u64,
}

/// What a recovery found.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RecoverReport {
    /// Platters read.
    pub platters: u64,
    /// Platters of known sets that are missing, and whose lists came from their sets.
    pub platters_rebuilt: u64,
    /// Platter-sets.
    pub sets: u64,
    /// Buckets.
    pub buckets: u64,
    /// Objects that are whole again.
    pub objects: u64,
    /// Plain bytes of those objects.
    pub bytes: u64,
    /// Bodies on glass without a key: deleted or overwritten, and so they stay.
    pub shredded: u64,
    /// Objects of which some body or shard is on no platter found.
    pub incomplete: u64,
    /// Platter files that could not be used, each with its reason.
    pub unusable: Vec<String>,
    /// Wall seconds.
    pub seconds: f64,
}

/// A body as file lists tell of it.
#[derive(Debug, Default)]
struct Found {
    entry: Option<(Entry, UsedSlot)>,
    bytes: u64,
    /// By their first byte in the body; those of later sets last.
    shards: BTreeMap<u64, Vec<Shard>>,
}

struct Recovery {
    store: Arc<Store>,
    medium: MediumHandle,
    keys: BTreeMap<ObjectId, UsedSlot>,
    readers: BTreeMap<PlatterId, Reader>,
    headers: BTreeMap<SetId, PlatterHeader>,
    bodies: BTreeMap<ObjectId, Found>,
    lost_lists: BTreeSet<PlatterId>,
    report: RecoverReport,
}

/// Rebuilds the catalog of `config.data` from its platters and key table. The directory must not
/// be in use and must not have a catalog.
///
/// # Errors
/// When a catalog is there, the archive's identity or the keys are missing, or the disk fails.
/// Platters that cannot be used are in the report.
pub fn recover(config: ArchiveConfig, progress: &dyn Fn(RecoverProgress)) -> Result<RecoverReport> {
    let started = std::time::Instant::now();
    let layout = Layout::new(&config.data);
    if !is_empty_dir(&layout.catalog()) {
        return Err(ArchiveError::Unusable {
            path: layout.catalog().display().to_string(),
            reason: "there is a catalog; move it away to rebuild it from the platters".to_owned(),
        });
    }
    if !key_files::exist(&config) {
        return Err(ArchiveError::Unusable {
            path: layout.key_table().display().to_string(),
            reason: "the key table is missing; bring it, or its copy, back from a backup"
                .to_owned(),
        });
    }
    let files = PlatterFiles::new(layout.platters());
    let paths = files.all()?;
    let from_keys = || KeyTable::archive_of(&key_files::key_tables(&config));
    let archive = find_archive(&paths)?.or_else(from_keys);
    let store = Arc::new(Store::open_for_recovery(config, archive)?);
    let keys: BTreeMap<ObjectId, UsedSlot> =
        store.keys.scan()?.into_iter().map(|slot| (slot.body, slot)).collect();
    count_past_runs(&store, &keys)?;
    let mut recovery = Recovery {
        medium: MediumHandle::urgent(&store.medium),
        store,
        keys,
        readers: BTreeMap::new(),
        headers: BTreeMap::new(),
        bodies: BTreeMap::new(),
        lost_lists: BTreeSet::new(),
        report: RecoverReport::default(),
    };
    recovery.open_all(&paths);
    recovery.read_lists(progress)?;
    recovery.write_rows()?;
    let mut report = std::mem::take(&mut recovery.report);
    drop(recovery);
    // The catalog gets its name only now: one that a crash left half written never serves.
    layout.publish_recovered_catalog()?;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Numbers this run above every run that made a key. The next start takes unnamed keys of the run
/// before it for scrap; none of those may be a key whose platter was merely not found this time.
fn count_past_runs(store: &Store, keys: &BTreeMap<ObjectId, UsedSlot>) -> Result<()> {
    let newest = keys.values().map(|slot| slot.run).max().unwrap_or(0);
    store.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::with_totals(tx, |totals| totals.run = totals.run.max(newest + 1))
    })
}

/// The archive that most platters say they are of.
fn find_archive(paths: &[std::path::PathBuf]) -> Result<Option<ArchiveId>> {
    let mut counts: BTreeMap<ArchiveId, usize> = BTreeMap::new();
    for path in paths {
        let source = PlatterFileSource::open(path)?;
        if let Ok(reader) = PlatterReader::open(source, None, &fulgurite_glass::NoFaults) {
            *counts.entry(reader.header().archive).or_default() += 1;
        }
    }
    Ok(counts.into_iter().max_by_key(|&(_, count)| count).map(|(archive, _)| archive))
}

/// The platter that a file's name says it is.
fn named_platter(path: &Path) -> Option<PlatterId> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl Recovery {
    fn open_all(&mut self, paths: &[std::path::PathBuf]) {
        for path in paths {
            match self.open_one(path) {
                Ok(reader) => {
                    let header = reader.header();
                    self.headers.entry(header.set).or_insert_with(|| header.clone());
                    self.readers.insert(header.platter, reader);
                }
                Err(reason) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    self.report.unusable.push(format!("{name}: {reason}"));
                }
            }
        }
    }

    fn open_one(&self, path: &Path) -> Result<Reader, String> {
        let platter = named_platter(path).ok_or("its name is not a platter id")?;
        let source = PlatterFileSource::open(path).map_err(|e| error_chain(&e))?;
        PlatterReader::open(source, Some((self.store.archive, platter)), &self.medium)
            .map_err(|e| error_chain(&e))
    }

    /// Reads the file list of every information platter there is or was.
    fn read_lists(&mut self, progress: &dyn Fn(RecoverProgress)) -> Result<()> {
        let mut sets: Vec<PlatterHeader> = self.headers.values().cloned().collect();
        sets.sort_by_key(|header| header.created);
        let total = sets.iter().map(|h| information_members(h).count() as u64).sum();
        let mut state = RecoverProgress { platters_total: total, ..RecoverProgress::default() };
        for header in &sets {
            for (position, member) in information_members(header) {
                match self.read_list(header, position) {
                    Ok(entries) => {
                        state.entries += entries.len() as u64;
                        entries.into_iter().for_each(|e| self.take(member, e));
                    }
                    Err(reason) => {
                        self.lost_lists.insert(member);
                        self.report.unusable.push(format!("file list of {member}: {reason}"));
                    }
                }
                state.platters += 1;
                progress(state);
            }
        }
        self.report.platters = self.readers.len() as u64;
        self.report.sets = sets.len() as u64;
        Ok(())
    }

    fn read_list(
        &mut self,
        header: &PlatterHeader,
        position: usize,
    ) -> Result<Vec<ListEntry>, String> {
        let member = header.members[position].ok_or("it was never written")?;
        let (from, to) = (member.data_bytes, member.data_bytes + member.list_bytes);
        let mut list = ListReader::new(member.platter);
        let own = self.readers.get(&member.platter);
        let mut entries = Vec::new();
        let mut take = |list: &mut ListReader| -> Result<(), GlassError> {
            while let Some(entry) = list.next_entry()? {
                entries.push(entry);
            }
            Ok(())
        };
        if own.is_none() {
            self.report.platters_rebuilt += 1;
        }
        let mut decoder = SetDecoder::new(header);
        let members = self.members(header);
        let track_bytes = header.geometry.track_user_bytes() as u64;
        let mut buffer = TrackBuffer::new();
        let mut offset = from;
        while offset < to {
            let track = header.geometry.address(offset).track;
            let own_read = own.map(|own| own.read_track(track, &self.medium, &mut buffer));
            if !matches!(own_read, Some(Ok(_))) {
                decoder
                    .recover_track(track, &members, position, &self.medium, &mut buffer)
                    .map_err(|e| error_chain(&e))?;
            }
            let start = u64::from(track.get()) * track_bytes;
            let until = to.min(start + track_bytes);
            let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            for piece in buffer.user_bytes(within(offset), within(until) - within(offset)) {
                list.push(piece);
                take(&mut list).map_err(|e| error_chain(&e))?;
            }
            offset = until;
        }
        list.finish().map_err(|e| error_chain(&e))?;
        Ok(entries)
    }

    fn members(&self, header: &PlatterHeader) -> Vec<Member<'_, PlatterFileSource>> {
        header
            .members
            .iter()
            .map(|member| match member {
                None => Member::NotWritten,
                Some(member) => {
                    self.readers.get(&member.platter).map_or(Member::Lost, Member::Platter)
                }
            })
            .collect()
    }

    fn take(&mut self, platter: PlatterId, listed: ListEntry) {
        let Some(&slot) = self.keys.get(&listed.object) else {
            self.report.shredded += u64::from(listed.body_offset == 0);
            return;
        };
        let found = self.bodies.entry(listed.object).or_default();
        found.bytes = listed.body_bytes;
        if found.entry.is_none() {
            let opened = self
                .store
                .keys
                .load(slot.index, slot.body)
                .and_then(|key| Entry::open(&key, listed.object, &listed.sealed));
            match opened {
                Ok(entry) => found.entry = Some((entry, slot)),
                Err(error) => self.report.unusable.push(format!("entry on {platter}: {error}")),
            }
        }
        let shard = Shard {
            platter,
            offset: listed.offset,
            body_offset: listed.body_offset,
            bytes: listed.length,
            crc: None,
        };
        found.shards.entry(listed.body_offset).or_default().push(shard);
    }

    fn write_rows(&mut self) -> Result<()> {
        let mut live: BTreeMap<PlatterId, u64> = BTreeMap::new();
        self.write_objects(&mut live)?;
        self.write_sets(&live)
    }

    fn write_objects(&mut self, live: &mut BTreeMap<PlatterId, u64>) -> Result<()> {
        let mut objects: BTreeMap<(String, String, ObjectId), Vec<(Entry, BodyRow)>> =
            BTreeMap::new();
        for (body_id, found) in std::mem::take(&mut self.bodies) {
            let Some((entry, slot)) = found.entry else { continue };
            let body = BodyRow {
                body_id,
                key_slot: slot.index,
                bytes: entry.body_bytes,
                digest: entry.body_digest,
                log: None,
                queued: None,
                shards: unbroken(&found.shards, found.bytes),
                restored: None,
                framing: Vec::new(),
            };
            if crate::plan::placed_bytes(&body) != found.bytes {
                self.report.incomplete += 1;
                continue;
            }
            let name = (entry.bucket.clone(), entry.key.clone(), entry.object_id);
            objects.entry(name).or_default().push((entry, body));
        }
        let mut whole = Vec::new();
        for ((bucket, key, _), mut bodies) in objects {
            bodies.sort_by_key(|(entry, _)| entry.index);
            if bodies.len() != bodies[0].0.body_count as usize {
                self.report.incomplete += 1;
                continue;
            }
            for shard in bodies.iter().flat_map(|(_, body)| &body.shards) {
                *live.entry(shard.platter).or_default() += shard.bytes;
            }
            self.report.objects += 1;
            self.report.bytes += bodies[0].0.bytes;
            whole.push((bucket, key, bodies));
        }
        let buckets: BTreeMap<String, UnixTime> = whole
            .iter()
            .map(|(bucket, _, bodies)| (bucket.clone(), bodies[0].0.bucket_created))
            .collect();
        self.report.buckets = buckets.len() as u64;
        for batch in whole.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            self.store.committer.commit_blocking(
                move |tx: &mut Transaction<'_>| -> Result<()> {
                    batch
                        .into_iter()
                        .try_for_each(|(bucket, key, bodies)| put_object(tx, &bucket, &key, bodies))
                },
            )?;
        }
        self.store.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            buckets.into_iter().try_for_each(|(name, created)| {
                rows::put(tx, BUCKETS, rows::bucket_key(&name), &BucketRow { created })
            })
        })
    }

    fn write_sets(&self, live: &BTreeMap<PlatterId, u64>) -> Result<()> {
        let mut next_slot = 0;
        let shape = &self.store.config.library.shape;
        let zone_slots = shape.slot_count() / shape.zone_count().max(1);
        for (number, (set, header)) in (0u32..).zip(&self.headers) {
            let information = header.geometry.set_information_platters;
            let ids = |range: std::ops::Range<usize>| -> Vec<PlatterId> {
                header.members[range].iter().flatten().map(|member| member.platter).collect()
            };
            let row = SetRow {
                state: SetState::Released,
                geometry: header.geometry.clone(),
                created: header.created,
                generation: header.generation,
                information: ids(0..usize::from(information)),
                redundancy: ids(usize::from(information)..header.members.len()),
                bytes: header.members[..usize::from(information)]
                    .iter()
                    .flatten()
                    .map(|member| member.data_bytes)
                    .sum(),
                redundancy_bytes: header.members[usize::from(information)..]
                    .iter()
                    .flatten()
                    .map(|member| member.data_bytes)
                    .max()
                    .unwrap_or(0),
                damaged: Vec::new(),
            };
            let mut platters = Vec::new();
            for (position, member) in (0u16..).zip(&header.members) {
                let Some(member) = member else { continue };
                // Zone by zone, as at first: no two of a set share one.
                let (zone, place) =
                    (next_slot % shape.zone_count(), next_slot / shape.zone_count());
                let slot = zone * zone_slots + place;
                let is_home = place < zone_slots && !shape.is_spare(SlotIndex::new(slot));
                next_slot += 1;
                let list_entries =
                    self.readers.get(&member.platter).map_or(0, |r| r.header().list_entries);
                platters.push((
                    member.platter,
                    PlatterRow {
                        set: *set,
                        position,
                        slot: is_home.then_some(slot),
                        data_bytes: member.data_bytes,
                        list_bytes: member.list_bytes,
                        list_entries,
                        live_bytes: live.get(&member.platter).copied().unwrap_or(0),
                        unreadable_tracks: Vec::new(),
                    },
                ));
            }
            let set = *set;
            tracing::debug!(%set, number, platters = platters.len(), "set recovered");
            self.store.committer.commit_blocking(
                move |tx: &mut Transaction<'_>| -> Result<()> {
                    for (platter, platter_row) in platters {
                        if let Some(slot) = platter_row.slot {
                            rows::put(tx, SLOTS, rows::slot_key(slot), &platter)?;
                        }
                        rows::put(tx, PLATTERS, platter.to_bytes().to_vec(), &platter_row)?;
                    }
                    rows::put(tx, SETS, set.to_bytes().to_vec(), &row)
                },
            )?;
        }
        Ok(())
    }
}

/// The information platters that a set has or had, with their positions.
fn information_members(header: &PlatterHeader) -> impl Iterator<Item = (usize, PlatterId)> + '_ {
    let information = usize::from(header.geometry.set_information_platters);
    header.members[..information]
        .iter()
        .enumerate()
        .filter_map(|(position, member)| member.map(|member| (position, member.platter)))
}

/// Leaves a body's key to be destroyed at the next start.
fn shred(tx: &mut Transaction<'_>, body: &BodyRow) -> Result<()> {
    rows::put(tx, SHREDS, body.body_id.to_bytes().to_vec(), &body.key_slot)
}

fn put_object(
    tx: &mut Transaction<'_>,
    bucket: &str,
    key: &str,
    bodies: Vec<(Entry, BodyRow)>,
) -> Result<()> {
    let entry = &bodies[0].0;
    let row = ObjectRow {
        object_id: entry.object_id,
        bytes: entry.bytes,
        etag: entry.etag.clone(),
        modified: entry.modified,
        class: entry.class,
        meta: entry.meta.clone(),
        checksum: entry.checksum.clone(),
        part_count: entry.part_count,
        body_count: entry.body_count,
        bodies_staged: 0,
        upload_id: entry.upload_id,
        restore: None,
    };
    let object_key = rows::object_key(bucket, key);
    // Two uploads of one name can both have keys when a crash came between an overwrite and its
    // shredding; the later one is the object, and the start after this shreds the other. Of two
    // of one second neither is known to be the later, so both keep their keys.
    let other: Option<ObjectRow> = rows::get(tx, OBJECTS, &object_key)?;
    match other {
        Some(other) if other.modified > row.modified => {
            return bodies.iter().try_for_each(|(_, body)| shred(tx, body));
        }
        Some(other) => {
            for body in crate::commit::bodies(tx, &other)? {
                if other.modified < row.modified {
                    shred(tx, &body)?;
                }
            }
            for index in 0..other.body_count {
                tx.delete(BODIES, rows::body_key(other.object_id, index))?;
            }
        }
        None => rows::with_totals(tx, |totals| totals.objects_on_glass += 1)?,
    }
    for (entry, body) in bodies {
        rows::put(tx, BODIES, rows::body_key(entry.object_id, entry.index), &body)?;
    }
    rows::put(tx, OBJECTS, object_key, &row)
}

#[cfg(test)]
mod tests;
