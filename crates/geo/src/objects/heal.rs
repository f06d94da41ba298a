//! Repair of many objects. Each is checked once; those whose state remains unknown are retried a
//! few times, with less concurrency.
//!
//! ```text
//! keys --> heal --+--> whole, or something is missing: counted
//!                 '--> rows not read or written in time: retried after a backoff
//!                      ... in the end, unsure or a problem
//! ```
//!
//! Not here: hints, and rebuilding a lost site (`maintenance`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_geo_core::{Heal, HealPolicy, HealResult};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};

use crate::objects::driver::{Work, run};
use crate::objects::limits::{HEAL_RETRIES_AT_ONCE, HEAL_RETRIES_MAX, HEAL_TRIES, OBJECTS_AT_ONCE};
use crate::objects::listing::keys;
use crate::objects::live_map::LiveMap;
use crate::objects::maintenance::MaintenanceReport;
use crate::objects::store::{GeoStore, Inner};
use crate::objects::{GeoError, Result};

impl GeoStore {
    /// Repairs all objects. Calls `progress` with the number of objects checked so far.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn heal<'a>(
        &'a self,
        progress: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<MaintenanceReport>> {
        Box::pin(async move { self.heal_all(false, progress).await })
    }

    /// Scrubs all objects: the same, but reads all fragments in full and rebuilds damaged ones.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn scrub<'a>(
        &'a self,
        progress: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<MaintenanceReport>> {
        Box::pin(async move { self.heal_all(true, progress).await })
    }

    async fn heal_all(
        &self,
        deep: bool,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<MaintenanceReport> {
        let live = self.0.live().await?;
        let (inner, live_ref) = (&self.0, &live);
        let one = |key: String| async move {
            let healed = match Work::for_object(&key) {
                Ok(work) => inner.heal_as(live_ref, Work { deep, ..work }).await,
                Err(error) => Err(error),
            };
            (key, healed)
        };
        let progress = |report: &MaintenanceReport| progress(report.objects);
        let report = inner.heal_each(live_ref, keys(live_ref, None)?, one, &progress).await?;
        let undecided_report = inner.ctx.undecided.undecided_report(0);
        let (undecided, oldest_undecided_seconds) =
            (undecided_report.versions, undecided_report.oldest_seconds);
        let is_whole = report.missing == 0 && report.problems.is_empty() && report.unsure == 0;
        if is_whole && live.sites().iter().any(|site| site.are_blobs_older()) {
            inner.count_start(&live, true).await;
        }
        Ok(MaintenanceReport { undecided, oldest_undecided_seconds, ..report })
    }
}

/// One pass: the results so far, and the objects to retry.
struct Pass<'a> {
    live: &'a Arc<LiveMap>,
    report: MaintenanceReport,
    again: Vec<String>,
    /// Whether this is the last pass.
    is_last: bool,
}

impl Pass<'_> {
    fn take(&mut self, key: String, healed: Result<HealResult>) {
        match healed {
            Ok(healed) if self.may_retry() && self.should_retry(&healed) => {
                self.report.count_repairs(&healed);
                self.again.push(key);
            }
            // Sites that are busy with the first pass do not answer all of it in time.
            Err(GeoError::Unavailable { .. }) if self.may_retry() && self.quorum_answers() => {
                self.again.push(key);
            }
            Ok(healed) => {
                self.report.add_healed(&key, &healed);
                if !healed.conclusive {
                    let error = GeoError::Unavailable { key: key.clone() };
                    self.report.add_problem(&key, &error);
                }
            }
            Err(error) => self.report.add_problem(&key, &error),
        }
    }

    fn may_retry(&self) -> bool {
        !self.is_last && self.again.len() < HEAL_RETRIES_MAX
    }

    /// Whether enough sites answer to read the promises of an object's rows.
    fn quorum_answers(&self) -> bool {
        let terms = self.live.terms();
        let up = terms.voters.iter().filter(|site| !terms.down.contains(site));
        up.count() >= terms.quorums.read()
    }

    /// Whether an object is worth another try: nothing is known to be missing, and a site whose row
    /// was not read answers.
    fn should_retry(&self, healed: &HealResult) -> bool {
        let answers = |site: &&fulgurite_geo_core::SiteIndex| {
            let site = self.live.site(**site);
            site.is_some_and(|site| {
                site.table.is_some() && !site.is_down() && !site.state.rebuilding
            })
        };
        let unread = &healed.unread;
        let can_answer = unread.is_empty() || unread.iter().any(|site| answers(&site));
        can_answer && healed.is_unsure()
    }
}

impl Inner {
    pub(crate) async fn heal_one(&self, live: &Arc<LiveMap>, object: &str) -> Result<HealResult> {
        self.heal_as(live, Work::for_object(object)?).await
    }

    /// Repairs an object. Restores rows that do not vote because they were created while their site
    /// was rebuilt, as nothing else will, and then repairs it once more.
    async fn heal_as(&self, live: &Arc<LiveMap>, work: Work) -> Result<HealResult> {
        let healed = self.heal_once(live, &work).await;
        let mut voting = false;
        for site in &healed.silent {
            // While a site is being rebuilt, some programs may not know yet that it lost its rows.
            let is_rebuilt = live.site(*site).is_some_and(|site| !site.state.rebuilding);
            voting |= is_rebuilt && self.restore_one(live, &work.object, *site).await.is_ok();
        }
        if !voting {
            return Ok(healed);
        }
        let again = self.heal_once(live, &work).await;
        Ok(HealResult {
            settled: healed.settled + again.settled,
            rebuilt: healed.rebuilt + again.rebuilt,
            obsoleted: [healed.obsoleted, again.obsoleted].concat(),
            ..again
        })
    }

    async fn heal_once(&self, live: &Arc<LiveMap>, work: &Work) -> HealResult {
        let policy = HealPolicy {
            needed: usize::from(live.map.needed()),
            finish: true,
            keep: live.map.versions.newest(),
        };
        let mut heal = Heal::new(live.terms(), policy, self.clock.now(), self.random());
        let mut healed = run(&mut heal, work, live, &self.ctx).await;
        // Rows are notified last: one that was skipped may lag behind.
        healed.whole &= work.take_dropped() == 0;
        self.tally.rebuilt.fetch_add(u64::from(healed.rebuilt), Ordering::Relaxed);
        healed
    }

    /// Repairs each of some objects with `one`.
    pub(crate) async fn heal_each<F>(
        &self,
        live: &Arc<LiveMap>,
        keys: impl Stream<Item = Result<String>>,
        one: impl Fn(String) -> F,
        progress: &(dyn Fn(&MaintenanceReport) + Send + Sync),
    ) -> Result<MaintenanceReport>
    where
        F: Future<Output = (String, Result<HealResult>)>,
    {
        let (report, again) = Default::default();
        let mut pass = Pass { live, report, again, is_last: HEAL_TRIES == 1 };
        let first = keys.map_ok(|key| one(key).map(Ok)).try_buffer_unordered(OBJECTS_AT_ONCE);
        let mut first = std::pin::pin!(first);
        while let Some((key, healed)) = first.try_next().await? {
            pass.take(key, healed);
            progress(&pass.report);
        }
        for tries in 2..=HEAL_TRIES {
            let again = std::mem::take(&mut pass.again);
            if again.is_empty() {
                break;
            }
            pass.is_last = tries == HEAL_TRIES;
            tokio::time::sleep(std::time::Duration::from_nanos(live.map.round.as_nanos())).await;
            let mut healed = stream::iter(again).map(&one).buffer_unordered(HEAL_RETRIES_AT_ONCE);
            while let Some((key, healed)) = healed.next().await {
                pass.take(key, healed);
                progress(&pass.report);
            }
        }
        Ok(pass.report)
    }
}
