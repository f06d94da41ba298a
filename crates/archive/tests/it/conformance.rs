//! The conformance suite of `object_store`, on stores that can serve as a tier.

use fulgurite_tier::conformance::{Abilities, object_store_suite};
use object_store::local::LocalFileSystem;

use crate::toy_tier::Drawer;

#[tokio::test]
async fn directory_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    // Configured as for a tier: synced, folders included.
    let new = async || {
        let folder = tempfile::tempdir_in(dir.path()).unwrap().keep();
        LocalFileSystem::new_with_prefix(folder).unwrap().with_fsync(true)
    };
    // A tier needs neither updates nor attributes.
    object_store_suite(new, Abilities::default()).await;
}

#[tokio::test]
async fn toy_tier_passes_the_suite() {
    let abilities = Abilities { updates: true, ..Abilities::default() };
    object_store_suite(async || Drawer::default(), abilities).await;
}
