//! The tier of kind `rack`: how it is created and opened, and what it shows.

mod open;
mod show;

use fulgurite_archive::config::TierName;
use fulgurite_rack::{Found, Report};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, hint, note, pluralize};
use fulgurite_tier::Operation;
use serde_json::Value;

pub(crate) use self::open::{check, is_fail_point, open, open_for_serve, tier};

use crate::archive::parse;
use crate::config::{Rack, TierConfig};

/// Creates a rack, or what is missing of it.
pub(crate) async fn init(rack: &TierConfig<Rack>, out: &Output) -> anyhow::Result<()> {
    let was_made = open::is_made(rack);
    let made = open::make(rack).await?;
    out.json("rack_init", &made)?;
    let (what, disks) = (if was_made { "is whole" } else { "is made" }, made.disks as u64);
    out.text(format_args!("rack {} {what}, of {}", made.rack, pluralize(disks, "disk")))
}

/// Recreates the index of a rack if it was lost. It does not know any blobs yet.
pub(crate) async fn adopt_lost_index(rack: &TierConfig<Rack>) -> anyhow::Result<()> {
    if !open::is_begun(rack)? {
        let id = open::adopt(rack).await?;
        note(format_args!("the index of rack {id} was lost and is recreated"));
    }
    Ok(())
}

/// Shows a snapshot of a rack.
pub(crate) fn show_status(snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    out.text(show::snapshot(&parse(snapshot)?))
}

/// Formats a spin-up.
pub(crate) fn show_spin_up(spin_up: &Value) -> anyhow::Result<String> {
    Ok(show::spin_up(&parse(spin_up)?))
}

/// Shows the report of an operation; an error if not everything is well.
pub(crate) fn show_report(
    name: &TierName,
    operation: Operation,
    report: &Value,
    out: &Output,
) -> anyhow::Result<()> {
    match operation {
        Operation::Recover => report_found(&parse(report)?, out),
        Operation::Rebuild => {
            let next = format!("replace the disk, then run `fulgurite tier replace {name} NUMBER`");
            report_rebuilt(&parse(report)?, &next, out)
        }
        Operation::Replace => {
            report_rebuilt(&parse(report)?, "the disk belongs to the rack now", out)
        }
        Operation::Scrub
        | Operation::Verify
        | Operation::Retire
        | Operation::Inventory
        | Operation::Collect => report_scrubbed(&parse(report)?, out),
    }
}

fn report_found(found: &Found, out: &Output) -> anyhow::Result<()> {
    let Found { blobs, known, gone, problems } = found;
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
}

fn show_counts(report: &Report, out: &Output) -> anyhow::Result<()> {
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
fn report_scrubbed(report: &Report, out: &Output) -> anyhow::Result<()> {
    show_counts(report, out)?;
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
    show_counts(report, out)?;
    if report.problems.is_empty() {
        if !out.is_json() {
            note(hint(next));
        }
        return Ok(());
    }
    let count = pluralize(report.problems.len() as u64, "problem");
    Err(ExitError::new(Exit::Partial, format!("{count}: not all stacks could be rebuilt")).into())
}
