//! What operators are shown: state of the archive, and reports of long operations.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, ReadView as _, Space};
use fulgurite_units::{Duration, PlatterId, SetId, UnixTime};
use serde::{Deserialize, Serialize};

use crate::bodies::cipher::cipher_bytes;
use crate::bodies::orphan_report::orphan_totals;
use crate::ground::Ground;
use crate::limits::NAMED_MAX;
use crate::objects::commit::{bodies, require_object, rows_in};
use crate::objects::names::{BucketName, ObjectKey};
use crate::rows::{
    self, BodyRow, DAMAGED, DOUBTS, DoubtRow, FAILED, QUEUE, QueueRow, RESTORES, RestoreRow,
};

use crate::{DecodeStatus, Result, tiers};

pub use crate::bodies::orphan_report::OrphanedSegment;
pub use crate::restore::watch::FailedRestore;
pub use fulgurite_platters::{FarStatus, SealReport, SealTrouble, SetStatus, VerifiedPlatter};

/// The archive at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Software version.
    pub version: String,
    /// Archive id.
    pub archive: String,
    /// Platter profile of new sets.
    pub profile: String,
    /// Fidelity of the simulated medium: `sector` or `analog`.
    pub fidelity: String,
    /// Objects by residence: STANDARD objects on disk.
    pub objects_online: u64,
    /// Archived objects still staged.
    pub objects_staged: u64,
    /// Archived objects on glass.
    pub objects_on_glass: u64,
    /// Objects in tiers of objects.
    #[serde(default)]
    pub objects_in_tiers: u64,
    /// Plain bytes of staged bodies that wait for a tier of objects.
    #[serde(default)]
    pub moving_bytes: u64,
    /// Those tiers that something waits for.
    #[serde(default)]
    pub tiers_waiting: Vec<WaitingTier>,
    /// Plain bytes of staged bodies.
    pub staged_bytes: u64,
    /// Staged bodies whose bytes on disk are not those ingested, and that no platter takes; the
    /// first hundred. They are tried again after a restart.
    pub staged_damaged: Vec<DamagedBody>,
    /// When the oldest staged body came.
    pub staged_oldest: Option<UnixTime>,
    /// Slots of the key table that hold no key that opens, in any of its files.
    #[serde(default)]
    pub keys_lost: u64,
    /// Bodies with a key that no object or upload has: uploads that a crash cut short, or a catalog
    /// that is behind. They are kept until their names are put or deleted; `recover --salvage`
    /// brings them back.
    pub bodies_in_doubt: u64,
    /// Those of them that would be objects; the first hundred.
    #[serde(default)]
    pub objects_in_doubt: Vec<DoubtedBody>,
    /// The file that keeps the torn batch which this start cut off the catalog's journal.
    pub catalog_cut: Option<String>,
    /// Bytes the staging, online and restored logs hold on disk.
    pub log_bytes: u64,
    /// Most they may hold.
    pub log_bytes_max: u64,
    /// Segments that the catalog does not name and that are kept all the same.
    #[serde(default)]
    pub orphaned_segments: u64,
    /// Bytes they take on the disk; they do not count as log bytes.
    #[serde(default)]
    pub orphaned_bytes: u64,
    /// Bytes free on the disk of the data directory.
    #[serde(default)]
    pub free_bytes: u64,
    /// Free bytes that no body may take.
    #[serde(default)]
    pub free_bytes_min: u64,
    /// Bytes that the reserve holds for a full disk.
    #[serde(default)]
    pub reserve_bytes: u64,
    /// Bytes that it should hold.
    #[serde(default)]
    pub reserve_bytes_wanted: u64,
    /// Why the catalog takes no writes; nothing when it does.
    #[serde(default)]
    pub catalog_refusal: Option<String>,
    /// Damage of the catalog that was met since the start; `fulgurite recover` mends it.
    #[serde(default)]
    pub catalog_damage: Option<String>,
    /// Whether names of deleted objects are still in files.
    #[serde(default)]
    pub has_names_to_forget: bool,
    /// Platter-sets by state name.
    pub sets: Vec<SetStatus>,
    /// Platters stored.
    pub platters: u64,
    /// Far libraries, with the platters that are there and those that are to go there.
    #[serde(default)]
    pub far_libraries: Vec<FarStatus>,
    /// New platters that wait to be verified, or are being verified; until then what is on them
    /// stays staged.
    #[serde(default)]
    pub unverified_platters: u64,
    /// Seconds since the oldest of them came out, or since the start if that is later; 0 without.
    #[serde(default)]
    pub unverified_seconds: u64,
    /// What is wrong when that is longer than the library's policy lets one wait.
    #[serde(default)]
    pub unverified_trouble: Option<String>,
    /// Restores waiting or running.
    pub restores_waiting: u64,
    /// Restores that were given up and not asked for again.
    #[serde(default)]
    pub restores_failed: u64,
    /// Restored copies held.
    pub restored_objects: u64,
    /// What the background pipeline is doing: `idle`, `sealing`, or the error it waits on.
    pub pipeline: String,
    /// What each job of the background is doing.
    #[serde(default)]
    pub jobs: Vec<JobStatus>,
    /// Bytes of tracks that the sealing under way has written, and read back.
    #[serde(default)]
    pub seal_bytes_done: u64,
    /// Those it has to write and to read back, as far as is known; none when nothing is sealed.
    #[serde(default)]
    pub seal_bytes_total: u64,
    /// Sets that wait to be tried again, and bodies of sets that were given up, the oldest first.
    #[serde(default)]
    pub seal_troubles: Vec<SealTrouble>,
    /// Sets given up since start: they failed by their own fault, and were planned anew.
    #[serde(default)]
    pub sets_given_up: u64,
    /// Panics of background threads that were caught since start; each is a bug.
    #[serde(default)]
    pub panics: u64,
    /// Restored copies dropped since start because they were damaged.
    #[serde(default)]
    pub copies_dropped: u64,
    /// Sectors that failed and were repaired since start, by layer of code.
    pub repaired_by_track: u64,
    /// Tracks that needed the large group.
    pub repaired_by_group: u64,
    /// Tracks that needed the platter-set.
    pub repaired_by_set: u64,
    /// Restores that failed: those that were given up, then those that are tried again; the first
    /// hundred.
    pub failed_restores: Vec<FailedRestore>,
    /// The decode service, where images are decoded.
    #[serde(default)]
    pub decode: Option<DecodeStatus>,
    /// Seconds of one restore day, when it is not 86,400.
    pub debug_day_seconds: Option<f64>,
}

/// What the pipeline is said to do when it does nothing, and waits for nothing.
pub(crate) const PIPELINE_IDLE: &str = "idle";

impl Status {
    /// Whether nothing is being sealed, or waits to be tried again.
    #[must_use]
    pub fn is_pipeline_idle(&self) -> bool {
        self.pipeline == PIPELINE_IDLE
    }
}

/// What a job of the background is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// There is nothing to do for it.
    #[default]
    Idle,
    /// It works.
    Running,
    /// It could not do what there is to do, and waits to try again.
    Resting,
    /// The archive stops.
    Stopped,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Resting, Self::Stopped];

    /// Its name.
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
    /// Its name.
    pub tier: String,
    /// When the first of them came.
    pub since: UnixTime,
}

/// A job of the background.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// What it is called.
    pub name: String,
    /// What it is at.
    pub state: JobState,
    /// What it works at; nothing when it does not.
    pub doing: Option<String>,
    /// What its last run failed with, or what that has to wait for.
    pub trouble: Option<String>,
    /// Seconds until it tries again, while it rests.
    pub retry_seconds: Option<u64>,
    /// Times since start that it found something to do.
    pub runs: u64,
    /// Times since start that it failed.
    pub failures: u64,
    /// When it last found something to do.
    pub last_run: Option<UnixTime>,
}

impl JobStatus {
    /// Its trouble in a line, if it has one.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let trouble = self.trouble.as_ref()?;
        let again = self.retry_seconds.map_or_else(String::new, |s| format!("; again in {s} s"));
        Some(format!("{} failed: {trouble}{again}", self.name))
    }
}

/// A body of which nobody knows whether it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtedBody {
    /// Bucket of the object that it would be of.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Plain bytes of the body.
    pub bytes: u64,
}

/// A staged body that is not what was ingested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedBody {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// Plain bytes.
    pub bytes: u64,
}

/// What a verification read, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Every platter that was read.
    pub platters: Vec<VerifiedPlatter>,
    /// Restored copies that were read; none where only one platter was asked for.
    pub copies: u64,
    /// Those of them that are damaged, or could not be read.
    pub copies_damaged: u64,
    /// The first hundred of these.
    pub damaged_copies: Vec<DamagedCopy>,
    /// Tiers of objects that have bodies; none where only one platter was asked for.
    #[serde(default)]
    pub tiers: Vec<VerifiedTier>,
}

/// A tier of objects whose bodies were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTier {
    /// Its name.
    pub tier: String,
    /// Bodies that were read, or that are not there.
    pub bodies: u64,
    /// Bytes of their ciphertext.
    pub bytes: u64,
    /// Those that are not what was brought there.
    pub bodies_damaged: u64,
    /// The first hundred of these.
    pub damaged: Vec<DamagedInTier>,
    /// Why not all were read.
    pub error: Option<String>,
}

/// A body in a tier of objects that is not what was brought there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedInTier {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// What is wrong with it.
    pub error: String,
}

/// What became of objects that were to get another class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveReport {
    /// Objects that have it now.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that had it, and were where it goes.
    pub objects_there: u64,
    /// Objects that stay what they were.
    pub objects_left: u64,
    /// The first hundred of these.
    pub left: Vec<LeftObject>,
}

/// An object that did not get another class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftObject {
    /// Its bucket.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Why it did not.
    pub error: String,
}

/// A restored copy that is not what was restored, or that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedCopy {
    /// Bucket of its object.
    pub bucket: String,
    /// Key of its object.
    pub key: String,
    /// Whether the copy was dropped, so that the object can be restored again. One that only could
    /// not be read just now stays.
    pub is_dropped: bool,
    /// What is wrong with it.
    pub error: String,
}

/// Where a piece of an object lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlace {
    /// Part of the object, from zero.
    pub body: u32,
    /// Platter, or `None` for what is not on glass.
    pub platter: Option<PlatterId>,
    /// Set of that platter.
    pub set: Option<SetId>,
    /// First information track.
    pub track_first: u32,
    /// Last information track.
    pub track_last: u32,
    /// Bytes of ciphertext.
    pub bytes: u64,
    /// `online`, `staged`, `glass`, `tier`.
    pub residence: String,
    /// Name of the tier of objects that it is in, or waits for.
    #[serde(default)]
    pub tier: Option<String>,
    /// Storage slot in the library.
    pub slot: Option<u32>,
}

/// The status of an open archive, without what its jobs say of themselves. Of one whose catalog is
/// damaged it may be no more than that.
pub(crate) fn status(ground: &Ground) -> Result<Status> {
    whole_status(ground).or_else(|error| {
        let damage = ground.kv.damage().ok_or(error)?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            archive: ground.archive.to_string(),
            catalog_refusal: ground.committer.refusal(),
            catalog_damage: Some(damage.chain()),
            ..Status::default()
        })
    })
}

fn whole_status(ground: &Ground) -> Result<Status> {
    let totals = rows::totals(&*ground.kv)?;
    let oldest: Vec<(Vec<u8>, QueueRow)> = rows_in(&*ground.kv, QUEUE, &KeyRange::prefix(b""), 1)?;
    let glass = ground.platters.snapshot()?;
    let day = ground.config.day.as_secs_f64();
    // A disk that does not work is told by a job: all else is worth knowing.
    let (orphaned_segments, orphaned_bytes) = orphan_totals(ground).unwrap_or_default();
    let (reserve_bytes, reserve_bytes_wanted) = ground.space.reserve();
    let (repaired_by_track, repaired_by_group, repaired_by_set) = glass.repaired;
    let (seal_bytes_done, seal_bytes_total) = glass.seal_bytes;
    let decoders = glass.decode.as_ref().map_or(0, |decode| decode.deaths);
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        archive: ground.archive.to_string(),
        profile: glass.profile,
        fidelity: glass.fidelity.to_owned(),
        objects_online: totals.objects_online,
        objects_staged: totals.objects_staged,
        objects_on_glass: totals.objects_on_glass,
        objects_in_tiers: totals.objects_in_tiers,
        moving_bytes: totals.moving_bytes,
        tiers_waiting: tiers::waiting(&ground.kv, &ground.tiers)?,
        staged_bytes: totals.staged_bytes,
        staged_damaged: damaged(ground)?,
        staged_oldest: oldest.first().map(|(_, row)| row.arrived),
        keys_lost: ground.keys.lost(),
        bodies_in_doubt: rows::doubt_count(&*ground.kv)?
            + ground.parts_in_doubt.load(Ordering::Relaxed),
        objects_in_doubt: in_doubt(ground)?,
        catalog_cut: ground
            .kv
            .cut_batch()
            .map(|cut| cut.kept.as_ref().unwrap_or(&cut.journal).display().to_string()),
        log_bytes: ground.budget.used(),
        log_bytes_max: ground.budget.max(),
        orphaned_segments,
        orphaned_bytes,
        free_bytes: ground.space.free().unwrap_or_default(),
        free_bytes_min: ground.space.free_min(),
        reserve_bytes,
        reserve_bytes_wanted,
        catalog_refusal: ground.committer.refusal(),
        catalog_damage: ground.kv.damage().map(|damage| damage.chain()),
        has_names_to_forget: !rows::forgetting(&*ground.kv)?.is_done(),
        platters: glass.platters,
        far_libraries: glass.far,
        sets: glass.sets,
        restores_waiting: totals.restores_waiting,
        restores_failed: rows::failed_count(&*ground.kv)?,
        restored_objects: totals.restored,
        pipeline: String::new(),
        jobs: Vec::new(),
        seal_bytes_done,
        seal_bytes_total,
        unverified_platters: glass.unverified_platters,
        unverified_seconds: glass.unverified_age.map_or(0, |age| age.as_nanos() / 1_000_000_000),
        unverified_trouble: glass.unverified_trouble,
        seal_troubles: glass.seal_troubles,
        sets_given_up: glass.sets_given_up,
        panics: ground.panics.count() + decoders,
        copies_dropped: ground.copies_dropped.load(Ordering::Relaxed),
        repaired_by_track,
        repaired_by_group,
        repaired_by_set,
        decode: glass.decode,
        failed_restores: failed_restores(ground)?,
        debug_day_seconds: (ground.config.day != DAY).then_some(day),
    })
}

fn damaged(ground: &Ground) -> Result<Vec<DamagedBody>> {
    let all = KeyRange::prefix(b"");
    let found: Vec<(Vec<u8>, QueueRow)> = rows_in(&*ground.kv, DAMAGED, &all, NAMED_MAX)?;
    let named = |row: QueueRow| {
        let (bucket, key) = (row.name.bucket.to_string(), row.name.key.to_string());
        DamagedBody { bucket, key, bytes: row.bytes }
    };
    Ok(found.into_iter().map(|(_, row)| named(row)).collect())
}

fn in_doubt(ground: &Ground) -> Result<Vec<DoubtedBody>> {
    let all = KeyRange::prefix(b"");
    let found: Vec<(Vec<u8>, DoubtRow)> = rows_in(&*ground.kv, DOUBTS, &all, NAMED_MAX)?;
    found
        .into_iter()
        .map(|(row_key, row)| {
            let (bucket, key, _) = rows::parse_doubt_key(&row_key)?;
            Ok(DoubtedBody { bucket, key, bytes: row.body.bytes })
        })
        .collect()
}

fn failed_restores(ground: &Ground) -> Result<Vec<FailedRestore>> {
    let mut failed = Vec::new();
    for (space, is_given_up) in [(FAILED, true), (RESTORES, false)] {
        add_failed(ground, space, is_given_up, &mut failed)?;
    }
    Ok(failed)
}

fn add_failed(
    ground: &Ground,
    space: Space,
    is_given_up: bool,
    failed: &mut Vec<FailedRestore>,
) -> Result<()> {
    let mut failure = None;
    let all = KeyRange::prefix(b"");
    ground.kv.scan(space, &all, Direction::Ascending, &mut |_, value| {
        if failed.len() >= NAMED_MAX {
            return ControlFlow::Break(());
        }
        match rows::decode_of::<RestoreRow>(&*ground.kv, space, value) {
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

/// A real day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Where an object's bytes are.
pub(crate) fn locate(
    ground: &Ground,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<Vec<ShardPlace>> {
    let view = ground.kv.snapshot();
    let object = require_object(&*view, bucket, key)?;
    let mut places = Vec::new();
    for (index, body) in (0..).zip(bodies(&*view, &object)?) {
        places.extend(off_glass(index, &body));
        for shard in &body.shards {
            let Some(place) = ground.platters.place(&*view, shard)? else { continue };
            places.push(ShardPlace {
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

/// Where a body is in a log or in a tier of objects, if it is.
fn off_glass(index: u32, body: &BodyRow) -> Option<ShardPlace> {
    let residence = match (&body.log, body.queued, &body.tier) {
        (Some(_), Some(_), _) => "staged",
        (Some(_), None, _) => "online",
        (None, _, Some(_)) => "tier",
        (None, _, None) => return None,
    };
    Some(ShardPlace {
        body: index,
        platter: None,
        set: None,
        track_first: 0,
        track_last: 0,
        bytes: cipher_bytes(body.bytes),
        residence: residence.to_owned(),
        tier: body.tier.as_ref().map(ToString::to_string),
        slot: None,
    })
}
