//! Redundancy platters at other sites: what can be restored from them, and what happens when a site
//! is unavailable, or this one is lost.

use std::fs;
use std::path::PathBuf;

use fulgurite_archive::config::{ArchiveConfig, Geometry, GlassConfig, TierName, TierOptions};
use fulgurite_archive::limits::{FAR_TICK, TIER_BACKOFF};
use fulgurite_archive::status::Status;
use fulgurite_archive::{
    Archive, ArchiveError, ArchiveError as E, BucketName, ManualClock, RecoverOptions,
    RecoverReport, StorageClass,
};
use fulgurite_platter::{NoFaults, PlatterReader, PlatterRole};
use fulgurite_units::UnixTime;

use crate::harness::{Client, config, files, noise, tiny_geometry};

const SITES: [&str; 2] = ["oslo", "turin"];

/// An archive with two far libraries and a manual clock.
struct Sites {
    client: Client,
    clock: ManualClock,
    dir: tempfile::TempDir,
}

/// Configures sets of `information` and three redundancy platters, of which the last `away` go to
/// other sites.
fn configured(dir: &std::path::Path, information: u16, away: u16) -> ArchiveConfig {
    let mut config = config(&dir.join("data"));
    let geometry = Geometry { set_information_platters: information, ..tiny_geometry() };
    config.glass = GlassConfig { geometry, far_redundancy: away, ..config.glass };
    for name in SITES {
        let name = TierName::new(name).unwrap();
        let url = format!("file://{}", dir.join(name.as_str()).display());
        config.tiers.insert(name.clone(), TierOptions { url, ..TierOptions::default() });
        config.far_libraries.push(name);
    }
    config
}

impl Sites {
    async fn open(information: u16, away: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (client, clock) = open(configured(dir.path(), information, away)).await;
        Self { client, clock, dir }
    }

    /// Stops the archive and keeps its folders.
    async fn stop(self) -> tempfile::TempDir {
        let Self { client, dir, .. } = self;
        client.archive.stop().await.unwrap();
        dir
    }

    fn home(&self) -> Vec<PathBuf> {
        files(&self.dir.path().join("data/platters"))
    }

    /// Returns the information platters at this site.
    fn information(&self) -> Vec<PathBuf> {
        let is_information = |path: &PathBuf| {
            let platter = PlatterReader::open(fs::read(path).unwrap(), None, &NoFaults).unwrap();
            matches!(platter.header().role, PlatterRole::Information { .. })
        };
        self.home().into_iter().filter(is_information).collect()
    }

    fn platters_at(&self, site: &str) -> Vec<PathBuf> {
        let folder = self.dir.path().join(site).join("platters");
        if folder.exists() { files(&folder) } else { Vec::new() }
    }

    /// Waits until each site has this many platters, and this many wait for it.
    async fn until(&self, expected: [(u64, u64); 2]) -> Status {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let status = self.client.archive.status().await.unwrap();
            let sites = status.far_libraries.iter().map(|far| (far.platters, far.waiting));
            let found: Vec<(u64, u64)> = sites.collect();
            if found == expected {
                return status;
            }
            assert!(std::time::Instant::now() < deadline, "{found:?}, and not {expected:?}");
            self.clock.advance(FAR_TICK);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Waits until the degraded state is as expected.
    async fn degraded(&self, is_expected: impl Fn(&[String]) -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_expected(&self.client.archive.degraded()) {
            let degraded = self.client.archive.degraded();
            assert!(std::time::Instant::now() < deadline, "{degraded:?}");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Makes the folder of a site unavailable or available.
    fn set_away(&self, site: &str, is_away: bool) {
        let (here, away) = (self.dir.path().join(site), self.dir.path().join("away"));
        let (from, to) = if is_away { (here, away) } else { (away, here) };
        fs::rename(from, to).unwrap();
    }
}

async fn open(config: ArchiveConfig) -> (Client, ManualClock) {
    let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
    let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    match archive.create_bucket(&bucket).await {
        Ok(_) | Err(E::BucketAlreadyOwnedByYou { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    (Client { archive, bucket }, clock)
}

async fn recovered(config: &ArchiveConfig) -> RecoverReport {
    let config = config.clone();
    let recover = move || fulgurite_archive::recover(config, RecoverOptions::default(), &|_| ());
    tokio::task::spawn_blocking(recover).await.unwrap().unwrap()
}

/// Puts one object per information platter.
async fn put(client: &Client, platters: u64) {
    for at in 0..platters {
        let body = noise(at, 60_000);
        client.put(&format!("object {at}"), StorageClass::DeepArchive, &body).await.unwrap();
    }
    client.archive.seal().await.unwrap();
}

async fn restore(client: &Client, platters: u64) {
    for at in 0..platters {
        let name = format!("object {at}");
        client.restore(&name).await.unwrap();
        client.restored(&name).await.unwrap();
        assert!(client.get(&name, None).await.unwrap() == noise(at, 60_000), "{name}");
    }
}

#[tokio::test]
async fn remote_platters_repair_local_losses() {
    let sites = Sites::open(4, 2).await;
    put(&sites.client, 4).await;
    let before = sites.home().len();
    let status = sites.until([(1, 0), (1, 0)]).await;
    assert_eq!(
        (sites.home().len(), sites.platters_at("oslo").len(), sites.platters_at("turin").len()),
        { (before - 2, 1, 1) }
    );
    assert!(status.far_libraries.iter().all(|far| far.bytes > 0));
    let report = sites.client.archive.verify(None, &std::sync::Arc::default()).await.unwrap();
    assert_eq!(report.platters.len(), before, "remote platters are read as well");
    assert!(report.platters.iter().all(|platter| platter.error.is_none()), "{report:?}");
    // One redundancy platter is at home: if two more are lost at home, the sites are needed.
    for platter in &sites.information()[..3] {
        fs::remove_file(platter).unwrap();
    }
    restore(&sites.client, 4).await;
}

#[tokio::test]
async fn unavailable_site_is_reported_and_retried() {
    let sites = Sites::open(4, 2).await;
    put(&sites.client, 4).await;
    sites.until([(1, 0), (1, 0)]).await;
    sites.set_away("oslo", true);
    for at in 4..8 {
        let body = noise(at, 60_000);
        let name = format!("object {at}");
        sites.client.put(&name, StorageClass::DeepArchive, &body).await.unwrap();
    }
    sites.client.archive.seal().await.unwrap();
    sites.until([(1, 1), (2, 0)]).await;
    let is_reported = |line: &String| line.contains("oslo") && line.contains("carrying");
    sites.degraded(|degraded| degraded.iter().any(is_reported)).await;
    let report = sites.client.archive.verify(None, &std::sync::Arc::default()).await.unwrap();
    let away = report.platters.iter().filter_map(|platter| platter.error.as_ref());
    let away: Vec<&String> = away.collect();
    assert!(matches!(&away[..], [why] if why.contains("oslo")), "{away:?}");
    assert!(!sites.dir.path().join("oslo").exists(), "no folder is created in place of a tier");
    // The platters at home suffice for what is lost there, and nothing waits for the site.
    fs::remove_file(&sites.information()[0]).unwrap();
    restore(&sites.client, 8).await;
    sites.set_away("oslo", false);
    sites.clock.advance(TIER_BACKOFF + TIER_BACKOFF);
    sites.until([(2, 0), (2, 0)]).await;
    sites.degraded(<[String]>::is_empty).await;
}

#[tokio::test]
async fn site_loss_is_survived_with_enough_remote_platters() {
    let sites = Sites::open(3, 3).await;
    put(&sites.client, 3).await;
    sites.until([(2, 0), (1, 0)]).await;
    let dir = sites.stop().await;
    let data = dir.path().join("data");
    for name in ["platters", "catalog"] {
        fs::remove_dir_all(data.join(name)).unwrap();
    }
    fs::create_dir(data.join("platters")).unwrap();
    let config = configured(dir.path(), 3, 3);
    let report = recovered(&config).await;
    assert_eq!((report.objects, report.incomplete), (3, 0), "{report:?}");
    assert_eq!((report.platters, report.platters_rebuilt), (3, 3), "{report:?}");
    let (client, clock) = open(config).await;
    restore(&client, 3).await;
    let sites = Sites { client, clock, dir };
    sites.until([(2, 0), (1, 0)]).await;
}

#[tokio::test]
async fn rebuilt_catalog_knows_platter_locations() {
    let sites = Sites::open(4, 2).await;
    put(&sites.client, 4).await;
    sites.until([(1, 0), (1, 0)]).await;
    let dir = sites.stop().await;
    fs::remove_dir_all(dir.path().join("data/catalog")).unwrap();
    let config = configured(dir.path(), 4, 2);
    let report = recovered(&config).await;
    assert_eq!((report.objects, report.platters, report.platters_rebuilt), (4, 7, 0));
    let (client, clock) = open(config).await;
    let sites = Sites { client, clock, dir };
    sites.until([(1, 0), (1, 0)]).await;
    for platter in &sites.information()[..3] {
        fs::remove_file(platter).unwrap();
    }
    restore(&sites.client, 4).await;
}

#[tokio::test]
async fn invalid_far_library_configuration_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut ArchiveConfig)| {
        let mut config = configured(dir.path(), 4, 2);
        change(&mut config);
        Archive::open(config)
    };
    let message = |error: ArchiveError| {
        assert!(matches!(error, E::InvalidArgument { .. }), "{error}");
        error.to_string()
    };
    let none = refused(&|config| config.far_libraries.clear()).await.unwrap_err();
    assert!(message(none).contains("none is configured"));
    let name = TierName::new("bergen").unwrap();
    let unknown = refused(&|config| config.far_libraries.push(name.clone())).await.unwrap_err();
    assert!(message(unknown).contains("\"bergen\" is not a tier"));
    let twice = |config: &mut ArchiveConfig| {
        let first = config.far_libraries[0].clone();
        config.far_libraries.push(first);
    };
    assert!(message(refused(&twice).await.unwrap_err()).contains("named twice"));
    let many = refused(&|config| config.glass.far_redundancy = 4).await.unwrap_err();
    assert!(message(many).contains("a set has only 3 redundancy platters"));
}
