//! Runs the doctor on the stores of a map, or on a given store.
//!
//! A missing table or folder is not created: a site that lost its table must not get an empty one
//! from an examination. For a directory, a temporary folder beside it is examined, which is removed
//! afterwards.

use std::path::{Path, PathBuf};

use fulgurite_geo::objects::SiteEntry;
use fulgurite_geo::stores::doctor::{DoctorError, Outcome, Report, examine, examine_blobs};
use fulgurite_geo::stores::{Address, Key, OpenError};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, pluralize};
use fulgurite_terminal::progress;
use fulgurite_units::{ErrorKind, error_chain};
use serde::Serialize;

use super::open::{entropy, opener};
use crate::process::random_bytes;

/// Prefix of the row keys that the doctor writes and removes.
pub(super) const PROBE_PREFIX: &str = "doctor-";

/// The role of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StoreRole {
    /// Rows.
    Table,
    /// Fragments.
    Blobs,
}

impl std::fmt::Display for StoreRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Blobs => "blobs",
        })
    }
}

/// A store to examine.
#[derive(Clone, Debug)]
pub(super) struct Store {
    site: String,
    part: StoreRole,
    address: Address,
}

/// The doctor's findings about a store, as `--json` prints them.
#[derive(Debug, Serialize)]
struct StoreReport<'a> {
    site: &'a str,
    part: StoreRole,
    #[serde(flatten)]
    report: Option<&'a Report>,
    /// Why it could not be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Returns the stores of a site.
///
/// # Errors
/// When one of its addresses is invalid.
pub(super) fn stores_of(site: &SiteEntry) -> anyhow::Result<Vec<Store>> {
    let mut stores = Vec::new();
    for (part, text) in [(StoreRole::Table, &site.table), (StoreRole::Blobs, &site.blobs)] {
        let Some(text) = text else { continue };
        let address = text.parse::<Address>().map_err(|error| {
            let what = format!("the {part} of site {:?}: {error}", site.name);
            ExitError::new(Exit::Config, what)
        })?;
        stores.push(Store { site: site.name.clone(), part, address });
    }
    Ok(stores)
}

/// Examines stores, one after the other, and prints the findings.
///
/// # Errors
/// `Config` when one is refused, `Unavailable` when one could not be examined.
pub(super) async fn examine_all(
    stores: &[Store],
    may_create: bool,
    out: &Output,
) -> anyhow::Result<()> {
    let bar = progress::spinner("doctor", out.is_json());
    let (mut refused, mut unknown) = (Vec::new(), 0_u64);
    for store in stores {
        bar.set_message(format!("{} {}", store.site, store.part));
        let name = format!("{} of site {:?}", store.part, store.site);
        match examine_store(store, may_create).await {
            Ok(report) => {
                bar.suspend(|| print_report(store, &report, out))?;
                let failed = report.failed().map(|check| format!("{}: {}", check.name, check.seen));
                let failed: Vec<String> = failed.collect();
                if !failed.is_empty() {
                    refused.push(format!("the {name} is refused ({})", failed.join("; ")));
                }
            }
            Err(reason) => {
                unknown += 1;
                let finding = StoreReport {
                    site: &store.site,
                    part: store.part,
                    report: None,
                    error: Some(&reason),
                };
                out.json(&finding)?;
                let line = format_args!("{name} was not examined: {reason}");
                bar.suspend(|| out.text(line))?;
            }
        }
    }
    bar.finish_and_clear();
    if !refused.is_empty() {
        return Err(ExitError::new(Exit::Config, refused.join("; ")).into());
    }
    if unknown > 0 {
        let message = format!("{} could not be examined", pluralize(unknown, "store"));
        return Err(ExitError::new(Exit::Unavailable, message).into());
    }
    Ok(())
}

fn print_report(store: &Store, report: &Report, out: &Output) -> anyhow::Result<()> {
    let Store { site, part, .. } = store;
    out.json(&StoreReport { site, part: *part, report: Some(report), error: None })?;
    for check in &report.checks {
        let outcome = match check.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Unsupported => "unsupported",
        };
        let name = check.name.to_string();
        out.text(format_args!("{site:<12} {part:<5}  {name:<18} {outcome:<11}  {}", check.seen))?;
    }
    Ok(())
}

async fn examine_store(store: &Store, may_create: bool) -> Result<Report, String> {
    let mark = format!("{PROBE_PREFIX}{}", hex::encode(random_bytes()));
    let prefix = Key::new(mark.clone()).map_err(|error| error_chain(&error))?;
    let place = match store.address.directory() {
        Some(folder) => Some(ScratchFolder::make(folder, &mark)?),
        None => None,
    };
    let address = match &place {
        Some(scratch) => {
            Address::from_directory(&scratch.0).map_err(|error| error_chain(&error))?
        }
        None => store.address.clone(),
    };
    let may_create = may_create || place.is_some();
    let shown = store.address.to_string();
    match store.part {
        StoreRole::Table => table(&shown, &address, &prefix, may_create).await,
        StoreRole::Blobs => blobs(&shown, &address, &prefix, may_create).await,
    }
}

async fn table(
    shown: &str,
    address: &Address,
    prefix: &Key,
    may_create: bool,
) -> Result<Report, String> {
    // Opened twice, for separate connections, except for a table in memory.
    let first = opener();
    let one = first.table(address, may_create).await.map_err(|error| open_error(&error))?;
    let two = first.table(address, false).await.map_err(|error| open_error(&error))?;
    examine(shown, &*one, &*two, prefix, &entropy()).await.map_err(|error| query_error(&error))
}

async fn blobs(
    shown: &str,
    address: &Address,
    prefix: &Key,
    may_create: bool,
) -> Result<Report, String> {
    let first = opener();
    let one = first.blobs(address, may_create).await.map_err(|error| open_error(&error))?;
    let two = first.blobs(address, false).await.map_err(|error| open_error(&error))?;
    examine_blobs(shown, &*one, &*two, prefix, &entropy())
        .await
        .map_err(|error| query_error(&error))
}

fn open_error(error: &OpenError) -> String {
    let message = error_chain(error);
    if matches!(error, OpenError::Missing { .. }) {
        return format!("{message}: begin the namespace, or name this address alone");
    }
    message
}

fn query_error(error: &DoctorError) -> String {
    let hint = if error.kind() == ErrorKind::Unavailable { "; does it exist?" } else { "" };
    format!("{}{hint}", error_chain(error))
}

/// A temporary folder beside a directory that exists or would be created; removed on drop.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn make(folder: &Path, mark: &str) -> Result<Self, String> {
        let existing = folder.ancestors().find(|place| place.is_dir());
        let existing =
            existing.ok_or_else(|| format!("there is no folder of {}", folder.display()))?;
        let scratch = existing.join(format!(".fulgurite-{mark}"));
        std::fs::create_dir(&scratch)
            .map_err(|error| format!("cannot make \"{}\": {error}", scratch.display()))?;
        Ok(Self(scratch))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a folder of the doctor is left");
        }
    }
}
