//! Creates and opens the set of tomes of the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fulgurite_archive::config::{TierName, TierOptions};
use fulgurite_archive::system_clock;
use fulgurite_disks::{LinuxDisks, PlaceId, Simulated, Times};
use fulgurite_terminal::exit::{Exit, ExitError, exit_of};
use fulgurite_tome::FAIL_POINTS;
use fulgurite_tome::objects::{StoreOptions, TomeStore};
use fulgurite_tome::remote::{TomesFile, remotes};
use fulgurite_tome::{Entropy, FaultInjector, SetOptions, TomeSet, TomesError};
use fulgurite_units::{Ratio, Seed, TomeSetId};

use crate::config::rack::Backend;
use crate::config::{ConfigError, TierConfig, Tome};
use crate::limits::{TOMES_BODY_CONCURRENCY, TOMES_TIMEOUT};
use crate::process::{fail_points, random_bytes};

/// Interval of polling whether tomes have answered.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Refuses a set that `serve` cannot open, as far as that shows without opening it. Returns whether
/// it would be created. Creates nothing.
pub(crate) fn check(tome: &TierConfig<Tome>) -> anyhow::Result<bool> {
    refuse_rack(tome)?;
    match &tome.settings.network {
        Some(network) => drop(TomesFile::read(network)?),
        None => drop(options(tome, true)?),
    }
    let is_made = is_made(tome);
    if !is_made && !tome.settings.make {
        return Err(not_created(tome).into());
    }
    Ok(!is_made)
}

/// Opens a set for `serve`.
///
/// # Errors
/// When it does not exist, unless the configuration says to create it; and those of opening it.
pub(crate) async fn open_for_serve(tome: &TierConfig<Tome>) -> anyhow::Result<TomeStore> {
    refuse_rack(tome)?;
    if tome.settings.make && !is_whole(tome).await? {
        let was_begun = is_made(tome);
        match make(tome).await {
            // Tomes of other processes are completed when they answer; the others are served
            // meanwhile.
            Err(error) if was_begun && is_unavailable(&error) => {
                tracing::warn!("creation of the set of tomes is incomplete: {error:#}");
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    open(tome).await
}

/// Returns the archive's options of an open set.
pub(crate) fn tier(store: &TomeStore) -> TierOptions {
    TierOptions {
        url: format!("tomes:{}", store.id()),
        store_id: Some(format!("tomes:{}", store.id())),
        store: Some(Arc::new(store.clone())),
        with_entries: true,
        bodies_at_once: TOMES_BODY_CONCURRENCY,
        ..TierOptions::default()
    }
}

/// Returns whether there is a set, and its creation was completed.
async fn is_whole(tome: &TierConfig<Tome>) -> anyhow::Result<bool> {
    if !is_made(tome) {
        return Ok(false);
    }
    let tome = tome.clone();
    let is_whole = move || match TomeSet::is_whole(&options(&tome, true)?) {
        Err(TomesError::NotCreated { .. }) => Ok(false),
        is_whole => is_whole.map_err(|error| open_error(&tome, error)),
    };
    tokio::task::spawn_blocking(is_whole).await?
}

fn is_unavailable(error: &anyhow::Error) -> bool {
    exit_of(error, |_| None) == Exit::Unavailable
}

/// Opens an existing set; blocks for as long as that takes.
///
/// # Errors
/// When there is none, or another process has it.
fn open_blocking(tome: &TierConfig<Tome>) -> anyhow::Result<TomeStore> {
    refuse_rack(tome)?;
    if !is_made(tome) {
        return Err(not_created(tome).into());
    }
    let set = TomeSet::open(options(tome, false)?);
    open_store(set.map_err(|error| open_error(tome, error))?, tome)
}

/// Opens an existing set without blocking the async runtime.
///
/// # Errors
/// When there is none, or another process has it.
pub(crate) async fn open(tome: &TierConfig<Tome>) -> anyhow::Result<TomeStore> {
    let tome = tome.clone();
    tokio::task::spawn_blocking(move || open_blocking(&tome)).await?
}

/// Creates the set, or its missing parts, and spins all disks down again. Simulated disks take no
/// time.
///
/// # Errors
/// When a disk is missing or belongs to something else; then nothing on it was changed.
pub(super) async fn make(tome: &TierConfig<Tome>) -> anyhow::Result<Made> {
    refuse_rack(tome)?;
    let tome = tome.clone();
    let made = tokio::task::spawn_blocking(move || {
        let options = options(&tome, true)?;
        if tome.settings.backend == Backend::Simulated {
            for root in options.roots.values() {
                std::fs::create_dir_all(root).map_err(|error| cannot_make(root, &error))?;
            }
        }
        let (count, elsewhere) = (options.roots.len(), options.remotes.len());
        let set = TomeSet::init(options).map_err(|error| open_error(&tome, error))?;
        let made = Made { set: set.id(), tomes: count + elsewhere, added: set.added() };
        let store = open_store(set, &tome)?;
        // Remote tomes are created when they answer; a set that went on without them would wait
        // forever.
        let answered = match elsewhere {
            0 => Ok(()),
            _ => runtime()?.block_on(wait_for_tomes(&tome.name, &store)),
        };
        store.stop();
        answered.map(|()| made)
    });
    made.await?
}

/// The result of creating a set.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Made {
    /// Its id.
    pub set: TomeSetId,
    /// Number of tomes, including those in other processes.
    pub tomes: usize,
    /// Number of tomes that were added to an existing set.
    pub added: u32,
}

/// Waits until every tome of another process has answered.
async fn wait_for_tomes(name: &TierName, store: &TomeStore) -> anyhow::Result<()> {
    let begun = std::time::Instant::now();
    loop {
        let status = store.status().await;
        let away: Vec<String> = status.tomes.into_iter().filter_map(|tome| tome.away).collect();
        if away.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > TOMES_TIMEOUT {
            let message = format!(
                "not all tomes have answered; serve them, and run `fulgurite tier init {name}` \
                 again: {}",
                away.join("; ")
            );
            return Err(ExitError::new(Exit::Unavailable, message).into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Opens the store over an open set.
fn open_store(set: TomeSet, tome: &TierConfig<Tome>) -> anyhow::Result<TomeStore> {
    let options = StoreOptions {
        directory: tome.folder.clone(),
        clock: system_clock(),
        entropy: Entropy::new(random_bytes),
        promise: tome.settings.promise,
    };
    TomeStore::open(set, options).map_err(|error| {
        anyhow::Error::new(error).context(format!("the tomes in \"{}\"", tome.folder.display()))
    })
}

/// Returns whether there is a set.
pub(super) fn is_made(tome: &TierConfig<Tome>) -> bool {
    tome.folder.join("set").exists()
}

/// Returns an error if the directory is that of a rack: the kind was changed.
fn refuse_rack(tome: &TierConfig<Tome>) -> anyhow::Result<()> {
    if is_made(tome) || !tome.folder.join("ledger").exists() {
        return Ok(());
    }
    let message = format!(
        "setting tiers.{}.kind: there is a rack in \"{}\", and no set of tomes",
        tome.name,
        tome.folder.display()
    );
    Err(ExitError::new(Exit::Config, message).into())
}

fn not_created(tome: &TierConfig<Tome>) -> ExitError {
    let message = format!(
        "there is no set of tomes in \"{}\": make it with `fulgurite tier init {}`",
        tome.folder.display(),
        tome.name
    );
    ExitError::new(Exit::Config, message)
}

fn cannot_make(root: &Path, error: &std::io::Error) -> ExitError {
    ExitError::new(Exit::Config, format!("cannot make \"{}\": {error}", root.display()))
}

fn open_error(tome: &TierConfig<Tome>, error: TomesError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("the tomes in \"{}\"", tome.folder.display()))
}

/// Returns the options to open it with. With `is_instant`, simulated disks take no time.
fn options(tome: &TierConfig<Tome>, is_instant: bool) -> anyhow::Result<SetOptions> {
    let TierConfig { name, settings: tome, folder } = tome;
    let in_tier = |error: ConfigError| error.in_tier(name);
    let (clock, mut roots) = (system_clock(), tome.roots(folder).map_err(in_tier)?);
    let (mut set, mut remote_tomes) = (None, std::collections::BTreeMap::new());
    if let Some(path) = &tome.network {
        let file = TomesFile::read(path)?;
        set = Some(file.set);
        roots = file.roots();
        remote_tomes = remotes(&file, &clock, &runtime()?)?;
    }
    let backend: Arc<dyn fulgurite_disks::Backend> = match tome.backend {
        Backend::Simulated => {
            let scale = if is_instant { Ratio::ZERO } else { tome.time_scale };
            let places = roots.keys().map(|tome| PlaceId::new(tome.get()));
            Arc::new(Simulated::new(places, Times::PELICAN, scale, Seed::new(tome.seed)))
        }
        Backend::Linux => Arc::new(LinuxDisks::new(tome.devices(&roots).map_err(in_tier)?)),
    };
    Ok(SetOptions {
        set,
        directory: absolute(folder),
        roots,
        remotes: remote_tomes,
        layout: tome.layout().map_err(in_tier)?,
        split: tome.groups,
        backend,
        spin_ups_a_day: tome.max_spinups_per_day,
        idle: tome.idle,
        clock,
        entropy: Entropy::new(random_bytes),
        fail: fail_points(&FAIL_POINTS)?,
        faults: FaultInjector::default(),
    })
}

/// Returns the runtime for the network connections to tomes of other processes.
fn runtime() -> anyhow::Result<tokio::runtime::Handle> {
    let none = |_| {
        ExitError::new(
            Exit::Usage,
            "tomes in other processes can be reached only by a serving process",
        )
    };
    Ok(tokio::runtime::Handle::try_current().map_err(none)?)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns whether a fail point belongs to the tomes, not to the archive.
pub(crate) fn is_fail_point(name: &str) -> bool {
    FAIL_POINTS.contains(&name.trim_end_matches(":panic"))
}
