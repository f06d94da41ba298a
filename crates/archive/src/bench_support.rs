//! Benchmark fixtures: a catalog of any size without the platters, and (`staging`) logs of
//! any size without the catalog.
//!
//! The objects of [`fill`] claim to be on glass, and their keys are real, but no platter file
//! exists. Such an archive starts, lists and shows objects, and cannot restore any.

mod staging;

use std::path::PathBuf;

use fulgurite_catalog::Transaction;
use fulgurite_glass::bench_support::add_set;
use fulgurite_units::{ByteCount, Duration, ObjectId, PlatterId, UnixTime};

pub use self::staging::{lose_catalog, scan, stage};
use crate::bodies::cipher::{cipher_bytes, random_bytes};
use crate::bodies::digest::{Checksum, ChecksumAlgorithm};
use crate::config::{
    ArchiveConfig, ExpeditedPolicy, Geometry, GlassConfig, LibraryOptions, LibraryShape,
    MediumOptions, Policy, SHARD_SIZE_DEFAULT, SealPolicy, SpaceOptions,
};
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::model::classes::{Classes, Home};
use crate::model::labels::Labels;
use crate::model::names::VersionId;
use crate::model::object::{ObjectMeta, StorageClass};
use crate::rows::{self, BODIES, BUCKETS, BodyRow, BucketRow, OBJECTS, ObjectRow, Place, Shard};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result, clock};

const BUCKET: &str = "bench";
/// Objects per set: about a platter's worth of small files on each platter.
const OBJECTS_PER_SET: u64 = 50_000;
const BODY_BYTES: u64 = 20_000;

/// Returns the configuration of an archive in `data` for a benchmark. Tests vary it.
///
/// # Errors
/// When the demo profile is not known.
pub fn config(data: PathBuf) -> Result<ArchiveConfig> {
    let geometry = Geometry::profile("demo")
        .map_err(|error| ArchiveError::InvalidArgument { what: error.to_string() })?;
    Ok(ArchiveConfig {
        data,
        glass: GlassConfig {
            geometry,
            shard_size: SHARD_SIZE_DEFAULT,
            medium: MediumOptions::perfect(1),
            library: LibraryOptions {
                shape: LibraryShape::small(),
                time_scale: 0.0,
                seed: 1,
                policy: Policy::default(),
                log: None,
            },
            far_redundancy: 0,
        },
        seal: SealPolicy { staged_bytes: ByteCount::gib(1), age: Duration::from_secs(86_400) },
        classes: Classes::default(),
        tiers: std::collections::BTreeMap::default(),
        acknowledged_at: None,
        shared: None,
        far_libraries: Vec::new(),
        log_capacity: ByteCount::gib(64),
        // Avoids a reserve file of 64 MiB for each benchmark or test.
        space: SpaceOptions { reserve: Some(ByteCount::ZERO), ..SpaceOptions::default() },
        master_key: None,
        key_tables: Vec::new(),
        expedited: ExpeditedPolicy::Refuse,
        restore_log: None,
        day: Duration::from_secs(86_400),
        fail_point: None,
    })
}

/// Adds `objects` objects on glass to the catalog and the key table of `config.data`. Blocks.
///
/// # Errors
/// When the directory is in use, or the disk fails.
pub fn fill(config: ArchiveConfig, objects: u64) -> Result<()> {
    let state = ArchiveState::open(config, clock::system())?;
    state.committer.commit_blocking(|tx: &mut Transaction<'_>| {
        let row = BucketRow { created: UnixTime::from_millis(1_700_000_000_000) };
        rows::put(tx, BUCKETS, rows::bucket_key(BUCKET), &row)
    })?;
    let mut platters = Vec::new();
    let batch = u64::try_from(ROWS_PER_TRANSACTION_MAX / 2).unwrap_or(u64::MAX);
    let mut done = 0;
    let mut waiting = Vec::new();
    while done < objects {
        if done % OBJECTS_PER_SET < batch {
            platters = add_set(&state.committer, &state.config.glass, state.now())?;
        }
        let count = batch.min(objects - done);
        let rows = (done..done + count)
            .map(|number| object(&state, number, &platters))
            .collect::<Result<Vec<_>>>()?;
        let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
            rows::with_totals(tx, |totals| totals.objects_on_glass += count)?;
            rows.into_iter().try_for_each(|(key, object, body)| {
                let body_key = rows::body_key(object.object_id, 0);
                rows::put(tx, OBJECTS, rows::object_key(BUCKET, &key), &object)?;
                rows::put(tx, BODIES, body_key, &body)
            })
        };
        waiting.push(state.committer.submit_blocking(commit));
        done += count;
    }
    waiting.into_iter().try_for_each(fulgurite_catalog::Ticket::wait)?;
    state.keys.sync_blocking()
}

fn object(
    state: &ArchiveState,
    number: u64,
    platters: &[PlatterId],
) -> Result<(String, ObjectRow, BodyRow)> {
    let body_id = ObjectId::from_random(random_bytes()?);
    let (_, key_slot) = state.keys.create(body_id)?;
    let md5: [u8; 16] = random_bytes()?;
    let checksum = Checksum {
        algorithm: ChecksumAlgorithm::Crc64Nvme,
        value: md5[..8].to_vec(),
        composite_parts: None,
    };
    let user = [("mtime", "1700000000.123456789"), ("mode", "33188"), ("owner", "1000:1000")];
    let meta = ObjectMeta {
        content_type: Some("application/octet-stream".to_owned()),
        user: user.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..ObjectMeta::default()
    };
    let object = ObjectRow {
        object_id: ObjectId::from_random(random_bytes()?),
        bytes: BODY_BYTES,
        etag: hex::encode(md5),
        modified: UnixTime::from_millis(1_700_000_000_000 + number * 1000),
        class: StorageClass::DeepArchive,
        meta,
        checksum: Some(checksum),
        part_count: None,
        body_count: 1,
        bodies_staged: 0,
        upload_id: None,
        restore: None,
        version: VersionId::NULL,
        labels: Labels::default(),
        home: Home::Glass,
    };
    let place = usize::try_from(number).unwrap_or(0) % platters.len().max(1);
    let shard = Shard {
        platter: platters[place],
        offset: number % OBJECTS_PER_SET * cipher_bytes(BODY_BYTES),
        body_offset: 0,
        bytes: cipher_bytes(BODY_BYTES),
        crc: None,
    };
    let body = BodyRow {
        body_id,
        key_slot,
        bytes: BODY_BYTES,
        digest: number,
        place: Place::Glass(vec![shard]),
        restored: None,
    };
    let key = format!("backup/2026/host-{:02}/home/user/file-{number:08}.dat", number % 40);
    Ok((key, object, body))
}
