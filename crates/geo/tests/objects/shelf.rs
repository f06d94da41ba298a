//! Sites in memory or in directories, some of which may be down.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::objects::{GeoOptions, GeoStore, OpenSites, SiteEntry, SiteMap};
use fulgurite_geo::stores::{
    Address, Blob, BlobError, BlobMeta, Cause, Entropy, Expect, Key, OpenError, Opener, Row, Table,
    TableCaps, TableError, Tag,
};
use fulgurite_units::{Clock, Instant, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;

/// Random bytes from a counter: all are different, and the same in each run.
fn entropy() -> Entropy {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|| {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let hash = fulgurite_units::Seed::new(count);
        let mut bytes = [0; 16];
        hash.stream().fill(&mut bytes);
        bytes
    })
}

/// Sites, and which of them are down.
#[derive(Clone)]
pub(crate) struct Shelf {
    opener: Arc<Opener>,
    down: Arc<Mutex<BTreeSet<String>>>,
    /// Sites that write fragments but lose the answers.
    mute: Arc<Mutex<BTreeSet<String>>>,
    tables: Arc<Tables>,
    /// The wall clock, in milliseconds.
    pub(crate) now: Arc<AtomicU64>,
    pub(crate) map: SiteMap,
}

/// Faults of the tables, and of the blobs, of all sites.
#[derive(Default)]
struct Tables {
    /// Whether they refuse to write rows of objects.
    refuse: AtomicBool,
    /// Whether their sites have no room for fragments.
    refuse_fragments: AtomicBool,
    /// Whether notifications of decisions are held back.
    hold: watch::Sender<bool>,
    /// Number of held notifications at all sites, and their maximum.
    held_count: AtomicUsize,
    held_count_max: AtomicUsize,
}

impl Shelf {
    /// Creates sites in memory.
    pub(crate) fn new(sites: usize, data: u8, parity: u8) -> Self {
        Self::with_places(sites, data, parity, |site| format!("mem://site-{site}"))
    }

    pub(crate) fn with_places(
        sites: usize,
        data: u8,
        parity: u8,
        place: impl Fn(usize) -> String,
    ) -> Self {
        let entry = |site: usize| SiteEntry {
            name: format!("site-{site}"),
            table: Some(place(site)),
            blobs: Some(place(site)),
            rebuilding: false,
        };
        let mut map = SiteMap::parse(&format!(
            "name = 'test'\ndata = {data}\nparity = {parity}\nround = '300ms'\npatience = '3s'\n\
             lease = '4s'\nsites = [{}]",
            (0..sites)
                .map(|site| format!(
                    "{{ name = 's{site}', table = 'mem://t{site}', blobs = 'mem://b{site}' }}"
                ))
                .collect::<Vec<_>>()
                .join(", ")
        ))
        .unwrap();
        map.sites = (0..sites).map(entry).collect();
        Self {
            opener: Arc::new(Opener::new(entropy(), [])),
            down: Arc::default(),
            mute: Arc::default(),
            tables: Arc::default(),
            now: Arc::new(AtomicU64::new(1_800_000_000_000)),
            map,
        }
    }

    pub(crate) fn options(&self) -> GeoOptions {
        let now = Arc::clone(&self.now);
        let wall = move || UnixTime::from_millis(now.load(Ordering::Relaxed));
        GeoOptions {
            map: self.map.clone(),
            file: None,
            near: None,
            clock: Clock::new(wall, || Instant::from_nanos(0)),
            entropy: entropy(),
            opener: Arc::new(self.clone()),
            cache: None,
            orphan_age: fulgurite_units::Duration::from_secs(86_400),
        }
    }

    pub(crate) async fn init(&self) -> GeoStore {
        GeoStore::init(self.options()).await.unwrap()
    }

    pub(crate) fn fail(&self, site: &str) {
        self.down.lock().unwrap().insert(site.to_owned());
    }

    /// Makes a site lose the answers to its fragment writes.
    pub(crate) fn lose_answers(&self, site: &str) {
        self.mute.lock().unwrap().insert(site.to_owned());
    }

    /// Makes all tables refuse rows of objects, or accept them again.
    pub(crate) fn refuse_rows(&self, refuse: bool) {
        self.tables.refuse.store(refuse, Ordering::Relaxed);
    }

    /// Makes all sites refuse fragments, as if they were full, or accept them again.
    pub(crate) fn refuse_fragments(&self, refuse: bool) {
        self.tables.refuse_fragments.store(refuse, Ordering::Relaxed);
    }

    /// Makes all tables hold notifications of decisions, or releases them. Returns the maximum
    /// number held.
    pub(crate) fn hold_notifications(&self, hold: bool) -> usize {
        self.tables.hold.send_replace(hold);
        self.tables.held_count_max.load(Ordering::Relaxed)
    }

    /// Returns the rows of all objects at a site.
    pub(crate) async fn rows(&self, site: usize) -> Vec<fulgurite_geo_core::Row> {
        let address = self.map.sites[site].table.clone().unwrap();
        let table = self.opener.table(&address.parse().unwrap(), true).await.unwrap();
        let below = Key::new("o").unwrap();
        let rows = table.scan(Some(&below), None);
        rows.map(|row| fulgurite_geo_core::Row::decode(&row.unwrap().1.bytes).unwrap())
            .collect()
            .await
    }

    pub(crate) fn repair(&self, site: &str) {
        self.down.lock().unwrap().remove(site);
        self.mute.lock().unwrap().remove(site);
    }

    /// Checks whether the stores of a site can be opened.
    fn check(&self, site: &str) -> Result<(), OpenError> {
        if self.down.lock().unwrap().contains(site) {
            let place = site.to_owned();
            return Err(OpenError::Missing { what: "table", place });
        }
        Ok(())
    }

    fn flaky<S: ?Sized>(&self, inner: Arc<S>, site: &SiteEntry) -> Arc<Flaky<S>> {
        let (down, mute) = (Arc::clone(&self.down), Arc::clone(&self.mute));
        let tables = Arc::clone(&self.tables);
        Arc::new(Flaky { inner, name: site.name.clone(), down, mute, tables })
    }

    /// Returns the blobs of a site, bypassing all faults.
    pub(crate) async fn blobs_of(&self, site: usize) -> Arc<dyn Blob> {
        let address = self.map.sites[site].blobs.clone().unwrap();
        self.opener.blobs(&address.parse().unwrap(), true).await.unwrap()
    }

    pub(crate) async fn blob_keys(&self, site: usize) -> Vec<Key> {
        let blobs = self.blobs_of(site).await;
        let all = blobs.list(None, UnixTime::from_millis(u64::MAX / 2));
        all.map(|meta| meta.unwrap().key).collect().await
    }
}

#[async_trait]
impl OpenSites for Shelf {
    async fn table(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        self.check(&site.name)?;
        let inner = self.opener.table(address, may_create).await?;
        Ok(self.flaky(inner, site))
    }

    async fn blobs(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        self.check(&site.name)?;
        let inner = self.opener.blobs(address, may_create).await?;
        Ok(self.flaky(inner, site))
    }
}

/// A store that does not answer while its site is down.
struct Flaky<S: ?Sized> {
    inner: Arc<S>,
    name: String,
    down: Arc<Mutex<BTreeSet<String>>>,
    mute: Arc<Mutex<BTreeSet<String>>>,
    tables: Arc<Tables>,
}

impl<S: ?Sized> Flaky<S> {
    fn is_down(&self) -> bool {
        self.down.lock().unwrap().contains(&self.name)
    }

    fn check_table(&self) -> Result<(), TableError> {
        let cause = || TableError::Unavailable(Cause::new("down"));
        if self.is_down() { Err(cause()) } else { Ok(()) }
    }

    fn check_blob(&self) -> Result<(), BlobError> {
        let cause = || BlobError::Unavailable(Cause::new("down"));
        if self.is_down() { Err(cause()) } else { Ok(()) }
    }
}

impl Tables {
    /// Refuses a row, or holds it for a while.
    async fn filter_row(&self, new: &[u8]) -> Result<(), TableError> {
        if self.refuse.load(Ordering::Relaxed) {
            return Err(TableError::Unavailable(Cause::new("rows are refused")));
        }
        let row = fulgurite_geo_core::Row::decode(new).unwrap();
        if !row.known.decided.is_empty() {
            let held = self.held_count.fetch_add(1, Ordering::Relaxed) + 1;
            self.held_count_max.fetch_max(held, Ordering::Relaxed);
            self.hold.subscribe().wait_for(|hold| !hold).await.unwrap();
            self.held_count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[async_trait]
impl Table for Flaky<dyn Table> {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.check_table()?;
        self.inner.read(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        self.check_table()?;
        if key.as_str().starts_with("o/") {
            self.tables.filter_row(&new).await?;
        }
        self.inner.cas(key, expect, new).await
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.check_table()?;
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.check_table()?;
        self.inner.erase(key).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        match self.check_table() {
            Ok(()) => self.inner.scan(prefix, after),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}

#[async_trait]
impl Blob for Flaky<dyn Blob> {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        self.check_blob()?;
        if self.tables.refuse_fragments.load(Ordering::Relaxed) {
            return Err(BlobError::Unavailable(Cause::new("no room")));
        }
        self.inner.create(key, body).await?;
        if self.mute.lock().unwrap().contains(&self.name) {
            return Err(BlobError::Unknown(Cause::new("the answer is lost")));
        }
        Ok(())
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        self.check_blob()?;
        self.inner.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        self.check_blob()?;
        self.inner.head(key).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        self.check_blob()?;
        self.inner.delete(key).await
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        match self.check_blob() {
            Ok(()) => self.inner.list(prefix, before),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
