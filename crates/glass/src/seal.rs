//! Sealing: from staged bodies to a platter-set that is written, verified, stored and released.
//!
//! ```text
//! queue -> Planned -> Written -> Verified -> Stored -> Released
//!           plan      platter     each read   slots     rows point at glass,
//!           rows      files       back whole  chosen    staged bytes given back
//! ```
//!
//! Each arrow ends with one transaction; before it everything it depends on is durable, and every
//! step is idempotent. A body that its platter could not give back stays in the queue and goes to
//! another platter.
//!
//! A set that cannot go on waits for a retry (module `failures`); one that failed by its own fault
//! too often is given up and its bodies are planned again (module `give_up`). Other sets go on
//! meanwhile.

mod failures;
mod give_up;
mod read_back;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_catalog::{KeyRange, Transaction, keys};
use fulgurite_glass_core::plan::{ZoneState, choose_zones};
use fulgurite_tier::Progress;
use fulgurite_units::{
    ErrorKind, Instant, ObjectId, PlatterId, SetId, SlotIndex, UnixTime, error_chain,
};

use crate::library_driver::LiveLibrary;
use crate::limits::{ROWS_PER_TRANSACTION_MAX, SET_FAULTS_MAX};
use crate::plan::{drop_orphan_plans, drop_plan, plan_set};
use crate::progress::{platter_bytes, sets_bytes};
use crate::rows::{
    self, FAULTS, PLANS, PLATTERS, PlanRow, PlatterRow, SETS, SLOTS, SetRow, SetState,
};
use crate::status::{SealReport, set_status, unreadable_set};
use crate::verify::Verifier;
use crate::write_set::SetWriting;
use crate::{
    Bodies, Context, GlassError, KeepReason, PlacedShard, PlatterFiles, Released, Result, Shard,
};

pub use self::failures::Excluded;
pub(crate) use self::failures::SealFailures;
use self::read_back::Verdict;

/// Seals sets. One is enough; the states in the catalog keep two from conflicting.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    context: Arc<Context>,
    bodies: Arc<dyn Bodies>,
    library: LiveLibrary,
    files: PlatterFiles,
    verifier: Verifier,
    failures: Arc<SealFailures>,
    progress: Arc<Progress>,
}

/// What started a pass of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealTrigger {
    /// The policy, or the end of a backoff: sets that still wait are left alone.
    Due,
    /// The operator: nothing waits.
    Order,
}

/// What is started or waits.
#[derive(Debug)]
pub struct SealReadiness {
    /// A started set can go on, or bodies of one that was given up can be planned again.
    pub is_ready: bool,
    /// So many wait that no more may be started.
    pub is_full: bool,
    /// What planning has to skip.
    pub excluded: Excluded,
}

/// How an attempt to finish a set ended.
#[derive(Debug)]
enum End {
    Released(Sealed),
    /// Its bodies are planned again later, for this reason. `None` when all were deleted and none
    /// are left.
    GivenUp(Option<GlassError>),
}

/// The outcome of a set's bodies.
#[derive(Clone, Copy, Debug, Default)]
struct Sealed {
    objects: u64,
    bodies: u64,
    bytes: u64,
    /// Set aside, because the staged bytes are not what was ingested.
    damaged: u64,
    /// Still staged, to go to another platter.
    still_staged: u64,
}

impl Sealer {
    /// Creates a sealer without work.
    pub(crate) fn new(
        context: &Arc<Context>,
        bodies: &Arc<dyn Bodies>,
        library: &LiveLibrary,
        failures: &Arc<SealFailures>,
        progress: &Arc<Progress>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            bodies: Arc::clone(bodies),
            library: library.clone(),
            files: context.files.clone(),
            verifier: Verifier::new(context, library, progress),
            failures: Arc::clone(failures),
            progress: Arc::clone(progress),
        }
    }

    /// Finishes sets that were started, then seals everything staged when this was called. A set
    /// that cannot go on is left for later, and the error of the first one is returned at the end.
    pub(crate) fn seal_all(&self, trigger: SealTrigger) -> Result<SealReport> {
        let started = self.context.passed();
        drop_orphan_plans(&self.context)?;
        self.give_up_unwritable()?;
        let until = self.bodies.backlog()?.last;
        let mut report = SealReport::default();
        // They may be in progress; that cannot be known.
        for (key, _) in rows::readable::<SetRow>(&*self.context.catalog, SETS)?.unreadable {
            report.sets.push(unreadable_set(&key)?);
        }
        let mut failed = Vec::new();
        for set in unfinished(&self.context)? {
            if trigger == SealTrigger::Order || !self.failures.is_waiting(set, started) {
                self.attempt(set, &mut report, &mut failed)?;
            }
        }
        let waits = (trigger == SealTrigger::Due).then_some(started);
        while !self.failures.is_full(waits) {
            let excluded = self.failures.excluded(waits);
            let Some(set) = plan_set(&self.context, &*self.bodies, until, &excluded)? else {
                self.failures.record_planned(waits, until);
                break;
            };
            let released = self.attempt(set, &mut report, &mut failed)?;
            // If there is no room for this set, there is none for the next one either.
            if released.is_none() && matches!(failed.last(), Some(GlassError::Full { .. })) {
                break;
            }
            // Bodies set aside are not planned again; those of a set that only kept bodies would
            // be.
            let stays_staged = |r: Sealed| r.bodies == 0 && r.bytes == 0 && r.damaged == 0;
            if released.is_some_and(stays_staged) {
                break;
            }
        }
        report.seconds = self.context.passed().since(started).as_secs_f64();
        failed.into_iter().next().map_or(Ok(report), Err)
    }

    /// Takes a set as far as it goes. Its failure is recorded; errors that are not of one set end
    /// the pass.
    fn attempt(
        &self,
        set: SetId,
        report: &mut SealReport,
        failed: &mut Vec<GlassError>,
    ) -> Result<Option<Sealed>> {
        let finish = || self.finish_set(set, report);
        let error = match self.context.panics.run("sealing", finish) {
            Ok(End::Released(released)) => {
                self.failures.forget_set(set);
                return Ok(Some(released));
            }
            Ok(End::GivenUp(None)) => return Ok(None),
            Ok(End::GivenUp(Some(error))) => error,
            Err(error @ (GlassError::Stopping | GlassError::Catalog(_))) => {
                return Err(error);
            }
            Err(error) => self.leave(set, error)?,
        };
        failed.push(error);
        Ok(None)
    }

    /// Leaves a set that failed for later, or gives it up if it failed too often by its own fault.
    fn leave(&self, set: SetId, error: GlassError) -> Result<GlassError> {
        let row = self.row(set)?;
        let is_own =
            matches!(error, GlassError::Internal { .. }) || error.kind() == ErrorKind::Corrupt;
        if is_own && row.state < SetState::Verified {
            let faults = self.count_fault(set)?;
            if faults >= SET_FAULTS_MAX {
                return self
                    .abandon(set, Some(error))
                    .map(|reason| reason.unwrap_or_else(|| given_up_error(set)));
            }
        }
        let text = error_chain(&error);
        let places = self.places(set)?.into();
        self.failures.record_wait(set, &text, self.times(), (row.bytes, places));
        tracing::error!(%set, error = text, "a set failed and is retried later; others continue");
        Ok(error)
    }

    fn times(&self) -> (UnixTime, Instant) {
        (self.context.now(), self.context.passed())
    }

    /// Gives up a set, and records that its bodies wait, and `reason`. Returns `reason`.
    fn abandon(&self, set: SetId, reason: Option<GlassError>) -> Result<Option<GlassError>> {
        let row = self.row(set)?;
        let (old, new) = self.give_up(set, &row)?;
        let text = reason.as_ref().map(|error| error_chain(error)).unwrap_or_default();
        if new.is_empty() {
            tracing::warn!(%set, "all bodies of a set were deleted; it is given up");
        } else {
            tracing::error!(%set, error = text, "a set is given up; its bodies are planned again");
        }
        self.failures.record_give_up(set, &text, self.times(), (row.bytes, &old, new));
        Ok(reason)
    }

    fn row(&self, set: SetId) -> Result<SetRow> {
        rows::get(&*self.context.catalog, SETS, &set.to_bytes())?
            .ok_or_else(|| GlassError::Internal { what: format!("set {set} has no row") })
    }

    fn advance(&self, set: SetId, change: impl FnOnce(&mut SetRow) + Send + 'static) -> Result<()> {
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            let key = set.to_bytes().to_vec();
            let Some(mut row) = rows::get::<SetRow>(tx, SETS, &key)? else {
                return Err(GlassError::Internal { what: format!("set {set} has no row") });
            };
            change(&mut row);
            rows::put(tx, SETS, key, &row)
        })
    }

    fn finish_set(&self, set: SetId, report: &mut SealReport) -> Result<End> {
        let mut released = Sealed::default();
        let before = self.progress.bytes().0.get();
        loop {
            self.context.check_stopping()?;
            let row = self.row(set)?;
            self.update_progress(&row, before)?;
            match row.state {
                SetState::Planned if !self.is_wanted(set)? => {
                    return self.abandon(set, None).map(End::GivenUp);
                }
                SetState::Planned => self.write(set, &row)?,
                SetState::Written => {
                    if let Verdict::Scrap(error) = self.verify(set, &row)?
                        && self.count_fault(set)? >= SET_FAULTS_MAX
                    {
                        return self.abandon(set, Some(error)).map(End::GivenUp);
                    }
                }
                SetState::Verified => self.stored(set)?,
                SetState::Stored => released = self.release(set, &row)?,
                SetState::Released => {
                    drop_plan(&self.context, set)?;
                    report.sets.push(set_status(&set.to_bytes(), &row)?);
                    report.objects += released.objects;
                    report.bytes += released.bytes;
                    // Bodies kept by an earlier set of this pass were planned again for this one;
                    // those set aside were not.
                    report.damaged += released.damaged;
                    report.kept_staged = report.damaged + released.still_staged;
                    return Ok(End::Released(released));
                }
            }
        }
    }

    /// Updates the progress from the state of the set and what is to be done after it; `before` is
    /// what was done earlier. Its tracks are written, and then read back.
    fn update_progress(&self, row: &SetRow, before: u64) -> Result<()> {
        let mut tracks = 0;
        for (_, platter) in row.platters() {
            let found: Option<PlatterRow> =
                rows::get(&*self.context.catalog, PLATTERS, &platter.to_bytes())?;
            let user_bytes = found.map_or(0, |found| found.data_bytes + found.list_bytes);
            tracks += platter_bytes(&row.geometry, user_bytes);
        }
        let passes = match row.state {
            SetState::Planned => 0,
            SetState::Written => 1,
            SetState::Verified | SetState::Stored | SetState::Released => 2,
        };
        let staged = self.bodies.backlog()?.bytes;
        let own = if row.state < SetState::Released { row.bytes } else { 0 };
        let later = sets_bytes(&self.context.geometry, staged.saturating_sub(own));
        self.progress.set(before + passes * tracks, before + 2 * (tracks + later));
        Ok(())
    }

    /// Writes all platters of a set. Only complete ones count: what an interrupted attempt leaves
    /// is removed at once, because others may need the room.
    pub(crate) fn write(&self, set: SetId, row: &SetRow) -> Result<()> {
        self.scrap(row)?;
        // Raised before the first byte: two attempts never carry the same generation.
        self.advance(set, |row| row.generation += 1)?;
        let row = self.row(set)?;
        let (context, files, progress) = (&*self.context, &self.files, &self.progress);
        let bodies = &*self.bodies;
        let writing = SetWriting { context, bodies, files, set, row: &row, progress };
        let damaged = match writing.run() {
            Ok(damaged) => damaged,
            Err(error) => {
                if let Err(left) = self.scrap(&row) {
                    tracing::warn!(%set, error = %left, "files of a failed attempt remain");
                }
                return Err(error);
            }
        };
        self.advance(set, move |row| {
            row.damaged = damaged;
            row.state = SetState::Written;
        })?;
        self.context.fail.pass("seal-written");
        Ok(())
    }

    fn scrap(&self, row: &SetRow) -> Result<()> {
        row.platters().try_for_each(|(_, platter)| self.files.scrap(platter))
    }

    /// Marks the set as stored: every platter was read back and is in its slot. True after a crash
    /// here as well, because the library starts with all platters at home.
    fn stored(&self, set: SetId) -> Result<()> {
        self.advance(set, |row| row.state = SetState::Stored)?;
        self.context.fail.pass("seal-stored");
        Ok(())
    }

    /// Returns a slot for each platter of a set, no two in one blast zone; the same ones when
    /// called again.
    fn slots(&self, platters: &[PlatterId]) -> Result<Vec<SlotIndex>> {
        let mut has: Vec<Option<u32>> = Vec::new();
        for platter in platters {
            let row: Option<PlatterRow> =
                rows::get(&*self.context.catalog, PLATTERS, &platter.to_bytes())?;
            has.push(row.and_then(|row| row.slot));
        }
        if let Some(slots) = has.iter().copied().collect::<Option<Vec<u32>>>() {
            return Ok(slots.into_iter().map(SlotIndex::new).collect());
        }
        let used: Vec<(Vec<u8>, PlatterId)> =
            rows::rows_in(&*self.context.catalog, SLOTS, &KeyRange::prefix(b""), usize::MAX)?;
        let mut occupied = BTreeSet::new();
        for (key, _) in used {
            occupied.insert(keys::KeyReader::new(&key).u32()?);
        }
        let zones = zones(&self.context.shape, &occupied);
        let slots = choose_zones(&zones, platters.len()).map_err(|error| GlassError::Full {
            what: format!("the library has no room for a set: {error}"),
        })?;
        let placed: Vec<(PlatterId, u32)> =
            platters.iter().copied().zip(slots.iter().map(|slot| slot.get())).collect();
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
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

    /// Points rows at glass and frees staged bytes, in batches of shards that cover as many
    /// platters as fit.
    fn release(&self, set: SetId, row: &SetRow) -> Result<Sealed> {
        let mut total = Sealed::default();
        let mut kept_bodies = BTreeSet::new();
        let (mut release_plans, mut shards) = (Vec::new(), 0);
        for (position, &platter) in (0u16..).zip(&row.information) {
            let range = rows::plan_range(set, position);
            let plan: Vec<(Vec<u8>, PlanRow)> =
                rows::rows_in(&*self.context.catalog, PLANS, &range, usize::MAX)?;
            let found: Option<PlatterRow> =
                rows::get(&*self.context.catalog, PLATTERS, &platter.to_bytes())?;
            let unreadable = found.map(|row| row.unreadable_tracks).unwrap_or_default();
            for batch in plan.chunks(ROWS_PER_TRANSACTION_MAX) {
                if shards + batch.len() > ROWS_PER_TRANSACTION_MAX {
                    self.release_batch(std::mem::take(&mut release_plans), &mut total)?;
                    shards = 0;
                }
                let release_plan = ReleasePlan::classify(row, platter, batch, &unreadable);
                kept_bodies.extend(release_plan.staged_bodies(batch));
                release_plans.push(release_plan);
                shards += batch.len();
            }
        }
        self.release_batch(release_plans, &mut total)?;
        total.damaged = row.damaged.iter().filter(|body| kept_bodies.remove(body)).count() as u64;
        total.still_staged = kept_bodies.len() as u64;
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            let key = set.to_bytes().to_vec();
            let Some(mut row) = rows::get::<SetRow>(tx, SETS, &key)? else { return Ok(()) };
            row.state = SetState::Released;
            rows::put(tx, SETS, key.clone(), &row)?;
            Ok(tx.delete(FAULTS, key)?)
        })?;
        self.context.fail.pass("seal-released");
        Ok(total)
    }

    fn release_batch(&self, release_plans: Vec<ReleasePlan>, total: &mut Sealed) -> Result<()> {
        let bodies = Arc::clone(&self.bodies);
        let commit = move |tx: &mut Transaction<'_>| -> Result<Vec<Released>> {
            release_plans.iter().map(|release_plan| release_plan.seal(tx, &*bodies)).collect()
        };
        let all = self.context.committer.commit_blocking(commit)?;
        self.context.fail.pass("release-batch");
        for released in all {
            if let Some(on_commit) = released.on_commit {
                on_commit();
            }
            total.objects += released.files;
            total.bodies += released.bodies;
            total.bytes += released.bytes;
        }
        self.context.fail.pass("release-freed");
        Ok(())
    }
}

/// Returns what is started or waits at this time.
pub(crate) fn seal_readiness(context: &Context, failures: &SealFailures) -> Result<SealReadiness> {
    let now = context.passed();
    let is_ready = |set: &SetId| !failures.is_waiting(*set, now);
    Ok(SealReadiness {
        is_ready: failures.is_any_due(now) || unfinished(context)?.iter().any(is_ready),
        is_full: failures.is_full(Some(now)),
        excluded: failures.excluded(Some(now)),
    })
}

/// Returns sets that were started and are not released. One whose row cannot be read is left alone.
fn unfinished(context: &Context) -> Result<Vec<SetId>> {
    let all = rows::readable::<SetRow>(&*context.catalog, SETS)?.rows;
    all.into_iter()
        .filter(|(_, row)| row.state < SetState::Released)
        .map(|(key, _)| Ok(SetId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?)))
        .collect()
}

/// Returns the error of a set that no longer exists, without a known reason.
fn given_up_error(set: SetId) -> GlassError {
    GlassError::Internal { what: format!("set {set} was given up") }
}

fn zones(
    shape: &fulgurite_glass_core::control::LibraryShape,
    occupied: &BTreeSet<u32>,
) -> Vec<ZoneState> {
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
            holds_member: false,
        });
        state.total += 1;
        if !occupied.contains(&slot) {
            state.free += 1;
            state.next = state.next.or(Some(index));
        }
    }
    zones.into_values().collect()
}

/// Whether a shard lies, even partly, on one of these information tracks.
fn touches(geometry: &fulgurite_platter::Geometry, shard: &PlanRow, tracks: &[u32]) -> bool {
    let first = geometry.address(shard.offset).track.get();
    let last = geometry.address(shard.offset + shard.bytes.max(1) - 1).track.get();
    tracks.iter().any(|track| (first..=last).contains(track))
}

/// What to do with the shards of a platter that was read back.
#[derive(Debug)]
struct ReleasePlan {
    platter: PlatterId,
    safe: Vec<PlacedShard>,
    /// Places of the bodies of the other shards.
    damaged: Vec<u64>,
    unreadable: Vec<u64>,
}

impl ReleasePlan {
    /// Sorts these shards of a platter by whether they are damaged or touch unreadable tracks.
    fn classify(
        row: &SetRow,
        platter: PlatterId,
        shards: &[(Vec<u8>, PlanRow)],
        unreadable: &[u32],
    ) -> Self {
        let (safe, damaged) = (Vec::new(), Vec::new());
        let mut release_plan = Self { platter, safe, damaged, unreadable: Vec::new() };
        for (_, shard) in shards {
            if row.damaged.contains(&shard.body_id) {
                release_plan.damaged.push(shard.place);
            } else if touches(&row.geometry, shard, unreadable) {
                release_plan.unreadable.push(shard.place);
            } else {
                release_plan.safe.push(placed_shard(platter, shard));
            }
        }
        release_plan
    }

    /// Returns the bodies whose shards are not safe, which stay staged.
    fn staged_bodies(&self, shards: &[(Vec<u8>, PlanRow)]) -> impl Iterator<Item = ObjectId> {
        let places: BTreeSet<u64> = self.damaged.iter().chain(&self.unreadable).copied().collect();
        let stays_staged = move |shard: &&PlanRow| places.contains(&shard.place);
        shards.iter().map(|(_, shard)| shard).filter(stays_staged).map(|shard| shard.body_id)
    }

    /// Records the outcome, and adds to the platter's live bytes what rows point at.
    fn seal(&self, tx: &mut Transaction<'_>, bodies: &dyn Bodies) -> Result<Released> {
        bodies.keep_staged(tx, &self.damaged, KeepReason::Damaged)?;
        bodies.keep_staged(tx, &self.unreadable, KeepReason::Unreadable)?;
        let released = bodies.record_placed(tx, &self.safe)?;
        let key = self.platter.to_bytes().to_vec();
        if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)? {
            row.live_bytes += released.bytes;
            rows::put(tx, PLATTERS, key, &row)?;
        }
        Ok(released)
    }
}

/// Returns a planned shard as placed on this platter.
const fn placed_shard(platter: PlatterId, shard: &PlanRow) -> PlacedShard {
    let &PlanRow { place, offset, body_offset, bytes, crc, .. } = shard;
    PlacedShard { place, shard: Shard { platter, offset, body_offset, bytes, crc } }
}

#[cfg(test)]
mod tests;
