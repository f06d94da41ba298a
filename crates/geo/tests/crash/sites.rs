//! Objects over three sites in directories, whose server is killed at each step of a row's change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fulgurite_geo::objects::{GeoOptions, GeoStore, OpenSites, SiteEntry, SiteMap};
use fulgurite_geo::stores::{
    Address, Blob, DirectoryStep, DirectoryTable, Entropy, FaultHook, OpenError, Opener, Table,
};
use fulgurite_tier::FailPoints;
use fulgurite_tier::conformance::{CrashSuite, Output, Victim};
use fulgurite_units::{Clock, Instant, UnixTime};

/// The steps of [`DirectoryStep::ALL`].
const STEPS: [&str; DirectoryStep::ALL.len()] = [
    "make-folders",
    "write-image",
    "sync-image",
    "open-change",
    "rename",
    "sync-folders",
    "close-change",
];

/// Size of an object that has fragments.
const LENGTH: usize = 100_000;

pub(crate) const SUITE: CrashSuite = CrashSuite {
    points: &STEPS,
    // Of a row: the map takes the first ones at each site.
    passages: &[0, 4, 9, 14],
    parallel: 3,
    work: |victim| super::run(be_killed(victim)),
    check: |folder, output| super::run(inspect(folder, output)),
};

async fn be_killed(victim: &Victim) {
    let store = open(&victim.folder, victim.fail_points(&STEPS)).await;
    victim.put_and_delete(&store, LENGTH).await;
}

async fn inspect(folder: &Path, output: &Output) {
    let store = open(folder, FailPoints::unarmed(&STEPS)).await;
    output.check_all(&store, LENGTH).await;
    store.heal(&|_| {}).await.unwrap();
    output.check_all(&store, LENGTH).await;
}

async fn open(folder: &Path, fail: FailPoints) -> GeoStore {
    let site = |number: usize| {
        let place = folder.join(format!("site-{number}"));
        format!(
            "{{ name = 's{number}', table = 'dir://{0}', blobs = 'dir://{0}' }}",
            place.display()
        )
    };
    let map = format!(
        "name = 'test'\ndata = 2\nparity = 1\nround = '300ms'\npatience = '3s'\nlease = '4s'\n\
         sites = [{}, {}, {}]",
        site(0),
        site(1),
        site(2)
    );
    let entropy = super::entropy(u64::from(std::process::id()));
    let started = AtomicU64::new(1_800_000_000_000);
    let wall = move || UnixTime::from_millis(started.fetch_add(1, Ordering::Relaxed));
    let fail = FaultHook::new(move |step| {
        fail.pass(STEPS[DirectoryStep::ALL.iter().position(|one| *one == step).unwrap()]);
        Ok(())
    });
    let options = GeoOptions {
        map: SiteMap::parse(&map).unwrap(),
        file: None,
        near: None,
        clock: Clock::new(wall, || Instant::from_nanos(0)),
        entropy: entropy.clone(),
        opener: Arc::new(Sites {
            folder: folder.to_owned(),
            opener: Opener::new(entropy.clone(), []),
            entropy,
            fail,
        }),
        cache: None,
        orphan_age: fulgurite_units::Duration::from_secs(86_400),
    };
    GeoStore::init(options).await.unwrap()
}

/// Opens sites whose tables pass the fail points.
struct Sites {
    folder: PathBuf,
    opener: Opener,
    entropy: Entropy,
    fail: FaultHook,
}

#[async_trait]
impl OpenSites for Sites {
    async fn table(
        &self,
        site: &SiteEntry,
        _: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        let number = site.name.strip_prefix('s').unwrap();
        let folder = self.folder.join(format!("site-{number}/table"));
        let table = DirectoryTable::open(folder, may_create, self.entropy.clone())?;
        Ok(Arc::new(table.with_fault_hook(self.fail.clone())))
    }

    async fn blobs(
        &self,
        _: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        self.opener.blobs(address, may_create).await
    }
}
