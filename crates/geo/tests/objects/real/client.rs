//! A client of several sites: a process of its own that runs random calls on a few objects and logs
//! the answers.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fulgurite_geo::objects::{GeoError, GeoOptions, GeoStore, SiteMap};
use fulgurite_geo::stores::{Entropy, Opener};
use fulgurite_units::{Clock, Instant, RandomStream, Seed, UnixTime};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};
use serde::{Deserialize, Serialize};

use crate::history::{Call, Line, Precondition, Reply, Tag, now};

/// Environment variable with the file of a client's plan.
pub(crate) const VARIABLE: &str = "FULGURITE_TEST_GEO_CLIENT";

/// Concurrent calls of one client.
const AT_ONCE: u64 = 3;

/// Plan of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) map: String,
    pub(crate) near: Option<String>,
    pub(crate) seed: u64,
    /// Unique number of the client.
    pub(crate) client: u64,
    pub(crate) keys: u64,
    /// File of its history.
    pub(crate) history: PathBuf,
    /// It runs until this file exists.
    pub(crate) stop: PathBuf,
    /// It begins no calls while this file exists.
    pub(crate) rest: PathBuf,
    pub(crate) variables: Vec<(String, String)>,
    /// How far its wall clock is ahead.
    pub(crate) ahead_ms: u64,
}

impl Plan {
    fn stream(&self, label: &str) -> RandomStream {
        Seed::new(self.seed).child(&self.client.to_le_bytes()).child(label.as_bytes()).stream()
    }

    /// Returns a different source each time, so that no drawn value repeats.
    fn entropy(&self, label: &str) -> Entropy {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let random = Mutex::new(self.stream(&format!("{label} {count}")));
        Entropy::new(move || {
            let mut bytes = [0; 16];
            random.lock().unwrap().fill(&mut bytes);
            bytes
        })
    }

    /// The same plan for another client, whose clock is some days ahead: the grace period for
    /// readers is over then.
    pub(crate) fn for_client(&self, client: u64, days: u64) -> Self {
        Self { client, ahead_ms: days * 86_400_000, ..self.clone() }
    }

    /// Opens the store as soon as enough sites answer.
    pub(crate) async fn open(&self) -> GeoStore {
        for _ in 0..super::TRIES {
            if let Ok(store) = GeoStore::open(self.options()).await {
                return store;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("too few sites answer");
    }

    pub(crate) fn opener(&self) -> Opener {
        Opener::new(self.entropy("tags"), self.variables.clone())
    }

    pub(crate) fn options(&self) -> GeoOptions {
        let ahead_ms = self.ahead_ms;
        let wall = move || {
            let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
            UnixTime::from_millis(u64::try_from(since).unwrap() + ahead_ms)
        };
        GeoOptions {
            map: SiteMap::parse(&self.map).unwrap(),
            file: None,
            near: self.near.clone(),
            clock: Clock::new(wall, || Instant::from_nanos(0)),
            entropy: self.entropy("ids"),
            opener: Arc::new(self.opener()),
            cache: None,
            orphan_age: fulgurite_units::Duration::from_secs(86_400),
        }
    }
}

/// Not a test: runs a client when started as one.
#[test]
fn runs_as_client_process() {
    let Some(file) = std::env::var_os(VARIABLE) else { return };
    let plan: Plan = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    super::use_ring();
    super::runtime().block_on(run(plan));
}

async fn run(plan: Plan) {
    let log = Log { file: Mutex::new(File::create(&plan.history).unwrap()), count: 0.into() };
    let store = loop {
        match GeoStore::open(plan.options()).await {
            Ok(store) => break store,
            // Too few sites answer at the moment.
            Err(_) if !plan.stop.exists() => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(_) => return,
        }
    };
    let (plan, log) = (Arc::new(plan), Arc::new(log));
    let all = (0..AT_ONCE).map(|one| {
        let (store, plan, log) = (store.clone(), Arc::clone(&plan), Arc::clone(&log));
        tokio::spawn(async move { work(&store, &plan, &log, one).await })
    });
    futures::future::try_join_all(all).await.unwrap();
}

/// Writes whole lines, so that the calls of a killed client are known.
struct Log {
    file: Mutex<File>,
    count: AtomicU64,
}

impl Log {
    fn write(&self, line: &Line) {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        self.file.lock().unwrap().write_all(&text).unwrap();
    }
}

async fn work(store: &GeoStore, plan: &Plan, log: &Log, one: u64) {
    let mut random = plan.stream(&format!("work {one}"));
    // The last version it saw of each object.
    let mut seen = vec![None; usize::try_from(plan.keys).unwrap()];
    let mut values = 0;
    while !plan.stop.exists() {
        if plan.rest.exists() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        let key = random.below(plan.keys);
        let seen = &mut seen[usize::try_from(key).unwrap()];
        values += 1;
        let tag = (plan.client * AT_ONCE + one) << 32 | values;
        let call = match (random.below(100), *seen) {
            (0..20, _) => Call::Put(tag, Precondition::Always),
            (20..30, _) => Call::Put(tag, Precondition::Absent),
            (30..50, Some((version, value))) => Call::Put(tag, Precondition::Is(version, value)),
            (50..60, _) => Call::Delete,
            _ => Call::Get,
        };
        let number = log.count.fetch_add(1, Ordering::Relaxed);
        log.write(&Line::Begun { number, key, call, at: now() });
        let reply = execute_call(store, key, call).await;
        log.write(&Line::Ended { number, reply, at: now() });
        *seen = match (reply, call) {
            (Reply::Wrote(version), Call::Put(tag, _)) => Some((version, tag)),
            (Reply::Read(tag, version), _) => Some((version, tag)),
            _ => *seen,
        };
        tokio::time::sleep(Duration::from_millis(random.below(40))).await;
    }
}

/// Calls the store and returns its answer.
pub(crate) async fn execute_call(store: &GeoStore, key: u64, call: Call) -> Reply {
    let path = Path::from(format!("object/{key}"));
    let reply = match call {
        Call::Put(tag, condition) => put(store, &path, tag, condition).await,
        Call::Delete => store.delete(&path).await.map(|()| Reply::Deleted),
        Call::Get => get(store, &path).await,
    };
    reply.unwrap_or_else(|error| failed(&error, call))
}

async fn put(
    store: &GeoStore,
    path: &Path,
    tag: Tag,
    condition: Precondition,
) -> Result<Reply, object_store::Error> {
    let mode = match condition {
        Precondition::Always => PutMode::Overwrite,
        Precondition::Absent => PutMode::Create,
        Precondition::Is(version, _) => {
            PutMode::Update(UpdateVersion { e_tag: Some(version.to_string()), version: None })
        }
    };
    let put = store.put_opts(path, PutPayload::from(value(tag)), mode.into()).await?;
    Ok(Reply::Wrote(put.version.unwrap().parse().unwrap()))
}

async fn get(store: &GeoStore, path: &Path) -> Result<Reply, object_store::Error> {
    let got = store.get(path).await?;
    let version = got.meta.version.clone().unwrap().parse().unwrap();
    let bytes = got.bytes().await?;
    let tag = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == value(tag), "the value of {path}, version {version}, is torn");
    Ok(Reply::Read(tag, version))
}

/// Returns the bytes of a value: stored in rows, in fragments of one chunk, or of several.
pub(crate) fn value(tag: Tag) -> Bytes {
    let length = [300, 5_000, 60_000, 150_000][usize::try_from(tag % 4).unwrap()];
    let mut bytes = vec![0; length];
    Seed::new(tag).stream().fill(&mut bytes);
    bytes[..8].copy_from_slice(&tag.to_le_bytes());
    Bytes::from(bytes)
}

/// Maps an error to what it says about the call's effect.
fn failed(error: &object_store::Error, call: Call) -> Reply {
    match (error, call) {
        (object_store::Error::AlreadyExists { .. }, Call::Put(_, Precondition::Absent))
        | (object_store::Error::Precondition { .. }, Call::Put(_, Precondition::Is(..))) => {
            Reply::Refused
        }
        (object_store::Error::NotFound { .. }, Call::Get | Call::Delete) => Reply::Nothing,
        (object_store::Error::Generic { source, .. }, _) => {
            match source.downcast_ref::<GeoError>() {
                Some(GeoError::Indeterminate { .. }) => Reply::Unknown,
                Some(
                    GeoError::Unavailable { .. }
                    | GeoError::Unwritten { .. }
                    | GeoError::Replaced { .. }
                    | GeoError::Unconfirmed { .. }
                    | GeoError::OldMap { .. },
                ) => Reply::Failed,
                _ => panic!("{call:?}: {source:?}"),
            }
        }
        _ => panic!("{call:?}: {error:?}"),
    }
}
