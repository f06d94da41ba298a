//! Puts and uploads that end before anything was proposed leave no fragments. Time advances only
//! while all tasks wait.

use std::time::Duration;

use fulgurite_geo::objects::GeoStore;
use fulgurite_geo::objects::limits::CHUNK_BYTES_MIN;
use fulgurite_units::ByteCount;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};

use crate::shelf::Shelf;
use crate::site_failures::{bytes, put, read};

/// Long enough to write more than one group of chunks.
const LENGTH: usize = 20 * (64 << 10);
const _: () = assert!(LENGTH as u64 == 20 * CHUNK_BYTES_MIN);

/// Creates three sites with one object that stays.
async fn store_with_object() -> (Shelf, GeoStore) {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.chunk = ByteCount::new(CHUNK_BYTES_MIN);
    let store = shelf.init().await;
    put(&store, "stays", &bytes(1, 100_000)).await.unwrap();
    (shelf, store)
}

/// Waits for background work, then checks that only the one object is left, and is complete.
async fn assert_clean(shelf: &Shelf, store: &GeoStore) {
    tokio::time::sleep(Duration::from_secs(120)).await;
    for site in 0..3 {
        assert_eq!(shelf.blob_keys(site).await.len(), 2, "at site {site}");
    }
    assert_eq!(read(store, "stays").await.unwrap(), bytes(1, 100_000));
}

async fn begin_upload(store: &GeoStore, lengths: &[usize]) -> Box<dyn MultipartUpload> {
    let mut upload = store.put_multipart(&Path::from("abandoned")).await.unwrap();
    for (number, length) in (2..).zip(lengths) {
        upload.put_part(PutPayload::from(bytes(number, *length))).await.unwrap();
    }
    upload
}

#[tokio::test(start_paused = true)]
async fn aborted_upload_leaves_no_fragments() {
    let (shelf, store) = store_with_object().await;
    let mut upload = begin_upload(&store, &[200_000, 200_000, 70_000]).await;
    assert_eq!(shelf.blob_keys(0).await.len(), 2 + 4 + 4 + 2);
    upload.abort().await.unwrap();
    assert_clean(&shelf, &store).await;
    // It has ended, and can be aborted any number of times.
    let ended = upload.complete().await.unwrap_err();
    assert!(ended.to_string().contains("the upload has ended"), "{ended}");
    upload.abort().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn failed_upload_leaves_no_fragments() {
    let (shelf, store) = store_with_object().await;
    let mut upload = begin_upload(&store, &[200_000]).await;
    drop(upload.put_part(PutPayload::from(bytes(9, 200_000))));
    let failed = upload.complete().await.unwrap_err();
    assert!(failed.to_string().contains("part 1 of the upload was not put"), "{failed}");
    assert_clean(&shelf, &store).await;
}

#[tokio::test(start_paused = true)]
async fn abort_after_complete_keeps_the_object() {
    let (shelf, store) = store_with_object().await;
    let mut upload = begin_upload(&store, &[200_000, 200_000]).await;
    upload.complete().await.unwrap();
    upload.abort().await.unwrap();
    drop(upload);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let whole = [bytes(2, 200_000), bytes(3, 200_000)].concat();
    assert_eq!(read(&store, "abandoned").await.unwrap(), whole);
    assert_eq!(shelf.blob_keys(0).await.len(), 2 + 4 + 4);
}

#[tokio::test(start_paused = true)]
async fn put_with_truncated_source_leaves_no_fragments() {
    let (shelf, store) = store_with_object().await;
    put(&store, "source", &bytes(2, LENGTH)).await.unwrap();
    // Its last chunk is lost: the copy gets as far as that.
    for site in 0..2 {
        let last = shelf.blob_keys(site).await;
        let last = last.iter().max_by_key(|key| key.as_str().rsplit('/').next()).unwrap();
        shelf.blobs_of(site).await.delete(last).await.unwrap();
    }
    let written = store.snapshot().sites[2].bytes_written;
    store.copy(&Path::from("source"), &Path::from("copy")).await.unwrap_err();
    assert!(store.snapshot().sites[2].bytes_written > written, "some of it was written");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(shelf.blob_keys(2).await.len(), 2 + 20);
}

#[tokio::test(start_paused = true)]
async fn canceled_put_leaves_no_fragments() {
    let (shelf, store) = store_with_object().await;
    shelf.fail("site-1");
    let (one, key) = (bytes(2, LENGTH), Path::from("abandoned"));
    let timeout = Duration::from_millis(20);
    // The failing site is retried after 50 ms.
    let payload = PutPayload::from(one);
    tokio::time::timeout(timeout, store.put(&key, payload)).await.unwrap_err();
    assert!(shelf.blob_keys(0).await.len() > 2, "some of it was written");
    assert_clean_without(&shelf, &store, "site-1").await;
}

#[tokio::test(start_paused = true)]
async fn put_at_too_few_sites_leaves_no_fragments() {
    let (shelf, store) = store_with_object().await;
    let written = store.snapshot().sites[0].bytes_written;
    shelf.fail("site-1");
    shelf.fail("site-2");
    let failed = put(&store, "abandoned", &bytes(2, LENGTH)).await.unwrap_err();
    assert!(failed.to_string().contains("too few fragments"), "{failed}");
    assert!(store.snapshot().sites[0].bytes_written > written, "some of it was written");
    shelf.repair("site-2");
    assert_clean_without(&shelf, &store, "site-1").await;
}

async fn assert_clean_without(shelf: &Shelf, store: &GeoStore, failed: &str) {
    tokio::time::sleep(Duration::from_secs(120)).await;
    shelf.repair(failed);
    assert_clean(shelf, store).await;
}

#[tokio::test(start_paused = true)]
async fn indeterminate_put_keeps_its_fragments() {
    let (shelf, store) = store_with_object().await;
    shelf.refuse_rows(true);
    let one = bytes(2, LENGTH);
    put(&store, "abandoned", &one).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(120)).await;
    for site in 0..3 {
        assert_eq!(shelf.blob_keys(site).await.len(), 2 + 20, "at site {site}");
    }
}
