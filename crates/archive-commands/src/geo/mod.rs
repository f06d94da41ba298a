//! `geo`: an operator's commands to create, inspect and repair a namespace over several sites.
//!
//! ```text
//! open      creates or opens the namespace of a map
//! doctor    whether stores meet their contract
//! look      which of them answer now
//! node      serves the stores of one site to programs at others
//! verify    every object, read back
//! show      output as text
//! ```
//!
//! Everything is at the sites, so a command opens the namespace itself, whether or not a server has
//! it open.

mod doctor;
mod look;
mod node;
mod open;
mod shared;
mod show;
mod verify;

use std::path::PathBuf;

use fulgurite_geo_store::{GeoStore, Kept, SiteEntry, Waiting};
use fulgurite_terminal::Work;
use fulgurite_terminal::exit::{Coded, Exit};
use fulgurite_terminal::output::{Output, counted, hint, note};
use fulgurite_terminal::progress;
use fulgurite_units::Duration;
use indicatif::ProgressBar;
use serde::Serialize;

pub use self::open::{shared, tier, to_recover, to_serve};

use self::look::SiteSeen;
use self::node::NodeArgs;
use self::open::Named;
use crate::config::{Config, Overrides, of_process};
use crate::process::keep_private;

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
    /// Map of sites (TOML); by default the one in [geo] of the configuration
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Site of the map where this program runs, which is contacted first
    #[arg(long, value_name = "SITE")]
    near: Option<String>,
}

impl GeoArgs {
    fn named(&self) -> anyhow::Result<Named> {
        if let Some(map) = &self.map {
            return Named::read(map, self.near.clone());
        }
        let config = Config::load(self.config.as_deref(), of_process(), Overrides::default())?;
        let geo = config.geo.ok_or_else(|| {
            let message = "no map of sites is named: give --map FILE, or --config FILE with a \
                           table [geo]";
            Coded::new(Exit::Usage, message)
        })?;
        Named::read(&geo.map, self.near.clone().or(geo.near))
    }

    async fn open(&self) -> anyhow::Result<GeoStore> {
        self.named()?.open().await
    }
}

/// Runs `geo`.
pub fn geo<'a>(args: &'a GeoCommand, out: &'a Output) -> Work<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &GeoCommand, out: &Output) -> anyhow::Result<()> {
    keep_private();
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
            let kept = store.heal(&counting(&bar)).await;
            judge_healed(&done(&bar, kept)?, out)
        }
        GeoAction::Collect(args) => {
            let (store, bar) = (args.open().await?, progress::spinner("collect", out.is_json()));
            let kept = store.collect(&counting(&bar)).await;
            let kept = done(&bar, kept)?;
            out.json(&kept)?;
            out.text(format_args!(
                "{} looked at; {} removed, {} left for the next time",
                counted(kept.objects, "object"),
                counted(kept.collected, "version"),
                kept.left
            ))?;
            judge(&kept, AGAIN, out)
        }
        GeoAction::Sweep { age, args } => {
            let (store, bar) = (args.open().await?, progress::spinner("sweep", out.is_json()));
            let kept = store.sweep(*age, &counting(&bar)).await;
            let kept = done(&bar, kept)?;
            out.json(&kept)?;
            out.text(format_args!(
                "{} looked at; {} removed, {} left for the next time",
                counted(kept.objects, "fragment"),
                kept.swept,
                kept.left
            ))?;
            judge(&kept, AGAIN, out)
        }
        GeoAction::Node(args) => node::node(args, out).await,
        GeoAction::Verify(args) => verify::verify(&args.open().await?, out).await,
        GeoAction::ReplaceSite { site, table, blobs, args } => {
            let place = (table.as_deref(), blobs.as_deref());
            replace(&args.named()?, site, place, out).await
        }
    }
}

/// The result of `init`.
#[derive(Debug, Serialize)]
struct Begun {
    name: String,
    epoch: u32,
    sites: usize,
}

async fn init(named: &Named, out: &Output) -> anyhow::Result<()> {
    look::check_empty(&named.map).await?;
    let mut stores = Vec::new();
    for site in &named.map.sites {
        stores.extend(doctor::stores_of(site)?);
    }
    // Print only refusals here; the doctor's own command prints each check.
    doctor::examine_all(&stores, true, &Output::silent()).await?;
    let store = GeoStore::init(named.options()).await;
    let map = store.map_err(|error| named.failed(error))?.map();
    let begun = Begun { name: map.name, epoch: map.epoch, sites: map.sites.len() };
    out.json(&begun)?;
    let (passed, sites) = (counted(stores.len() as u64, "store"), begun.sites as u64);
    out.text(format_args!(
        "namespace {:?} is begun at {}; {passed} passed the doctor",
        begun.name,
        counted(sites, "site")
    ))
}

/// Examines the store at an address in every role that it can have.
async fn examine_one(url: &str, out: &Output) -> anyhow::Result<()> {
    let is_database = url.starts_with("postgres://") || url.starts_with("etcd://");
    let (has_table, has_blobs) =
        if url.starts_with("node://") { node::serves(url).await? } else { (true, !is_database) };
    let named = |has: bool| has.then(|| url.to_owned());
    let (table, blobs) = (named(has_table), named(has_blobs));
    let site = SiteEntry { name: "-".to_owned(), table, blobs, rebuilding: false };
    doctor::examine_all(&doctor::stores_of(&site)?, true, out).await
}

/// A snapshot of a namespace and its sites.
#[derive(Debug, Serialize)]
struct Seen {
    name: String,
    /// Whether the namespace can be used at all.
    is_open: bool,
    /// Whether all sites answer and none has lost its contents.
    is_well: bool,
    epoch: u32,
    data: u8,
    parity: u8,
    sites: Vec<SiteSeen>,
    /// Undecided versions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided: Option<Waiting>,
}

/// Probes every store. Prints what is known even if too few sites answer.
async fn status(named: &Named, undecided: bool, out: &Output) -> anyhow::Result<()> {
    let opened = named.open().await;
    let waiting = match &opened {
        Ok(store) if undecided => Some(store.waiting().await),
        Ok(_) | Err(_) => None,
    };
    let (waiting, unlisted) = match waiting.transpose() {
        Ok(waiting) => (waiting, None),
        Err(error) => (None, Some(error)),
    };
    let map = opened.as_ref().map_or_else(|_| named.map.clone(), GeoStore::map);
    let sites = look::look(&map).await;
    let seen = Seen {
        is_open: opened.is_ok(),
        is_well: opened.is_ok() && sites.iter().all(SiteSeen::is_well),
        name: map.name,
        epoch: map.epoch,
        data: map.data,
        parity: map.parity,
        sites,
        undecided: waiting,
    };
    out.json(&seen)?;
    out.text(show::seen(&seen))?;
    opened?;
    unlisted.map_or(Ok(()), |error| Err(error.into()))
}

async fn replace(
    named: &Named,
    site: &str,
    (table, blobs): (Option<&str>, Option<&str>),
    out: &Output,
) -> anyhow::Result<()> {
    if table.is_none() && blobs.is_none() {
        let message = "name the new place: --table URL, --blobs URL, or both";
        return Err(Coded::new(Exit::Usage, message).into());
    }
    let store = named.open().await?;
    let map = store.map();
    let there = map.sites.iter().find(|entry| entry.name == site).cloned().ok_or_else(|| {
        let names: Vec<&str> = map.sites.iter().map(|entry| entry.name.as_str()).collect();
        let message = format!("the map has no site {site:?}; it has {}", names.join(", "));
        Coded::new(Exit::NotFound, message)
    })?;
    let new = |given: Option<&str>, old: Option<String>| given.map(str::to_owned).or(old);
    let place = SiteEntry {
        name: site.to_owned(),
        table: new(table, there.table),
        blobs: new(blobs, there.blobs),
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
    let told = |what: &'static str, count: u64| bar.set_message(format!("{what}: {count}"));
    let kept = store.replace_site(site, place, &told).await;
    let (kept, map) = (done(&bar, kept)?, store.map());
    out.json(&kept)?;
    out.text(show::healed(&kept))?;
    let is_made_again = map.sites.iter().any(|entry| entry.name == site && !entry.rebuilding);
    if !is_made_again {
        return judge(&kept, AGAIN, out);
    }
    out.text(format_args!("site {site:?} is replaced; the map is number {}", map.epoch))?;
    judge(&kept, "`fulgurite geo heal` does the rest when all sites answer", out)
}

/// Returns a callback that shows how many were examined.
fn counting(bar: &ProgressBar) -> impl Fn(u64) + Send + Sync + use<'_> {
    move |count| bar.set_message(count.to_string())
}

fn done<T>(bar: &ProgressBar, done: Result<T, fulgurite_geo_store::GeoError>) -> anyhow::Result<T> {
    bar.finish_and_clear();
    Ok(done?)
}

fn judge_healed(kept: &Kept, out: &Output) -> anyhow::Result<()> {
    out.json(kept)?;
    out.text(show::healed(kept))?;
    judge(kept, AGAIN, out)
}

/// The remedy for incomplete work.
const AGAIN: &str = "say it again when all sites answer";

/// Prints losses and problems; returns an error with the remedy `then` if there are any.
fn judge(kept: &Kept, then: &str, out: &Output) -> anyhow::Result<()> {
    for lost in &kept.lost {
        out.text(format_args!("lost: {lost}"))?;
    }
    for problem in &kept.problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    if !kept.lost.is_empty() {
        let lost = counted(kept.lost.len() as u64, "version");
        let message = format!("{lost} acknowledged, and too few fragments are left of each");
        return Err(Coded::new(Exit::Corrupt, message).into());
    }
    if !kept.problems.is_empty() || kept.missing > 0 || kept.unsure > 0 {
        let problems = kept.problems.len() as u64;
        let message = format!(
            "{}, {} missing still, {} not looked at in time: {then}",
            counted(problems, "problem"),
            counted(kept.missing, "fragment"),
            counted(kept.unsure, "object")
        );
        if !out.is_json() {
            note(hint("`fulgurite geo status` says which sites answer"));
        }
        return Err(Coded::new(Exit::Partial, message).into());
    }
    Ok(())
}
