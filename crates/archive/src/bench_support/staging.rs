//! An archive of staged objects only: the input for benchmarks of recovery from logs and keys.
//!
//! Bodies, keys and entries are what a put writes, each synced. Rows are left out, because the
//! benchmark would begin by removing them.

use std::sync::Arc;

use fulgurite_glass::cipher_crc;
use fulgurite_units::{ObjectId, UnixTime};

use super::BUCKET;
use crate::bodies::cipher::{BodyCipher, random_bytes};
use crate::bodies::digest::{BodyDigest, ChecksumAlgorithm};
use crate::bodies::entry::Entry;
use crate::bodies::log::scan::SegmentScan;
use crate::bodies::log::{LogKind, list_segments, segment_path};
use crate::config::ArchiveConfig;
use crate::directory::Paths;
use crate::model::classes::Home;
use crate::model::labels::Labels;
use crate::model::names::{ObjectName, VersionId};
use crate::model::object::{ObjectMeta, StorageClass};
use crate::rows::ObjectRow;
use crate::state::ArchiveState;
use crate::{Result, clock};

/// Bodies between two fsyncs.
const SYNC_BODIES: u64 = 100_000;

/// Stages `objects` objects of `bytes` bytes each in `config.data`, a new directory, without a
/// catalog. Blocks.
///
/// # Errors
/// When the directory is in use, or the disk fails.
pub fn stage(config: ArchiveConfig, objects: u64, bytes: usize) -> Result<()> {
    let catalog = Paths::new(&config.data).catalog();
    let state = ArchiveState::open(config, clock::system())?;
    let mut plain = vec![0; bytes];
    let mut waiting = Vec::new();
    for number in 0..objects {
        let stamp = number.to_le_bytes();
        let stamped = stamp.len().min(bytes);
        plain[..stamped].copy_from_slice(&stamp[..stamped]);
        waiting.push(put(&state, number, &plain)?);
        if waiting.len() as u64 == SYNC_BODIES || number + 1 == objects {
            crate::bodies::log::LogWriter::sync_many(waiting.iter())?;
            waiting.drain(..).for_each(|writer| writer.keep());
            state.keys.sync_blocking()?;
        }
    }
    drop(state);
    remove_catalog(&catalog)
}

/// Writes what a put leaves in the log and the key table.
fn put(state: &ArchiveState, number: u64, plain: &[u8]) -> Result<crate::bodies::log::LogWriter> {
    let body = ObjectId::from_random(random_bytes()?);
    let (key, _) = state.keys.create(body)?;
    let mut digest = BodyDigest::new(Some(ChecksumAlgorithm::Crc64Nvme));
    digest.update(plain);
    let digests = digest.finish();
    let mut cipher = Vec::new();
    BodyCipher::new(&key, body).encrypt(0, plain, true, &mut cipher);
    let mut crc = cipher_crc();
    crc.update(&cipher);
    let row = ObjectRow {
        object_id: ObjectId::from_random(random_bytes()?),
        bytes: digests.bytes,
        etag: hex::encode(digests.md5),
        modified: UnixTime::from_millis(1_700_000_000_000 + number * 1000),
        class: StorageClass::DeepArchive,
        meta: ObjectMeta::default(),
        checksum: digests.checksum,
        part_count: None,
        body_count: 1,
        bodies_staged: 1,
        upload_id: None,
        restore: None,
        version: VersionId::NULL,
        labels: Labels::default(),
        home: Home::Glass,
    };
    let key_name = format!("backup/2026/host-{:02}/file-{number:08}.dat", number % 40);
    let name = ObjectName::parse(BUCKET, &key_name, row.version)?;
    let facts = (0, digests.bytes, crc.finalize());
    let entry = Entry::build(name, UnixTime::from_millis(1_700_000_000_000), &row, facts);
    let mut writer = Arc::clone(state.log(LogKind::Staging)).writer(body, 0)?;
    writer.write_small(&mut cipher, &entry.record(&key, body, state.now())?)?;
    Ok(writer)
}

/// Removes the catalog of `config.data`, as if it were lost. Nobody may have it open.
///
/// # Errors
/// When the disk fails.
pub fn lose_catalog(config: &ArchiveConfig) -> Result<()> {
    remove_catalog(&Paths::new(&config.data).catalog())
}

fn remove_catalog(catalog: &std::path::Path) -> Result<()> {
    std::fs::remove_dir_all(catalog).map_err(crate::ArchiveError::io("remove", catalog))
}

/// Scans the staging log of `config.data` and returns the number of records; does nothing else.
///
/// # Errors
/// When the disk fails.
pub fn scan(config: &ArchiveConfig) -> Result<u64> {
    let dir = Paths::new(&config.data).log(LogKind::Staging);
    let mut records = 0;
    for number in list_segments(&dir)? {
        let mut scan = SegmentScan::open(&segment_path(&dir, number), LogKind::Staging, number)?;
        while scan.next_record()?.is_some() {
            records += 1;
        }
    }
    Ok(records)
}
