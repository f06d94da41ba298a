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

use fulgurite_geo::{
    Collect, Collected, Fragment, Healed, Keep, Restore, Restored, Row, SiteIndex, Sweep, Swept,
};
use fulgurite_sites::fragment::Header;
use fulgurite_sites::{Blob, BlobMeta, Key};
use fulgurite_units::{Duration, UnixTime, error_chain};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use crate::fragments::FORBIDDEN;
use crate::limits::OBJECTS_AT_ONCE;
use crate::listing::keys;
use crate::live::Live;
use crate::map::{SiteEntry, SiteMap};
use crate::run::{Work, run};
use crate::store::{GeoStore, Inner};
use crate::{GeoError, Result, names};

/// Result of maintenance on many objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Objects that were checked.
    pub objects: u64,
    /// Objects that are whole now.
    pub whole: u64,
    /// Objects in an unknown state after all tries: rows of voting sites were not read in time, or
    /// could not be notified. Nothing of them is known to be missing.
    #[serde(default)]
    pub unsure: u64,
    /// Open versions that were settled.
    pub settled: u64,
    /// Objects that still have an undecided version.
    #[serde(default)]
    pub undecided: u64,
    /// Age of the oldest of those, in seconds.
    #[serde(default)]
    pub oldest_undecided_seconds: u64,
    /// Fragments that were rebuilt.
    pub rebuilt: u64,
    /// Fragments that are still missing.
    pub missing: u64,
    /// Versions that were never acknowledged and were made obsolete.
    pub hidden: u64,
    /// Versions that were garbage-collected.
    pub collected: u64,
    /// Versions whose bytes could not be removed everywhere yet.
    pub left: u64,
    /// Orphan fragments that were removed.
    pub swept: u64,
    /// Rows that were restored at a site that had lost them.
    pub restored: u64,
    /// Acknowledged versions that are lost, as `KEY version N`; only the first ones.
    pub lost: Vec<String>,
    /// Failures; only the first few.
    pub problems: Vec<String>,
}

/// Maximum number of names and failures that are listed.
const TOLD: usize = 100;

impl Kept {
    /// Counts the repairs of an object that is checked once more.
    pub(crate) fn did(&mut self, healed: &Healed) {
        self.settled += u64::from(healed.settled);
        self.rebuilt += u64::from(healed.rebuilt);
        self.hidden += healed.hidden.len() as u64;
    }

    /// Adds the results of another repair.
    fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.whole += other.whole;
        self.unsure += other.unsure;
        self.settled += other.settled;
        self.rebuilt += other.rebuilt;
        self.missing += other.missing;
        self.hidden += other.hidden;
        self.restored += other.restored;
        self.lost.extend(other.lost);
        self.problems.extend(other.problems);
    }

    pub(crate) fn problem(&mut self, object: &str, error: &GeoError) {
        if self.problems.len() < TOLD {
            self.problems.push(format!("{object}: {}", error_chain(error)));
        }
    }

    pub(crate) fn healed(&mut self, object: &str, healed: &Healed) {
        self.objects += 1;
        self.did(healed);
        self.whole += u64::from(healed.whole);
        self.unsure += u64::from(healed.is_unsure());
        self.missing += healed.missing.len() as u64;
        for version in &healed.lost {
            if self.lost.len() < TOLD {
                self.lost.push(format!("{object} version {version}"));
            }
        }
    }
}

impl Inner {
    async fn collect_one(&self, live: &Arc<Live>, object: &str) -> Result<Collected> {
        let grace = live.map.grace.as_nanos() / 1_000_000;
        let after = self.clock.now().as_millis().saturating_sub(grace);
        self.collect_before(live, Work::on(object)?, UnixTime::from_millis(after)).await
    }

    /// Makes room in the row of an object that was overwritten very often lately. It does not wait
    /// for the grace period, since a full row accepts nothing more; a read of a removed version
    /// ends early. Fragments at sites that are down are left to a sweep.
    pub(crate) async fn make_room(&self, live: &Arc<Live>, object: &str) {
        let made = async {
            let work = Work { leaves: true, ..Work::on(object)? };
            self.collect_before(live, work, self.clock.now()).await
        };
        if let Err(error) = made.await {
            tracing::warn!(object, %error, "versions of an object could not be removed");
        }
    }

    async fn collect_before(
        &self,
        live: &Arc<Live>,
        work: Work,
        hidden_after: UnixTime,
    ) -> Result<Collected> {
        let keep = Keep { newest: live.map.versions.newest(), hidden_after };
        let mut collect = Collect::new(live.terms(), keep, self.random());
        let collected = run(&mut collect, &work, live, &self.means).await;
        let gone = collected.gone.len() as u64;
        self.tally.collected.fetch_add(gone, Ordering::Relaxed);
        Ok(collected)
    }

    pub(crate) async fn restore_one(
        &self,
        live: &Arc<Live>,
        object: &str,
        site: SiteIndex,
    ) -> Result<()> {
        let mut restore = Restore::new(live.terms(), site, self.random());
        match run(&mut restore, &Work::on(object)?, live, &self.means).await {
            Restored::Done => Ok(()),
            Restored::Unavailable => Err(GeoError::Unavailable { key: object.to_owned() }),
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
        told: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Kept>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let (inner, of) = (&self.0, &live);
            let mut kept = Kept::default();
            let mut collected = std::pin::pin!(
                keys(of, None)?
                    .map(|key| async move {
                        let key = key?;
                        let collected = inner.collect_one(of, &key).await;
                        Ok::<_, GeoError>((key, collected))
                    })
                    .buffer_unordered(OBJECTS_AT_ONCE)
            );
            while let Some((key, collected)) = collected.try_next().await? {
                kept.objects += 1;
                if let Err(error) = inner.drop_stripe(of, &key).await {
                    kept.problem(&key, &error);
                }
                match collected {
                    Ok(collected) => {
                        kept.collected += collected.gone.len() as u64;
                        kept.left += collected.left.len() as u64;
                    }
                    Err(error) => kept.problem(&key, &error),
                }
                told(kept.objects);
            }
            Ok(kept)
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
        told: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Kept>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let least = Duration::from_nanos(live.map.lease.as_nanos() * 2);
            if age < least {
                let what = format!("fragments are looked at when they are {least} old at least");
                return Err(GeoError::Invalid { what });
            }
            let before = self.0.clock.now().as_millis().saturating_sub(age.as_nanos() / 1_000_000);
            let mut kept = Kept::default();
            let mut seen = 0;
            for index in live.map.holders() {
                let Some((site, blobs)) = live.blobs(index) else {
                    let name = live.map.sites[index.index()].name.clone();
                    kept.problems.push(format!("site {name} cannot be asked now"));
                    continue;
                };
                let mut found = blobs.list(Some(&names::blobs()?), UnixTime::from_millis(before));
                while let Some(meta) = found.next().await {
                    seen += 1;
                    told(seen);
                    match meta {
                        Ok(meta) => self.sweep_blob(&live, (index, blobs), &meta, &mut kept).await,
                        Err(error) => {
                            kept.problems.push(format!("site {}: {error}", site.name));
                            break;
                        }
                    }
                }
            }
            self.0.tally.swept.fetch_add(kept.swept, Ordering::Relaxed);
            Ok(kept)
        })
    }

    async fn sweep_blob(
        &self,
        live: &Arc<Live>,
        (site, blobs): (SiteIndex, &dyn Blob),
        meta: &BlobMeta,
        kept: &mut Kept,
    ) {
        kept.objects += 1;
        let Some((write, _, index)) = names::of_blob(&meta.key) else {
            return kept.problems.push(format!("{} is no fragment", meta.key));
        };
        let object = match object_of(blobs, meta).await {
            Ok(object) => object,
            Err(why) => return kept.problems.push(format!("{}: {why}", meta.key)),
        };
        let fragment = Fragment { write, index, site };
        match self.sweep_fragment(live, (&object, &meta.key), fragment).await {
            Ok(Swept::Erased) => kept.swept += 1,
            Ok(Swept::Kept) => kept.whole += 1,
            Ok(Swept::Left) => kept.left += 1,
            Err(error) => kept.problem(&object, &error),
        }
    }

    async fn sweep_fragment(
        &self,
        live: &Arc<Live>,
        (object, blob): (&str, &Key),
        fragment: Fragment,
    ) -> Result<Swept> {
        let mut work = Work::on(object)?;
        work.blob = Some(blob.clone());
        let mut sweep = Sweep::new(live.terms(), fragment, self.0.random());
        Ok(run(&mut sweep, &work, live, &self.0.means).await)
    }

    /// Repairs the objects named by hints, at all voting sites.
    ///
    /// # Errors
    /// If the site map cannot be confirmed.
    pub fn work_off_hints(&self) -> BoxFuture<'_, Result<Kept>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let mut kept = Kept::default();
            for site in live.voters() {
                let Some(site) = live.shared(site) else { continue };
                let Some(table) = site.asked_table() else { continue };
                let prefix = names::hints()?;
                let mut hints = table.scan(Some(&prefix), None);
                while let Some(hint) = hints.next().await {
                    let Ok((key, row)) = hint else { break };
                    let Ok(object) = String::from_utf8(row.bytes.to_vec()) else { continue };
                    match self.0.heal_one(&live, &object).await {
                        Ok(healed) => {
                            kept.healed(&object, &healed);
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
                        Err(error) => kept.problem(&object, &error),
                    }
                }
            }
            Ok(kept)
        })
    }

    /// Repairs objects with an undecided version that was first seen so long ago that its proposer
    /// has given up.
    async fn decide_what_waits(&self) -> Result<Kept> {
        let live = self.0.live().await?;
        let patience = std::time::Duration::from_nanos(live.map.patience.as_nanos());
        let (inner, of) = (&self.0, &live);
        let waiting = stream::iter(inner.means.undecided.since(patience).into_iter().map(Ok));
        let one = |key: String| async move {
            let healed = inner.heal_one(of, &key).await;
            (key, healed)
        };
        inner.heal_each(of, waiting, one, &|_| {}).await
    }

    /// Replaces a lost site by another place, and rebuilds there what it held. Another call with
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
        told: &'a (dyn Fn(&'static str, u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Kept>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let none = || GeoError::Invalid { what: format!("the map has no site {name:?}") };
            let index = live.map.site(name).ok_or_else(none)?;
            let mut map = live.map.clone();
            let wanted = SiteEntry { name: name.to_owned(), rebuilding: true, ..place };
            let there = &mut map.sites[index.index()];
            if (wanted.table.is_some(), wanted.blobs.is_some())
                != (there.table.is_some(), there.blobs.is_some())
            {
                let what =
                    "the new place has a table where the old one had one, and blobs likewise";
                return Err(GeoError::Invalid { what: what.to_owned() });
            }
            let is_there = *there == SiteEntry { rebuilding: false, ..wanted.clone() };
            if is_there && has_rows(&live, index).await {
                // A previous call may have been killed during the last wait.
                told("waiting until every program knows that it is done", 0);
                wait_a_lease(&live.map).await;
                return self.heal(&|count| told("making again what it held", count)).await;
            }
            if *there != wanted {
                *there = wanted.clone();
                self.open_place(&map, &wanted).await?;
                self.0.change_map(map).await?;
            }
            // A previous call may have been killed just now.
            told("waiting until every program has the new map", 0);
            wait_a_lease(&live.map).await;
            let (mut kept, lacking) = self.rebuild_site(index, told).await?;
            if lacking > 0 {
                kept.problems.push(format!(
                "site {name:?} is not made again: {lacking} of its fragments are missing; replace \
                 it once more with the same place when other sites and its blobs answer"
            ));
            }
            if kept.problems.is_empty() && kept.lost.is_empty() {
                // Its start counts continue from those of the old place.
                self.0.count_start(&self.0.live().await?, false).await;
                let mut map = self.0.any_live().map.clone();
                map.sites[index.index()].rebuilding = false;
                self.0.change_map(map).await?;
                // Until then programs create rows there that do not vote, for new objects. Those
                // objects would become unavailable if another site were lost.
                told("waiting until every program knows that it is done", kept.objects);
                wait_a_lease(&live.map).await;
                kept.add(self.let_vote(index).await?);
            }
            Ok(kept)
        })
    }

    /// Creates the stores of a new place, before the map names it.
    async fn open_place(&self, map: &SiteMap, place: &SiteEntry) -> Result<()> {
        map.check()?;
        let alone = SiteMap { sites: vec![place.clone()], ..map.clone() };
        let opener = &*self.0.opener;
        let open = |source| GeoError::Open { site: place.name.clone(), source };
        let [entry] = &*alone.sites else { return Ok(()) };
        for (what, text) in [("table", &entry.table), ("blobs", &entry.blobs)] {
            let Some(text) = text else { continue };
            let place = format!("{what} of site {:?}", entry.name);
            let address = text.parse();
            let address = address.map_err(|source| GeoError::Address { place, source })?;
            if what == "table" {
                let table = opener.table(entry, &address, true).await.map_err(open)?;
                let first = table.scan(None, None).next().await;
                if let Some(Ok((key, _))) = first {
                    let what = format!(
                        "the new table is not empty: it has a row {key}; if the site is there \
                         already, heal all objects instead"
                    );
                    return Err(GeoError::Invalid { what });
                }
            } else {
                opener.blobs(entry, &address, true).await.map_err(open)?;
            }
        }
        Ok(())
    }

    /// Rebuilds what a site held. Returns the results, and how many of its fragments are still
    /// missing.
    async fn rebuild_site(
        &self,
        site: SiteIndex,
        told: &(dyn Fn(&'static str, u64) + Send + Sync),
    ) -> Result<(Kept, u64)> {
        let live = self.0.live().await?;
        let votes = live.map.voters().contains(&site);
        let (inner, of, lacking) = (&self.0, &live, &AtomicU64::new(0));
        let all = stream::iter([Ok(names::MAP.to_owned())]).chain(keys(of, Some(site))?);
        let one = |key: String| async move {
            if votes && let Err(error) = inner.restore_one(of, &key, site).await {
                return (key, Err(error));
            }
            let healed = inner.heal_one(of, &key).await;
            if let Ok(healed) = &healed {
                // An object that is checked once more is not known to lack any.
                let of_site = healed.missing.iter().filter(|fragment| fragment.site == site);
                lacking.fetch_add(of_site.count() as u64, Ordering::Relaxed);
            }
            (key, healed)
        };
        let done = |kept: &Kept| told("making again what it held", kept.objects);
        let mut kept = inner.heal_each(of, all, one, &done).await?;
        if votes {
            kept.restored = kept.objects;
        }
        Ok((kept, lacking.load(Ordering::Relaxed)))
    }

    /// Repairs the objects whose rows at a rebuilt site do not vote yet.
    async fn let_vote(&self, site: SiteIndex) -> Result<Kept> {
        let live = self.0.live().await?;
        let Some(site) = live.shared(site) else { return Ok(Kept::default()) };
        let Some(table) = site.asked_table() else { return Ok(Kept::default()) };
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
        let (inner, of) = (&self.0, &live);
        let one = |key: String| async move {
            let healed = inner.heal_one(of, &key).await;
            (key, healed)
        };
        let kept = inner.heal_each(of, stream::iter(silent), one, &|_| {}).await?;
        Ok(Kept { restored: kept.objects, ..kept })
    }

    /// Runs maintenance in the background for as long as the store is in use: processes hints every
    /// `hints`, and collects garbage every `collect`.
    pub fn keep(&self, hints: Duration, collect: Duration) {
        let weak = Arc::downgrade(&self.0);
        let rest = std::time::Duration::from_nanos(hints.as_nanos());
        let every = collect.as_nanos().div_ceil(hints.as_nanos().max(1)).max(1);
        tokio::spawn(async move {
            for turn in 0_u64.. {
                let Some(inner) = weak.upgrade() else { return };
                let store = Self(inner);
                if turn % every == 0 {
                    store.count_and_heal().await;
                }
                drop(store);
                tokio::time::sleep(rest).await;
                let Some(inner) = weak.upgrade() else { return };
                let store = Self(inner);
                let mut done = store.work_off_hints().await;
                if done.is_ok() {
                    done = store.decide_what_waits().await;
                }
                if (turn + 1) % every == 0 && done.is_ok() {
                    done = store.collect(&|_| {}).await;
                }
                match done {
                    Ok(kept) if kept.lost.is_empty() => {}
                    Ok(kept) => tracing::error!(lost = ?kept.lost, "versions are lost"),
                    Err(error) => {
                        let error = error_chain(&error);
                        tracing::warn!(%error, "nothing could be kept this time");
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
            tracing::warn!(%error, "a start is not counted at the sites");
        }
    }
}

/// Waits until every program has the latest map.
async fn wait_a_lease(map: &SiteMap) {
    tokio::time::sleep(std::time::Duration::from_nanos(map.lease.as_nanos())).await;
}

/// Whether the table of a site answers, and has rows.
async fn has_rows(live: &Live, site: SiteIndex) -> bool {
    let Some(table) = live.site(site).and_then(|site| site.table.as_ref()) else { return false };
    matches!(table.scan(None, None).next().await, Some(Ok(_)))
}

/// Returns the object that a fragment names.
async fn object_of(blobs: &dyn Blob, meta: &BlobMeta) -> Result<String, String> {
    let most = Header::bytes_with(crate::limits::KEY_BYTES_MAX) as u64;
    let bytes = blobs.get(&meta.key, Some(0..most.min(meta.bytes.get()))).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    let object = match bytes.strip_prefix(FORBIDDEN) {
        Some(object) => object.to_vec(),
        None => Header::parse(&bytes).map_err(|error| error.to_string())?.object,
    };
    String::from_utf8(object).map_err(|_| "its object has no name".to_owned())
}
