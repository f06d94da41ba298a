//! A site whose table or blobs are an older copy: it is reported, it does not vote with what it has
//! forgotten, and the suggested repair makes it whole.

use std::path::{Path as File, PathBuf};

use fulgurite_geo::objects::{GeoError, GeoStore, SiteEntry, SiteSnapshot};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use tempfile::TempDir;

use crate::shelf::Shelf;
use crate::site_failures::{bytes, put, read};

const SITE: &str = "site-2";

fn copy(from: &File, to: &File) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Three sites in directories. The last one has an older copy beside it: from before "a" was put
/// again while the first site did not answer, "b" was put, and "c" was deleted.
struct World {
    shelf: Shelf,
    folder: TempDir,
    older: PathBuf,
}

impl World {
    /// With `is_healed` the first site lacks nothing, so that one other site's fragments may be
    /// lost.
    async fn new(is_healed: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let shelf = Shelf::with_places(3, 2, 1, |site| format!("dir://{root}/site-{site}"));
        let store = shelf.init().await;
        store.count_start().await.unwrap();
        put(&store, "a", &bytes(1, 100_000)).await.unwrap();
        put(&store, "c", &bytes(3, 100_000)).await.unwrap();
        drop(store);
        let older = folder.path().join("older");
        copy(&folder.path().join(SITE), &older);
        let store = GeoStore::open(shelf.options()).await.unwrap();
        store.count_start().await.unwrap();
        shelf.fail("site-0");
        put(&store, "a", &bytes(11, 100_000)).await.unwrap();
        shelf.repair("site-0");
        put(&store, "b", &bytes(2, 100_000)).await.unwrap();
        store.delete(&Path::from("c")).await.unwrap();
        if is_healed {
            store.heal(&|_| {}).await.unwrap();
        }
        Self { shelf, folder, older }
    }

    /// Restores a folder of the site from the older copy.
    fn restore_older(&self, name: &str) {
        let folder = self.folder.path().join(SITE).join(name);
        std::fs::remove_dir_all(&folder).unwrap();
        copy(&self.older.join(name), &folder);
    }

    async fn open(&self) -> GeoStore {
        GeoStore::open(self.shelf.options()).await.unwrap()
    }

    /// Checks that all is as it was acknowledged, with any one site down.
    async fn check(&self, store: &GeoStore) {
        for down in ["site-0", "site-1", "site-2"] {
            self.shelf.fail(down);
            check_all(store).await;
            self.shelf.repair(down);
        }
    }
}

async fn check_all(store: &GeoStore) {
    assert_eq!(read(store, "a").await.unwrap(), bytes(11, 100_000));
    assert_eq!(read(store, "b").await.unwrap(), bytes(2, 100_000));
    let gone = read(store, "c").await.unwrap_err();
    assert!(matches!(gone, object_store::Error::NotFound { .. }), "{gone}");
}

fn site_snapshot(store: &GeoStore) -> SiteSnapshot {
    store.snapshot().sites.into_iter().find(|site| site.name == SITE).unwrap()
}

#[tokio::test(start_paused = true)]
async fn older_table_does_not_vote_until_replaced() {
    let world = World::new(false).await;
    world.restore_older("table");
    let store = world.open().await;
    let site = site_snapshot(&store);
    assert!((site.table_is_older, site.up) == (true, false), "{site:?}");
    assert!(!store.snapshot().is_healthy());
    check_all(&store).await;
    // The first site and the older copy both have the previous version of "a": together they would
    // be enough for a wrong answer.
    world.shelf.fail("site-1");
    let refused = read(&store, "a").await.unwrap_err().to_string();
    assert!(refused.contains("too few sites answer"), "{refused}");
    world.shelf.repair("site-1");
    put(&store, "d", &bytes(4, 100_000)).await.unwrap();
    // It does not get a new count, so it stays an older copy.
    store.count_start().await.unwrap();
    assert!(site_snapshot(&world.open().await).table_is_older);

    let root = world.folder.path().display();
    let place = SiteEntry {
        name: SITE.to_owned(),
        table: Some(format!("dir://{root}/other")),
        blobs: Some(format!("dir://{root}/{SITE}")),
        rebuilding: false,
    };
    let report = store.replace_site(SITE, place, &|_, _| {}).await.unwrap();
    assert!(report.problems.is_empty() && report.lost.is_empty(), "{report:?}");
    assert!(store.snapshot().is_healthy(), "{:?}", store.snapshot());
    world.check(&store).await;
    assert_eq!(read(&store, "d").await.unwrap(), bytes(4, 100_000));
    let again = GeoStore::open(world.shelf.options()).await.unwrap();
    assert!(again.snapshot().is_healthy(), "{:?}", again.snapshot());
}

#[tokio::test(start_paused = true)]
async fn newer_table_votes_again_after_its_return() {
    let world = World::new(false).await;
    let newer = world.folder.path().join("newer");
    copy(&world.folder.path().join(SITE), &newer);
    world.restore_older("table");
    let store = world.open().await;
    assert!(site_snapshot(&store).table_is_older);
    let table = world.folder.path().join(SITE).join("table");
    std::fs::remove_dir_all(&table).unwrap();
    copy(&newer.join("table"), &table);
    store.count_start().await.unwrap();
    assert!(store.snapshot().is_healthy());
    store.heal(&|_| {}).await.unwrap();
    world.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn older_blobs_are_reported_and_healed() {
    let world = World::new(true).await;
    world.restore_older("blobs");
    let store = world.open().await;
    let site = site_snapshot(&store);
    assert!((site.table_is_older, site.blobs_are_older) == (false, true), "{site:?}");
    assert!(!store.snapshot().is_healthy());
    check_all(&store).await;
    // A count alone does not make them newer.
    store.count_start().await.unwrap();
    assert!(site_snapshot(&store).blobs_are_older);
    let report = store.heal(&|_| {}).await.unwrap();
    assert!(report.rebuilt > 0 && report.missing == 0, "{report:?}");
    assert!(store.snapshot().is_healthy());
    assert!(world.open().await.snapshot().is_healthy());
    world.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn background_maintenance_heals_older_blobs() {
    let world = World::new(true).await;
    world.restore_older("blobs");
    let store = world.open().await;
    assert!(site_snapshot(&store).blobs_are_older);
    let every = fulgurite_units::Duration::from_secs(3600);
    store.spawn_maintenance(every, every);
    while site_snapshot(&store).blobs_are_older {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    world.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_start_counts_report_no_older_copy() {
    let shelf = Shelf::new(3, 2, 1);
    let mut stores = vec![shelf.init().await];
    for _ in 0..3 {
        stores.push(GeoStore::open(shelf.options()).await.unwrap());
    }
    for _ in 0..10 {
        let counted = stores.iter().map(|store| store.count_start());
        let counted: Vec<Result<(), GeoError>> = futures::future::join_all(counted).await;
        assert!(counted.iter().all(Result::is_ok));
        for store in &stores {
            assert!(store.snapshot().is_healthy(), "{:?}", store.snapshot());
        }
    }
    // Only the latest count stays at each site.
    for site in 0..3 {
        let counts = shelf.blob_keys(site).await;
        assert!(counts.len() <= stores.len(), "{counts:?}");
    }
}
