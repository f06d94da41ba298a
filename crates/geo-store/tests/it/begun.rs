//! A namespace whose beginning was cut short is begun by asking again.

use fulgurite_geo_store::GeoStore;

use crate::shelf::Shelf;
use crate::sites_fail::{bytes, put, read};

/// A begin that was killed between the sites and the file of the map succeeds when it is run again.
#[tokio::test(start_paused = true)]
async fn beginning_again_goes_on_and_takes_no_other_map() {
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
