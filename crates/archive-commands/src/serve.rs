//! `serve`: an archive and its gateway in one process, from start to graceful stop.
//!
//! ```text
//! checks, address -> credentials -> tiers -> lock and open DATA -> listen -> server.json -> until
//!                                  SIGTERM or SIGINT   stop: requests, archive, tiers, file
//! ```
//!
//! What can be refused is refused by the checks, before anything is created: a new tier, or a data
//! directory with nothing in it, would be in the way of the next start or of a recovery.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_archive::Archive;
use fulgurite_archive::config::{
    AnalogOptions, ArchiveConfig, ExpeditedPolicy, Fidelity, GlassConfig, InjectedDamage,
    LibraryOptions, MediumOptions, SealPolicy, SpaceOptions, Tariff, TierName,
};
use fulgurite_client::credentials::{self, KeyOrigin, KeyPair};
use fulgurite_client::server_file::{ServerFile, create_operator_keys, remove_operator_keys};
use fulgurite_gateway::{BoundAddress, Credentials, Limits, ServerConfig, TlsConfig};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, note};
use fulgurite_units::{ByteCount, Duration, Ratio};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::banner;
use crate::config::{self, Config, ConfigArgs, Expedited, Glass, TlsChoice};
use crate::decode_worker::with_credentials;
use crate::descriptors;
use crate::process::{fail_point, restrict_umask};
use crate::tier::open as tier;
pub use crate::tier::open::OpenTiers;
use crate::{rack, tomes};

/// Longer than any staged body waits.
const NEVER: Duration = Duration::from_secs(10_000_000_000);

/// Flags of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// Data directory; made if it does not exist
    #[arg(long, value_name = "DIR", env = "FULGURITE_DATA")]
    data: PathBuf,
    #[command(flatten)]
    config: ConfigArgs,
    /// Access key; without one, a pair is made once and kept in DATA/credentials.toml
    #[arg(long, value_name = "KEY", env = "FULGURITE_ACCESS_KEY", requires = "secret_key")]
    access_key: Option<String>,
    /// Secret key; prefer the variable, a flag is seen by others
    #[arg(
        long,
        value_name = "KEY",
        env = "FULGURITE_SECRET_KEY",
        hide_env_values = true,
        requires = "access_key"
    )]
    secret_key: Option<String>,
}

/// A running server.
#[derive(Debug)]
pub struct RunningServer {
    /// The archive behind it.
    archive: Archive,
    /// The tiers behind the archive.
    tiers: OpenTiers,
    /// Its endpoint.
    pub endpoint: String,
    /// Certificate to trust.
    pub certificate: Option<PathBuf>,
    shutdown: oneshot::Sender<()>,
    gateway: JoinHandle<fulgurite_gateway::Result<()>>,
}

/// Runs `serve`.
pub fn serve<'a>(args: &'a ServeArgs, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &ServeArgs, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    let config = args.config.load()?;
    let data = &args.data;
    config.check_tiers(data)?;
    descriptors::raise()?;
    let Checked { config, added, address } = check(args, config).await?;
    make_folder(data)?;
    // Before anything is announced: from now on a signal causes a graceful stop.
    let (mut terminate, mut interrupt) = signals()?;
    let is_first = !data.join("archive.json").exists();
    let (keys, origin) = keys(args)?;
    let (archive, tiers) = open_with_tiers(&config, data, &added).await?;
    if origin == KeyOrigin::New && !is_first {
        warn_of_new_keys(data);
    }
    let operator = match origin {
        KeyOrigin::Provided => Some(create_operator_keys(data)?),
        KeyOrigin::New | KeyOrigin::Stored => {
            remove_operator_keys(data);
            None
        }
    };
    let (operator, operator_file) = operator.unzip();
    let key_pairs = (&keys, operator.as_ref());
    let running = listen(&config, data, key_pairs, (archive, tiers), address).await?;
    let file = ServerFile {
        endpoint: running.endpoint.clone(),
        pid: std::process::id(),
        access_key: keys.access_key.clone(),
        certificate: running.certificate.clone(),
        operator: operator_file,
    };
    file.write(data)?;
    banner::show(&banner::Banner { data, config: &config, file: &file, keys: &keys, origin }, out)?;
    out.flush()?;
    let failure = tokio::select! {
        () = wait_for(&mut terminate, &mut interrupt) => None,
        reason = running.failed() => Some(reason),
    };
    tracing::info!("stopping");
    let stopped = tokio::select! {
        stopped = running.stop() => stopped,
        () = wait_for(&mut terminate, &mut interrupt) => {
            note("fulgurite: stopped at once; the next start completes interrupted work");
            Ok(())
        }
    };
    ServerFile::remove(data);
    match failure {
        Some(reason) => {
            let message =
                format!("the archive stopped: {reason}; repair the disk, then start again");
            Err(ExitError::new(Exit::KeysFailed, message).into())
        }
        None => stopped,
    }
}

/// A start that was not refused.
struct Checked {
    config: Config,
    /// Tiers to create.
    added: BTreeSet<TierName>,
    /// The address to listen on.
    address: BoundAddress,
}

/// Refuses what this start would refuse later. Creates nothing, but binds the address.
async fn check(args: &ServeArgs, config: Config) -> anyhow::Result<Checked> {
    let (data, keys) = (args.data.clone(), provided_keys(args));
    // The tiers' files are read, and the catalog if there is a tier to create.
    let checks = move || {
        if let Some(keys) = keys {
            Credentials::new(&keys.access_key, &keys.secret_key)?;
        }
        fulgurite_gateway::check(config.domain.as_deref(), tls(&config, &data).as_ref())?;
        let mut added = BTreeSet::new();
        for (name, tier) in &config.tiers {
            if tier::check(name, tier, &data)? {
                added.insert(name.clone());
            }
        }
        let archive = archive_config(&config, &data, &OpenTiers::new())?;
        let archive = ArchiveConfig { tiers: tier::unopened(&config)?, ..archive };
        Archive::check(&archive, !added.is_empty())?;
        let address = BoundAddress::new(config.listen)?;
        Ok(Checked { config, added, address })
    };
    tokio::task::spawn_blocking(checks).await?
}

fn provided_keys(args: &ServeArgs) -> Option<KeyPair> {
    let (access_key, secret_key) = (args.access_key.clone()?, args.secret_key.clone()?);
    Some(KeyPair { access_key, secret_key })
}

/// Returns the keys of the server, and where they came from.
fn keys(args: &ServeArgs) -> anyhow::Result<(KeyPair, KeyOrigin)> {
    if let Some(keys) = provided_keys(args) {
        return Ok((keys, KeyOrigin::Provided));
    }
    let (keys, is_new) = credentials::read_or_generate(&args.data)?;
    Ok((keys, if is_new { KeyOrigin::New } else { KeyOrigin::Stored }))
}

/// Warns that clients with the old keys are locked out of an existing archive.
fn warn_of_new_keys(data: &Path) {
    tracing::warn!(
        file = %credentials::credentials_path(data).display(),
        "the keys of this archive are missing: a new pair was made, and keys that clients have no \
         longer work; to have them again stop, bring the file back and start"
    );
}

/// Creates the data directory, readable by its owner only.
fn make_folder(data: &Path) -> anyhow::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(|error| {
        ExitError::new(Exit::Config, format!("cannot make \"{}\": {error}", data.display())).into()
    })
}

fn signals() -> anyhow::Result<(Signal, Signal)> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    Ok((listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?))
}

async fn wait_for(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Opens the archive in `data`.
pub fn open<'a>(
    config: &'a Config,
    data: &'a Path,
    tiers: &'a OpenTiers,
) -> CommandFuture<'a, Archive> {
    Box::pin(async move { Ok(Archive::open(archive_config(config, data, tiers)?).await?) })
}

/// Opens an existing archive with its tiers, for an operator's command: no tier is created, and
/// nothing is sealed, since the command may lack the server's configuration.
pub(crate) async fn open_existing(
    config: &Config,
    data: &Path,
) -> anyhow::Result<(Archive, OpenTiers)> {
    if !data.join("archive.json").exists() {
        let message = format!("there is no archive in \"{}\"", data.display());
        return Err(ExitError::new(Exit::NotFound, message).into());
    }
    let mut tiers = OpenTiers::new();
    let opened = async {
        for (name, settings) in &config.tiers {
            tiers.insert(name.clone(), tier::open(name, settings, data).await?);
        }
        let mut config = archive_config(config, data, &tiers)?;
        config.seal = SealPolicy { staged_bytes: config.log_capacity, age: NEVER };
        Ok(Archive::open(config).await?)
    };
    let opened = opened.await;
    close_unless_opened(opened, tiers).await
}

/// Stops an archive, then its tiers.
pub(crate) async fn close(archive: &Archive, tiers: OpenTiers) -> anyhow::Result<()> {
    for open in tiers.values() {
        open.tier.stop_waiting();
    }
    let stopped = archive.stop().await;
    tier::close(tiers).await;
    Ok(stopped?)
}

/// Opens the tiers first, because they are tiers of the archive; of these the ones to create come
/// last, so that none is created if another does not open.
async fn open_with_tiers(
    config: &Config,
    data: &Path,
    added: &BTreeSet<TierName>,
) -> anyhow::Result<(Archive, OpenTiers)> {
    let mut tiers = OpenTiers::new();
    let opened = async {
        let (last, first): (Vec<_>, Vec<_>) =
            config.tiers.iter().partition(|(name, _)| added.contains(name));
        for (name, tier) in first.into_iter().chain(last) {
            tiers.insert(name.clone(), tier::open_for_serve(name, tier, data).await?);
        }
        open(config, data, &tiers).await
    };
    let opened = opened.await;
    close_unless_opened(opened, tiers).await
}

/// Closes the tiers if the archive over them did not open.
async fn close_unless_opened(
    opened: anyhow::Result<Archive>,
    tiers: OpenTiers,
) -> anyhow::Result<(Archive, OpenTiers)> {
    match opened {
        Ok(archive) => Ok((archive, tiers)),
        Err(error) => {
            tier::close(tiers).await;
            Err(error)
        }
    }
}

/// Starts the gateway to `archive` on an address, with the keys of clients and of the operator.
pub fn listen<'a>(
    config: &'a Config,
    data: &'a Path,
    keys: (&'a KeyPair, Option<&'a KeyPair>),
    opened: (Archive, OpenTiers),
    address: BoundAddress,
) -> CommandFuture<'a, RunningServer> {
    Box::pin(listen_and_serve(config, data, keys, opened, address))
}

async fn listen_and_serve(
    config: &Config,
    data: &Path,
    (keys, operator): (&KeyPair, Option<&KeyPair>),
    (archive, tiers): (Archive, OpenTiers),
    address: BoundAddress,
) -> anyhow::Result<RunningServer> {
    let pair = Credentials::new(&keys.access_key, &keys.secret_key)?;
    let mut server = ServerConfig::new(config.listen, pair);
    let operator = operator.map(|keys| Credentials::new(&keys.access_key, &keys.secret_key));
    server.operator = operator.transpose()?;
    server.domain = config.domain.clone();
    server.tiers = tier::operated(&tiers);
    server.nonces = Some(data.join("operator.nonces"));
    server.limits = Limits::for_descriptors(descriptors::limit());
    server.tls = tls(config, data);
    let server = match fulgurite_gateway::listen(address, server, archive.clone()).await {
        Ok(server) => server,
        Err(error) => {
            let _ = archive.stop().await;
            tier::close(tiers).await;
            return Err(error.into());
        }
    };
    let endpoint = endpoint_of(server.local_addr(), server.is_tls());
    if let Some(warning) = tls_warning(server.local_addr(), server.is_tls()) {
        tracing::warn!("{warning}");
    }
    let is_self_signed = config.tls == TlsChoice::Auto;
    let certificate = server.certificate().filter(|_| is_self_signed).map(absolute);
    let (shutdown, stop) = oneshot::channel::<()>();
    let gateway = tokio::spawn(server.serve(Box::pin(async move {
        // A dropped sender requests a stop just like a message.
        let _ = stop.await;
    })));
    Ok(RunningServer { archive, tiers, endpoint, certificate, shutdown, gateway })
}

impl RunningServer {
    /// Waits until the archive cannot go on; returns why.
    async fn failed(&self) -> String {
        self.archive.failed().await
    }

    /// Lets running requests finish, then stops the archive, then spins the disks of tiers down.
    pub fn stop(self) -> CommandFuture<'static> {
        Box::pin(self.stop_all())
    }

    async fn stop_all(self) -> anyhow::Result<()> {
        drop(self.shutdown);
        self.gateway.await.context("the gateway died")??;
        close(&self.archive, self.tiers).await
    }
}

/// Returns where the keys for TLS come from.
fn tls(config: &Config, data: &Path) -> Option<TlsConfig> {
    match &config.tls {
        TlsChoice::Off => None,
        TlsChoice::Auto => {
            let names = config.domain.iter().flat_map(|d| [d.clone(), format!("*.{d}")]).collect();
            Some(TlsConfig::Auto { directory: data.join("tls"), names })
        }
        TlsChoice::Files { certificate, key } => {
            Some(TlsConfig::Files { cert: certificate.clone(), key: key.clone() })
        }
    }
}

/// Returns the URL of `address` for clients on this machine.
fn endpoint_of(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{address}")
}

/// Returns a warning if other machines can connect without TLS.
fn tls_warning(address: SocketAddr, is_tls: bool) -> Option<String> {
    if is_tls || address.ip().is_loopback() {
        return None;
    }
    Some(format!(
        "{address} is reached by other machines, and without TLS all bodies and answers can be \
         read and changed on their way: start with --tls, or put a proxy with TLS before it"
    ))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the archive's part of the configuration.
pub fn archive_config(
    config: &Config,
    data: &Path,
    tiers: &OpenTiers,
) -> anyhow::Result<ArchiveConfig> {
    let Glass { shard_size, moves, medium, library, .. } = &config.glass;
    let geometry = config.glass.effective_geometry()?;
    let staged_bytes = moves.bytes.unwrap_or_else(|| ByteCount::new(geometry.set_user_bytes()));
    let (far_libraries, far_redundancy) = config.far_libraries()?;
    Ok(ArchiveConfig {
        data: data.to_owned(),
        glass: GlassConfig {
            geometry,
            shard_size: *shard_size,
            medium: MediumOptions { seed: medium.seed, fidelity: fidelity(medium)? },
            library: LibraryOptions {
                shape: library.shape.clone(),
                time_scale: library.time_scale,
                seed: library.seed,
                policy: library.policy.clone(),
                log: library.log.clone(),
            },
            far_redundancy,
        },
        seal: SealPolicy { staged_bytes, age: moves.age },
        classes: config.effective_classes()?,
        tiers: tier::options(config, tiers)?,
        acknowledged_at: config.acknowledged_at()?,
        far_libraries,
        shared: tier::shared(tiers),
        log_capacity: config.storage.log_capacity,
        space: SpaceOptions {
            free_min: config.storage.free_min,
            reserve: config.storage.reserve,
            forget_within: config.storage.forget_within,
        },
        master_key: config.keys.master_key.clone(),
        key_tables: config.keys.tables.clone(),
        expedited: match config.restore.expedited {
            Expedited::Refuse => ExpeditedPolicy::Refuse,
            Expedited::Standard => ExpeditedPolicy::Standard,
        },
        restore_log: config.restore.log.clone(),
        day: config.restore.day,
        fail_point: fail_point(std::env::var("FULGURITE_FAIL_POINT").ok().as_deref())?
            .filter(|(name, _)| !rack::is_fail_point(name) && !tomes::is_fail_point(name)),
    })
}

/// Returns the fidelity of the medium.
fn fidelity(medium: &config::Medium) -> anyhow::Result<Fidelity> {
    Ok(match medium.fidelity {
        config::Fidelity::Sector => match &medium.statistics {
            None => Fidelity::Sector {
                sector_rate: medium.sector_failure_rate,
                track_rate: medium.track_failure_rate,
            },
            Some(_)
                if [medium.sector_failure_rate, medium.track_failure_rate]
                    .iter()
                    .any(|rate| *rate != Ratio::ZERO) =>
            {
                let message = "tiers.glass.medium.statistics says how often sectors fail; leave \
                               medium.sector_failure_rate and medium.track_failure_rate at 0";
                return Err(ExitError::new(Exit::Config, message).into());
            }
            Some(statistics) => {
                Fidelity::Drawn { statistics: statistics.clone(), reads_max: medium.reads_max }
            }
        },
        config::Fidelity::Soft => {
            let statistics = medium.statistics.clone().ok_or_else(|| {
                let message = "fidelity soft needs medium.statistics: a file that \
                               `fulgurite lab calibrate` writes";
                anyhow::Error::from(ExitError::new(Exit::Config, message))
            })?;
            Fidelity::Soft { statistics, reads_max: medium.reads_max }
        }
        config::Fidelity::Analog => Fidelity::Analog(Box::new(AnalogOptions {
            preset: medium.channel.clone(),
            model: medium.model.clone(),
            engine: medium.engine.choice(),
            reads_max: medium.reads_max,
            workers: medium.decode_workers,
            queue: medium.decode_queue.clone().map(with_credentials),
            tariff: Tariff {
                prices: medium.decode_prices.0,
                within: std::time::Duration::from_nanos(medium.decode_within.as_nanos()),
            },
            watts: medium.decode_watts,
            damage: medium.damage.as_deref().map(damage).transpose()?.unwrap_or_default(),
        })),
    })
}

/// Reads a file of injected damage.
fn damage(path: &Path) -> anyhow::Result<InjectedDamage> {
    let wrong = |reason: String| {
        ExitError::new(Exit::Config, format!("medium.damage {}: {reason}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Ok(InjectedDamage::from_toml(&text).map_err(wrong)?)
}

#[cfg(test)]
mod tests;
