//! `geo`: an operator's commands to create, inspect and repair a namespace over several sites.
//!
//! ```text
//! open      creates or opens the namespace of a map
//! doctor    whether stores meet their contract
//! probe     which of them answer now
//! node      serves the stores of one site to programs at others
//! verify    every object, read back
//! show      output as text
//! ```
//!
//! Everything is at the sites, so a command opens the namespace itself, whether or not a server has
//! it open.

mod doctor;
mod node;
mod open;
mod probe;
mod shared;
mod show;
mod verify;

use std::path::PathBuf;

use fulgurite_archive::config::TierName;
use fulgurite_geo::objects::{GeoStore, MaintenanceReport, SiteEntry, UndecidedReport};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, hint, note, pluralize};
use fulgurite_terminal::progress;
use fulgurite_units::Duration;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::open::{open, open_for_serve, shared, tier};

use self::node::NodeArgs;
use self::open::Namespace;
use self::probe::SiteStatus;
use crate::admin::parse;
use crate::config::{Config, Geo, Overrides, process_environment};
use crate::process::restrict_umask;
use crate::tier::tier_name;

/// `geo`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct GeoCommand {
    #[command(subcommand)]
    command: GeoAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum GeoAction {
    /// Create a namespace at the sites of a map, if every store passes the doctor
    Init(GeoArgs),
    /// Show which sites answer, and which map they have
    Status {
        /// Also scan the rows of all objects for undecided versions
        #[arg(long)]
        undecided: bool,
        #[command(flatten)]
        args: GeoArgs,
    },
    /// Check that the stores of a map, or one store, meet the requirements of sites
    Doctor {
        /// Address of a store, instead of those of a map
        #[arg(value_name = "URL", conflicts_with = "map")]
        url: Option<String>,
        #[command(flatten)]
        args: GeoArgs,
    },
    /// Decide pending versions, and rebuild missing fragments, of every object
    Heal(GeoArgs),
    /// Garbage collect the bytes of obsolete versions
    Collect(GeoArgs),
    /// Remove orphaned fragments, which no version references
    Sweep {
        /// Minimum age: longer than any write takes
        #[arg(long, value_name = "AGE", default_value = "1d")]
        age: Duration,
        #[command(flatten)]
        args: GeoArgs,
    },
    /// Read every object back whole
    Verify(GeoArgs),
    /// Serve the stores of a site to programs at other sites, until stopped
    Node(NodeArgs),
    /// Give a lost site a new location, and rebuild its contents there
    ReplaceSite {
        /// Its name in the map, which it keeps
        #[arg(value_name = "SITE")]
        site: String,
        /// Address of its new table; by default the current one
        #[arg(long, value_name = "URL")]
        table: Option<String>,
        /// Address of its new blobs; by default the current one
        #[arg(long, value_name = "URL")]
        blobs: Option<String>,
        #[command(flatten)]
        args: GeoArgs,
    },
}

/// Selects the namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct GeoArgs {
    /// Map of sites (TOML); by default that of the tier in the configuration
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Site of the map where this program runs, which is contacted first
    #[arg(long, value_name = "SITE")]
    near: Option<String>,
    /// Name of the tier, if there are several of kind geo
    #[arg(long, value_name = "NAME", value_parser = tier_name)]
    name: Option<TierName>,
}

impl GeoArgs {
    fn named(&self) -> anyhow::Result<Namespace> {
        if let Some(map) = &self.map {
            return Namespace::read(map, self.near.clone());
        }
        let config =
            Config::load(self.config.as_deref(), process_environment(), Overrides::default())?;
        let is_meant = |known: &TierName| self.name.as_ref().is_none_or(|name| name == known);
        let meant = config.tiers.iter().filter(|(known, _)| is_meant(known));
        let mut found = meant.filter_map(|(name, tier)| Some((name, tier.geo()?)));
        let Some((one, geo)) = found.next() else {
            let message = "no map of sites is named: give --map FILE, or --config FILE with a tier \
                           of kind geo";
            return Err(ExitError::new(Exit::Usage, message).into());
        };
        if let Some((other, _)) = found.next() {
            let message = format!(
                "there are tiers \"{one}\" and \"{other}\" of kind geo: say which, by --name"
            );
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        Namespace::read(&geo.map, self.near.clone().or_else(|| geo.near.clone()))
    }

    async fn open(&self) -> anyhow::Result<GeoStore> {
        self.named()?.open().await
    }
}

/// Runs `geo`.
pub fn geo<'a>(args: &'a GeoCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &GeoCommand, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    match &args.command {
        GeoAction::Init(args) => init(&args.named()?, out).await,
        GeoAction::Status { undecided, args } => status(&args.named()?, *undecided, out).await,
        GeoAction::Doctor { url: Some(url), .. } => examine_one(url, out).await,
        GeoAction::Doctor { url: None, args } => {
            let mut stores = Vec::new();
            for site in &args.named()?.map.sites {
                stores.extend(doctor::stores_of(site)?);
            }
            doctor::examine_all(&stores, false, out).await
        }
        GeoAction::Heal(args) => {
            let (store, bar) = (args.open().await?, progress::spinner("heal", out.is_json()));
            let report = store.heal(&counting(&bar)).await;
            report_healed(&done(&bar, report)?, out)
        }
        GeoAction::Collect(args) => {
            let (store, bar) = (args.open().await?, progress::spinner("collect", out.is_json()));
            let report = store.collect(&counting(&bar)).await;
            let report = done(&bar, report)?;
            out.json(&report)?;
            out.text(format_args!(
                "{} checked; {} removed, {} left for the next time",
                pluralize(report.objects, "object"),
                pluralize(report.collected, "version"),
                report.left
            ))?;
            report_problems(&report, RETRY, out)
        }
        GeoAction::Sweep { age, args } => {
            let (store, bar) = (args.open().await?, progress::spinner("sweep", out.is_json()));
            let report = store.sweep(*age, &counting(&bar)).await;
            let report = done(&bar, report)?;
            out.json(&report)?;
            out.text(format_args!(
                "{} checked; {} removed, {} left for the next time",
                pluralize(report.objects, "fragment"),
                report.swept,
                report.left
            ))?;
            report_problems(&report, RETRY, out)
        }
        GeoAction::Node(args) => node::node(args, out).await,
        GeoAction::Verify(args) => verify::verify(&args.open().await?, out).await,
        GeoAction::ReplaceSite { site, table, blobs, args } => {
            let place = (table.as_deref(), blobs.as_deref());
            replace(&args.named()?, site, place, out).await
        }
    }
}

/// Creates the namespace of a tier.
pub(crate) async fn init_tier(geo: &Geo, out: &Output) -> anyhow::Result<()> {
    init(&Namespace::read(&geo.map, geo.near.clone())?, out).await
}

/// Shows the counters of a namespace.
pub(crate) fn show_counters(snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    out.text(show::counters(&parse(snapshot)?))
}

/// The result of `init`.
#[derive(Debug, Serialize)]
struct Created {
    name: String,
    epoch: u32,
    sites: usize,
}

async fn init(named: &Namespace, out: &Output) -> anyhow::Result<()> {
    probe::check_empty(&named.map).await?;
    let mut stores = Vec::new();
    for site in &named.map.sites {
        stores.extend(doctor::stores_of(site)?);
    }
    // Print only refusals here; the doctor's own command prints each check.
    doctor::examine_all(&stores, true, &Output::silent()).await?;
    let store = GeoStore::init(named.options()).await;
    let map = store.map_err(|error| named.failed(error))?.map();
    let created = Created { name: map.name, epoch: map.epoch, sites: map.sites.len() };
    out.json(&created)?;
    let (passed, sites) = (pluralize(stores.len() as u64, "store"), created.sites as u64);
    out.text(format_args!(
        "namespace {:?} is begun at {}; {passed} passed the doctor",
        created.name,
        pluralize(sites, "site")
    ))
}

/// Examines the store at an address in every role that it can have.
async fn examine_one(url: &str, out: &Output) -> anyhow::Result<()> {
    let is_database = url.starts_with("postgres://") || url.starts_with("etcd://");
    let (has_table, has_blobs) = if url.starts_with("node://") {
        node::probe_stores(url).await?
    } else {
        (true, !is_database)
    };
    let named = |has: bool| has.then(|| url.to_owned());
    let (table, blobs) = (named(has_table), named(has_blobs));
    let site = SiteEntry { name: "-".to_owned(), table, blobs, rebuilding: false };
    doctor::examine_all(&doctor::stores_of(&site)?, true, out).await
}

/// A snapshot of a namespace and its sites.
#[derive(Debug, Serialize)]
struct NamespaceStatus {
    name: String,
    /// Whether the namespace can be used at all.
    is_open: bool,
    /// Whether all sites answer and none has lost its contents.
    is_well: bool,
    epoch: u32,
    data: u8,
    parity: u8,
    sites: Vec<SiteStatus>,
    /// Undecided versions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided: Option<UndecidedReport>,
}

/// Probes every store. Prints what is known even if too few sites answer.
async fn status(named: &Namespace, undecided: bool, out: &Output) -> anyhow::Result<()> {
    let opened = named.open().await;
    let undecided_report = match &opened {
        Ok(store) if undecided => Some(store.undecided_report().await),
        Ok(_) | Err(_) => None,
    };
    let (undecided_report, unlisted) = match undecided_report.transpose() {
        Ok(undecided_report) => (undecided_report, None),
        Err(error) => (None, Some(error)),
    };
    let map = opened.as_ref().map_or_else(|_| named.map.clone(), GeoStore::map);
    let sites = probe::probe_sites(&map).await;
    let status = NamespaceStatus {
        is_open: opened.is_ok(),
        is_well: opened.is_ok() && sites.iter().all(SiteStatus::is_well),
        name: map.name,
        epoch: map.epoch,
        data: map.data,
        parity: map.parity,
        sites,
        undecided: undecided_report,
    };
    out.json(&status)?;
    out.text(show::status(&status))?;
    opened?;
    unlisted.map_or(Ok(()), |error| Err(error.into()))
}

async fn replace(
    named: &Namespace,
    site: &str,
    (table, blobs): (Option<&str>, Option<&str>),
    out: &Output,
) -> anyhow::Result<()> {
    if table.is_none() && blobs.is_none() {
        let message = "name the new location: --table URL, --blobs URL, or both";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let store = named.open().await?;
    let map = store.map();
    let current = map.sites.iter().find(|entry| entry.name == site).cloned().ok_or_else(|| {
        let names: Vec<&str> = map.sites.iter().map(|entry| entry.name.as_str()).collect();
        let message = format!("the map has no site {site:?}; it has {}", names.join(", "));
        ExitError::new(Exit::NotFound, message)
    })?;
    let new = |given: Option<&str>, old: Option<String>| given.map(str::to_owned).or(old);
    let place = SiteEntry {
        name: site.to_owned(),
        table: new(table, current.table),
        blobs: new(blobs, current.blobs),
        rebuilding: true,
    };
    // Only the new stores: the others were examined when they were added.
    let examined = SiteEntry {
        table: table.map(str::to_owned),
        blobs: blobs.map(str::to_owned),
        ..place.clone()
    };
    doctor::examine_all(&doctor::stores_of(&examined)?, false, &Output::silent()).await?;
    let bar = progress::spinner("replace", out.is_json());
    let on_progress = |what: &'static str, count: u64| bar.set_message(format!("{what}: {count}"));
    let report = store.replace_site(site, place, &on_progress).await;
    let (report, map) = (done(&bar, report)?, store.map());
    out.json(&report)?;
    out.text(show::healed(&report))?;
    let is_made_again = map.sites.iter().any(|entry| entry.name == site && !entry.rebuilding);
    if !is_made_again {
        return report_problems(&report, RETRY, out);
    }
    out.text(format_args!("site {site:?} is replaced; the map is number {}", map.epoch))?;
    report_problems(&report, "run `fulgurite geo heal` for the rest when all sites answer", out)
}

/// Returns a callback that shows how many were examined.
fn counting(bar: &ProgressBar) -> impl Fn(u64) + Send + Sync + use<'_> {
    move |count| bar.set_message(count.to_string())
}

fn done<T>(
    bar: &ProgressBar,
    done: Result<T, fulgurite_geo::objects::GeoError>,
) -> anyhow::Result<T> {
    bar.finish_and_clear();
    Ok(done?)
}

fn report_healed(report: &MaintenanceReport, out: &Output) -> anyhow::Result<()> {
    out.json(report)?;
    out.text(show::healed(report))?;
    report_problems(report, RETRY, out)
}

/// The remedy for incomplete work.
const RETRY: &str = "run it again when all sites answer";

/// Prints losses and problems; returns an error with the remedy `then` if there are any.
fn report_problems(report: &MaintenanceReport, then: &str, out: &Output) -> anyhow::Result<()> {
    for lost in &report.lost {
        out.text(format_args!("lost: {lost}"))?;
    }
    for problem in &report.problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    if !report.lost.is_empty() {
        let lost = pluralize(report.lost.len() as u64, "version");
        let message = format!("{lost} lost: acknowledged, but too few fragments are left");
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    if !report.problems.is_empty() || report.missing > 0 || report.unsure > 0 {
        let problems = report.problems.len() as u64;
        let message = format!(
            "{}, {} still missing, {} not checked in time: {then}",
            pluralize(problems, "problem"),
            pluralize(report.missing, "fragment"),
            pluralize(report.unsure, "object")
        );
        if !out.is_json() {
            note(hint("`fulgurite geo status` says which sites answer"));
        }
        return Err(ExitError::new(Exit::Partial, message).into());
    }
    Ok(())
}
