//! Runs the doctor on the stores of a map, or on a given store, and prints what it found.

use fulgurite_geo::objects::{SiteEntry, SiteMap, SiteStore, StoreRole};
use fulgurite_geo::stores::doctor::{Outcome, Report};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, pluralize};
use fulgurite_terminal::progress;
use serde::Serialize;

use super::node;
use super::open::{entropy, opener};

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

/// Returns all stores of a map.
pub(super) fn stores_of(map: &SiteMap) -> anyhow::Result<Vec<SiteStore>> {
    let mut stores = Vec::new();
    for site in &map.sites {
        stores.extend(SiteStore::of_site(site)?);
    }
    Ok(stores)
}

/// Examines the store at an address in every role that it can have.
pub(super) async fn examine_one(url: &str, out: &Output) -> anyhow::Result<()> {
    let is_database = url.starts_with("postgres://") || url.starts_with("etcd://");
    let (has_table, has_blobs) = if url.starts_with("node://") {
        node::probe_stores(url).await?
    } else {
        (true, !is_database)
    };
    let named = |has: bool| has.then(|| url.to_owned());
    let (table, blobs) = (named(has_table), named(has_blobs));
    let site = SiteEntry { name: "-".to_owned(), table, blobs, rebuilding: false };
    examine_all(&SiteStore::of_site(&site)?, true, out).await
}

/// Examines stores, one after the other, and prints the findings.
///
/// # Errors
/// `Config` when one is refused, `Unavailable` when one could not be examined.
pub(super) async fn examine_all(
    stores: &[SiteStore],
    may_create: bool,
    out: &Output,
) -> anyhow::Result<()> {
    let bar = progress::spinner("doctor", out.is_json());
    let (opener, entropy) = (opener(), entropy());
    let (mut refused, mut unknown) = (Vec::new(), 0_u64);
    for store in stores {
        bar.set_message(store.to_string());
        match store.examine(&opener, &entropy, may_create).await {
            Ok(report) => {
                bar.suspend(|| print_report(store, &report, out))?;
                let failed = report.failed().map(|check| format!("{}: {}", check.name, check.seen));
                let failed: Vec<String> = failed.collect();
                if !failed.is_empty() {
                    refused.push(format!("the {store} is refused ({})", failed.join("; ")));
                }
            }
            Err(reason) => {
                unknown += 1;
                let finding = StoreReport {
                    site: store.site(),
                    part: store.role(),
                    report: None,
                    error: Some(&reason),
                };
                out.json("examined_store", &finding)?;
                let line = format_args!("{store} was not examined: {reason}");
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

fn print_report(store: &SiteStore, report: &Report, out: &Output) -> anyhow::Result<()> {
    let (site, part) = (store.site(), store.role());
    let report_of = StoreReport { site, part, report: Some(report), error: None };
    out.json("examined_store", &report_of)?;
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
