//! Simulated sites: stores in memory that are slow, cut off, down, or lose their answers.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::objects::{OpenSites, SiteEntry, SiteMap};
use fulgurite_geo::stores::{
    Address, Blob, BlobError, BlobMeta, Cause, Expect, Key, OpenError, Opener, Row, Table,
    TableCaps, TableError, Tag,
};
use fulgurite_units::{RandomStream, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Notify;

/// Maximum time of a store call without faults.
const CALL_MS: u64 = 8;
/// Timeout of a call without an answer.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Current state of a site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Maximum extra time of a call.
    pub(super) late_ms: u64,
    /// Fixed extra time of a row call.
    pub(super) rows_late_ms: u64,
    /// No call arrives.
    pub(super) is_cut: bool,
    /// It executes calls but loses the answers.
    pub(super) is_mute: bool,
    /// It refuses all calls.
    pub(super) is_down: bool,
}

/// States of all sites.
pub(super) struct SiteFaults {
    states: Mutex<[State; 3]>,
    random: Mutex<RandomStream>,
}

/// Fate of a call on its way.
enum CallFate {
    Delivered,
    Refused,
    Lost,
}

impl SiteFaults {
    pub(super) fn new(random: RandomStream) -> Self {
        Self { states: Mutex::default(), random: Mutex::new(random) }
    }

    pub(super) fn set(&self, site: usize, state: State) {
        self.states.lock().unwrap()[site] = state;
    }

    fn state(&self, site: usize) -> State {
        self.states.lock().unwrap()[site]
    }

    async fn deliver(&self, site: usize, is_table: bool) -> CallFate {
        let state = self.state(site);
        let ms = self.random.lock().unwrap().below(CALL_MS + state.late_ms);
        let ms = ms + if is_table { state.rows_late_ms } else { 0 };
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let state = self.state(site);
        if state.is_cut {
            tokio::time::sleep(NO_ANSWER).await;
            return CallFate::Lost;
        }
        if state.is_down { CallFate::Refused } else { CallFate::Delivered }
    }

    /// Whether the answer comes back.
    async fn deliver_answer(&self, site: usize) -> bool {
        let state = self.state(site);
        if state.is_mute || state.is_cut {
            tokio::time::sleep(NO_ANSWER).await;
            return false;
        }
        true
    }
}

/// Sites in memory, as seen by one program.
#[derive(Clone)]
pub(super) struct Simulated {
    /// Whether the program was killed: calls already sent may arrive, and nothing else.
    pub(super) killed: Arc<KillSwitch>,
    pub(super) opener: Arc<Opener>,
    pub(super) faults: Arc<SiteFaults>,
    pub(super) map: SiteMap,
}

impl Simulated {
    /// Returns the same sites for another program.
    pub(super) fn program(&self) -> Self {
        Self { killed: Arc::default(), ..self.clone() }
    }

    fn distant_store<S: ?Sized>(
        &self,
        inner: Arc<S>,
        site: &SiteEntry,
        is_table: bool,
    ) -> Arc<DistantStore<S>> {
        let site = self.map.site(&site.name).unwrap().index();
        let (faults, killed) = (Arc::clone(&self.faults), Arc::clone(&self.killed));
        Arc::new(DistantStore { inner, site, is_table, faults, killed })
    }

    /// Number of fragments at all sites.
    pub(super) async fn fragments(&self) -> usize {
        let mut count = 0;
        for site in &self.map.sites {
            let address = site.blobs.as_ref().unwrap().parse().unwrap();
            let blobs = self.opener.blobs(&address, true).await.unwrap();
            // Not the start counts, which detect older copies.
            let below = Key::new("f").unwrap();
            count += blobs.list(Some(&below), UnixTime::from_millis(u64::MAX / 2)).count().await;
        }
        count
    }
}

#[async_trait]
impl OpenSites for Simulated {
    async fn table(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        let inner = self.opener.table(address, may_create).await?;
        Ok(self.distant_store(inner, site, true))
    }

    async fn blobs(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        let inner = self.opener.blobs(address, may_create).await?;
        Ok(self.distant_store(inner, site, false))
    }
}

/// Whether a program was killed. Waiters wake up in a fixed order, the same in each run.
#[derive(Debug, Default)]
pub(super) struct KillSwitch {
    is_set: AtomicBool,
    notify: Notify,
}

impl KillSwitch {
    pub(super) fn kill(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        self.notify.notify_waiters();
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    pub(super) async fn wait(&self) {
        let notify = self.notify.notified();
        if !self.is_set() {
            notify.await;
        }
    }
}

/// The error of a call that was refused, and of one without an answer.
type Errors<E> = (fn(Cause) -> E, fn(Cause) -> E);

const TABLE_READS: Errors<TableError> = (TableError::Unavailable, TableError::Unavailable);
const TABLE_WRITES: Errors<TableError> = (TableError::Unavailable, TableError::Unknown);
const BLOB_READS: Errors<BlobError> = (BlobError::Unavailable, BlobError::Unavailable);
const BLOB_WRITES: Errors<BlobError> = (BlobError::Unavailable, BlobError::Unknown);

/// A store of a site.
struct DistantStore<S: ?Sized> {
    inner: Arc<S>,
    site: usize,
    is_table: bool,
    faults: Arc<SiteFaults>,
    killed: Arc<KillSwitch>,
}

impl<S: ?Sized> DistantStore<S> {
    /// Makes a call. The caller states the errors for a refused call and for an unknown outcome.
    async fn call<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>> + Send,
        (refused, lost): Errors<E>,
    ) -> Result<T, E> {
        let fate = tokio::select! {
            biased;
            () = self.killed.wait() => std::future::pending().await,
            fate = self.faults.deliver(self.site, self.is_table) => fate,
        };
        match fate {
            CallFate::Refused => return Err(refused(Cause::new("down"))),
            CallFate::Lost => return Err(lost(Cause::new("no answer"))),
            CallFate::Delivered => {}
        }
        let done = call.await;
        if self.faults.deliver_answer(self.site).await {
            done
        } else {
            Err(lost(Cause::new("lost")))
        }
    }
}

#[async_trait]
impl Table for DistantStore<dyn Table> {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.call(self.inner.read(key), TABLE_READS).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        self.call(self.inner.cas(key, expect, new), TABLE_WRITES).await
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.call(self.inner.remove(key, tag), TABLE_WRITES).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.call(self.inner.erase(key), TABLE_WRITES).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let rows = self.inner.scan(prefix, after);
        let first = async {
            match self.call(async { Ok(rows) }, TABLE_READS).await {
                Ok(rows) => rows,
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(first).flatten().boxed()
    }
}

#[async_trait]
impl Blob for DistantStore<dyn Blob> {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        self.call(self.inner.create(key, body), BLOB_WRITES).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        self.call(self.inner.get(key, range), BLOB_READS).await
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        self.call(self.inner.head(key), BLOB_READS).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        self.call(self.inner.delete(key), BLOB_WRITES).await
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        let all = self.inner.list(prefix, before);
        let first = async {
            match self.call(async { Ok(all) }, BLOB_READS).await {
                Ok(all) => all,
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(first).flatten().boxed()
    }
}
