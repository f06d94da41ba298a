//! Segments that the catalog does not know: kept, listed, recovered, removed on request.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fulgurite_archive::{Archive, ArchiveError, RecoverOptions, StorageClass};

use crate::harness::{Client, config, copy, noise};

/// Returns an archive with a staged and a STANDARD object, whose catalog is from before both,
/// without evidence of that: no mark, and segments with damaged headers. The newer catalog is in
/// `newer`.
async fn with_older_catalog(data: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let client = Client::open(config(data)).await;
    client.archive.stop().await.unwrap();
    drop(client);
    copy(&data.join("catalog"), &data.join("older"));
    let client = Client::open(config(data)).await;
    let files = vec![("staged", noise(1, 70_000)), ("online", noise(2, 3000))];
    client.put("staged", StorageClass::DeepArchive, &files[0].1).await.unwrap();
    client.put("online", StorageClass::Standard, &files[1].1).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    std::fs::rename(data.join("catalog"), data.join("newer")).unwrap();
    std::fs::rename(data.join("older"), data.join("catalog")).unwrap();
    std::fs::remove_file(data.join("catalog.mark")).unwrap();
    for segment in ["staging/00000000.seg", "online/00000000.seg"] {
        let file = std::fs::File::options().write(true).open(data.join(segment)).unwrap();
        file.write_all_at(&[0; 64], 0).unwrap();
    }
    files
}

#[tokio::test]
async fn catalog_from_backup_keeps_orphans_for_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let files = with_older_catalog(data).await;
    // However often it starts: its own runs prove nothing about what it never saw.
    for _ in 0..3 {
        let client = Client::open(config(data)).await;
        let status = client.archive.status().await.unwrap();
        assert_eq!(status.orphaned_segments, 2);
        assert!(status.orphaned_bytes > 70_000);
        assert_eq!(status.log_bytes, 0);
        client.archive.stop().await.unwrap();
    }
    std::fs::remove_dir_all(data.join("catalog")).unwrap();
    std::fs::rename(data.join("newer"), data.join("catalog")).unwrap();
    // The other catalog was served meanwhile: a salvage merges what either of them lacks.
    let refused = Archive::open(config(data)).await.unwrap_err();
    assert!(refused.to_string().contains("older than the archive"), "{refused}");
    let config_here = config(data);
    let salvage = RecoverOptions { salvage: true, ..RecoverOptions::default() };
    let work = move || fulgurite_archive::recover(config_here, salvage, &|_| {});
    tokio::task::spawn_blocking(work).await.unwrap().unwrap();
    let client = Client::open(config(data)).await;
    assert_eq!(client.archive.status().await.unwrap().orphaned_segments, 0);
    assert!(client.get("online", None).await.unwrap() == files[1].1);
    client.archive.seal().await.unwrap();
    client.restore("staged").await.unwrap();
    client.restored("staged").await.unwrap();
    assert!(client.get("staged", None).await.unwrap() == files[0].1);
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn orphans_are_listed_and_discarded_only_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    with_older_catalog(data).await;
    let client = Client::open(config(data)).await;
    let orphans = client.archive.orphans().await.unwrap();
    for (orphan, log) in orphans.iter().zip(["staging", "online"]) {
        assert_eq!((orphan.log.as_str(), orphan.number), (log, 0));
        assert_eq!((orphan.records, orphan.bodies, orphan.bodies_with_keys), (2, 1, 1));
        assert!(orphan.run.is_none() && orphan.error.is_none());
    }
    for name in ["../catalog", "", "staging-00000009-run-1.seg"] {
        let refused = client.archive.discard_orphan(name.to_owned()).await.unwrap_err();
        assert!(matches!(refused, ArchiveError::InvalidArgument { .. }), "{refused}");
    }
    client.archive.discard_orphan(orphans[0].file.clone()).await.unwrap();
    assert_eq!(client.archive.orphans().await.unwrap(), orphans[1..]);
    // An orphan's number is not reused.
    client.put("next", StorageClass::Standard, b"bytes").await.unwrap();
    assert!(data.join("online/00000001.seg").exists());
    client.archive.stop().await.unwrap();
}
