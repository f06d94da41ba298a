//! The tier of kind `geo`: how a namespace over several sites is created and opened, and what it
//! shows. `geo` has the commands for stores that need no tier.
//!
//! ```text
//! open      opens the namespace of a tier
//! init      creates it
//! doctor    whether stores meet their contract
//! node      serves the stores of one site to programs at others
//! shared    the namespace as the store of shared buckets
//! show      output as text
//! ```

mod doctor;
mod init;
mod node;
mod open;
mod shared;
mod show;

use std::path::PathBuf;

use fulgurite_archive::config::TierName;
use fulgurite_geo::objects::{MaintenanceReport, VerifyReport};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, hint, note, pluralize};
use fulgurite_tier::Operation;
use serde_json::Value;

pub(crate) use self::init::init;
pub(crate) use self::open::{check, open, open_for_serve, shared, tier};

use self::node::NodeArgs;
use crate::archive::parse;
use crate::process::restrict_umask;

/// `geo`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct GeoCommand {
    #[command(subcommand)]
    command: GeoAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum GeoAction {
    /// Check that the stores of a map, or one store, meet the requirements of sites
    #[command(group(clap::ArgGroup::new("stores").required(true).args(["url", "map"])))]
    Doctor {
        /// Address of a store
        #[arg(value_name = "URL")]
        url: Option<String>,
        /// Map of sites (TOML): each of its stores
        #[arg(long, value_name = "FILE")]
        map: Option<PathBuf>,
    },
    /// Serve the stores of a site to programs at other sites, until stopped
    Node(NodeArgs),
}

/// Runs `geo`.
pub fn geo<'a>(args: &'a GeoCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &GeoCommand, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    match &args.command {
        GeoAction::Doctor { url, map } => {
            if let Some(map) = map {
                let stores = doctor::stores_of(&open::read_map(map)?)?;
                doctor::examine_all(&stores, false, out).await?;
            }
            match url {
                Some(url) => doctor::examine_one(url, out).await,
                None => Ok(()),
            }
        }
        GeoAction::Node(args) => node::node(args, out).await,
    }
}

/// Shows a snapshot of a namespace.
pub(crate) fn show_status(snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    out.text(show::status(&parse(snapshot)?))
}

/// Shows the report of an operation; an error if not everything is well.
pub(crate) fn show_report(
    name: &TierName,
    operation: Operation,
    report: &Value,
    out: &Output,
) -> anyhow::Result<()> {
    if operation == Operation::Verify {
        return report_verified(&parse(report)?, out);
    }
    let report: MaintenanceReport = parse(report)?;
    let mut remedy = "run it again when all sites answer".to_owned();
    if operation == Operation::Collect {
        out.text(format_args!(
            "{} checked; {} removed; {} checked, {} orphans removed; {} left for the next time",
            pluralize(report.objects, "object"),
            pluralize(report.collected, "version"),
            pluralize(report.fragments, "fragment"),
            report.swept,
            report.left
        ))?;
    } else {
        out.text(show::repaired(&report))?;
    }
    if let Some(epoch) = report.replaced {
        out.text(format_args!("the site is replaced; the map is number {epoch}"))?;
        remedy = format!("run `fulgurite tier scrub {name}` for the rest when all sites answer");
    }
    report_problems(name, &report, &remedy, out)
}

fn report_verified(verified: &VerifyReport, out: &Output) -> anyhow::Result<()> {
    let read = pluralize(verified.objects, "object");
    out.text(format_args!("{read} read whole, {}", bytes(verified.bytes)))?;
    out.text(show::undecided(&verified.undecided))?;
    for damaged in &verified.damaged {
        out.text(format_args!("damaged: {damaged}"))?;
    }
    for problem in &verified.problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    let objects = |list: &[String]| pluralize(list.len() as u64, "object");
    if !verified.damaged.is_empty() {
        let message =
            format!("{} lost or damaged; each is listed above", objects(&verified.damaged));
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    if !verified.problems.is_empty() {
        let message = format!("{} not read; each is listed above", objects(&verified.problems));
        return Err(ExitError::new(Exit::Partial, message).into());
    }
    Ok(())
}

/// Prints losses and problems; returns an error with the remedy if there are any.
fn report_problems(
    name: &TierName,
    report: &MaintenanceReport,
    remedy: &str,
    out: &Output,
) -> anyhow::Result<()> {
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
            "{}, {} still missing, {} not checked in time: {remedy}",
            pluralize(problems, "problem"),
            pluralize(report.missing, "fragment"),
            pluralize(report.unsure, "object")
        );
        if !out.is_json() {
            note(hint(format_args!("`fulgurite tier status {name}` says which sites answer")));
        }
        return Err(ExitError::new(Exit::Partial, message).into());
    }
    Ok(())
}
