//! `rack`: an operator's commands to create, open and query the rack of cold disks.
//!
//! ```text
//! open    creates or opens the rack of the configuration
//! access  a rack behind a running server, or one opened by this process
//! show    output as text
//! ```

mod access;
mod open;
mod show;

use std::path::PathBuf;

use fulgurite_client::remote::RemoteArgs;
use fulgurite_disks::PlaceId;
use fulgurite_rack::{Found, Report};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, hint, note, pluralize};

pub use self::open::{close, is_fail_point, open, open_for_serve};

use self::access::RackAccess;
use crate::config::{Config, Overrides, Rack, process_environment};
use crate::process::restrict_umask;

/// `rack`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct RackCommand {
    #[command(subcommand)]
    command: RackAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum RackAction {
    /// Create the rack of the configuration: its index, and a file on each disk
    Init(RackArgs),
    /// Show the state of each group, its spin-ups and their causes, and failures; spins up no disk
    Status(RackArgs),
    /// Accept the new, empty disk in a place, and rebuild the old one's contents on it
    Replace {
        /// Number of the place
        #[arg(value_name = "PLACE")]
        place: u32,
        #[command(flatten)]
        args: RackArgs,
    },
    /// Give up the disk of a place for good, and rebuild its contents on the others of its group
    Rebuild {
        /// Number of the place
        #[arg(value_name = "PLACE")]
        place: u32,
        #[command(flatten)]
        args: RackArgs,
    },
    /// Show the last spin-ups: when, which disks, and why; spins up no disk
    Ledger(RackArgs),
    /// Read every blob whole, group after group, and rebuild lost stacks
    Verify(RackArgs),
    /// Scan all disks for blobs that the index does not know, for instance after it was lost
    Recover(RackArgs),
}

/// Selects a rack: that of a running server, or one of a configuration.
#[derive(Clone, Debug, clap::Args)]
pub struct RackArgs {
    /// Configuration file (TOML), when no server runs
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Rack of simulated cold disks in DATA/rack, as given to `serve`, when no server runs
    #[arg(long, value_name = "SHAPE")]
    rack: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl RackArgs {
    fn data(&self) -> anyhow::Result<PathBuf> {
        let missing = || ExitError::new(Exit::Usage, "no rack is named: pass --data DIR");
        Ok(self.remote.data.clone().ok_or_else(missing)?)
    }

    /// Returns the rack of the configuration.
    fn configured(&self) -> anyhow::Result<Rack> {
        let overrides = Overrides { rack: self.rack.clone(), ..Overrides::default() };
        let config = Config::load(self.config.as_deref(), process_environment(), overrides)?;
        config.rack.ok_or_else(|| {
            let message = "no server runs there, and no configuration names a rack: give --config \
                           FILE with a table [rack], or --rack SHAPE";
            ExitError::new(Exit::Config, message).into()
        })
    }
}

/// Runs `rack`.
pub fn rack<'a>(args: &'a RackCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &RackCommand, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    match &args.command {
        RackAction::Init(args) => init(args, out).await,
        RackAction::Status(args) => {
            access::run_with(args, async |rack: &RackAccess| {
                let snapshot = rack.status().await?;
                out.json(&snapshot)?;
                out.text(show::snapshot(&snapshot))
            })
            .await
        }
        RackAction::Ledger(args) => {
            access::run_with(args, async |rack: &RackAccess| {
                for spin_up in rack.ledger().await? {
                    out.json(&spin_up)?;
                    out.text(show::spin_up(&spin_up))?;
                }
                Ok(())
            })
            .await
        }
        RackAction::Verify(args) => {
            access::run_with(args, async |rack: &RackAccess| {
                report_verified(&rack.verify(out.is_json()).await?, out)
            })
            .await
        }
        RackAction::Rebuild { place, args } => {
            access::run_with(args, async |rack: &RackAccess| {
                let report = rack.rebuild(PlaceId::new(*place), out.is_json()).await?;
                report_rebuilt(&report, "replace the disk, then run `fulgurite rack replace`", out)
            })
            .await
        }
        RackAction::Replace { place, args } => {
            access::run_with(args, async |rack: &RackAccess| {
                let report = rack.replace(PlaceId::new(*place), out.is_json()).await?;
                report_rebuilt(&report, "the disk belongs to the rack now", out)
            })
            .await
        }
        RackAction::Recover(args) => recover(args, out).await,
    }
}

async fn init(args: &RackArgs, out: &Output) -> anyhow::Result<()> {
    let (rack, data) = (args.configured()?, args.data()?);
    let was_made = open::is_made(&rack, &data);
    let made = open::make(&rack, &data).await?;
    out.json(&made)?;
    let (what, disks) = (if was_made { "is whole" } else { "is made" }, made.disks as u64);
    out.text(format_args!("rack {} {what}, of {}", made.rack, pluralize(disks, "disk")))
}

/// Adds blobs that an existing index does not know; a lost index is recreated first.
async fn recover(args: &RackArgs, out: &Output) -> anyhow::Result<()> {
    if args.remote.endpoint.is_none() && !access::is_served(args).await {
        let (rack, data) = (args.configured()?, args.data()?);
        if !open::is_begun(&rack, &data)? {
            let id = open::adopt(&rack, &data).await?;
            note(format_args!("the index of rack {id} was lost and is recreated"));
        }
    }
    access::run_with(args, async |rack: &RackAccess| {
        let found = rack.recover(out.is_json()).await?;
        out.json(&found)?;
        let Found { blobs, known, gone, problems } = &found;
        out.text(format_args!("{} found; {known} known already", pluralize(*blobs, "blob")))?;
        if *gone > 0 {
            let gone = pluralize(*gone, "blob");
            out.text(format_args!(
                "{gone} missing: deleted or overwritten since the index was copied"
            ))?;
        }
        for problem in problems {
            out.text(format_args!("problem: {problem}"))?;
        }
        if problems.is_empty() {
            return Ok(());
        }
        let count = pluralize(problems.len() as u64, "problem");
        Err(ExitError::new(Exit::Partial, format!("{count}: each was named")).into())
    })
    .await
}

fn show_report(report: &Report, out: &Output) -> anyhow::Result<()> {
    out.json(report)?;
    out.text(format_args!(
        "{} with {} checked: {} lost, {} rebuilt",
        pluralize(report.blobs, "blob"),
        bytes(report.bytes),
        pluralize(report.lost, "stack"),
        report.made
    ))?;
    for problem in &report.problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    Ok(())
}

/// Shows the verdict; an error if there are problems.
fn report_verified(report: &Report, out: &Output) -> anyhow::Result<()> {
    show_report(report, out)?;
    match report.problems.len() as u64 {
        0 if report.lost == 0 => out.text("verdict: sound"),
        0 => out.text("verdict: sound again; all lost stacks are rebuilt"),
        count => {
            let count = pluralize(count, "problem");
            let message = format!("{count}: blobs are below their redundancy, or cannot be read");
            Err(ExitError::new(Exit::Corrupt, message).into())
        }
    }
}

/// Shows the report; an error if some stacks could not be rebuilt.
fn report_rebuilt(report: &Report, next: &str, out: &Output) -> anyhow::Result<()> {
    show_report(report, out)?;
    if report.problems.is_empty() {
        if !out.is_json() {
            note(hint(next));
        }
        return Ok(());
    }
    let count = pluralize(report.problems.len() as u64, "problem");
    Err(ExitError::new(Exit::Partial, format!("{count}: not all stacks could be rebuilt")).into())
}
