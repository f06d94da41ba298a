//! Creates and opens the rack of the configuration.
//!
//! The kind of its disks is decided here; the rack itself ensures that no disk is touched
//! needlessly.

use std::sync::Arc;

use fulgurite_archive::config::{Calm, MovePolicy, TierOptions};
use fulgurite_archive::system_clock;
use fulgurite_disks::{LinuxDisks, Simulated, Times};
use fulgurite_rack::FAIL_POINTS;
use fulgurite_rack::work::Injected;
use fulgurite_rack::{Entropy, RackError, RackOptions, RackStore};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_units::{RackId, Ratio, Seed};

use crate::config::rack::{Backend, Moves};
use crate::config::{ConfigError, Rack, TierConfig};
use crate::limits::RACK_RESTORE_CONCURRENCY;
use crate::process::{fail_points, random_bytes};

/// Refuses a rack that `serve` cannot open, as far as that shows without opening it. Returns
/// whether it would be created. Creates nothing.
pub(crate) fn check(rack: &TierConfig<Rack>) -> anyhow::Result<bool> {
    refuse_tomes(rack)?;
    options(rack, true)?;
    let is_made = is_made(rack);
    if !is_made && !rack.settings.make {
        return Err(not_created(rack).into());
    }
    Ok(!is_made)
}

/// Opens a rack for `serve`.
///
/// # Errors
/// When it does not exist, unless the configuration says to create it; and those of opening it.
pub(crate) async fn open_for_serve(rack: &TierConfig<Rack>) -> anyhow::Result<RackStore> {
    refuse_tomes(rack)?;
    let may_make = rack.settings.make;
    if !is_made(rack) {
        if !may_make {
            return Err(not_created(rack).into());
        }
        make(rack).await?;
    }
    let store = match open(rack) {
        Err(error) if may_make && is_unmade(&error) => {
            make(rack).await?;
            open(rack)?
        }
        opened => opened?,
    };
    if !store.is_whole() {
        let what = "creating the rack or replacing a disk was interrupted";
        if !may_make {
            tracing::warn!("{what}: see `fulgurite tier status {}`", rack.name);
            return Ok(store);
        }
        stop(store).await;
        make(rack).await?;
        return open(rack);
    }
    Ok(store)
}

/// Opens an existing rack.
///
/// # Errors
/// When there is none, or another process has it.
pub(crate) fn open(rack: &TierConfig<Rack>) -> anyhow::Result<RackStore> {
    refuse_tomes(rack)?;
    if !is_made(rack) {
        return Err(not_created(rack).into());
    }
    RackStore::open(options(rack, false)?).map_err(|error| open_error(rack, error))
}

/// Returns the archive's options of an open rack.
pub(crate) fn tier(store: &RackStore, rack: &Rack) -> TierOptions {
    let Moves { calm_age, age, bytes } = rack.moves;
    let rack_store = store.clone();
    let calm = Calm::new(move || rack_store.is_calm());
    TierOptions {
        url: format!("rack:{}", store.rack()),
        store_id: Some(format!("rack:{}", store.rack())),
        store: Some(Arc::new(store.clone())),
        move_policy: MovePolicy::Deferred { calm_age, age, bytes, calm },
        with_entries: true,
        restores_at_once: RACK_RESTORE_CONCURRENCY,
        ..TierOptions::default()
    }
}

/// Creates the rack, or its missing parts, and spins all disks down again. Simulated disks take no
/// time.
///
/// # Errors
/// When a disk is missing or belongs to something else; then nothing on it was changed.
pub(super) async fn make(rack: &TierConfig<Rack>) -> anyhow::Result<Made> {
    refuse_tomes(rack)?;
    let options = options(rack, true)?;
    let disks = options.roots.len();
    if !is_begun(rack)? && is_used(&options) {
        // A new index would have another rack id than the disks, and be in the way of the old one.
        let found = RackStore::identify(&options).map_err(|error| open_error(rack, error))?;
        if let Some(found) = found {
            let message = format!(
                "the disks are of rack {found}, and its index is lost: bring \"{}\" back, or find \
                 what they have with `fulgurite tier recover {}`",
                rack.folder.join("index").display(),
                rack.name
            );
            return Err(ExitError::new(Exit::Config, message).into());
        }
    }
    if rack.settings.backend == Backend::Simulated {
        for root in options.roots.values() {
            std::fs::create_dir_all(root).map_err(|error| {
                ExitError::new(Exit::Config, format!("cannot make \"{}\": {error}", root.display()))
            })?;
        }
    }
    let store = RackStore::init(options).await.map_err(|error| open_error(rack, error))?;
    let made = Made { rack: store.rack().to_string(), disks };
    stop(store).await;
    Ok(made)
}

/// Recreates the index for the disks of a rack whose index was lost; returns the id of the rack.
/// The index does not know any blobs yet.
///
/// # Errors
/// When no disk has the id of a rack, or one has a different id.
pub(super) async fn adopt(rack: &TierConfig<Rack>) -> anyhow::Result<RackId> {
    let options = options(rack, true)?;
    let identify = move || RackStore::identify(&options).map(|found| (found, options));
    let (found, options) =
        tokio::task::spawn_blocking(identify).await?.map_err(|error| open_error(rack, error))?;
    let Some(id) = found else {
        let message = format!(
            "no disk has the id of a rack: none of those that spun up ever belonged to one; create \
             a new rack with `fulgurite tier init {}`",
            rack.name
        );
        return Err(ExitError::new(Exit::NotFound, message).into());
    };
    let store = RackStore::adopt(options, id).await.map_err(|error| open_error(rack, error))?;
    stop(store).await;
    Ok(id)
}

/// The result of creating a rack.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Made {
    /// Its id.
    pub rack: String,
    /// Number of disks.
    pub disks: usize,
}

/// Returns whether there is an index, but no disk of it yet.
fn is_unmade(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RackError::Incomplete { .. }))
}

/// Returns whether a disk may have data on it.
fn is_used(options: &RackOptions) -> bool {
    options.roots.values().any(|root| root.exists())
}

/// Spins its disks down and closes its index.
async fn stop(store: RackStore) {
    // Stopping blocks on disks, so it must not run on an async worker thread.
    if tokio::task::spawn_blocking(move || store.stop()).await.is_err() {
        tracing::error!("stopping the rack panicked; this is a bug");
    }
}

/// Returns whether there is an index with a rack id. Without one, no disk belongs to the rack.
pub(super) fn is_begun(rack: &TierConfig<Rack>) -> anyhow::Result<bool> {
    let is_begun = RackStore::is_begun(&rack.folder);
    is_begun.map_err(|error| open_error(rack, error))
}

/// Returns whether there is an index.
pub(super) fn is_made(rack: &TierConfig<Rack>) -> bool {
    rack.folder.join("index").exists()
}

/// Returns an error if the directory is that of a set of tomes: the kind was changed.
fn refuse_tomes(rack: &TierConfig<Rack>) -> anyhow::Result<()> {
    if !rack.folder.join("set").exists() {
        return Ok(());
    }
    let message = format!(
        "setting tiers.{}.kind: there is a set of tomes in \"{}\", and no rack",
        rack.name,
        rack.folder.display()
    );
    Err(ExitError::new(Exit::Config, message).into())
}

fn not_created(rack: &TierConfig<Rack>) -> ExitError {
    let message = format!(
        "there is no rack in \"{}\": make it with `fulgurite tier init {name}`, or, if it was \
         there and its index is lost, find what its disks have with `fulgurite tier recover \
         {name}`",
        rack.folder.display(),
        name = rack.name
    );
    ExitError::new(Exit::Config, message)
}

fn open_error(rack: &TierConfig<Rack>, error: RackError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("the rack in \"{}\"", rack.folder.display()))
}

/// Returns the options to open it with. With `is_instant`, simulated disks take no time.
pub(super) fn options(rack: &TierConfig<Rack>, is_instant: bool) -> anyhow::Result<RackOptions> {
    let TierConfig { name, settings: rack, folder } = rack;
    let in_tier = |error: ConfigError| error.in_tier(name);
    let shape = rack.effective_shape().map_err(in_tier)?;
    let roots = rack.roots(&shape, folder).map_err(in_tier)?;
    let backend: Arc<dyn fulgurite_disks::Backend> = match rack.backend {
        Backend::Simulated => {
            let scale = if is_instant { Ratio::ZERO } else { rack.time_scale };
            let seed = Seed::new(rack.seed);
            Arc::new(Simulated::new(shape.places(), Times::PELICAN, scale, seed))
        }
        Backend::Linux => {
            let disks = rack.devices(&shape, &roots).map_err(in_tier)?;
            let missing: Vec<String> = disks
                .iter()
                .filter(|(_, disk)| !disk.device.exists())
                .map(|(place, disk)| format!("place {place}: {}", disk.device.display()))
                .collect();
            if missing.len() == disks.len() {
                let message = format!(
                    "setting tiers.{name}.device: there is no device of any place ({}); name them \
                     as `ls /dev/disk/by-path` does, or use backend = \"simulated\"",
                    missing.first().map_or("", String::as_str)
                );
                return Err(ExitError::new(Exit::Config, message).into());
            }
            for disk in missing {
                tracing::warn!("there is no device for {disk}");
            }
            Arc::new(LinuxDisks::new(disks))
        }
    };
    Ok(RackOptions {
        directory: folder.clone(),
        policy: rack.effective_policy(),
        shape,
        roots,
        backend,
        clock: system_clock(),
        entropy: Entropy::new(random_bytes),
        scrub: rack.scrub_policy(),
        rated_spin_ups: rack.rated_spinups,
        fail: fail_points(&FAIL_POINTS)?,
        injected: Injected::default(),
    })
}

/// Returns whether a fail point belongs to the rack, not to the archive.
pub(crate) fn is_fail_point(name: &str) -> bool {
    FAIL_POINTS.contains(&name.trim_end_matches(":panic"))
}
