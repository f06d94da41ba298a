//! `tome`: a tome of a set in its own process.
//!
//! `tomes.toml` (docs/tomes-network.md) has the id of the set, the addresses of its tomes and the
//! certificates. The process of the set is elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use fulgurite_archive::system_clock;
use fulgurite_disks::{Backend, LinuxDisk, LinuxDisks, PlaceId, Simulated, Times};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::output::Output;
use fulgurite_tome::Entropy;
use fulgurite_tome::remote::{ServeOptions, TomesFile, serve};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Ratio, Seed};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::descriptors;
use crate::process::{random_bytes, restrict_umask};

/// `tome`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct TomeCommand {
    #[command(subcommand)]
    command: TomeAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum TomeAction {
    /// Serve one tome to its set and to the other tomes, until stopped
    Serve(TomeServeArgs),
}

/// `tome serve`
#[derive(Clone, Debug, clap::Args)]
pub struct TomeServeArgs {
    /// File with the id of the set, the addresses of its tomes, and the certificates (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Number of the tome
    #[arg(long, value_name = "NUMBER")]
    tome: u32,
    /// Directory for the tome's metadata store, on storage that does not spin down
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory of its disk, if not DATA/disk
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Device of its disk, below /dev/disk/by-id or by-path; without one the disk is simulated
    #[arg(long, value_name = "DEVICE")]
    device: Option<PathBuf>,
    /// Mount point of the device in /etc/fstab, if it is to be mounted and unmounted
    #[arg(long, value_name = "DIR", requires = "device")]
    mount: Option<PathBuf>,
    /// Address to listen on, if not the tome's address in the file
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// Runs `tome`.
pub fn tome<'a>(args: &'a TomeCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &TomeCommand, out: &Output) -> anyhow::Result<()> {
    match &args.command {
        TomeAction::Serve(args) => serve_tome(args, out).await,
    }
}

async fn serve_tome(args: &TomeServeArgs, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    descriptors::raise_limit();
    let file = TomesFile::read(&args.config)?;
    let listener = match args.listen {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            Some(listener.with_context(|| format!("cannot listen at {address}"))?)
        }
        None => None,
    };
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let options = ServeOptions {
        tome: TomeId::new(args.tome),
        listener,
        directory: args.data.clone(),
        root: args.root.clone().unwrap_or_else(|| args.data.join("disk")),
        backend: backend(args),
        clock: system_clock(),
        entropy: Entropy::new(random_bytes),
    };
    out.text(format_args!(
        "serving tome {} of set {}; to stop: Ctrl-C, which puts its disk down",
        args.tome, file.set
    ))?;
    out.flush()?;
    Ok(serve(&file, options, Box::pin(stop)).await?)
}

/// Returns the backend of the disk. A simulated disk takes no time.
fn backend(args: &TomeServeArgs) -> Arc<dyn Backend> {
    let place = PlaceId::new(args.tome);
    match &args.device {
        Some(device) => {
            let (device, mount) = (device.clone(), args.mount.clone());
            Arc::new(LinuxDisks::new([(place, LinuxDisk { device, mount, smartctl: None })].into()))
        }
        None => {
            let seed = Seed::new(args.tome.into());
            Arc::new(Simulated::new([place], Times::PELICAN, Ratio::ZERO, seed))
        }
    }
}
