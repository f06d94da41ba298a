//! The conformance suite of `object_store`, over 48 directories.

use object_store::integration as suite;

use crate::shelf::Shelf;

#[tokio::test]
async fn rack_conforms_to_object_store() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    suite::put_get_delete_list(&rack).await;
    suite::get_opts(&rack).await;
    suite::put_opts(&rack, true).await;
    suite::put_get_attributes(&rack).await;
}

#[tokio::test]
async fn rack_lists_like_other_stores() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    suite::list_uses_directories_correctly(&rack).await;
    suite::list_with_delimiter(&rack).await;
    suite::list_with_offset_exclusivity(&rack).await;
}

#[tokio::test]
async fn rack_copies_and_renames_like_other_stores() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    suite::rename_and_copy(&rack).await;
    suite::copy_if_not_exists(&rack).await;
    suite::copy_rename_nonexistent_object(&rack).await;
    let missing = suite::get_nonexistent_object(&rack, None).await.unwrap_err();
    assert!(matches!(missing, object_store::Error::NotFound { .. }), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipart_blobs_round_trip() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    suite::stream_get(&rack).await;
    suite::multipart_race_condition(&rack, true).await;
    suite::multipart_out_of_order(&rack).await;
}
