//! Sealing: from staged bodies to a platter-set that is written, verified, stored and released.
//!
//! ```text
//! queue -> Planned -> Written -> Verified -> Stored -> Released
//!           plan      platter     each read   slots     rows point at glass,
//!           rows      files       back whole  chosen    staged bytes given back
//! ```
//!
//! Each arrow ends with one transaction; before it everything it stands on is durable, and every
//! step can be done again. A body that its platter could not give back stays in the queue and goes
//! to another platter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_catalog::{KeyRange, Transaction, keys};
use fulgurite_glass::{PlatterReader, TrackBuffer, VerifyReport};
use fulgurite_layout::{ZoneState, choose_zones};
use fulgurite_library::TrackSpan;
use fulgurite_units::{ObjectId, PlatterId, SetId, SlotIndex, TrackIndex, UnixTime};

use crate::body::cipher_bytes;
use crate::commit::{Retired, account, count_dead, rows_in};
use crate::damaged::{leave_queue, set_aside};
use crate::library_driver::{self, LiveLibrary};
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::log::LogKind;
use crate::medium::MediumHandle;
use crate::plan::{drop_orphan_plans, drop_plan, placed_bytes, plan_set, queued_body};
use crate::platter_files::PlatterFiles;
use crate::rows::{
    self, BODIES, OBJECTS, PLANS, PLATTERS, PlanRow, PlatterRow, QUEUE, SETS, SLOTS, SetRow,
    SetState, Shard,
};
use crate::status::{SealReport, VerifiedPlatter, set_status};
use crate::store::Store;
use crate::verification;
use crate::write_set::{SetWriting, error_chain, glass_error};
use crate::{ArchiveError, Result};

/// Pause before a platter that nobody decoded is tried again, and between looks whether to stop.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(10);
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// Attempts to write a set before sealing gives up and waits for an operator.
const GENERATIONS_MAX: u32 = 8;

/// Seals sets. One is enough; the catalog's states keep two from meeting.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    store: Arc<Store>,
    library: LiveLibrary,
    files: PlatterFiles,
    medium: MediumHandle,
}

/// What became of a set's bodies.
#[derive(Clone, Copy, Debug, Default)]
struct Released {
    objects: u64,
    bodies: u64,
    bytes: u64,
    /// Set aside, because staging does not hold what was ingested.
    damaged: u64,
    /// Staged still, to go to another platter.
    kept: u64,
}

impl Sealer {
    pub(crate) fn new(store: &Arc<Store>, library: &LiveLibrary, files: &PlatterFiles) -> Self {
        Self {
            store: Arc::clone(store),
            library: library.clone(),
            files: files.clone(),
            medium: MediumHandle::deferred(&store.medium),
        }
    }

    pub(crate) const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the policy, or a set that was begun, asks for sealing now.
    pub(crate) fn is_due(&self) -> Result<bool> {
        let policy = &self.store.config.seal;
        if rows::totals(&*self.store.kv)?.staged_bytes >= policy.staged_bytes.get() {
            return Ok(true);
        }
        let all = KeyRange::prefix(b"");
        let oldest: Vec<(Vec<u8>, rows::QueueRow)> = rows_in(&*self.store.kv, QUEUE, &all, 1)?;
        let is_old = oldest
            .first()
            .is_some_and(|(_, row)| self.store.now().since(row.arrived) >= policy.age);
        Ok(is_old || !self.unfinished()?.is_empty())
    }

    fn unfinished(&self) -> Result<Vec<SetId>> {
        let all: Vec<(Vec<u8>, SetRow)> =
            rows_in(&*self.store.kv, SETS, &KeyRange::prefix(b""), usize::MAX)?;
        all.into_iter()
            .filter(|(_, row)| row.state < SetState::Released)
            .map(|(key, _)| Ok(SetId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?)))
            .collect()
    }

    /// Finishes sets that were begun, then seals everything staged when this was called.
    pub(crate) fn seal_all(&self) -> Result<SealReport> {
        let started = std::time::Instant::now();
        let until = rows::totals(&*self.store.kv)?.sequence;
        let mut report = SealReport::default();
        drop_orphan_plans(&self.store)?;
        for set in self.unfinished()? {
            self.finish_set(set, &mut report)?;
        }
        while let Some(set) = plan_set(&self.store, until)? {
            let released = self.finish_set(set, &mut report)?;
            // What was set aside is not planned again; a set that only kept bodies would be.
            if released.bodies == 0 && released.bytes == 0 && released.damaged == 0 {
                break;
            }
        }
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }

    fn row(&self, set: SetId) -> Result<SetRow> {
        rows::get(&*self.store.kv, SETS, &set.to_bytes())?
            .ok_or_else(|| ArchiveError::Internal { what: format!("set {set} has no row") })
    }

    fn advance(&self, set: SetId, change: impl FnOnce(&mut SetRow) + Send + 'static) -> Result<()> {
        self.store.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            let key = set.to_bytes().to_vec();
            let Some(mut row) = rows::get::<SetRow>(tx, SETS, &key)? else {
                return Err(ArchiveError::Internal { what: format!("set {set} has no row") });
            };
            change(&mut row);
            rows::put(tx, SETS, key, &row)
        })
    }

    fn finish_set(&self, set: SetId, report: &mut SealReport) -> Result<Released> {
        let mut released = Released::default();
        loop {
            self.store.check_stopping()?;
            let row = self.row(set)?;
            match row.state {
                SetState::Planned => self.write(set, &row)?,
                SetState::Written => self.verify(set, &row)?,
                SetState::Verified => self.stored(set)?,
                SetState::Stored => released = self.release(set, &row)?,
                SetState::Released => {
                    drop_plan(&self.store, set)?;
                    report.sets.push(set_status(&set.to_bytes(), &row)?);
                    report.objects += released.objects;
                    report.bytes += released.bytes;
                    // Those kept by an earlier set of this seal were planned again for this one;
                    // those set aside were not.
                    report.damaged += released.damaged;
                    report.kept_staged = report.damaged + released.kept;
                    return Ok(released);
                }
            }
        }
    }

    fn write(&self, set: SetId, row: &SetRow) -> Result<()> {
        if row.generation >= GENERATIONS_MAX {
            return Err(ArchiveError::Internal {
                what: format!("set {set} could not be written in {GENERATIONS_MAX} attempts"),
            });
        }
        for (_, platter) in row.platters() {
            self.files.scrap(platter)?;
        }
        // Raised before the first byte: two attempts never carry the same generation.
        self.advance(set, |row| row.generation += 1)?;
        let row = self.row(set)?;
        let writing = SetWriting { store: &self.store, files: &self.files, set, row: &row };
        let damaged = writing.run()?;
        self.advance(set, move |row| {
            row.damaged = damaged;
            row.state = SetState::Written;
        })?;
        self.store.fail.pass("seal-written");
        Ok(())
    }

    /// Has every platter of the set carried to a read drive, read whole, and carried on to its
    /// slot. The two go together, because a platter leaves the drive only for its slot.
    fn verify(&self, set: SetId, row: &SetRow) -> Result<()> {
        let platters: Vec<PlatterId> = row.platters().map(|(_, platter)| platter).collect();
        let slots = self.slots(&platters)?;
        let mut reading = Vec::new();
        for (&platter, &slot) in platters.iter().zip(&slots) {
            let outcome: Arc<Mutex<Option<Result<VerifyReport>>>> = Arc::default();
            let (sealer, shared) = (self.clone(), Arc::clone(&outcome));
            let work = Box::new(move || {
                if sealer.store.medium.decodes_later() {
                    return;
                }
                let report = sealer.read_whole(platter);
                sealer.store.fail.pass("verify-platter");
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
            });
            let tracks = self.track_count(row, platter)?;
            reading.push((platter, slot, outcome, self.library.verify(platter, tracks, work)?));
        }
        let mut carrying = Vec::new();
        let mut reports = BTreeMap::new();
        let mut is_scrap = false;
        for (platter, slot, outcome, answer) in reading {
            library_driver::wait(answer)?;
            carrying.push(self.library.store(platter, slot)?);
            let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
            let outcome = match outcome {
                Some(Err(ArchiveError::Undecoded { .. })) => Some(self.read_later(platter)),
                None if self.store.medium.decodes_later() => {
                    let report = self.read_later(platter);
                    self.store.fail.pass("verify-platter");
                    Some(report)
                }
                read => read,
            };
            if let Some(Ok(report)) = &outcome {
                verification::note(&self.store, platter, report)?;
            }
            match outcome {
                Some(Err(ArchiveError::Stopping)) => return Err(ArchiveError::Stopping),
                Some(Ok(report)) if !report.mismatched.is_empty() => {
                    let tracks = report.mismatched.len();
                    tracing::error!(%platter, %set, tracks, "redundancy does not fit its data");
                    is_scrap = true;
                }
                Some(Ok(report)) if report.seal_matches != Some(false) => {
                    let tracks = report.unreadable.iter().map(|track| track.get()).collect();
                    reports.insert(platter, tracks);
                }
                Some(Ok(_)) => {
                    tracing::error!(%platter, %set, "platter differs from its final record");
                    is_scrap = true;
                }
                Some(Err(error)) => {
                    let error = error_chain(&error);
                    tracing::error!(%platter, %set, error, "platter fails verification");
                    is_scrap = true;
                }
                None => return Err(ArchiveError::Internal { what: "a drive died".to_owned() }),
            }
        }
        carrying.into_iter().try_for_each(library_driver::wait)?;
        if is_scrap {
            tracing::error!(%set, "the set is written again");
            return self.advance(set, |row| row.state = SetState::Planned);
        }
        self.note_unreadable(reports)?;
        self.advance(set, |row| row.state = SetState::Verified)?;
        self.store.fail.pass("seal-verified");
        Ok(())
    }

    fn note_unreadable(&self, reports: BTreeMap<PlatterId, Vec<u32>>) -> Result<()> {
        self.store.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            for (platter, unreadable) in reports {
                let key = platter.to_bytes().to_vec();
                if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)? {
                    row.unreadable_tracks = unreadable;
                    rows::put(tx, PLATTERS, key, &row)?;
                }
            }
            Ok(())
        })
    }

    fn track_count(&self, row: &SetRow, platter: PlatterId) -> Result<u32> {
        let found: Option<PlatterRow> = rows::get(&*self.store.kv, PLATTERS, &platter.to_bytes())?;
        let bytes = found.map_or(0, |p| p.data_bytes + p.list_bytes);
        Ok(row.geometry.map(row.geometry.tracks_for(bytes)).tracks())
    }

    /// Reads a whole platter when its drive is done with it: its images wait for other machines, or
    /// for another hour. Nobody else can say whether the platter is good, so it is tried for ever.
    fn read_later(&self, platter: PlatterId) -> Result<VerifyReport> {
        loop {
            let error = match self.read_whole(platter) {
                Err(error @ ArchiveError::Undecoded { .. }) => error,
                read => return read,
            };
            tracing::warn!(%platter, %error, "verification waits for the decode service");
            let again = std::time::Instant::now() + AGAIN;
            while std::time::Instant::now() < again {
                self.store.check_stopping()?;
                std::thread::sleep(LOOK);
            }
        }
    }

    fn read_whole(&self, platter: PlatterId) -> Result<VerifyReport> {
        let source = self.files.open(platter)?;
        source.forget_cached();
        let expected = Some((self.store.archive, platter));
        let reader =
            PlatterReader::open(source, expected, &self.medium).map_err(glass_error(platter))?;
        let mut buffer = TrackBuffer::new();
        reader.verify(&self.medium, &mut buffer, &mut |_, _| {}).map_err(glass_error(platter))
    }

    /// Every platter was read back and is in its slot. After a crash here as well: the library
    /// starts with all platters at home.
    fn stored(&self, set: SetId) -> Result<()> {
        self.advance(set, |row| row.state = SetState::Stored)?;
        self.store.fail.pass("seal-stored");
        Ok(())
    }

    /// A slot for each platter of a set, no two in one blast zone; the same ones when asked again.
    fn slots(&self, platters: &[PlatterId]) -> Result<Vec<SlotIndex>> {
        let mut has: Vec<Option<u32>> = Vec::new();
        for platter in platters {
            let row: Option<PlatterRow> =
                rows::get(&*self.store.kv, PLATTERS, &platter.to_bytes())?;
            has.push(row.and_then(|row| row.slot));
        }
        if let Some(slots) = has.iter().copied().collect::<Option<Vec<u32>>>() {
            return Ok(slots.into_iter().map(SlotIndex::new).collect());
        }
        let used: Vec<(Vec<u8>, PlatterId)> =
            rows_in(&*self.store.kv, SLOTS, &KeyRange::prefix(b""), usize::MAX)?;
        let mut taken = BTreeSet::new();
        for (key, _) in used {
            taken.insert(keys::KeyReader::new(&key).u32()?);
        }
        let zones = zones(&self.store.config.library.shape, &taken);
        let slots = choose_zones(&zones, platters.len()).map_err(|error| ArchiveError::Full {
            what: format!("the library has no room for a set: {error}"),
        })?;
        let placed: Vec<(PlatterId, u32)> =
            platters.iter().copied().zip(slots.iter().map(|slot| slot.get())).collect();
        self.store.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            for (platter, slot) in placed {
                rows::put(tx, SLOTS, rows::slot_key(slot), &platter)?;
                let key = platter.to_bytes().to_vec();
                if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)? {
                    row.slot = Some(slot);
                    rows::put(tx, PLATTERS, key, &row)?;
                }
            }
            Ok(())
        })?;
        Ok(slots)
    }

    /// Points rows at glass and gives staged bytes back, a batch of shards at a time.
    fn release(&self, set: SetId, row: &SetRow) -> Result<Released> {
        let mut total = Released::default();
        let mut kept_bodies = BTreeSet::new();
        for (position, &platter) in (0u16..).zip(&row.information) {
            let range = rows::plan_of(set, position);
            let plan: Vec<(Vec<u8>, PlanRow)> =
                rows_in(&*self.store.kv, PLANS, &range, usize::MAX)?;
            let found: Option<PlatterRow> =
                rows::get(&*self.store.kv, PLATTERS, &platter.to_bytes())?;
            let unreadable = found.map(|row| row.unreadable_tracks).unwrap_or_default();
            for batch in plan.chunks(ROWS_PER_TRANSACTION_MAX) {
                let (good, kept): (Vec<PlanRow>, Vec<PlanRow>) =
                    batch.iter().map(|&(_, shard)| shard).partition(|shard| {
                        !touches(&row.geometry, shard, &unreadable)
                            && !row.damaged.contains(&shard.body_id)
                    });
                kept_bodies.extend(kept.iter().map(|shard| shard.body_id));
                let now = self.store.now();
                let damaged = row.damaged.clone();
                let commit = move |tx: &mut Transaction<'_>| {
                    keep_staged(tx, &kept, &damaged, now)?;
                    release_batch(tx, platter, &good)
                };
                let (released, retired) = self.store.committer.commit_blocking(commit)?;
                self.store.fail.pass("release-batch");
                self.store.free(&retired.extents);
                self.store.fail.pass("release-freed");
                total.objects += released.objects;
                total.bodies += released.bodies;
                total.bytes += released.bytes;
            }
        }
        total.damaged = row.damaged.iter().filter(|body| kept_bodies.remove(body)).count() as u64;
        total.kept = kept_bodies.len() as u64;
        self.advance(set, |row| row.state = SetState::Released)?;
        self.store.fail.pass("seal-released");
        Ok(total)
    }

    /// Reads stored platters whole again: one, or all.
    pub(crate) fn verify_stored(&self, only: Option<PlatterId>) -> Result<Vec<VerifiedPlatter>> {
        let all: Vec<(Vec<u8>, PlatterRow)> =
            rows_in(&*self.store.kv, PLATTERS, &KeyRange::prefix(b""), usize::MAX)?;
        let mut reports = Vec::new();
        for (key, row) in all {
            let platter = PlatterId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?);
            let Some(slot) = row.slot.filter(|_| only.is_none_or(|only| only == platter)) else {
                continue;
            };
            self.store.check_stopping()?;
            reports.push(self.verify_one(platter, SlotIndex::new(slot), row.set)?);
        }
        if let Some(only) = only.filter(|_| reports.is_empty()) {
            let what = format!("platter {only} is not stored in this archive");
            return Err(ArchiveError::InvalidArgument { what });
        }
        Ok(reports)
    }

    fn verify_one(
        &self,
        platter: PlatterId,
        slot: SlotIndex,
        set: SetId,
    ) -> Result<VerifiedPlatter> {
        let outcome: Arc<Mutex<Option<Result<VerifyReport>>>> = Arc::default();
        let (sealer, shared) = (self.clone(), Arc::clone(&outcome));
        let work = Box::new(move || {
            if sealer.store.medium.decodes_later() {
                return;
            }
            let report = sealer.read_whole(platter);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        });
        let tracks = self.track_count(&self.row(set)?, platter)?;
        let span = TrackSpan::new(TrackIndex::new(0), tracks);
        library_driver::wait(self.library.read(platter, slot, span, work)?)?;
        let report = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let report = match report {
            None if self.store.medium.decodes_later() => Some(self.read_whole(platter)),
            read => read,
        };
        if let Some(Ok(report)) = &report {
            verification::note(&self.store, platter, report)?;
        }
        let failed = |error: String| VerifiedPlatter {
            platter,
            set,
            sectors: 0,
            sectors_failed: 0,
            margin_min: 0,
            tracks_by_group: 0,
            tracks_unreadable: u64::from(tracks),
            sector_margins: None,
            error: Some(error),
        };
        Ok(match report {
            Some(Ok(report)) => VerifiedPlatter {
                platter,
                set,
                sectors: report.sectors,
                sectors_failed: report.failed_sectors,
                margin_min: u32::try_from(report.worst_margin).unwrap_or(0),
                tracks_by_group: u64::from(report.repaired_by_group),
                tracks_unreadable: report.unreadable.len() as u64,
                sector_margins: report.margins,
                error: mismatch(&report),
            },
            Some(Err(error)) => failed(error_chain(&error)),
            None => failed("the drive died".to_owned()),
        })
    }
}

/// What is wrong with the redundancy of a platter that was read whole, if anything.
fn mismatch(report: &VerifyReport) -> Option<String> {
    let tracks = report.mismatched.len();
    (tracks > 0).then(|| format!("the redundancy of {tracks} tracks does not fit their data"))
}

fn zones(shape: &fulgurite_library::LibraryShape, taken: &BTreeSet<u32>) -> Vec<ZoneState> {
    let mut zones: BTreeMap<u32, ZoneState> = BTreeMap::new();
    for slot in 0..shape.slot_count() {
        let index = SlotIndex::new(slot);
        if shape.is_spare(index) {
            continue;
        }
        let Some(zone) = shape.zone(index).map(|zone| zone.get()) else { continue };
        let state = zones.entry(zone).or_insert(ZoneState {
            zone,
            total: 0,
            free: 0,
            next: None,
            taken: false,
        });
        state.total += 1;
        if !taken.contains(&slot) {
            state.free += 1;
            state.next = state.next.or(Some(index));
        }
    }
    zones.into_values().collect()
}

/// Whether a shard lies, even partly, on one of these information tracks.
fn touches(geometry: &fulgurite_glass::Geometry, shard: &PlanRow, tracks: &[u32]) -> bool {
    let first = geometry.address(shard.offset).track.get();
    let last = geometry.address(shard.offset + shard.bytes.max(1) - 1).track.get();
    tracks.iter().any(|track| (first..=last).contains(track))
}

/// Damaged bodies are set aside. Others that stay staged age from now on, or the next look at the
/// policy would seal them again, and so on until the library is full.
fn keep_staged(
    tx: &mut Transaction<'_>,
    kept: &[PlanRow],
    damaged: &[ObjectId],
    now: UnixTime,
) -> Result<()> {
    for shard in kept {
        if damaged.contains(&shard.body_id) {
            set_aside(tx, shard.queued)?;
            continue;
        }
        let key = rows::sequence_key(shard.queued);
        if let Some(mut row) = rows::get::<rows::QueueRow>(tx, QUEUE, &key)? {
            row.arrived = now;
            rows::put(tx, QUEUE, key, &row)?;
        }
    }
    Ok(())
}

fn release_batch(
    tx: &mut Transaction<'_>,
    platter: PlatterId,
    shards: &[PlanRow],
) -> Result<(Released, Retired)> {
    let mut released = Released::default();
    let mut retired = Retired::default();
    let mut live_bytes = 0;
    for shard in shards {
        // Gone when the object was deleted meanwhile, or the body was released before a crash.
        let Some((queue, mut object, mut body)) = queued_body(tx, shard.queued)? else { continue };
        let is_known = body
            .shards
            .iter()
            .any(|known| known.platter == platter && known.body_offset == shard.body_offset);
        // Behind a shard that its platter could not give back the body goes to another set.
        let follows = shard.body_offset <= placed_bytes(&body);
        if !is_known && follows {
            let (before, stale): (Vec<Shard>, Vec<Shard>) = std::mem::take(&mut body.shards)
                .into_iter()
                .partition(|known| known.body_offset + known.bytes <= shard.body_offset);
            count_dead(tx, &stale)?;
            body.shards = before;
            body.shards.push(Shard {
                platter,
                offset: shard.offset,
                body_offset: shard.body_offset,
                bytes: shard.bytes,
                crc: shard.crc,
            });
            live_bytes += shard.bytes;
            released.bytes += shard.bytes;
        }
        if placed_bytes(&body) == cipher_bytes(body.bytes) {
            if let Some((kind, extents)) = body.leave_log() {
                account(tx, kind, &extents, false)?;
                debug_assert_eq!(kind, LogKind::Staging, "archived bodies are staged");
                retired.extents.extend(extents.into_iter().map(|extent| (kind, extent)));
            }
            body.queued = None;
            leave_queue(tx, shard.queued)?;
            released.bodies += 1;
            object.bodies_staged -= 1;
            let is_done = object.bodies_staged == 0;
            released.objects += u64::from(is_done);
            rows::put(tx, OBJECTS, rows::object_key(&queue.bucket, &queue.key), &object)?;
            rows::with_totals(tx, |totals| {
                if is_done {
                    totals.objects_staged -= 1;
                    totals.objects_on_glass += 1;
                }
            })?;
        }
        rows::put(tx, BODIES, rows::body_key(queue.object_id, queue.index), &body)?;
    }
    let key = platter.to_bytes().to_vec();
    if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)? {
        row.live_bytes += live_bytes;
        rows::put(tx, PLATTERS, key, &row)?;
    }
    Ok((released, retired))
}

#[cfg(test)]
mod tests;
