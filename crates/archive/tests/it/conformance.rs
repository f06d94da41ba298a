//! The conformance suite of `object_store`, on stores that can serve as a tier.

use object_store::integration as suite;
use object_store::local::LocalFileSystem;
use object_store::{Error, ObjectStore};

use crate::toy_tier::Drawer;

/// Runs the tests that apply to every store, each on an empty one. `compares` is whether it
/// supports conditional writes on an entity tag, which tiers do not need.
async fn conforms<T: ObjectStore>(new: impl Fn() -> T, compares: bool) {
    suite::put_get_delete_list(&new()).await;
    suite::get_opts(&new()).await;
    suite::put_opts(&new(), compares).await;
    suite::stream_get(&new()).await;
    suite::list_uses_directories_correctly(&new()).await;
    suite::list_with_delimiter(&new()).await;
    suite::list_with_offset_exclusivity(&new()).await;
    suite::rename_and_copy(&new()).await;
    suite::copy_if_not_exists(&new()).await;
    suite::copy_rename_nonexistent_object(&new()).await;
    suite::multipart_race_condition(&new(), true).await;
    suite::multipart_out_of_order(&new()).await;
    let missing = suite::get_nonexistent_object(&new(), None).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn directory_store_conforms() {
    let dir = tempfile::tempdir().unwrap();
    // Configured as for a tier: synced, folders included.
    let new = || {
        let folder = tempfile::tempdir_in(dir.path()).unwrap().keep();
        LocalFileSystem::new_with_prefix(folder).unwrap().with_fsync(true)
    };
    conforms(new, false).await;
}

#[tokio::test]
async fn toy_store_conforms() {
    conforms(Drawer::default, true).await;
}
