//! Admission by the free space of the disk. The minimum free space is set to just below what is
//! free, so that no disk has to be filled.

use std::path::Path;

use bytes::Bytes;
use fulgurite_archive::{ArchiveError, StorageClass};
use fulgurite_units::ByteCount;
use tempfile::TempDir;

use crate::harness::{Client, config, key, noise, options};

/// Bytes that may be written; other tests write and remove less meanwhile.
const ROOM: ByteCount = ByteCount::mib(256);

/// Returns the free bytes on the disk of `dir`.
fn free(dir: &Path) -> u64 {
    let disk = rustix::fs::statvfs(dir).unwrap();
    disk.f_bavail * disk.f_frsize
}

/// Creates a directory on a disk with few other writers: in memory, if there is enough space.
fn quiet_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() && free(memory) > 2 * ROOM.get() {
        return tempfile::tempdir_in(memory).unwrap();
    }
    tempfile::tempdir().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn body_of_unknown_length_is_admitted_in_steps() {
    let dir = quiet_dir();
    let mut config = config(dir.path());
    let client = Client::open(config.clone()).await;
    client.put("before", StorageClass::Standard, &noise(1, 5000)).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);

    config.space.free_min = Some(ByteCount::new(free(dir.path()) - ROOM.get()));
    let client = Client::open(config).await;
    let mut unknown = options(StorageClass::Standard, 0);
    unknown.claim.bytes = None;
    let mut writer = client.archive.put(&client.bucket, &key("long"), unknown).await.unwrap();
    let piece = Bytes::from(noise(2, 1 << 20));
    let mut refusal = None;
    // Other programs use the disk too; the loop ends long before they could have freed enough for
    // this.
    for _ in 0..4096 {
        if let Err(error) = writer.write(piece.clone()).await {
            refusal = Some(error);
            break;
        }
    }
    assert!(matches!(refusal, Some(ArchiveError::Full { .. })), "{refusal:?}");
    drop(writer);

    // A declared length is refused before the body is read.
    let options = options(StorageClass::DeepArchive, 1 << 30);
    let refusal = client.archive.put(&client.bucket, &key("declared"), options).await.err();
    assert!(matches!(refusal, Some(ArchiveError::Full { .. })), "{refusal:?}");
    // Existing objects can be read and deleted.
    assert_eq!(client.get("before", None).await.unwrap(), noise(1, 5000));
    assert!(client.archive.delete(&client.bucket, &key("before")).await.unwrap());
    assert!(client.archive.write_refusal().is_none());
}
