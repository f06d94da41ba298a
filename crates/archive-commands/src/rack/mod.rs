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

use fulgurite_disks::PlaceId;
use fulgurite_rack::{Found, Report};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, hint, note, pluralize};

pub(crate) use self::open::tier;
pub use self::open::{close, is_fail_point, open, open_for_serve};

use self::access::RackAccess;
use crate::config::{Rack, Tier, TierConfig};
use crate::process::restrict_umask;
use crate::tier_selection::TierSelection;

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
    Init(TierSelection),
    /// Show the state of each group, its spin-ups and their causes, and failures; spins up no disk
    Status(TierSelection),
    /// Accept the new, empty disk in a place, and rebuild the old one's contents on it
    Replace {
        /// Number of the place
        #[arg(value_name = "PLACE")]
        place: u32,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Give up the disk of a place for good, and rebuild its contents on the others of its group
    Rebuild {
        /// Number of the place
        #[arg(value_name = "PLACE")]
        place: u32,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Show the last spin-ups: when, which disks, and why; spins up no disk
    Ledger(TierSelection),
    /// Read every blob whole, group after group, and rebuild lost stacks
    Verify(TierSelection),
    /// Scan all disks for blobs that the index does not know, for instance after it was lost
    Recover(TierSelection),
}

/// Returns the rack of the configuration.
fn configured(args: &TierSelection) -> anyhow::Result<TierConfig<Rack>> {
    let (name, rack) = args.configured("rack", Tier::rack)?;
    Ok(TierConfig::rack(&name, &rack, &args.data()?))
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

async fn init(args: &TierSelection, out: &Output) -> anyhow::Result<()> {
    let rack = configured(args)?;
    let was_made = open::is_made(&rack);
    let made = open::make(&rack).await?;
    out.json(&made)?;
    let (what, disks) = (if was_made { "is whole" } else { "is made" }, made.disks as u64);
    out.text(format_args!("rack {} {what}, of {}", made.rack, pluralize(disks, "disk")))
}

/// Adds blobs that an existing index does not know; a lost index is recreated first.
async fn recover(args: &TierSelection, out: &Output) -> anyhow::Result<()> {
    if matches!(args.server().await, Ok(None)) {
        let rack = configured(args)?;
        if !open::is_begun(&rack)? {
            let id = open::adopt(&rack).await?;
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
