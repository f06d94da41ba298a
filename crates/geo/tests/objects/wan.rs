//! Number of rounds between sites that an operation waits for, with sites far from each other. Time
//! advances only while all tasks wait, so these are not timings of this machine: a store call takes
//! what the table below says, and coding takes nothing.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::objects::limits::LATE_FRAGMENTS_MAX;
use fulgurite_geo::objects::{GeoStore, OpenSites, SiteEntry};
use fulgurite_geo::stores::{
    Address, Blob, BlobError, BlobMeta, Cause, Expect, Key, OpenError, Row, Table, TableCaps,
    TableError, Tag,
};
use fulgurite_units::UnixTime;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};
use tokio::time::{Instant, sleep};

use crate::shelf::Shelf;

/// Round trips between three sites, in milliseconds, as between the US, Europe and Japan.
const TRIPS: [[u64; 3]; 3] = [[1, 90, 150], [90, 1, 240], [150, 240, 1]];
/// Latency of a table call, and of writing and reading a fragment in a blob store.
const TABLE_MS: u64 = 20;
const BLOB_WRITE_MS: u64 = 60;
const BLOB_READ_MS: u64 = 40;

/// The sites as seen from one of them.
struct SiteView {
    shelf: Shelf,
    site: usize,
    cut: Cut,
}

/// The site that is cut off, if any: no answer comes from there, and calls time out.
#[derive(Clone, Debug)]
struct Cut {
    site: Arc<AtomicUsize>,
    /// Fragments in flight to it, and their maximum.
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Cut {
    fn none() -> Self {
        let site = Arc::new(AtomicUsize::new(NONE));
        Self { site, open: Arc::default(), most: Arc::default() }
    }
}

/// No site.
const NONE: usize = usize::MAX;
/// Timeout of a call to a site that is cut off.
const GIVE_UP_MS: u64 = 1500;

impl SiteView {
    fn trip(&self, to: &SiteEntry) -> u64 {
        TRIPS[self.site][Self::number(&self.shelf, to)]
    }

    fn number(shelf: &Shelf, site: &SiteEntry) -> usize {
        shelf.map.site(&site.name).unwrap().index()
    }

    fn distant_store<S: ?Sized>(&self, inner: Arc<S>, site: &SiteEntry) -> DistantStore<S> {
        let (number, cut) = (Self::number(&self.shelf, site), self.cut.clone());
        DistantStore { inner, trip: self.trip(site), number, cut }
    }
}

#[async_trait]
impl OpenSites for SiteView {
    async fn table(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        let inner = self.shelf.table(site, address, may_create).await?;
        Ok(Arc::new(self.distant_store(inner, site)))
    }

    async fn blobs(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        let inner = self.shelf.blobs(site, address, may_create).await?;
        Ok(Arc::new(self.distant_store(inner, site)))
    }
}

/// A remote store.
struct DistantStore<S: ?Sized> {
    inner: Arc<S>,
    trip: u64,
    number: usize,
    cut: Cut,
}

impl<S: ?Sized> DistantStore<S> {
    /// Waits as long as a call takes. Fails if it does not reach its store.
    async fn delay(&self, service: u64) -> Result<(), Cause> {
        if self.cut.site.load(Ordering::Relaxed) == self.number {
            sleep(Duration::from_millis(GIVE_UP_MS)).await;
            return Err(Cause::new("cut off"));
        }
        sleep(Duration::from_millis(self.trip + service)).await;
        Ok(())
    }
}

#[async_trait]
impl Table for DistantStore<dyn Table> {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.delay(TABLE_MS).await.map_err(TableError::Unavailable)?;
        self.inner.read(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        self.delay(TABLE_MS).await.map_err(TableError::Unavailable)?;
        self.inner.cas(key, expect, new).await
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.delay(TABLE_MS).await.map_err(TableError::Unavailable)?;
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.delay(TABLE_MS).await.map_err(TableError::Unavailable)?;
        self.inner.erase(key).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        self.inner.scan(prefix, after)
    }
}

#[async_trait]
impl Blob for DistantStore<dyn Blob> {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        let is_cut = self.cut.site.load(Ordering::Relaxed) == self.number;
        let open = self.cut.open.fetch_add(usize::from(is_cut), Ordering::Relaxed);
        self.cut.most.fetch_max(open + usize::from(is_cut), Ordering::Relaxed);
        let took = self.delay(BLOB_WRITE_MS).await;
        self.cut.open.fetch_sub(usize::from(is_cut), Ordering::Relaxed);
        took.map_err(BlobError::Unavailable)?;
        self.inner.create(key, body).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        self.delay(BLOB_READ_MS).await.map_err(BlobError::Unavailable)?;
        self.inner.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        self.delay(BLOB_READ_MS).await.map_err(BlobError::Unavailable)?;
        self.inner.head(key).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        self.delay(BLOB_WRITE_MS).await.map_err(BlobError::Unavailable)?;
        self.inner.delete(key).await
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        self.inner.list(prefix, before)
    }
}

/// Opens the namespace once at each site.
async fn programs(shelf: &Shelf) -> Vec<GeoStore> {
    programs_with(shelf, &Cut::none()).await
}

async fn programs_with(shelf: &Shelf, cut: &Cut) -> Vec<GeoStore> {
    let mut programs = Vec::new();
    for site in 0..3 {
        let mut options = shelf.options();
        options.near = Some(format!("site-{site}"));
        options.opener = Arc::new(SiteView { shelf: shelf.clone(), site, cut: cut.clone() });
        programs.push(match site {
            0 => GeoStore::init(options).await.unwrap(),
            _ => GeoStore::open(options).await.unwrap(),
        });
    }
    programs
}

/// Returns how long something takes, in milliseconds.
async fn elapsed_ms(work: impl Future<Output = ()>) -> u64 {
    let began = Instant::now();
    work.await;
    u64::try_from(began.elapsed().as_millis()).unwrap()
}

async fn put(store: &GeoStore, key: &str) {
    let bytes = PutPayload::from(vec![7_u8; 1 << 20]);
    store.put(&Path::from(key), bytes).await.unwrap();
}

async fn get(store: &GeoStore, key: &str) {
    let bytes = store.get(&Path::from(key)).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, vec![7_u8; 1 << 20]);
}

/// Puts an object and agrees on its version only after its bytes are written: Giza in series.
async fn put_in_series(store: &GeoStore, key: &str) {
    let mut upload = store.put_multipart(&Path::from(key)).await.unwrap();
    upload.put_part(PutPayload::from(vec![7_u8; 1 << 20])).await.unwrap();
    upload.complete().await.unwrap();
}

/// Waits until all notifications have arrived.
async fn settle() {
    sleep(Duration::from_millis(1500)).await;
}

fn shelf() -> Shelf {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.round = fulgurite_units::Duration::from_millis(900);
    shelf.map.patience = fulgurite_units::Duration::from_secs(20);
    shelf.map.lease = fulgurite_units::Duration::from_secs(3600);
    shelf
}

#[tokio::test(start_paused = true)]
async fn put_latency_is_that_of_the_farthest_fragment() {
    let shelf = shelf();
    let programs = programs(&shelf).await;
    for (site, store) in programs.iter().enumerate() {
        let farthest = *TRIPS[site].iter().max().unwrap();
        let baseline = farthest + BLOB_WRITE_MS;
        for round in 0..3 {
            let key = format!("from-{site}/{round}");
            let first = elapsed_ms(put(store, &key)).await;
            settle().await;
            // The nearest row is read before the others; the bytes are in flight meanwhile.
            let nearest_read = TRIPS[site][site] + TABLE_MS;
            let metadata = nearest_read + farthest + TABLE_MS;
            assert!(first <= baseline.max(metadata) + 2, "{first} ms, from site {site}");
            assert!(first * 100 <= baseline * 105, "{first} ms for {baseline}");
            let again = elapsed_ms(put(store, &key)).await;
            settle().await;
            assert!(again * 100 <= baseline * 105, "again {again} ms for {baseline}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn serial_and_classic_puts_take_longer() {
    let shelf = shelf();
    let programs = programs(&shelf).await;
    let parallel = elapsed_ms(put(&programs[0], "parallel")).await;
    settle().await;
    let fast = elapsed_ms(put_in_series(&programs[0], "fast")).await;
    settle().await;
    let classic = classic().await;
    let classic = elapsed_ms(put_in_series(&classic, "classic")).await;
    println!("put {parallel} ms, in series {fast} ms, in series with promises first {classic} ms");
    assert!(fast * 10 >= parallel * 15, "{fast} and {parallel}");
    assert!(classic * 10 >= parallel * 15 && classic > parallel, "{classic} and {parallel}");
}

/// Opens a program at the first site, whose map starts writes with a promise. It has its own
/// namespace.
async fn classic() -> GeoStore {
    let mut shelf = shelf();
    shelf.map.fast = false;
    programs(&shelf).await.remove(0)
}

#[tokio::test(start_paused = true)]
async fn get_latency_is_that_of_the_nearest_fragments() {
    let shelf = shelf();
    let programs = programs(&shelf).await;
    put(&programs[0], "one").await;
    settle().await;
    for (site, store) in programs.iter().enumerate() {
        get(store, "one").await;
        settle().await;
        let taken = elapsed_ms(get(store, "one")).await;
        let mut trips = TRIPS[site];
        trips.sort_unstable();
        // Two fragments of three: the site's own, and that of the nearest other site.
        let baseline = trips[1] + BLOB_READ_MS;
        let nearest_read = trips[0] + TABLE_MS;
        let rows = trips[1] + TABLE_MS;
        println!("site {site}: {taken} ms, fragments alone {baseline} ms");
        assert!(taken <= (nearest_read + baseline).max(rows) + 2, "{taken} ms, from site {site}");
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn put_with_a_site_down_takes_two_metadata_rounds() {
    let shelf = shelf();
    let programs = programs(&shelf).await;
    shelf.fail("site-2");
    // Until it is known to be down.
    for number in 0..5 {
        put(&programs[0], &format!("before/{number}")).await;
    }
    settle().await;
    let before = programs[0].snapshot();
    for number in 0..10 {
        put(&programs[0], &format!("after/{number}")).await;
    }
    let after = programs[0].snapshot();
    let rounds = after.write_rounds - before.write_rounds;
    assert_eq!(rounds, 20, "10 puts");
    assert_eq!(after.writes_slow - before.writes_slow, 10);
}

/// Cuts the third site off, and puts objects until that is detected.
async fn cut_off(program: &GeoStore, cut: &Cut) {
    put(program, "before").await;
    settle().await;
    cut.site.store(2, Ordering::Relaxed);
    let mut number = 0;
    while program.snapshot().sites[2].up {
        put(program, &format!("unknown/{number}")).await;
        number += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn known_partitioned_site_is_not_awaited() {
    let shelf = shelf();
    let cut = Cut::none();
    let programs = programs_with(&shelf, &cut).await;
    cut_off(&programs[0], &cut).await;
    let took = elapsed_ms(put(&programs[0], "known")).await;
    // The read of the nearest row, a promise (a row is read and written), an acceptance (written),
    // and a hint of what is missing; not the 900 ms of a round in addition.
    let rounds = 2 * (TRIPS[0][0] + TABLE_MS) + 3 * (TRIPS[0][1] + TABLE_MS);
    assert!(took <= rounds + 2, "{took} ms of {rounds}");
    let took = elapsed_ms(put_in_series(&programs[0], "in parts")).await;
    assert!(took <= TRIPS[0][1] + BLOB_WRITE_MS + rounds + 2, "{took} ms in parts");
}

#[tokio::test(start_paused = true)]
async fn fragments_for_a_partitioned_site_are_limited() {
    let shelf = shelf();
    let cut = Cut::none();
    let programs = programs_with(&shelf, &cut).await;
    cut_off(&programs[0], &cut).await;
    while cut.open.load(Ordering::Relaxed) > 0 {
        sleep(Duration::from_millis(GIVE_UP_MS)).await;
    }
    cut.most.store(0, Ordering::Relaxed);
    let keys: Vec<String> = (0..100).map(|number| format!("known/{number}")).collect();
    futures::future::join_all(keys.iter().map(|key| put(&programs[0], key))).await;
    let most = cut.most.load(Ordering::Relaxed);
    assert!((1..=LATE_FRAGMENTS_MAX).contains(&most), "{most} at a time");
}
