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
struct Grown {
    shelf: Shelf,
    folder: TempDir,
    older: PathBuf,
}

impl Grown {
    /// With `is_healed` the first site lacks nothing, so that one other site's fragments may be
    /// lost.
    async fn new(is_healed: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let shelf = Shelf::at(3, 2, 1, |site| format!("dir://{root}/site-{site}"));
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
        shelf.mend("site-0");
        put(&store, "b", &bytes(2, 100_000)).await.unwrap();
        store.delete(&Path::from("c")).await.unwrap();
        if is_healed {
            store.heal(&|_| {}).await.unwrap();
        }
        Self { shelf, folder, older }
    }

    /// Restores a folder of the site from the older copy.
    fn bring_back(&self, name: &str) {
        let at = self.folder.path().join(SITE).join(name);
        std::fs::remove_dir_all(&at).unwrap();
        copy(&self.older.join(name), &at);
    }

    async fn open(&self) -> GeoStore {
        GeoStore::open(self.shelf.options()).await.unwrap()
    }

    /// Checks that all is as it was acknowledged, with any one site down.
    async fn check(&self, store: &GeoStore) {
        for down in ["site-0", "site-1", "site-2"] {
            self.shelf.fail(down);
            check_all(store).await;
            self.shelf.mend(down);
        }
    }
}

async fn check_all(store: &GeoStore) {
    assert_eq!(read(store, "a").await.unwrap(), bytes(11, 100_000));
    assert_eq!(read(store, "b").await.unwrap(), bytes(2, 100_000));
    let gone = read(store, "c").await.unwrap_err();
    assert!(matches!(gone, object_store::Error::NotFound { .. }), "{gone}");
}

fn of_site(store: &GeoStore) -> SiteSnapshot {
    store.snapshot().sites.into_iter().find(|site| site.name == SITE).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_older_table_does_not_vote_and_another_place_makes_the_site_whole() {
    let grown = Grown::new(false).await;
    grown.bring_back("table");
    let store = grown.open().await;
    let site = of_site(&store);
    assert!((site.table_is_older, site.up) == (true, false), "{site:?}");
    assert!(!store.snapshot().is_healthy());
    check_all(&store).await;
    // The first site and the older copy both have the previous version of "a": together they would
    // be enough for a wrong answer.
    grown.shelf.fail("site-1");
    let refused = read(&store, "a").await.unwrap_err().to_string();
    assert!(refused.contains("too few sites answer"), "{refused}");
    grown.shelf.mend("site-1");
    put(&store, "d", &bytes(4, 100_000)).await.unwrap();
    // It does not get a new count, so it stays an older copy.
    store.count_start().await.unwrap();
    assert!(of_site(&grown.open().await).table_is_older);

    let root = grown.folder.path().display();
    let place = SiteEntry {
        name: SITE.to_owned(),
        table: Some(format!("dir://{root}/other")),
        blobs: Some(format!("dir://{root}/{SITE}")),
        rebuilding: false,
    };
    let report = store.replace_site(SITE, place, &|_, _| {}).await.unwrap();
    assert!(report.problems.is_empty() && report.lost.is_empty(), "{report:?}");
    assert!(store.snapshot().is_healthy(), "{:?}", store.snapshot());
    grown.check(&store).await;
    assert_eq!(read(&store, "d").await.unwrap(), bytes(4, 100_000));
    let again = GeoStore::open(grown.shelf.options()).await.unwrap();
    assert!(again.snapshot().is_healthy(), "{:?}", again.snapshot());
}

#[tokio::test(start_paused = true)]
async fn the_newer_table_that_comes_back_votes_again() {
    let grown = Grown::new(false).await;
    let newer = grown.folder.path().join("newer");
    copy(&grown.folder.path().join(SITE), &newer);
    grown.bring_back("table");
    let store = grown.open().await;
    assert!(of_site(&store).table_is_older);
    let table = grown.folder.path().join(SITE).join("table");
    std::fs::remove_dir_all(&table).unwrap();
    copy(&newer.join("table"), &table);
    store.count_start().await.unwrap();
    assert!(store.snapshot().is_healthy());
    store.heal(&|_| {}).await.unwrap();
    grown.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn older_blobs_are_told_and_healed() {
    let grown = Grown::new(true).await;
    grown.bring_back("blobs");
    let store = grown.open().await;
    let site = of_site(&store);
    assert!((site.table_is_older, site.blobs_are_older) == (false, true), "{site:?}");
    assert!(!store.snapshot().is_healthy());
    check_all(&store).await;
    // A count alone does not make them newer.
    store.count_start().await.unwrap();
    assert!(of_site(&store).blobs_are_older);
    let report = store.heal(&|_| {}).await.unwrap();
    assert!(report.rebuilt > 0 && report.missing == 0, "{report:?}");
    assert!(store.snapshot().is_healthy());
    assert!(grown.open().await.snapshot().is_healthy());
    grown.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_the_namespace_heals_older_blobs_without_being_asked() {
    let grown = Grown::new(true).await;
    grown.bring_back("blobs");
    let store = grown.open().await;
    assert!(of_site(&store).blobs_are_older);
    let every = fulgurite_units::Duration::from_secs(3600);
    store.keep(every, every);
    while of_site(&store).blobs_are_older {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    grown.check(&store).await;
}

#[tokio::test(start_paused = true)]
async fn counts_of_many_programs_at_once_call_nobody_an_older_copy() {
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
