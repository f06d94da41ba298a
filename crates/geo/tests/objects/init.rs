//! The creation of a namespace that was interrupted succeeds when it is retried.

use fulgurite_geo::objects::GeoStore;

use crate::shelf::Shelf;
use crate::site_failures::{bytes, put, read};

/// A creation that was killed after the sites had the map but before its file did succeeds when it
/// is run again.
#[tokio::test(start_paused = true)]
async fn init_is_idempotent_and_rejects_another_map() {
    let shelf = Shelf::new(3, 2, 1);
    drop(shelf.init().await);
    let store = shelf.init().await;
    assert_eq!(store.map().epoch, 1);
    put(&store, "a", &bytes(1, 1000)).await.unwrap();
    assert_eq!(read(&store, "a").await.unwrap(), bytes(1, 1000));
    let mut other = shelf.options();
    other.map.name = "other".to_owned();
    let error = GeoStore::init(other).await.unwrap_err().to_string();
    assert!(error.contains("has rows of the namespace"), "{error}");
}
