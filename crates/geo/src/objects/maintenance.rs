//! Maintenance of a namespace: repairs objects and removes garbage, by command and in the
//! background.
//!
//! ```text
//! hints    objects known to be incomplete (as in hinted handoff)
//! heal     all objects: settle open versions, notify rows, rebuild fragments
//! collect  bytes of obsolete or overwritten versions, after the grace period
//! sweep    orphan fragments, once they are older than any write
//! replace  a lost site: the map, every row, every fragment
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_geo_core::{
    Collect, CollectResult, Fragment, HealResult, Restore, RestoreResult, Retention, Row,
    SiteIndex, Sweep, SweepResult,
};
use fulgurite_units::{Duration, UnixTime, error_chain};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use crate::objects::driver::{Work, run};
use crate::objects::fragments::FENCE_MARK;
use crate::objects::limits::OBJECTS_AT_ONCE;
use crate::objects::listing::keys;
use crate::objects::live_map::LiveMap;
use crate::objects::map::{SiteEntry, SiteMap};
use crate::objects::store::{GeoStore, Inner};
use crate::objects::{GeoError, Result, names};
use crate::stores::fragment::Header;
use crate::stores::{Blob, BlobMeta, Key};

/// Result of maintenance on many objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceReport {
    /// Objects that were checked.
    pub objects: u64,
    /// Objects that are whole now.
    pub whole: u64,
    /// Objects in an unknown state after all tries: rows of voting sites were not read in time, or
    /// could not be notified. Nothing of them is known to be missing.
    pub unsure: u64,
    /// Open versions that were settled.
    pub settled: u64,
    /// Objects that still have an undecided version.
    pub undecided: u64,
    /// Age of the oldest of those, in seconds.
    pub oldest_undecided_seconds: u64,
    /// Fragments that were rebuilt.
    pub rebuilt: u64,
    /// Fragments that are still missing.
    pub missing: u64,
    /// Versions that were never acknowledged and were made obsolete.
    pub hidden: u64,
    /// Versions that were garbage-collected.
    pub collected: u64,
    /// Versions and orphan fragments whose bytes could not be removed everywhere yet.
    pub left: u64,
    /// Fragments that were checked for being orphans.
    pub fragments: u64,
    /// Orphan fragments that were removed.
    pub swept: u64,
    /// Rows that were restored at a site that had lost them.
    pub restored: u64,
    /// Acknowledged versions that are lost, as `KEY version N`; only the first ones.
    pub lost: Vec<String>,
    /// Failures; only the first few.
    pub problems: Vec<String>,
    /// Number of the map in which a replaced site is complete; none if it is not, or if none was
    /// replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u32>,
}

/// Maximum number of names and failures that are listed.
pub(crate) const LISTED_MAX: usize = 100;

impl MaintenanceReport {
    /// Counts the repairs of an object that is checked once more.
    pub(crate) fn count_repairs(&mut self, healed: &HealResult) {
        self.settled += u64::from(healed.settled);
        self.rebuilt += u64::from(healed.rebuilt);
        self.hidden += healed.obsoleted.len() as u64;
    }

    /// Adds the results of further work.
    pub(crate) fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.whole += other.whole;
        self.unsure += other.unsure;
        self.settled += other.settled;
        self.rebuilt += other.rebuilt;
        self.missing += other.missing;
        self.hidden += other.hidden;
        self.left += other.left;
        self.fragments += other.fragments;
        self.swept += other.swept;
        self.restored += other.restored;
        self.lost.extend(other.lost);
        self.problems.extend(other.problems);
    }

    pub(crate) fn add_problem(&mut self, object: &str, error: &GeoError) {
        if self.problems.len() < LISTED_MAX {
            self.problems.push(format!("{object}: {}", error_chain(error)));
        }
    }

    pub(crate) fn add_healed(&mut self, object: &str, healed: &HealResult) {
        self.objects += 1;
        self.count_repairs(healed);
        self.whole += u64::from(healed.whole);
        self.unsure += u64::from(healed.is_unsure());
        self.missing += healed.missing.len() as u64;
        for version in &healed.lost {
            if self.lost.len() < LISTED_MAX {
                self.lost.push(format!("{object} version {version}"));
            }
        }
    }
}

impl Inner {
    async fn collect_one(&self, live: &Arc<LiveMap>, object: &str) -> Result<CollectResult> {
        let grace = live.map.grace.as_nanos() / 1_000_000;
        let after = self.clock.now().as_millis().saturating_sub(grace);
        self.collect_before(live, Work::for_object(object)?, UnixTime::from_millis(after)).await
    }

    /// Makes room in the row of an object that was overwritten very often lately. It does not wait
    /// for the grace period, since a full row accepts nothing more; a read of a removed version
    /// ends early. Fragments at sites that are down are left to a sweep.
    pub(crate) async fn make_room(&self, live: &Arc<LiveMap>, object: &str) {
        let attempt = async {
            let work = Work { skip_down: true, ..Work::for_object(object)? };
            self.collect_before(live, work, self.clock.now()).await
        };
        if let Err(error) = attempt.await {
            tracing::warn!(object, %error, "versions of an object could not be removed");
        }
    }

    async fn collect_before(
        &self,
        live: &Arc<LiveMap>,
        work: Work,
        obsolete_after: UnixTime,
    ) -> Result<CollectResult> {
        let keep = Retention { newest: live.map.versions.newest(), obsolete_after };
        let mut collect = Collect::new(live.terms(), keep, self.random());
        let collected = run(&mut collect, &work, live, &self.ctx).await;
        let gone = collected.gone.len() as u64;
        self.tally.collected.fetch_add(gone, Ordering::Relaxed);
        Ok(collected)
    }

    pub(crate) async fn restore_one(
        &self,
        live: &Arc<LiveMap>,
        object: &str,
        site: SiteIndex,
    ) -> Result<()> {
        let mut restore = Restore::new(live.terms(), site, self.random());
        match run(&mut restore, &Work::for_object(object)?, live, &self.ctx).await {
            RestoreResult::Done => Ok(()),
            RestoreResult::Unavailable => Err(GeoError::Unavailable { key: object.to_owned() }),
        }
    }
}

impl GeoStore {
    /// Garbage collection: removes the bytes of dead versions.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn collect<'a>(
        &'a self,
        progress: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<MaintenanceReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let (inner, live_ref) = (&self.0, &live);
            let mut report = MaintenanceReport::default();
            let mut collected = std::pin::pin!(
                keys(live_ref, None)?
                    .map(|key| async move {
                        let key = key?;
                        let collected = inner.collect_one(live_ref, &key).await;
                        Ok::<_, GeoError>((key, collected))
                    })
                    .buffer_unordered(OBJECTS_AT_ONCE)
            );
            while let Some((key, collected)) = collected.try_next().await? {
                report.objects += 1;
                if let Err(error) = inner.drop_stripe(live_ref, &key).await {
                    report.add_problem(&key, &error);
                }
                match collected {
                    Ok(collected) => {
                        report.collected += collected.gone.len() as u64;
                        report.left += collected.left.len() as u64;
                    }
                    Err(error) => report.add_problem(&key, &error),
                }
                progress(report.objects);
            }
            Ok(report)
        })
    }

    /// Orphan sweep: removes fragments of no version that are older than `age`, which must be
    /// longer than any write can take.
    ///
    /// # Errors
    /// If `age` is too short.
    pub fn sweep<'a>(
        &'a self,
        age: Duration,
        progress: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<MaintenanceReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let min_age = Duration::from_nanos(live.map.lease.as_nanos() * 2);
            if age < min_age {
                let reason = format!("an orphan sweep needs an age of at least {min_age}");
                return Err(GeoError::Invalid { reason });
            }
            let before = self.0.clock.now().as_millis().saturating_sub(age.as_nanos() / 1_000_000);
            let mut report = MaintenanceReport::default();
            let mut seen = 0;
            for index in live.map.holders() {
                let Some((site, blobs)) = live.blobs(index) else {
                    let name = live.map.sites[index.index()].name.clone();
                    report.problems.push(format!("site {name} is unavailable"));
                    continue;
                };
                let mut found = blobs.list(Some(&names::blobs()?), UnixTime::from_millis(before));
                while let Some(meta) = found.next().await {
                    seen += 1;
                    progress(seen);
                    match meta {
                        Ok(meta) => {
                            self.sweep_blob(&live, (index, blobs), &meta, &mut report).await
                        }
                        Err(error) => {
                            report.problems.push(format!("site {}: {error}", site.name));
                            break;
                        }
                    }
                }
            }
            self.0.tally.swept.fetch_add(report.swept, Ordering::Relaxed);
            Ok(report)
        })
    }

    async fn sweep_blob(
        &self,
        live: &Arc<LiveMap>,
        (site, blobs): (SiteIndex, &dyn Blob),
        meta: &BlobMeta,
        report: &mut MaintenanceReport,
    ) {
        report.fragments += 1;
        let Some((write, _, index)) = names::parse_blob(&meta.key) else {
            return report.problems.push(format!("{} is not a fragment", meta.key));
        };
        let object = match read_object_key(blobs, meta).await {
            Ok(object) => object,
            Err(why) => return report.problems.push(format!("{}: {why}", meta.key)),
        };
        let fragment = Fragment { write, index, site };
        match self.sweep_fragment(live, (&object, &meta.key), fragment).await {
            Ok(SweepResult::Erased) => report.swept += 1,
            Ok(SweepResult::Kept) => {}
            Ok(SweepResult::Left) => report.left += 1,
            Err(error) => report.add_problem(&object, &error),
        }
    }

    async fn sweep_fragment(
        &self,
        live: &Arc<LiveMap>,
        (object, blob): (&str, &Key),
        fragment: Fragment,
    ) -> Result<SweepResult> {
        let mut work = Work::for_object(object)?;
        work.blob = Some(blob.clone());
        let mut sweep = Sweep::new(live.terms(), fragment, self.0.random());
        Ok(run(&mut sweep, &work, live, &self.0.ctx).await)
    }

    /// Repairs the objects named by hints, at all voting sites.
    ///
    /// # Errors
    /// If the site map cannot be confirmed.
    pub fn process_hints(&self) -> BoxFuture<'_, Result<MaintenanceReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let mut report = MaintenanceReport::default();
            for site in live.voters() {
                let Some(site) = live.shared(site) else { continue };
                let Some(table) = site.current_table() else { continue };
                let prefix = names::hints()?;
                let mut hints = table.scan(Some(&prefix), None);
                while let Some(hint) = hints.next().await {
                    let Ok((key, row)) = hint else { break };
                    let Ok(object) = String::from_utf8(row.bytes.to_vec()) else { continue };
                    match self.0.heal_one(&live, &object).await {
                        Ok(healed) => {
                            report.add_healed(&object, &healed);
                            // An object that is not whole yet keeps its hint.
                            if healed.whole && table.erase(&key).await.is_ok() {
                                let one = |hints: u64| hints.checked_sub(1);
                                let _ = self.0.hints.fetch_update(
                                    Ordering::Relaxed,
                                    Ordering::Relaxed,
                                    one,
                                );
                            }
                        }
                        Err(error) => report.add_problem(&object, &error),
                    }
                }
            }
            Ok(report)
        })
    }

    /// Repairs objects with an undecided version that was first seen so long ago that its proposer
    /// has given up.
    async fn settle_undecided(&self) -> Result<MaintenanceReport> {
        let live = self.0.live().await?;
        let patience = std::time::Duration::from_nanos(live.map.patience.as_nanos());
        let (inner, live_ref) = (&self.0, &live);
        let waiting = stream::iter(inner.ctx.undecided.since(patience).into_iter().map(Ok));
        let one = |key: String| async move {
            let healed = inner.heal_one(live_ref, &key).await;
            (key, healed)
        };
        inner.heal_each(live_ref, waiting, one, &|_| {}).await
    }

    /// Replaces a lost site by another place, and rebuilds its content there. Another call with
    /// the same place resumes. As long as fragments of the objects checked are missing there, the
    /// map marks the site as rebuilding, and the last problem says how many. Fragments missing at
    /// other sites do not hold it up.
    ///
    /// # Errors
    /// If too few other sites answer, or another program changes the map.
    pub fn replace_site<'a>(
        &'a self,
        name: &'a str,
        place: SiteEntry,
        progress: &'a (dyn Fn(&'static str, u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<MaintenanceReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let missing = || GeoError::Invalid { reason: format!("the map has no site {name:?}") };
            let index = live.map.site(name).ok_or_else(missing)?;
            let mut map = live.map.clone();
            let target = SiteEntry { name: name.to_owned(), rebuilding: true, ..place };
            let current = &mut map.sites[index.index()];
            if (target.table.is_some(), target.blobs.is_some())
                != (current.table.is_some(), current.blobs.is_some())
            {
                let reason =
                    "the new place must have a table if the old one has one, and likewise blobs";
                return Err(GeoError::Invalid { reason: reason.to_owned() });
            }
            let is_replaced = *current == SiteEntry { rebuilding: false, ..target.clone() };
            if is_replaced && has_rows(&live, index).await {
                // A previous call may have been killed during the last wait.
                progress("waiting until every program knows that the site is rebuilt", 0);
                wait_for_lease(&live.map).await;
                let done = |count| progress("rebuilding rows and fragments", count);
                let report = self.heal(&done).await?;
                return Ok(MaintenanceReport { replaced: Some(live.map.epoch), ..report });
            }
            if *current != target {
                *current = target.clone();
                self.open_place(&map, &target).await?;
                self.0.change_map(map).await?;
            }
            // A previous call may have been killed just now.
            progress("waiting until every program has the new map", 0);
            wait_for_lease(&live.map).await;
            let (mut report, missing) = self.rebuild_site(index, progress).await?;
            if missing > 0 {
                report.problems.push(format!(
                    "site {name:?} is not rebuilt: {missing} of its fragments are missing; replace \
                 it again with the same place once the other sites and its blobs answer"
                ));
            }
            if report.problems.is_empty() && report.lost.is_empty() {
                // Its start counts continue from those of the old place.
                self.0.count_start(&self.0.live().await?, false).await;
                let mut map = self.0.any_live().map.clone();
                map.sites[index.index()].rebuilding = false;
                self.0.change_map(map).await?;
                // Until then programs create rows there that do not vote, for new objects. Those
                // objects would become unavailable if another site were lost.
                progress(
                    "waiting until every program knows that the site is rebuilt",
                    report.objects,
                );
                wait_for_lease(&live.map).await;
                report.add(self.restore_votes(index).await?);
                report.replaced = Some(self.map().epoch);
            }
            Ok(report)
        })
    }

    /// Creates the stores of a new place, before the map names it.
    async fn open_place(&self, map: &SiteMap, place: &SiteEntry) -> Result<()> {
        map.check()?;
        let single = SiteMap { sites: vec![place.clone()], ..map.clone() };
        let opener = &*self.0.opener;
        let open = |source| GeoError::Open { site: place.name.clone(), source };
        let [entry] = &*single.sites else { return Ok(()) };
        for (reason, text) in [("table", &entry.table), ("blobs", &entry.blobs)] {
            let Some(text) = text else { continue };
            let place = format!("{reason} of site {:?}", entry.name);
            let address = text.parse();
            let address = address.map_err(|source| GeoError::Address { place, source })?;
            if reason == "table" {
                let table = opener.table(entry, &address, true).await.map_err(open)?;
                let first = table.scan(None, None).next().await;
                if let Some(Ok((key, _))) = first {
                    let reason = format!(
                        "the new table is not empty: it has a row {key}; if it is already the \
                         table of this site, heal all objects instead"
                    );
                    return Err(GeoError::Invalid { reason });
                }
            } else {
                opener.blobs(entry, &address, true).await.map_err(open)?;
            }
        }
        Ok(())
    }

    /// Rebuilds the content of a site. Returns the results, and how many of its fragments are still
    /// missing.
    async fn rebuild_site(
        &self,
        site: SiteIndex,
        progress: &(dyn Fn(&'static str, u64) + Send + Sync),
    ) -> Result<(MaintenanceReport, u64)> {
        let live = self.0.live().await?;
        let votes = live.map.voters().contains(&site);
        let (inner, live_ref, missing) = (&self.0, &live, &AtomicU64::new(0));
        let all = stream::iter([Ok(names::MAP.to_owned())]).chain(keys(live_ref, Some(site))?);
        let one = |key: String| async move {
            if votes && let Err(error) = inner.restore_one(live_ref, &key, site).await {
                return (key, Err(error));
            }
            let healed = inner.heal_one(live_ref, &key).await;
            if let Ok(healed) = &healed {
                // An object that is checked once more is not known to lack any.
                let at_site = healed.missing.iter().filter(|fragment| fragment.site == site);
                missing.fetch_add(at_site.count() as u64, Ordering::Relaxed);
            }
            (key, healed)
        };
        let done =
            |report: &MaintenanceReport| progress("rebuilding rows and fragments", report.objects);
        let mut report = inner.heal_each(live_ref, all, one, &done).await?;
        if votes {
            report.restored = report.objects;
        }
        Ok((report, missing.load(Ordering::Relaxed)))
    }

    /// Repairs the objects whose rows at a rebuilt site do not vote yet.
    async fn restore_votes(&self, site: SiteIndex) -> Result<MaintenanceReport> {
        let live = self.0.live().await?;
        let Some(site) = live.shared(site) else { return Ok(MaintenanceReport::default()) };
        let Some(table) = site.current_table() else { return Ok(MaintenanceReport::default()) };
        let unavailable = || GeoError::Unavailable { key: "a listing".into() };
        let mut silent = Vec::new();
        for below in [names::rows(None)?, names::stripes()?] {
            let mut rows = table.scan(Some(&below), None);
            while let Some(row) = rows.next().await {
                let (key, row) = row.map_err(|_| unavailable())?;
                // An unreadable row is reported with its object.
                let votes = Row::decode(&row.bytes).is_ok_and(|row| !row.silent);
                silent.extend(names::object(&key).filter(|_| !votes).map(Ok));
            }
        }
        let (inner, live_ref) = (&self.0, &live);
        let one = |key: String| async move {
            let healed = inner.heal_one(live_ref, &key).await;
            (key, healed)
        };
        let report = inner.heal_each(live_ref, stream::iter(silent), one, &|_| {}).await?;
        Ok(MaintenanceReport { restored: report.objects, ..report })
    }

    /// Runs maintenance in the background for as long as the store is in use: processes hints every
    /// `hints`, and collects garbage every `collect`.
    pub fn spawn_maintenance(&self, hints: Duration, collect: Duration) {
        let weak = Arc::downgrade(&self.0);
        let interval = std::time::Duration::from_nanos(hints.as_nanos());
        let every = collect.as_nanos().div_ceil(hints.as_nanos().max(1)).max(1);
        tokio::spawn(async move {
            for tick in 0_u64.. {
                let Some(inner) = weak.upgrade() else { return };
                let store = Self(inner);
                if tick % every == 0 {
                    store.count_and_heal().await;
                }
                drop(store);
                tokio::time::sleep(interval).await;
                let Some(inner) = weak.upgrade() else { return };
                let store = Self(inner);
                let mut done = store.process_hints().await;
                if done.is_ok() {
                    done = store.settle_undecided().await;
                }
                if (tick + 1) % every == 0 && done.is_ok() {
                    done = store.collect(&|_| {}).await;
                }
                match done {
                    Ok(report) if report.lost.is_empty() => {}
                    Ok(report) => tracing::error!(lost = ?report.lost, "versions are lost"),
                    Err(error) => {
                        let error = error_chain(&error);
                        tracing::warn!(%error, "maintenance failed and is retried later");
                    }
                }
            }
        });
    }
}

impl GeoStore {
    /// Counts a start; if blobs are an older copy, rebuilds what they lack.
    async fn count_and_heal(&self) {
        let counted = self.count_start().await;
        let is_older = self.0.any_live().sites().iter().any(|site| site.are_blobs_older());
        let healed = match counted {
            Ok(()) if is_older => self.heal(&|_| {}).await.map(|_| ()),
            counted => counted,
        };
        if let Err(error) = healed {
            let error = error_chain(&error);
            tracing::warn!(%error, "a start could not be counted at the sites");
        }
    }
}

/// Waits until every program has the latest map.
async fn wait_for_lease(map: &SiteMap) {
    tokio::time::sleep(std::time::Duration::from_nanos(map.lease.as_nanos())).await;
}

/// Whether the table of a site answers, and has rows.
async fn has_rows(live: &LiveMap, site: SiteIndex) -> bool {
    let Some(table) = live.site(site).and_then(|site| site.table.as_ref()) else { return false };
    matches!(table.scan(None, None).next().await, Some(Ok(_)))
}

/// Returns the object that a fragment names.
async fn read_object_key(blobs: &dyn Blob, meta: &BlobMeta) -> Result<String, String> {
    let limit = Header::bytes_with(crate::objects::limits::KEY_BYTES_MAX) as u64;
    let bytes = blobs.get(&meta.key, Some(0..limit.min(meta.bytes.get()))).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    let object = match bytes.strip_prefix(FENCE_MARK) {
        Some(object) => object.to_vec(),
        None => Header::parse(&bytes).map_err(|error| error.to_string())?.object,
    };
    String::from_utf8(object).map_err(|_| "its object key is not UTF-8".to_owned())
}
