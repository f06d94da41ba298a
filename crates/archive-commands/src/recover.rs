//! `recover`: rebuilds a catalog from platters, logs and keys, and from what is readable of a
//! damaged one.
//!
//! The archive does the work; this command finds its inputs and reports. Platters stored elsewhere
//! (a copy, another site) are brought into the data directory first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use fulgurite_archive::config::TierName;
use fulgurite_archive::{RecoverOptions, RecoverReport};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, note, pluralize, rate, seconds};
use fulgurite_terminal::progress::count_bar;

use crate::config::tiers::tiers_folder;
use crate::config::{Config, Overrides, TierArgs, process_environment};
use crate::process::restrict_umask;
use crate::serve::archive_config;
use crate::tier::{self, OpenTiers, tier_name};

/// Flags of `recover`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecoverArgs {
    /// Data directory with its keys, and without a catalog or with a damaged one
    #[arg(long, value_name = "DIR", env = "FULGURITE_DATA")]
    data: PathBuf,
    /// Folder of platter files to bring into the data directory first
    #[arg(long, value_name = "DIR")]
    platters: Option<PathBuf>,
    /// Also rebuild an undamaged catalog: keep its contents, and search for the rest, including
    /// unconfirmed objects
    #[arg(long)]
    salvage: bool,
    /// Of several objects with one name show the earliest, not the last
    #[arg(long)]
    earliest: bool,
    /// Recover without a tier that the old catalog names, or that is in DATA/tiers: objects in it
    /// are not recovered, but keep their keys; can be repeated
    #[arg(long, value_name = "NAME", value_parser = tier_name)]
    without_tier: Vec<TierName>,
    /// Master key file, if it is not DATA/keys/master.key
    #[arg(long, value_name = "FILE")]
    master_key: Option<PathBuf>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    tiers: TierArgs,
}

/// Runs `recover`.
pub fn recover(args: &RecoverArgs, out: &Output) -> anyhow::Result<()> {
    restrict_umask();
    let overrides = Overrides { tiers: args.tiers.tier.clone(), ..Overrides::default() };
    let config = Config::load(args.config.as_deref(), process_environment(), overrides)?;
    let without_tiers: BTreeSet<TierName> = args.without_tier.iter().cloned().collect();
    refuse_left_out(&config, &without_tiers)?;
    if !args.data.is_dir() {
        let message = format!("data directory \"{}\" does not exist", args.data.display());
        return Err(ExitError::new(Exit::NotFound, message).into());
    }
    config.check_tiers(&args.data)?;
    refuse_unnamed(&config, &args.data, &without_tiers)?;
    if let Some(from) = &args.platters {
        let imported = import_platters(from, &args.data.join("platters"))?;
        note(format_args!("brought {}", pluralize(imported, "platter")));
    }
    // The runtime has to live as long as the tiers are used.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let tiers = runtime.block_on(open_tiers(&config, &args.data))?;
    let mut config = archive_config(&config, &args.data, &tiers)?;
    if let Some(file) = &args.master_key {
        config.master_key = Some(file.clone());
    }
    let bar = Mutex::new(count_bar("recover", 0, out.is_json()));
    let (salvage, earliest) = (args.salvage, args.earliest);
    let options = RecoverOptions { salvage, earliest, without_tiers };
    let report = fulgurite_archive::recover(config, options, &|progress| {
        let bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.set_length(progress.platters_total);
        bar.set_position(progress.platters);
        bar.set_message(pluralize(progress.entries, "entry"));
    });
    runtime.block_on(tier::close(tiers));
    drop(runtime);
    let report = report?;
    bar.lock().unwrap_or_else(PoisonError::into_inner).finish_and_clear();
    show(&report, out)
}

/// Opens the tiers that objects may be in.
async fn open_tiers(config: &Config, data: &Path) -> anyhow::Result<OpenTiers> {
    let mut tiers = OpenTiers::new();
    for (name, tier) in &config.tiers {
        match tier::open(name, tier, data).await {
            Ok(store) => drop(tiers.insert(name.clone(), store)),
            Err(error) => {
                tier::close(tiers).await;
                return Err(error);
            }
        }
    }
    Ok(tiers)
}

/// Returns an error if a tier is configured and to be left out: classes may go to it.
fn refuse_left_out(config: &Config, left_out: &BTreeSet<TierName>) -> anyhow::Result<()> {
    let Some(name) = left_out.iter().find(|name| config.tiers.contains_key(*name)) else {
        return Ok(());
    };
    let message = format!(
        "--without-tier {name}: the configuration has this tier; remove it there, or leave out the \
         flag"
    );
    Err(ExitError::new(Exit::Config, message).into())
}

/// Returns an error if a tier exists that nothing names, because its objects would not be
/// recovered.
fn refuse_unnamed(
    config: &Config,
    data: &Path,
    left_out: &BTreeSet<TierName>,
) -> anyhow::Result<()> {
    let Ok(folders) = fs::read_dir(tiers_folder(data)) else { return Ok(()) };
    for folder in folders {
        let folder = folder?;
        let name = folder.file_name();
        if config.tiers.keys().chain(left_out).all(|known| name != known.as_str()) {
            let message = format!(
                "there is a tier in \"{}\", which nothing names: pass --config FILE, or --tier as \
                 to serve. What is in a tier that is left out is not recovered, but keeps its \
                 keys; to leave it out, pass --without-tier {}",
                folder.path().display(),
                name.display()
            );
            return Err(ExitError::new(Exit::Config, message).into());
        }
    }
    Ok(())
}

fn show(report: &RecoverReport, out: &Output) -> anyhow::Result<()> {
    out.json("recovery", report)?;
    out.text(format_args!(
        "{} in {}, {}, from {} of {} and {} in {} ({})",
        pluralize(report.objects, "object"),
        pluralize(report.buckets, "bucket"),
        bytes(report.bytes),
        pluralize(report.platters, "platter"),
        pluralize(report.sets, "set"),
        pluralize(report.segments, "segment"),
        seconds(report.seconds),
        rate(report.bytes, report.seconds)
    ))?;
    let notes = [
        (report.staged, "object", "of them wait for glass"),
        (report.platters_rebuilt, "platter", "missing; the lists came from their sets"),
        (report.shredded, "part", "on glass without a key: deleted, and so they stay"),
        (
            report.unconfirmed,
            "object",
            "unconfirmed: kept until their names are put or deleted, and not shown",
        ),
        (
            report.unconfirmed.saturating_sub(report.overwritten),
            "object",
            "of these no start showed; `recover --salvage` does",
        ),
        (
            report.overwritten,
            "object",
            "of these gave their name to another; `--salvage --earliest` shows the first of a name",
        ),
        (report.uploads, "multipart upload", "can go on"),
        (report.parts_lost, "part", "of multipart uploads did not come back; send them again"),
        (
            report.keys_unexplained,
            "key",
            "of bodies that are nowhere: uploads that a crash cut short, or bodies in tiers, \
             platters and segments that are not here; the keys are kept",
        ),
        (
            report.set_aside,
            "segment",
            "of the logs set aside in orphaned/: they hold bodies that did not come back",
        ),
    ];
    for (count, what, note) in notes {
        if count > 0 {
            out.text(format_args!("{} {note}", pluralize(count, what)))?;
        }
    }
    for damage in &report.catalog_damages {
        out.text(format_args!("damaged: {damage}"))?;
    }
    if let Some(kept) = &report.catalog_kept {
        let rows = pluralize(report.rows_salvaged, "row");
        out.text(format_args!("the catalog before, of which {rows} read, is kept in \"{kept}\""))?;
    }
    for name in &report.unconfirmed_names {
        out.text(format_args!("unconfirmed: {name}"))?;
    }
    for lost in &report.lost {
        out.text(format_args!("lost: {lost}"))?;
    }
    for problem in &report.unusable {
        out.text(format_args!("unusable: {problem}"))?;
    }
    verdict(report)
}

/// Returns the exit code: losses are an error, and so are keys without bodies, which may be losses.
/// Unconfirmed objects are not.
fn verdict(report: &RecoverReport) -> anyhow::Result<()> {
    if report.incomplete == 0 && report.unusable.is_empty() {
        if report.keys_unexplained == 0 {
            return Ok(());
        }
        let message = format!(
            "{} without a body: was a tier left out, or are platters or segments missing? Bring \
             them back, and run `fulgurite recover --salvage`. If nothing is missing, these are \
             uploads that a crash cut short",
            pluralize(report.keys_unexplained, "key")
        );
        return Err(ExitError::new(Exit::KeysWithoutBodies, message).into());
    }
    let message = format!(
        "{} incomplete; {} not usable",
        pluralize(report.incomplete, "object"),
        pluralize(report.unusable.len() as u64, "platter file, entry or record")
    );
    let exit = if report.objects > 0 { Exit::Partial } else { Exit::Corrupt };
    Err(ExitError::new(exit, message).into())
}

/// Links, or copies, every platter file of `from` that is not in `to`; returns how many.
fn import_platters(from: &Path, to: &Path) -> anyhow::Result<u64> {
    fs::create_dir_all(to).with_context(|| format!("cannot make \"{}\"", to.display()))?;
    let mut imported = 0;
    let entries =
        fs::read_dir(from).with_context(|| format!("cannot list \"{}\"", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        if path.extension().is_none_or(|extension| extension != "glass") || target.exists() {
            continue;
        }
        if fs::hard_link(&path, &target).is_err() {
            let part = target.with_extension("part");
            fs::copy(&path, &part)
                .with_context(|| format!("cannot copy \"{}\"", path.display()))?;
            fs::File::open(&part)?.sync_all()?;
            fs::rename(&part, &target)?;
        }
        imported += 1;
    }
    Ok(imported)
}
