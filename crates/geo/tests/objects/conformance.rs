//! The conformance suite of `object_store`, over three sites and over five.

use object_store::integration as suite;

use crate::shelf::Shelf;

#[tokio::test]
async fn sites_pass_object_store_conformance() {
    for shelf in [Shelf::new(3, 2, 1), Shelf::new(5, 3, 2)] {
        let store = shelf.init().await;
        suite::put_get_delete_list(&store).await;
        suite::get_opts(&store).await;
        suite::put_opts(&store, true).await;
        suite::put_get_attributes(&store).await;
    }
}

#[tokio::test]
async fn sites_pass_listing_conformance() {
    let store = Shelf::new(3, 2, 1).init().await;
    suite::list_uses_directories_correctly(&store).await;
    suite::list_with_delimiter(&store).await;
    suite::list_with_offset_exclusivity(&store).await;
}

#[tokio::test]
async fn sites_pass_copy_and_rename_conformance() {
    let store = Shelf::new(3, 2, 1).init().await;
    suite::rename_and_copy(&store).await;
    suite::copy_if_not_exists(&store).await;
    suite::copy_rename_nonexistent_object(&store).await;
    let missing = suite::get_nonexistent_object(&store, None).await.unwrap_err();
    assert!(matches!(missing, object_store::Error::NotFound { .. }), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipart_objects_round_trip() {
    let store = Shelf::new(3, 2, 1).init().await;
    suite::stream_get(&store).await;
    suite::multipart_race_condition(&store, true).await;
    suite::multipart_out_of_order(&store).await;
}

#[tokio::test]
async fn versions_are_addressed_by_number() {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.versions = fulgurite_geo::objects::Versions::All(fulgurite_geo::objects::All::All);
    let store = shelf.init().await;
    suite::get_opts(&store).await;
}
