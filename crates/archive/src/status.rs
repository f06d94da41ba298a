//! Information for operators: the state of the archive, and reports of long operations.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, ReadView as _, Space};
use fulgurite_units::{Duration, PlatterId, SetId, UnixTime};
use serde::{Deserialize, Serialize};

use crate::bodies::cipher::cipher_bytes;
use crate::bodies::orphan_report::orphan_totals;
use crate::limits::NAMED_MAX;
use crate::model::names::{BucketName, ObjectKey};
use crate::rows::lookup::{bodies, require_object, rows_in};
use crate::rows::{
    self, BodyRow, DAMAGED, FAILED, Place, QUEUE, QueueRow, RESTORES, RestoreRow, UNCONFIRMED,
    UnconfirmedRow,
};
use crate::state::ArchiveState;

use crate::{DecodeStatus, Result, tiers};

pub use crate::bodies::orphan_report::OrphanedSegment;
pub use crate::restore::watch::FailedRestore;
pub use fulgurite_glass::{FarStatus, SealFailure, SealReport, SetStatus, VerifiedPlatter};

/// A snapshot of the archive's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Software version.
    pub version: String,
    /// Archive id.
    pub archive: String,
    /// Platter profile of new sets.
    pub profile: String,
    /// Fidelity of the simulated medium: `sector`, `soft` or `analog`.
    pub fidelity: String,
    /// `STANDARD` objects on disk.
    pub objects_online: u64,
    /// Archived objects still staged.
    pub objects_staged: u64,
    /// Archived objects on glass.
    pub objects_on_glass: u64,
    /// Objects in tiers of objects.
    #[serde(default)]
    pub objects_in_tiers: u64,
    /// Plaintext bytes of staged bodies that wait for a tier of objects.
    #[serde(default)]
    pub moving_bytes: u64,
    /// Tiers that bodies wait for.
    #[serde(default)]
    pub tiers_waiting: Vec<WaitingTier>,
    /// Plaintext bytes of staged bodies.
    pub staged_bytes: u64,
    /// Staged bodies whose bytes on disk differ from the ingested ones, so that they cannot be
    /// written to platters; the first hundred. They are retried after a restart.
    pub staged_damaged: Vec<DamagedBody>,
    /// Arrival of the oldest staged body.
    pub staged_oldest: Option<UnixTime>,
    /// Key table slots that hold no key that opens, in any of its files.
    #[serde(default)]
    pub keys_lost: u64,
    /// Unconfirmed bodies: they have a key, but no object or upload names them. Either a crash
    /// interrupted the upload, or the catalog is behind. They are kept until their names are put or
    /// deleted; `recover --salvage` brings them back.
    pub bodies_unconfirmed: u64,
    /// The unconfirmed bodies of objects; the first hundred.
    #[serde(default)]
    pub objects_unconfirmed: Vec<UnconfirmedBody>,
    /// File with the torn batch that this start removed from the end of the catalog's journal.
    pub catalog_cut: Option<String>,
    /// Bytes in the staging, online and restored logs.
    pub log_bytes: u64,
    /// Maximum of those bytes.
    pub log_bytes_max: u64,
    /// Orphaned segments: the catalog does not name them, and they are kept all the same.
    #[serde(default)]
    pub orphaned_segments: u64,
    /// Bytes of orphaned segments on the disk; they do not count as log bytes.
    #[serde(default)]
    pub orphaned_bytes: u64,
    /// Bytes free on the disk of the data directory.
    #[serde(default)]
    pub free_bytes: u64,
    /// Free bytes that no body may take.
    #[serde(default)]
    pub free_bytes_min: u64,
    /// Allocated bytes of the reserve for a full disk.
    #[serde(default)]
    pub reserve_bytes: u64,
    /// Configured bytes of the reserve.
    #[serde(default)]
    pub reserve_bytes_wanted: u64,
    /// Why the catalog accepts no writes; `None` when it does.
    #[serde(default)]
    pub catalog_refusal: Option<String>,
    /// Catalog damage found since the start; `fulgurite recover` repairs it.
    #[serde(default)]
    pub catalog_damage: Option<String>,
    /// Whether names of deleted objects are still in files.
    #[serde(default)]
    pub has_names_to_forget: bool,
    /// Platter-sets by state name.
    pub sets: Vec<SetStatus>,
    /// Platters stored.
    pub platters: u64,
    /// Far libraries, with the platters that are there and those that have to go there.
    #[serde(default)]
    pub far_libraries: Vec<FarStatus>,
    /// New platters that wait for verification, or are being verified; their bodies stay staged
    /// until then.
    #[serde(default)]
    pub unverified_platters: u64,
    /// Seconds since the oldest of them was ejected, or since the start if that is later; 0 if
    /// there is none.
    #[serde(default)]
    pub unverified_seconds: u64,
    /// The problem when that is longer than the library's policy allows.
    #[serde(default)]
    pub unverified_failure: Option<String>,
    /// Restores waiting or running.
    pub restores_waiting: u64,
    /// Restores that were given up and not requested again.
    #[serde(default)]
    pub restores_failed: u64,
    /// Restored copies on disk.
    pub restored_objects: u64,
    /// State of the background pipeline: `idle`, `sealing`, or the error that it waits on.
    pub pipeline: String,
    /// State of each background job.
    #[serde(default)]
    pub jobs: Vec<JobStatus>,
    /// Bytes of tracks that the current sealing has written and read back.
    #[serde(default)]
    pub seal_bytes_done: u64,
    /// Bytes it has to write and read back, as far as known; 0 when nothing is sealed.
    #[serde(default)]
    pub seal_bytes_total: u64,
    /// Sets that wait for a retry, and bodies of sets that were given up, the oldest first.
    #[serde(default)]
    pub seal_failures: Vec<SealFailure>,
    /// Sets given up since start: they failed through their own fault, and their bodies were
    /// planned again.
    #[serde(default)]
    pub sets_given_up: u64,
    /// Panics of background threads caught since start; each is a bug.
    #[serde(default)]
    pub panics: u64,
    /// Restored copies dropped since start because they were damaged.
    #[serde(default)]
    pub copies_dropped: u64,
    /// Sectors that failed and were repaired by the track code since start.
    pub repaired_by_track: u64,
    /// Repairs that needed the large group.
    pub repaired_by_group: u64,
    /// Repairs that needed the platter-set.
    pub repaired_by_set: u64,
    /// Failed restores: those that were given up, then those that are retried; the first hundred.
    pub failed_restores: Vec<FailedRestore>,
    /// State of the decode service, if images are decoded.
    #[serde(default)]
    pub decode: Option<DecodeStatus>,
    /// Length of a restore day in seconds, if it is not 86,400.
    pub debug_day_seconds: Option<f64>,
}

/// The pipeline's state when it does nothing and waits for nothing.
pub(crate) const PIPELINE_IDLE: &str = "idle";

impl Status {
    /// Whether nothing is being sealed or waits for a retry.
    #[must_use]
    pub fn is_pipeline_idle(&self) -> bool {
        self.pipeline == PIPELINE_IDLE
    }
}

/// The state of a background job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It has nothing to do.
    #[default]
    Idle,
    /// It is running.
    Running,
    /// It failed, or has to wait, and is in backoff.
    Resting,
    /// The archive is stopping.
    Stopped,
}

impl JobState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Resting, Self::Stopped];

    /// Returns the name of the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Resting => "resting",
            Self::Stopped => "stopped",
        }
    }
}

/// A tier of objects that staged bodies wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTier {
    /// Name of the tier.
    pub tier: String,
    /// Arrival of the first of them.
    pub since: UnixTime,
}

/// A background job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// Name of the job.
    pub name: String,
    /// Its state.
    pub state: JobState,
    /// What it is working on; `None` when it is not.
    pub doing: Option<String>,
    /// The error of its last run, or what that run has to wait for.
    pub failure: Option<String>,
    /// Seconds until it retries, while in backoff.
    pub retry_seconds: Option<u64>,
    /// Number of runs with work since start.
    pub runs: u64,
    /// Number of failed runs since start.
    pub failures: u64,
    /// Time of the last run with work.
    pub last_run: Option<UnixTime>,
}

impl JobStatus {
    /// Returns its failure as one line, if it has one.
    #[must_use]
    pub fn failure_report(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let again = self.retry_seconds.map_or_else(String::new, |s| format!("; retry in {s} s"));
        Some(format!("{} failed: {failure}{again}", self.name))
    }
}

/// A body of which it is unknown whether it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedBody {
    /// Bucket of the object that it would belong to.
    pub bucket: String,
    /// Key of that object.
    pub key: String,
    /// Plaintext bytes of the body.
    pub bytes: u64,
}

/// A staged body that differs from what was ingested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedBody {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// Plaintext bytes.
    pub bytes: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Every platter that was read.
    pub platters: Vec<VerifiedPlatter>,
    /// Restored copies that were read; 0 if only one platter was requested.
    pub copies: u64,
    /// Copies that are damaged or could not be read.
    pub copies_damaged: u64,
    /// The first hundred of these.
    pub damaged_copies: Vec<DamagedCopy>,
    /// Tiers of objects that have bodies; empty if only one platter was requested.
    #[serde(default)]
    pub tiers: Vec<VerifiedTier>,
}

/// A tier of objects whose bodies were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTier {
    /// Name of the tier.
    pub tier: String,
    /// Bodies that were read or are missing.
    pub bodies: u64,
    /// Their ciphertext bytes.
    pub bytes: u64,
    /// Bodies that differ from what was written there.
    pub bodies_damaged: u64,
    /// The first hundred of these.
    pub damaged: Vec<DamagedInTier>,
    /// Why not all were read, if so.
    pub error: Option<String>,
}

/// A body in a tier of objects that differs from what was written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedInTier {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// The problem.
    pub error: String,
}

/// The result of changing the class of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveReport {
    /// Objects whose class was changed.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Objects that already had the class and were in its home.
    pub objects_there: u64,
    /// Objects that were not changed.
    pub objects_left: u64,
    /// The first hundred of these.
    pub left: Vec<SkippedObject>,
}

/// An object whose class was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedObject {
    /// Bucket of the object.
    pub bucket: String,
    /// Key of the object.
    pub key: String,
    /// The reason.
    pub error: String,
}

/// A restored copy that is damaged or could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedCopy {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// Whether the copy was dropped, so that the object can be restored again. A copy that only
    /// could not be read right now stays.
    pub is_dropped: bool,
    /// The problem.
    pub error: String,
}

/// The location of a piece of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardLocation {
    /// Index of its body in the object, from zero.
    pub body: u32,
    /// Platter, or `None` if it is not on glass.
    pub platter: Option<PlatterId>,
    /// Set of that platter.
    pub set: Option<SetId>,
    /// First information track.
    pub track_first: u32,
    /// Last information track.
    pub track_last: u32,
    /// Ciphertext bytes.
    pub bytes: u64,
    /// `online`, `staged`, `glass`, `tier`.
    pub residence: String,
    /// Name of the tier of objects that it is in or waits for.
    #[serde(default)]
    pub tier: Option<String>,
    /// Storage slot in the library.
    pub slot: Option<u32>,
}

/// Returns the status of an open archive, without its jobs. With a damaged catalog it may be nearly
/// empty.
pub(crate) fn status(state: &ArchiveState) -> Result<Status> {
    full_status(state).or_else(|error| {
        let damage = state.kv.damage().ok_or(error)?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            archive: state.archive.to_string(),
            catalog_refusal: state.committer.refusal(),
            catalog_damage: Some(damage.chain()),
            ..Status::default()
        })
    })
}

fn full_status(state: &ArchiveState) -> Result<Status> {
    let totals = rows::totals(&*state.kv)?;
    let oldest: Vec<(Vec<u8>, QueueRow)> = rows_in(&*state.kv, QUEUE, &KeyRange::prefix(b""), 1)?;
    let glass = state.platters.snapshot()?;
    let day = state.config.day.as_secs_f64();
    // A job reports a failing disk; the rest of the status is still useful.
    let (orphaned_segments, orphaned_bytes) = orphan_totals(state).unwrap_or_default();
    let (reserve_bytes, reserve_bytes_wanted) = state.space.reserve();
    let (repaired_by_track, repaired_by_group, repaired_by_set) = glass.repaired;
    let (seal_bytes_done, seal_bytes_total) = glass.seal_bytes;
    let decoders = glass.decode.as_ref().map_or(0, |decode| decode.deaths);
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        archive: state.archive.to_string(),
        profile: glass.profile,
        fidelity: glass.fidelity.to_owned(),
        objects_online: totals.objects_online,
        objects_staged: totals.objects_staged,
        objects_on_glass: totals.objects_on_glass,
        objects_in_tiers: totals.objects_in_tiers,
        moving_bytes: totals.moving_bytes,
        tiers_waiting: tiers::waiting(&state.kv, &state.tiers)?,
        staged_bytes: totals.staged_bytes,
        staged_damaged: damaged(state)?,
        staged_oldest: oldest.first().map(|(_, row)| row.arrived),
        keys_lost: state.keys.lost(),
        bodies_unconfirmed: rows::unconfirmed_count(&*state.kv)?
            + state.unconfirmed_parts.load(Ordering::Relaxed),
        objects_unconfirmed: unconfirmed(state)?,
        catalog_cut: state
            .kv
            .cut_batch()
            .map(|cut| cut.kept.as_ref().unwrap_or(&cut.journal).display().to_string()),
        log_bytes: state.budget.used(),
        log_bytes_max: state.budget.max(),
        orphaned_segments,
        orphaned_bytes,
        free_bytes: state.space.free().unwrap_or_default(),
        free_bytes_min: state.space.free_min(),
        reserve_bytes,
        reserve_bytes_wanted,
        catalog_refusal: state.committer.refusal(),
        catalog_damage: state.kv.damage().map(|damage| damage.chain()),
        has_names_to_forget: !rows::purge_state(&*state.kv)?.is_done(),
        platters: glass.platters,
        far_libraries: glass.far,
        sets: glass.sets,
        restores_waiting: totals.restores_waiting,
        restores_failed: rows::failed_count(&*state.kv)?,
        restored_objects: totals.restored,
        pipeline: String::new(),
        jobs: Vec::new(),
        seal_bytes_done,
        seal_bytes_total,
        unverified_platters: glass.unverified_platters,
        unverified_seconds: glass.unverified_age.map_or(0, |age| age.as_nanos() / 1_000_000_000),
        unverified_failure: glass.unverified_failure,
        seal_failures: glass.seal_failures,
        sets_given_up: glass.sets_given_up,
        panics: state.runtime.panics.count() + decoders,
        copies_dropped: state.copies_dropped.load(Ordering::Relaxed),
        repaired_by_track,
        repaired_by_group,
        repaired_by_set,
        decode: glass.decode,
        failed_restores: failed_restores(state)?,
        debug_day_seconds: (state.config.day != DAY).then_some(day),
    })
}

fn damaged(state: &ArchiveState) -> Result<Vec<DamagedBody>> {
    let all = KeyRange::prefix(b"");
    let found: Vec<(Vec<u8>, QueueRow)> = rows_in(&*state.kv, DAMAGED, &all, NAMED_MAX)?;
    let named = |row: QueueRow| {
        let (bucket, key) = (row.name.bucket.to_string(), row.name.key.to_string());
        DamagedBody { bucket, key, bytes: row.bytes }
    };
    Ok(found.into_iter().map(|(_, row)| named(row)).collect())
}

fn unconfirmed(state: &ArchiveState) -> Result<Vec<UnconfirmedBody>> {
    let all = KeyRange::prefix(b"");
    let found: Vec<(Vec<u8>, UnconfirmedRow)> = rows_in(&*state.kv, UNCONFIRMED, &all, NAMED_MAX)?;
    found
        .into_iter()
        .map(|(row_key, row)| {
            let (bucket, key, _) = rows::parse_unconfirmed_key(&row_key)?;
            Ok(UnconfirmedBody { bucket, key, bytes: row.body.bytes })
        })
        .collect()
}

fn failed_restores(state: &ArchiveState) -> Result<Vec<FailedRestore>> {
    let mut failed = Vec::new();
    for (space, is_given_up) in [(FAILED, true), (RESTORES, false)] {
        add_failed(state, space, is_given_up, &mut failed)?;
    }
    Ok(failed)
}

fn add_failed(
    state: &ArchiveState,
    space: Space,
    is_given_up: bool,
    failed: &mut Vec<FailedRestore>,
) -> Result<()> {
    let mut failure = None;
    let all = KeyRange::prefix(b"");
    state.kv.scan(space, &all, Direction::Ascending, &mut |_, value| {
        if failed.len() >= NAMED_MAX {
            return ControlFlow::Break(());
        }
        match rows::decode_row::<RestoreRow>(&*state.kv, space, value) {
            Ok(RestoreRow { name, failures, error: Some(error), .. }) => {
                let (bucket, key) = (name.bucket.to_string(), name.key.to_string());
                failed.push(FailedRestore { bucket, key, failures, error, is_given_up });
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// Length of a real day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Returns where an object's bytes are.
pub(crate) fn locate(
    state: &ArchiveState,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<Vec<ShardLocation>> {
    let view = state.kv.snapshot();
    let object = require_object(&*view, bucket, key)?;
    let mut places = Vec::new();
    for (index, body) in (0..).zip(bodies(&*view, &object)?) {
        places.extend(off_glass(index, &body));
        for shard in body.shards() {
            let Some(place) = state.platters.place(&*view, shard)? else { continue };
            places.push(ShardLocation {
                body: index,
                platter: Some(shard.platter),
                set: Some(place.set),
                track_first: place.track_first,
                track_last: place.track_last,
                bytes: shard.bytes,
                residence: "glass".to_owned(),
                tier: None,
                slot: place.slot,
            });
        }
    }
    Ok(places)
}

/// Returns the location of a body in a log or in a tier of objects, if it is there.
fn off_glass(index: u32, body: &BodyRow) -> Option<ShardLocation> {
    let residence = match &body.place {
        Place::Log(log) if log.queued.is_some() => "staged",
        Place::Log(_) => "online",
        Place::Tier(_) => "tier",
        Place::Glass(_) => return None,
    };
    Some(ShardLocation {
        body: index,
        platter: None,
        set: None,
        track_first: 0,
        track_last: 0,
        bytes: cipher_bytes(body.bytes),
        residence: residence.to_owned(),
        tier: body.tier().map(ToString::to_string),
        slot: None,
    })
}
