//! The conformance suite of `object_store`, over eight tomes.

use fulgurite_tome::objects::PutGuarantee;
use object_store::integration as suite;

use crate::shelf::Shelf;

#[tokio::test]
async fn put_get_delete_conform() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    suite::put_get_delete_list(&store).await;
    suite::get_opts(&store).await;
    suite::put_opts(&store, true).await;
    suite::put_get_attributes(&store).await;
    store.stop();
}

#[tokio::test]
async fn listing_conforms() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    suite::list_uses_directories_correctly(&store).await;
    suite::list_with_delimiter(&store).await;
    suite::list_with_offset_exclusivity(&store).await;
    store.stop();
}

#[tokio::test]
async fn copy_and_rename_conform() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    suite::rename_and_copy(&store).await;
    suite::copy_if_not_exists(&store).await;
    suite::copy_rename_nonexistent_object(&store).await;
    let missing = suite::get_nonexistent_object(&store, None).await.unwrap_err();
    assert!(matches!(missing, object_store::Error::NotFound { .. }), "{missing}");
    store.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipart_uploads_conform() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    suite::stream_get(&store).await;
    suite::multipart_race_condition(&store, true).await;
    suite::multipart_out_of_order(&store).await;
    store.stop();
}
