//! The sites: a database, an etcd, and an S3 server, each behind a relay and, if the machine allows
//! it, in a network of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fulgurite_geo::objects::{GeoStore, SiteMap};
use fulgurite_geo::stores::{OpenError, TableError};
use fulgurite_units::UnixTime;
use futures::TryStreamExt as _;
use tokio::runtime::Runtime;

use super::client::Plan;
use super::network::{Namespace, Relay, Traffic};
use crate::servers::{self, ACCESS_KEY, POSTGRES_PASSWORD, Place, SECRET_KEY, Server};

pub(crate) const NAMES: [&str; 3] = ["database", "etcd", "bucket"];

/// Returns the secrets, as environment variables of the program that opens the sites.
pub(crate) fn variables() -> Vec<(String, String)> {
    let all = [
        ("PGPASSWORD", POSTGRES_PASSWORD),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ];
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// A site. Its server ends before its network.
struct Site {
    /// None if it is not installed: then the site is a directory.
    server: Option<(Server, Relay)>,
    /// Its own, if it has one.
    namespace: Option<Namespace>,
    /// Directory of the site, or only of its blobs.
    folder: PathBuf,
}

/// The three sites.
pub(crate) struct Sites {
    all: Vec<Site>,
    /// Whether the kernel can delay traffic to them.
    can_delay: bool,
}

impl Sites {
    /// Starts the servers; none if a required one is missing.
    pub(crate) fn start(folder: &Path, network: &Runtime) -> Option<Self> {
        let mut sites = Vec::new();
        for (number, namespace) in namespaces().into_iter().enumerate() {
            let place = namespace.as_ref().map_or_else(Place::here, Namespace::place);
            let server = match number {
                0 => Some(servers::postgres(&place)?),
                1 => Some(servers::etcd(&place)?),
                _ => servers::versitygw(&place),
            };
            let server = server.map(|server| {
                let address = format!("{}:{}", place.address, server.port).parse().unwrap();
                let relay = network.block_on(Relay::start(address));
                (server, relay)
            });
            sites.push(Site { server, namespace, folder: folder.join(NAMES[number]) });
        }
        let can_delay = sites.iter().filter_map(|site| site.namespace.as_ref()).all(can_delay);
        Some(Self { all: sites, can_delay })
    }

    /// Returns their map as text, with more settings.
    pub(crate) fn map(&self, more: &str) -> String {
        let times = "round = '500ms'\npatience = '4s'\nlease = '6s'\ngrace = '10s'";
        let mut map =
            format!("name = 'real'\ndata = 2\nparity = 1\nchunk = '64KiB'\n{times}\n{more}\n");
        for (name, site) in NAMES.iter().zip(&self.all) {
            let folder = format!("dir://{}", site.folder.display());
            let port = site.server.as_ref().map(|(_, relay)| relay.port);
            let s3 = |prefix: &str, port: u16| {
                format!(
                    "s3://bucket/{prefix}?endpoint=http://127.0.0.1:{port}&region=us-east-1\
                     &access_key_id_env=AWS_ACCESS_KEY_ID\
                     &secret_access_key_env=AWS_SECRET_ACCESS_KEY"
                )
            };
            let (table, blobs) = match (*name, port) {
                ("database", Some(port)) => {
                    let address = format!("postgres://postgres@127.0.0.1:{port}/postgres");
                    (format!("{address}?table=rows&connections=4"), folder)
                }
                ("etcd", Some(port)) => (format!("etcd://127.0.0.1:{port}/records"), folder),
                (_, Some(port)) => (s3("rows", port), s3("fragments", port)),
                (_, None) => (folder.clone(), folder),
            };
            map += &format!("[[sites]]\nname = '{name}'\ntable = '{table}'\nblobs = '{blobs}'\n");
        }
        map
    }

    /// Creates the namespace, once all sites answer.
    pub(crate) async fn begin(&self, plan: &Plan) {
        let map = SiteMap::parse(&plan.map).unwrap();
        let database = map.sites[0].table.as_deref().unwrap().parse().unwrap();
        // It listens before it answers.
        for _ in 0..400 {
            match plan.opener().table(&database, true).await {
                Err(OpenError::Table { source: TableError::Unavailable(_), .. }) => {
                    tokio::time::sleep(Duration::from_millis(25)).await;
                }
                Err(error) => panic!("{error:?}"),
                Ok(_) => break,
            }
        }
        GeoStore::init(plan.options()).await.unwrap();
    }

    pub(crate) fn crash(&mut self, site: usize) {
        match &mut self.all[site].server {
            Some((server, _)) => server.crash(),
            None => self.take_folder(site, true),
        }
    }

    pub(crate) fn restart(&mut self, site: usize) {
        match &mut self.all[site].server {
            Some((server, _)) => server.restart_until_it_answers(),
            None => self.take_folder(site, false),
        }
    }

    /// Moves a folder away, or back.
    pub(crate) fn take_folder(&self, site: usize, away: bool) {
        let folder = &self.all[site].folder;
        let elsewhere = folder.with_extension("away");
        if away {
            return std::fs::rename(folder, elsewhere).unwrap();
        }
        // A write in flight may have recreated the folder; a mount would prevent that.
        while std::fs::rename(&elsewhere, folder).is_err() {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    /// Blocks or restores all traffic to a site.
    pub(crate) fn set_link(&self, site: usize, is_up: bool) {
        match (&self.all[site].namespace, &self.all[site].server) {
            (Some(namespace), Some(_)) => namespace.set_link(is_up),
            _ => self.relay(site, |traffic| traffic.is_held = !is_up),
        }
    }

    /// Delays all traffic: in the kernel if possible, else in the relay.
    pub(crate) fn set_late(&self, site: usize, delay_ms: Option<u64>) {
        match &self.all[site].namespace {
            Some(namespace) if self.can_delay => namespace.delay(delay_ms).unwrap(),
            _ => self.relay(site, |traffic| traffic.delay_ms = delay_ms.unwrap_or(0)),
        }
    }

    /// Changes the traffic of a server's relay.
    pub(crate) fn relay(&self, site: usize, change: impl FnOnce(&mut Traffic)) {
        if let Some((_, relay)) = &self.all[site].server {
            relay.change(change);
        }
    }

    pub(crate) fn cut(&self, site: usize) {
        if let Some((_, relay)) = &self.all[site].server {
            relay.cut();
        }
    }

    /// Number of fragments at all sites.
    pub(crate) async fn fragments(&self, plan: &Plan) -> usize {
        let mut found = 0;
        for site in SiteMap::parse(&plan.map).unwrap().sites {
            let blobs = plan.opener().blobs(&site.blobs.unwrap().parse().unwrap(), false).await;
            let blobs = blobs.unwrap();
            let all = blobs.list(None, UnixTime::from_millis(u64::MAX / 2));
            let all: Vec<_> = all.try_collect().await.unwrap();
            // Counts of starts are blobs as well.
            found += all.iter().filter(|blob| !blob.key.as_str().starts_with("r/")).count();
        }
        found
    }
}

/// Creates three networks, or none if the machine does not allow it.
fn namespaces() -> Vec<Option<Namespace>> {
    let namespaces: Result<Vec<_>, _> = (0..3).map(Namespace::new).collect();
    match namespaces {
        Ok(namespaces) => namespaces.into_iter().map(Some).collect(),
        Err(why) => {
            eprintln!("skipped: a network for each server ({why}); relays hold traffic instead");
            vec![None, None, None]
        }
    }
}

/// Whether the kernel can delay traffic.
fn can_delay(namespace: &Namespace) -> bool {
    let tried = namespace.delay(Some(1)).and_then(|()| namespace.delay(None));
    if let Err(why) = &tried {
        eprintln!("skipped: delays by the kernel ({why}); relays delay instead");
    }
    tried.is_ok()
}
