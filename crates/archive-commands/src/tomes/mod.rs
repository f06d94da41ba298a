//! The tier of kind `tome`: how a set of tomes is created and opened, and what it shows.

mod open;
mod show;

use fulgurite_archive::config::TierName;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, hint, note, pluralize};
use fulgurite_tier::Operation;
use fulgurite_tome::objects::{Compared, Found, InventoryResult, Rebuilt, Scrubbed, TomeId};
use serde_json::Value;

pub(crate) use self::open::{check, is_fail_point, open, open_for_serve, tier};

use crate::archive::parse;
use crate::config::{TierConfig, Tome};

/// Creates a set, or what is missing of it.
pub(crate) async fn init(tomes: &TierConfig<Tome>, out: &Output) -> anyhow::Result<()> {
    let was_made = open::is_made(tomes);
    let made = open::make(tomes).await?;
    let what = if was_made { "is whole" } else { "is made" };
    out.json("tome_init", &made)?;
    out.text(format_args!("set {} {what}, of {}", made.set, pluralize(made.tomes as u64, "tome")))
}

/// Adds the tomes of the configuration that the set does not have yet.
pub(crate) async fn add(tomes: &TierConfig<Tome>, out: &Output) -> anyhow::Result<()> {
    if !open::is_made(tomes) {
        let message = format!(
            "there is no set to add tomes to: make it with `fulgurite tier init {}`",
            tomes.name
        );
        return Err(ExitError::new(Exit::Config, message).into());
    }
    let made = open::make(tomes).await?;
    out.json("tome_add", &made)?;
    let (all, added) = (pluralize(made.tomes as u64, "tome"), u64::from(made.added));
    out.text(format_args!("set {} has {all}, {} of them new", made.set, added))?;
    if added == 0 && !out.is_json() {
        note(hint("name more in the configuration: its count, or --tier NAME=tome:COUNT"));
    }
    Ok(())
}

/// Opens the set once more after the disk of a tome was read whole, which rebuilds the metadata
/// store of the tome. Returns the result of that.
pub(crate) async fn open_after_inventory(
    tomes: &TierConfig<Tome>,
    result: &Value,
) -> anyhow::Result<Value> {
    let read: InventoryResult = parse(result)?;
    if !read.problems.is_empty() {
        return Ok(result.clone());
    }
    let tome = TomeId::new(read.tome);
    let store = open(tomes).await?;
    let rebuilt = store.rebuilt(tome);
    let status = store.status().await;
    // Stopping blocks on disks, so it must not run on an async worker thread.
    tokio::task::spawn_blocking(move || store.stop()).await?;
    let own = status.tomes.into_iter().find(|status| status.tome == tome);
    Ok(serde_json::to_value(rebuilt.unwrap_or_else(|| {
        let failure = own.and_then(|status| status.failure);
        InventoryResult { problems: failure.into_iter().collect(), ..read }
    }))?)
}

/// Shows a snapshot of a set.
pub(crate) fn show_status(name: &TierName, snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    let snapshot = parse(snapshot)?;
    out.text(show::snapshot(&snapshot))?;
    if let Some(advice) = show::advice(name, &snapshot).filter(|_| !out.is_json()) {
        note(hint(advice));
    }
    Ok(())
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
        Operation::Verify => report_compared(&parse(report)?, out),
        Operation::Scrub => report_scrubbed(&parse(report)?, out),
        Operation::Rebuild | Operation::Retire | Operation::Replace | Operation::Collect => {
            report_moved(name, &parse(report)?, out)
        }
        Operation::Inventory => show_inventory(&parse(report)?, out),
        Operation::Recover => show_found(&parse(report)?, out),
    }
}

fn show_inventory(result: &InventoryResult, out: &Output) -> anyhow::Result<()> {
    let InventoryResult { tome, is_rebuilt, pieces, bad, problems } = result;
    if *is_rebuilt {
        out.text(format_args!(
            "tome {tome}: its metadata store is rebuilt, with {}; {} to be rebuilt",
            pluralize(*pieces, "piece"),
            pluralize(*bad, "block")
        ))?;
    } else if problems.is_empty() {
        out.text(format_args!(
            "tome {tome}: its disk is read whole; its metadata store is rebuilt at the next start"
        ))?;
    }
    report_problems(problems, 0, Exit::Partial, "each was named", out)
}

/// Prints problems; returns an error if there are any.
fn report_problems(
    problems: &[String],
    more: u64,
    exit: Exit,
    what: &str,
    out: &Output,
) -> anyhow::Result<()> {
    for problem in problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    let count = problems.len() as u64 + more;
    if count == 0 {
        return Ok(());
    }
    Err(ExitError::new(exit, format!("{}: {what}", pluralize(count, "problem"))).into())
}

/// Shows whether all groups agree.
fn report_compared(compared: &Compared, out: &Output) -> anyhow::Result<()> {
    let Compared { groups, agree, signatures, problems, more_problems } = compared;
    out.text(format_args!(
        "{agree} of {groups} groups agree, by {}; no disk spun up",
        pluralize(*signatures, "signature")
    ))?;
    let what = "groups are inconsistent, or cannot be compared";
    report_problems(problems, *more_problems, Exit::Corrupt, what, out)
}

/// Shows whether all disks were read.
fn report_scrubbed(scrubbed: &Scrubbed, out: &Output) -> anyhow::Result<()> {
    let Scrubbed { tomes, healed, problems } = scrubbed;
    out.text(format_args!(
        "{} read whole, {} rebuilt",
        pluralize(*tomes, "tome"),
        pluralize(*healed, "block")
    ))?;
    report_problems(problems, 0, Exit::Partial, "not everything could be read", out)
}

/// Shows whether all member slots have moved.
fn report_moved(name: &TierName, rebuilt: &Rebuilt, out: &Output) -> anyhow::Result<()> {
    let Rebuilt { tome, slots, of, problems } = rebuilt;
    out.text(format_args!("tome {tome}: {slots} of {} moved", pluralize(*of, "slot")))?;
    if slots < of && !out.is_json() {
        note(hint(format_args!(
            "with the server stopped, name one tome more (its count, or --tier {name}=tome:COUNT) \
             and run `fulgurite tier add {name}`"
        )));
    }
    report_problems(problems, 0, Exit::Partial, "the remaining moves continue automatically", out)?;
    if !out.is_json() {
        note(hint("its disk may be taken away; its number is not used again"));
    }
    Ok(())
}

fn show_found(found: &Found, out: &Output) -> anyhow::Result<()> {
    let Found { objects, known, problems } = found;
    out.text(format_args!("{} found; {known} known already", pluralize(*objects, "object")))?;
    report_problems(problems, 0, Exit::Partial, "each was named", out)
}
