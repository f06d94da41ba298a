//! `tier`: an operator's commands to list, create, watch and repair the tiers of an archive.
//!
//! ```text
//! source  where the tiers are: behind a running server, or in a configuration
//! access  a tier behind a server, or one opened by this process
//! open    opens the tiers of a configuration
//! ```
//!
//! Kinds of tiers differ in how they are created and in what they show: `rack`, `tomes`, `geo`.

mod access;
pub(crate) mod open;
mod source;

use fulgurite_archive::GlassTier;
use fulgurite_archive::config::TierName;
use fulgurite_archive::status::{SetStatus, VerifiedPlatter};
use fulgurite_gateway::TierSummary;
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, pluralize};
use fulgurite_tier::{Operation, OperationArgs, TierKind};
use serde_json::Value;

pub use self::open::{OpenTier, OpenTiers};
pub(crate) use self::open::{close, open};
pub(crate) use self::source::{TierSource, tier_name};

use self::access::{TierAccess, not_found};
use crate::archive::{parse, show_platter};
use crate::config::{Tier, TierConfig};
use crate::process::restrict_umask;
use crate::{geo, rack, serve, tomes};

/// `tier`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct TierCommand {
    #[command(subcommand)]
    command: TierAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum TierAction {
    /// List the tiers: name, kind, health, operations
    List(TierSource),
    /// Create a tier of the configuration: its index, and a file on each disk
    Init(NamedTier),
    /// Add the tomes of the configuration that a set does not have yet; no server may have the set
    /// open meanwhile
    Add(NamedTier),
    /// Show the state of a tier; no disk spins up and no site is contacted
    Status(NamedTier),
    /// Show the last spin-ups: when, which disks, and why; no disk spins up
    Ledger(NamedTier),
    /// Follow the events of a tier: a snapshot, then what happens, until it stops or Ctrl-C
    Watch(NamedTier),
    /// Compare what is stored, and report; changes nothing. Platters and objects at sites are read
    /// whole; a set of tomes does it by signatures, and no disk spins up
    Verify(OptionalTarget),
    /// Read everything in a tier, or in one tome, and rebuild what is lost or damaged
    Scrub(OptionalTarget),
    /// Give up a disk or a tome for good, and rebuild its contents on others
    Rebuild(Targeted),
    /// Accept the new, empty disk in a place of a rack, or another location of a lost site, and
    /// rebuild the old one's contents there
    Replace(Replacement),
    /// Remove a tome that is present: its contents are rebuilt on others, and it does not come back
    Retire(Targeted),
    /// Read the disk of a tome whose metadata store is lost: the next start rebuilds that
    Inventory(Targeted),
    /// Scan all disks for objects that the index does not know, for instance after it was lost
    Recover(NamedTier),
    /// Remove the bytes of obsolete versions at sites, and orphaned fragments, which no version
    /// references
    Collect(NamedTier),
}

/// Selects one tier.
#[derive(Clone, Debug, clap::Args)]
struct NamedTier {
    /// Name of the tier
    #[arg(value_name = "NAME", value_parser = tier_name)]
    name: TierName,
    #[command(flatten)]
    source: TierSource,
}

/// Selects a unit of hardware in a tier.
#[derive(Clone, Debug, clap::Args)]
struct Targeted {
    #[command(flatten)]
    tier: NamedTier,
    /// Number of the disk's place in a rack, or of the tome
    #[arg(value_name = "NUMBER")]
    target: String,
}

/// Selects a unit of hardware and what replaces it.
#[derive(Clone, Debug, clap::Args)]
struct Replacement {
    #[command(flatten)]
    tier: NamedTier,
    /// Number of the disk's place in a rack, or name of the site
    #[arg(value_name = "UNIT")]
    target: String,
    /// Address of the site's new table; by default the current one
    #[arg(long, value_name = "URL")]
    table: Option<String>,
    /// Address of the site's new blobs; by default the current one
    #[arg(long, value_name = "URL")]
    blobs: Option<String>,
}

/// Selects a unit of hardware in a tier, or all of it.
#[derive(Clone, Debug, clap::Args)]
struct OptionalTarget {
    #[command(flatten)]
    tier: NamedTier,
    /// Number of the tome, or id of the platter; all if none is given
    #[arg(value_name = "UNIT")]
    target: Option<String>,
}

impl OptionalTarget {
    fn args(&self) -> OperationArgs {
        OperationArgs { target: self.target.clone(), ..OperationArgs::default() }
    }
}

impl TierCommand {
    /// Whether the command does its work even if no one reads its output.
    #[must_use]
    pub const fn ignores_broken_pipe(&self) -> bool {
        !matches!(self.command, TierAction::Watch(_))
    }
}

/// Runs `tier`.
pub fn tier<'a>(args: &'a TierCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &TierCommand, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    let whole = OperationArgs::default();
    match &args.command {
        TierAction::List(source) => list(source, out).await,
        TierAction::Init(named) => init(named, out).await,
        TierAction::Add(named) => add(named, out).await,
        TierAction::Status(named) => {
            access::run_with(named, async |tier: &TierAccess| {
                show_status(tier.summary(), &tier.snapshot().await?, out)
            })
            .await
        }
        TierAction::Ledger(named) => {
            access::run_with(named, async |tier: &TierAccess| {
                let spin_ups = tier.ledger().await?;
                for spin_up in spin_ups.as_array().into_iter().flatten() {
                    out.json("spin_up", spin_up)?;
                    out.text(show_spin_up(tier.summary().kind, spin_up)?)?;
                }
                Ok(())
            })
            .await
        }
        TierAction::Watch(named) => {
            access::run_with(named, async |tier: &TierAccess| {
                tier.watch(&mut |name, data| {
                    out.json("tier_event", &serde_json::json!({ "event": name, "data": data }))?;
                    out.text(format_args!("{name:<10} {data}"))?;
                    out.flush()
                })
                .await
            })
            .await
        }
        TierAction::Collect(named) => operate(named, Operation::Collect, &whole, out).await,
        TierAction::Verify(unit) => operate(&unit.tier, Operation::Verify, &unit.args(), out).await,
        TierAction::Scrub(unit) => operate(&unit.tier, Operation::Scrub, &unit.args(), out).await,
        TierAction::Rebuild(unit) => {
            operate(&unit.tier, Operation::Rebuild, &unit.args(), out).await
        }
        TierAction::Retire(unit) => operate(&unit.tier, Operation::Retire, &unit.args(), out).await,
        TierAction::Inventory(unit) => inventory(&unit.tier, &unit.args(), out).await,
        TierAction::Replace(Replacement { tier, target, table, blobs }) => {
            let target = Some(target.clone());
            let args = OperationArgs { target, table: table.clone(), blobs: blobs.clone() };
            operate(tier, Operation::Replace, &args, out).await
        }
        TierAction::Recover(named) => {
            adopt_lost_index(named).await?;
            operate(named, Operation::Recover, &whole, out).await
        }
    }
}

impl Targeted {
    fn args(&self) -> OperationArgs {
        OperationArgs { target: Some(self.target.clone()), ..OperationArgs::default() }
    }
}

impl NamedTier {
    /// Returns the tier of the configuration.
    fn configured(&self) -> anyhow::Result<Tier> {
        let config = self.source.config()?;
        let tier = config.tiers.get(&self.name).cloned();
        tier.ok_or_else(|| not_found(&self.name, config.tiers.keys()))
    }

    /// Returns the set of tomes of the configuration, if the tier is one.
    fn tomes(&self, tier: &Tier) -> anyhow::Result<Option<TierConfig<crate::config::Tome>>> {
        let Some(tome) = tier.tome() else { return Ok(None) };
        Ok(Some(TierConfig::tome(&self.name, tome, &self.source.data()?)))
    }
}

async fn list(source: &TierSource, out: &Output) -> anyhow::Result<()> {
    let summaries = match source.server().await? {
        Some(server) => server.tiers().await?,
        None => list_opened(source).await?,
    };
    for summary in &summaries {
        out.json("tier", summary)?;
        let TierSummary { name, kind, reasons, unanswered, operations } = summary;
        let health = match (unanswered, reasons.first()) {
            (Some(why), _) => format!("does not answer: {why}"),
            (None, Some(first)) if reasons.len() > 1 => {
                format!("{first}, and {} more", reasons.len() - 1)
            }
            (None, Some(first)) => first.clone(),
            (None, None) => "well".to_owned(),
        };
        let operations: Vec<_> = operations.iter().map(|known| known.operation.name()).collect();
        let can = match operations.is_empty() {
            true => String::new(),
            false => format!("  ({})", operations.join(", ")),
        };
        out.text(format_args!("{:<16} {:<8} {health}{can}", name.as_str(), kind.name()))?;
    }
    let unanswered = summaries.iter().filter(|summary| summary.unanswered.is_some());
    match unanswered.count() as u64 {
        0 => Ok(()),
        count => {
            let message = format!("{} did not answer", pluralize(count, "tier"));
            Err(ExitError::new(Exit::Partial, message).into())
        }
    }
}

/// Opens each tier of the configuration for its summary; at last the archive, for that of glass.
async fn list_opened(source: &TierSource) -> anyhow::Result<Vec<TierSummary>> {
    let (config, data) = (source.config()?, source.data()?);
    let mut summaries = Vec::new();
    for (name, tier) in &config.tiers {
        summaries.push(match open(name, tier, &data).await {
            Ok(opened) => {
                let summary = TierSummary::of(name, &*opened.tier).await;
                open::stop(name, opened.tier).await;
                summary
            }
            Err(error) => TierSummary::unanswered(name, tier.kind(), &format!("{error:#}")),
        });
    }
    if !data.join("archive.json").exists() {
        return Ok(summaries);
    }
    let glass = TierName::glass();
    summaries.push(match serve::open_existing(&config, &data).await {
        Ok((archive, tiers)) => {
            let summary = TierSummary::of(&glass, &GlassTier::new(archive.clone())).await;
            serve::close(&archive, tiers).await?;
            summary
        }
        Err(error) => TierSummary::unanswered(&glass, TierKind::Glass, &format!("{error:#}")),
    });
    Ok(summaries)
}

async fn init(named: &NamedTier, out: &Output) -> anyhow::Result<()> {
    let (name, data) = (&named.name, named.source.data()?);
    match named.configured()? {
        Tier::Rack(rack) => rack::init(&TierConfig::rack(name, &rack, &data), out).await,
        Tier::Tome(tome) => tomes::init(&TierConfig::tome(name, &tome, &data), out).await,
        Tier::Geo(geo) => geo::init(&geo, out).await,
        Tier::Objects(_) => {
            let message = format!("tier {name} is of kind objects: there is nothing to create");
            Err(ExitError::new(Exit::Usage, message).into())
        }
    }
}

async fn add(named: &NamedTier, out: &Output) -> anyhow::Result<()> {
    if named.source.server().await?.is_some() {
        let message = "a server has the set: stop it, add the tomes, and start it again";
        return Err(ExitError::new(Exit::Locked, message).into());
    }
    match named.tomes(&named.configured()?)? {
        Some(tomes) => tomes::add(&tomes, out).await,
        None => {
            let message = format!("tier {} is no set of tomes: nothing can be added", named.name);
            Err(ExitError::new(Exit::Usage, message).into())
        }
    }
}

async fn operate(
    named: &NamedTier,
    operation: Operation,
    args: &OperationArgs,
    out: &Output,
) -> anyhow::Result<()> {
    access::run_with(named, async |tier: &TierAccess| {
        let report = tier.run(operation, args, out.is_json()).await?;
        show_report(tier.summary(), operation, &report, out)
    })
    .await
}

/// Reads the disk of a tome whole. If no server has the set, opens the set once more, which
/// rebuilds the metadata store.
async fn inventory(named: &NamedTier, args: &OperationArgs, out: &Output) -> anyhow::Result<()> {
    let operation = Operation::Inventory;
    let (summary, mut report, is_served) = access::run_with(named, async |tier: &TierAccess| {
        let report = tier.run(operation, args, out.is_json()).await?;
        Ok((tier.summary().clone(), report, tier.is_served()))
    })
    .await?;
    if !is_served && let Some(tomes) = named.tomes(&named.configured()?)? {
        report = tomes::open_after_inventory(&tomes, &report).await?;
    }
    show_report(&summary, operation, &report, out)
}

/// Recreates the index of a rack if it was lost, so that `recover` can fill it.
async fn adopt_lost_index(named: &NamedTier) -> anyhow::Result<()> {
    // A server that cannot be asked reports that when it is asked to recover.
    if !matches!(named.source.server().await, Ok(None)) {
        return Ok(());
    }
    let Tier::Rack(rack) = named.configured()? else { return Ok(()) };
    rack::adopt_lost_index(&TierConfig::rack(&named.name, &rack, &named.source.data()?)).await
}

fn show_status(tier: &TierSummary, snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    out.json("tier_status", snapshot)?;
    match tier.kind {
        TierKind::Glass => show_glass(snapshot, out),
        TierKind::Rack => rack::show_status(snapshot, out),
        TierKind::Tome => tomes::show_status(&tier.name, snapshot, out),
        TierKind::Geo => geo::show_status(snapshot, out),
        TierKind::Objects => {
            out.text("a directory or a bucket: `fulgurite archive status` has more")
        }
    }
}

fn show_glass(snapshot: &Value, out: &Output) -> anyhow::Result<()> {
    let number = |name: &str| snapshot[name].as_u64().unwrap_or_default();
    let sets = snapshot["sets"].as_array().map_or(0, Vec::len) as u64;
    let (platters, unverified) = (number("platters"), number("unverified_platters"));
    out.text(format_args!(
        "{} in {}, {unverified} not verified yet; profile {}, fidelity {}",
        pluralize(platters, "platter"),
        pluralize(sets, "set"),
        snapshot["profile"].as_str().unwrap_or_default(),
        snapshot["fidelity"].as_str().unwrap_or_default()
    ))?;
    for set in snapshot["sets"].as_array().into_iter().flatten() {
        let SetStatus { set, state, information_platters, redundancy_platters, .. } = parse(set)?;
        out.text(format_args!(
            "set {set}: {information_platters} information + {redundancy_platters} redundancy \
             platters, {state}"
        ))?;
    }
    Ok(())
}

/// Shows the verification of platters; an error if one cannot be read alone.
fn show_verified(report: &Value, out: &Output) -> anyhow::Result<()> {
    let platters: Vec<VerifiedPlatter> = parse(&report["platters"])?;
    let mut unreadable = 0;
    for platter in &platters {
        unreadable += u64::from(show_platter(platter, out)?);
    }
    let read = pluralize(platters.len() as u64, "platter");
    if unreadable == 0 {
        return out.text(format_args!("{read} read, none needs another"));
    }
    let message = format!(
        "{unreadable} of {read} cannot be read alone; restores take what is missing from the rest \
         of the set"
    );
    Err(ExitError::new(Exit::Corrupt, message).into())
}

fn show_spin_up(kind: TierKind, spin_up: &Value) -> anyhow::Result<String> {
    match kind {
        TierKind::Tome => tomes::show_spin_up(spin_up),
        TierKind::Glass | TierKind::Rack | TierKind::Geo | TierKind::Objects => {
            rack::show_spin_up(spin_up)
        }
    }
}

/// Shows the report of an operation; an error if not everything is well.
fn show_report(
    tier: &TierSummary,
    operation: Operation,
    report: &Value,
    out: &Output,
) -> anyhow::Result<()> {
    out.json("tier_report", report)?;
    match tier.kind {
        TierKind::Glass => show_verified(report, out),
        TierKind::Rack => rack::show_report(&tier.name, operation, report, out),
        TierKind::Tome => tomes::show_report(&tier.name, operation, report, out),
        TierKind::Geo => geo::show_report(&tier.name, operation, report, out),
        TierKind::Objects => Ok(()),
    }
}
