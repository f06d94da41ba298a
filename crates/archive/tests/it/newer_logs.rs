//! Logs and marks of a newer program are refused by version, and nothing is changed: bodies in them
//! may have been acknowledged.

use std::path::{Path, PathBuf};

use fulgurite_archive::{Archive, ArchiveError, RecoverOptions, StorageClass, recover};
use fulgurite_codes::crc32c;

use crate::harness::{Client, config, content, files, noise};

/// Raises the version of the 64 bytes at the start of a file, as a newer program writes them.
fn raise_version(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[8] += 1;
    let crc = crc32c(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&crc);
    std::fs::write(path, bytes).unwrap();
}

async fn check(find: impl FnOnce(&Path) -> PathBuf) {
    let data = tempfile::tempdir().unwrap();
    let client = Client::open(config(data.path())).await;
    client.put("kept", StorageClass::Standard, &noise(1, 3000)).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    let newer = find(data.path());
    raise_version(&newer);
    let before = content(data.path());
    let check = |refused: ArchiveError| {
        assert!(matches!(refused, ArchiveError::Newer { .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("version 2") && text.contains(newer.to_str().unwrap()), "{text}");
        assert!(content(data.path()) == before, "a file was changed");
    };
    check(Archive::open(config(data.path())).await.unwrap_err());
    let config = config(data.path());
    let options = RecoverOptions { salvage: true, ..RecoverOptions::default() };
    let work = move || recover(config, options, &|_| {});
    check(tokio::task::spawn_blocking(work).await.unwrap().unwrap_err());
}

#[tokio::test]
async fn newer_segment_is_refused() {
    check(|data| files(&data.join("online")).remove(0)).await;
}

#[tokio::test]
async fn newer_mark_is_refused() {
    check(|data| data.join("catalog.mark")).await;
}
