//! An archive in a temporary directory, with platters small enough to fill many.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fulgurite_archive::bench_support;
use fulgurite_archive::config::{ArchiveConfig, Geometry, GlassConfig, SealPolicy};
use fulgurite_archive::{
    Archive, ArchiveError, BodyClaim, BucketName, ByteRange, ObjectInfo, ObjectKey, ObjectMeta,
    PutOptions, RestoreOutcome, RestoreRequest, RestoreState, Retrieval, StorageClass,
    WriteCondition,
};
use fulgurite_units::{ByteCount, Seed};

/// A platter of 160 KiB: 4 tracks of 5 + 2 sectors of 8 KiB, groups of 2 + 1 tracks, sets of 4 + 3.
pub(crate) fn tiny_geometry() -> Geometry {
    Geometry {
        profile: "tiny".to_owned(),
        sector_payload_bytes: 8 << 10,
        track_information_sectors: 5,
        track_redundancy_sectors: 2,
        group_information_tracks: 2,
        group_redundancy_tracks: 1,
        groups: 2,
        group_span_sectors: 5,
        set_information_platters: 4,
        set_redundancy_platters: 3,
        set_span_sectors: 5,
    }
}

/// Returns the configuration of a test archive in `data`.
pub(crate) fn config(data: &Path) -> ArchiveConfig {
    let config = bench_support::config(data.to_owned()).unwrap();
    ArchiveConfig {
        glass: GlassConfig { geometry: tiny_geometry(), ..config.glass },
        seal: SealPolicy { staged_bytes: ByteCount::gib(64), ..config.seal },
        log_capacity: ByteCount::gib(4),
        ..config
    }
}

/// Returns reproducible, incompressible bytes for a seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    Seed::new(seed).child(b"noise").stream().fill(&mut buffer);
    buffer
}

/// Returns all files below `path`, sorted.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// Copies the folder `from` and all below it.
pub(crate) fn copy(from: &Path, to: &Path) {
    try_copy(from, to).unwrap();
}

/// The same for a folder whose files change: a consistent copy, as a kill would leave it. `to` must
/// not exist.
///
/// Even an idle archive writes: after each start the catalog compacts its tables and then replaces
/// their lists, which does not appear in its journal. So every file is read again after the last
/// one was copied. No file returns to an earlier content, so if all are as they were copied, that
/// was the state at the moment in between.
pub(crate) fn copy_live(from: &Path, to: &Path) {
    for _ in 0..100 {
        // A file that disappears meanwhile is a change as well.
        if try_copy(from, to).is_ok() && is_same(from, to).unwrap_or(false) {
            return;
        }
        std::fs::remove_dir_all(to).unwrap();
    }
    panic!("files below {} keep changing", from.display());
}

fn try_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Whether two folders have the same names below them, and the same bytes.
pub(crate) fn is_same(one: &Path, other: &Path) -> std::io::Result<bool> {
    let names = |folder: &Path| -> std::io::Result<BTreeSet<OsString>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
    };
    let found = names(one)?;
    if found != names(other)? {
        return Ok(false);
    }
    for name in found {
        let (one, other) = (one.join(&name), other.join(&name));
        let is_same = if one.is_dir() {
            is_same(&one, &other)?
        } else {
            std::fs::read(one)? == std::fs::read(other)?
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the files of a data directory with their bytes, without those of the catalog: its store
/// merges tables whenever it is open.
pub(crate) fn content(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let catalog = data.join("catalog");
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    files(data).into_iter().filter(|path| !path.starts_with(&catalog)).map(read).collect()
}

/// Short methods for client operations.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) archive: Archive,
    pub(crate) bucket: BucketName,
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(name).unwrap()
}

pub(crate) fn options(class: StorageClass, bytes: usize) -> PutOptions {
    PutOptions {
        class,
        meta: ObjectMeta::default(),
        condition: WriteCondition::default(),
        claim: BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() },
    }
}

impl Client {
    pub(crate) async fn open(config: ArchiveConfig) -> Self {
        let archive = Archive::open(config).await.unwrap();
        let bucket = BucketName::new("vault").unwrap();
        match archive.create_bucket(&bucket).await {
            Ok(_) | Err(ArchiveError::BucketAlreadyOwnedByYou { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        Self { archive, bucket }
    }

    pub(crate) async fn put(
        &self,
        name: &str,
        class: StorageClass,
        body: &[u8],
    ) -> Result<ObjectInfo, ArchiveError> {
        let options = options(class, body.len());
        let mut writer = self.archive.put(&self.bucket, &key(name), options).await?;
        for piece in body.chunks(100_000) {
            writer.write(Bytes::copy_from_slice(piece)).await?;
        }
        writer.finish(None).await
    }

    pub(crate) async fn get(
        &self,
        name: &str,
        range: Option<ByteRange>,
    ) -> Result<Vec<u8>, ArchiveError> {
        let mut reader = self.archive.get(&self.bucket, &key(name), range).await?;
        let mut body = Vec::new();
        while let Some(bytes) = reader.next().await {
            body.extend_from_slice(&bytes?);
        }
        assert_eq!(body.len() as u64, reader.bytes);
        Ok(body)
    }

    pub(crate) async fn restore(&self, name: &str) -> Result<RestoreOutcome, ArchiveError> {
        let request = RestoreRequest { days: 1, retrieval: Retrieval::Standard };
        self.archive.restore(&self.bucket, &key(name), request).await
    }

    /// Waits until the copy is readable, or the restore reports an error, and returns which.
    pub(crate) async fn restored(&self, name: &str) -> Result<(), String> {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < deadline {
            let info = self.archive.head(&self.bucket, &key(name)).await.unwrap();
            if matches!(info.restore, Some(RestoreState::Restored { .. })) {
                return Ok(());
            }
            let status = self.archive.status().await.unwrap();
            if let Some(failed) = status.failed_restores.iter().find(|f| f.key == name) {
                return Err(failed.error.clone());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the restore of {name} did not end");
    }
}
