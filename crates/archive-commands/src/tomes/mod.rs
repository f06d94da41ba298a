//! `tomes`: an operator's commands to create, open and query the set of tomes.
//!
//! ```text
//! open    creates or opens the set of the configuration
//! access  a set behind a running server, or one opened by this process
//! show    output as text
//! ```

mod access;
mod open;
mod show;

use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, hint, note, pluralize};
use fulgurite_tome::objects::{Compared, Found, InventoryResult, Rebuilt, Scrubbed, TomeId};

pub(crate) use self::open::tier;
pub use self::open::{close, is_fail_point, open, open_for_serve};

use self::access::TomesAccess;
use crate::config::{Tier, TierConfig, Tome};
use crate::process::restrict_umask;
use crate::tier_selection::TierSelection;

/// `tomes`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct TomesCommand {
    #[command(subcommand)]
    command: TomesAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum TomesAction {
    /// Create the set of the configuration: its metadata stores, and a file on each disk
    Init(TierSelection),
    /// Add the tomes of the configuration that the set does not have yet; no server may have the
    /// set open meanwhile
    Add(TierSelection),
    /// Show health, the state of each tome and what is unprotected; spins up no disk
    Status(TierSelection),
    /// Show the last spin-ups: when, which disk, and why; spins up no disk
    Ledger(TierSelection),
    /// Compare all groups by the signatures in the tomes' metadata stores; spins up no disk
    Verify(TierSelection),
    /// Read every block of a disk, or of all, and rebuild bad ones
    Scrub {
        /// Number of the tome; all if none is given
        #[arg(value_name = "TOME")]
        tome: Option<u32>,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Rebuild the contents of a lost tome on others of the set
    Rebuild {
        /// Number of the tome
        #[arg(value_name = "TOME")]
        tome: u32,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Remove a tome that is present: its contents are rebuilt on others, and it does not come back
    Retire {
        /// Number of the tome
        #[arg(value_name = "TOME")]
        tome: u32,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Read the disk of a tome whose metadata store is lost: the next start rebuilds that
    Inventory {
        /// Number of the tome
        #[arg(value_name = "TOME")]
        tome: u32,
        #[command(flatten)]
        args: TierSelection,
    },
    /// Scan all tomes for objects that the index does not know, for instance after it was lost
    Recover(TierSelection),
}

/// Returns the set of the configuration.
fn configured(args: &TierSelection) -> anyhow::Result<TierConfig<Tome>> {
    let (name, tome) = args.configured("tome", Tier::tome)?;
    Ok(TierConfig::tome(&name, &tome, &args.data()?))
}

/// Runs `tomes`.
pub fn tomes<'a>(args: &'a TomesCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &TomesCommand, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    match &args.command {
        TomesAction::Init(args) => init(args, out).await,
        TomesAction::Add(args) => add(args, out).await,
        TomesAction::Status(args) => {
            access::run_with(args, async |set: &TomesAccess| {
                let snapshot = set.status().await?;
                out.json(&snapshot)?;
                out.text(show::snapshot(&snapshot))?;
                if let Some(advice) = show::advice(&snapshot).filter(|_| !out.is_json()) {
                    note(hint(advice));
                }
                Ok(())
            })
            .await
        }
        TomesAction::Ledger(args) => {
            access::run_with(args, async |set: &TomesAccess| {
                for spin_up in set.ledger().await? {
                    out.json(&spin_up)?;
                    out.text(show::spin_up(&spin_up))?;
                }
                Ok(())
            })
            .await
        }
        TomesAction::Verify(args) => {
            access::run_with(args, async |set: &TomesAccess| {
                report_compared(&set.verify(out.is_json()).await?, out)
            })
            .await
        }
        TomesAction::Scrub { tome, args } => {
            let tome = tome.map(TomeId::new);
            access::run_with(args, async |set: &TomesAccess| {
                report_scrubbed(&set.scrub(tome, out.is_json()).await?, out)
            })
            .await
        }
        TomesAction::Rebuild { tome, args } => {
            access::run_with(args, async |set: &TomesAccess| {
                report_moved(&set.rebuild(TomeId::new(*tome), out.is_json()).await?, out)
            })
            .await
        }
        TomesAction::Retire { tome, args } => {
            access::run_with(args, async |set: &TomesAccess| {
                report_moved(&set.retire(TomeId::new(*tome), out.is_json()).await?, out)
            })
            .await
        }
        TomesAction::Inventory { tome, args } => inventory(TomeId::new(*tome), args, out).await,
        TomesAction::Recover(args) => {
            access::run_with(args, async |set: &TomesAccess| {
                show_found(&set.recover(out.is_json()).await?, out)
            })
            .await
        }
    }
}

async fn init(args: &TierSelection, out: &Output) -> anyhow::Result<()> {
    let tomes = configured(args)?;
    let was_made = open::is_made(&tomes);
    let made = open::make(&tomes).await?;
    let what = if was_made { "is whole" } else { "is made" };
    out.json(&made)?;
    out.text(format_args!("set {} {what}, of {}", made.set, pluralize(made.tomes as u64, "tome")))
}

async fn add(args: &TierSelection, out: &Output) -> anyhow::Result<()> {
    if args.server().await?.is_some() {
        let message = "a server has the set: stop it, add the tomes, and start it again";
        return Err(ExitError::new(Exit::Locked, message).into());
    }
    let tomes = configured(args)?;
    if !open::is_made(&tomes) {
        let message = "there is no set to add tomes to: make it with `fulgurite tomes init`";
        return Err(ExitError::new(Exit::Config, message).into());
    }
    let made = open::make(&tomes).await?;
    out.json(&made)?;
    let (all, added) = (pluralize(made.tomes as u64, "tome"), u64::from(made.added));
    out.text(format_args!("set {} has {all}, {} of them new", made.set, added))?;
    if added == 0 && !out.is_json() {
        note(hint("name more in the configuration: its count, or --tier NAME=tome:COUNT"));
    }
    Ok(())
}

/// Reads a disk whole. If no server has the set, opens the set once more, which rebuilds the
/// metadata store.
async fn inventory(tome: TomeId, args: &TierSelection, out: &Output) -> anyhow::Result<()> {
    let mut result = None;
    let mut is_served = false;
    access::run_with(args, async |set: &TomesAccess| {
        is_served = matches!(set, TomesAccess::Server(_));
        result = Some(set.inventory(tome, out.is_json()).await?);
        Ok(())
    })
    .await?;
    let Some(mut result) = result else { return Ok(()) };
    if !is_served && result.problems.is_empty() {
        let store = open(&configured(args)?).await?;
        let rebuilt = store.rebuilt(tome);
        let status = store.status().await;
        close(store).await;
        let own = status.tomes.into_iter().find(|status| status.tome == tome);
        result = rebuilt.unwrap_or_else(|| {
            let failure = own.and_then(|status| status.failure);
            InventoryResult { problems: failure.into_iter().collect(), ..result }
        });
    }
    show_inventory(&result, out)
}

fn show_inventory(result: &InventoryResult, out: &Output) -> anyhow::Result<()> {
    out.json(result)?;
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
    out.json(compared)?;
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
    out.json(scrubbed)?;
    let Scrubbed { tomes, healed, problems } = scrubbed;
    out.text(format_args!(
        "{} read whole, {} rebuilt",
        pluralize(*tomes, "tome"),
        pluralize(*healed, "block")
    ))?;
    report_problems(problems, 0, Exit::Partial, "not everything could be read", out)
}

/// Shows whether all member slots have moved.
fn report_moved(rebuilt: &Rebuilt, out: &Output) -> anyhow::Result<()> {
    out.json(rebuilt)?;
    let Rebuilt { tome, slots, of, problems } = rebuilt;
    out.text(format_args!("tome {tome}: {slots} of {} moved", pluralize(*of, "slot")))?;
    if slots < of && !out.is_json() {
        note(hint(
            "with the server stopped, name one tome more (its count, or --tier NAME=tome:COUNT) \
             and run `fulgurite tomes add`",
        ));
    }
    report_problems(problems, 0, Exit::Partial, "the remaining moves continue automatically", out)?;
    if !out.is_json() {
        note(hint("its disk may be taken away; its number is not used again"));
    }
    Ok(())
}

fn show_found(found: &Found, out: &Output) -> anyhow::Result<()> {
    out.json(found)?;
    let Found { objects, known, problems } = found;
    out.text(format_args!("{} found; {known} known already", pluralize(*objects, "object")))?;
    report_problems(problems, 0, Exit::Partial, "each was named", out)
}
