//! Repair of many objects. Each is checked once; those whose state remains unknown are retried a
//! few times, with less concurrency.
//!
//! ```text
//! keys --> heal --+--> whole, or something is missing: counted
//!                 '--> rows not read or written in time: retried after a backoff
//!                      ... in the end, unsure or a problem
//! ```
//!
//! Not here: hints, and rebuilding a lost site (`keeper`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_geo::{Care, Heal, Healed};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};

use crate::keeper::Kept;
use crate::limits::{HEAL_AGAIN_AT_ONCE, HEAL_AGAIN_MAX, HEAL_TRIES, OBJECTS_AT_ONCE};
use crate::listing::keys;
use crate::live::Live;
use crate::run::{Work, run};
use crate::store::{GeoStore, Inner};
use crate::{GeoError, Result};

impl GeoStore {
    /// Repairs all objects. Calls `told` with the number of objects checked so far.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn heal<'a>(
        &'a self,
        told: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Kept>> {
        Box::pin(async move { self.heal_all(false, told).await })
    }

    /// Scrubs all objects: the same, but reads all fragments in full and rebuilds damaged ones.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn verify<'a>(
        &'a self,
        told: &'a (dyn Fn(u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Kept>> {
        Box::pin(async move { self.heal_all(true, told).await })
    }

    async fn heal_all(&self, deep: bool, told: &(dyn Fn(u64) + Send + Sync)) -> Result<Kept> {
        let live = self.0.live().await?;
        let (inner, of) = (&self.0, &live);
        let one = |key: String| async move {
            let healed = match Work::on(&key) {
                Ok(work) => inner.heal_as(of, Work { deep, ..work }).await,
                Err(error) => Err(error),
            };
            (key, healed)
        };
        let told = |kept: &Kept| told(kept.objects);
        let kept = inner.heal_each(of, keys(of, None)?, one, &told).await?;
        let waiting = inner.means.undecided.waiting(0);
        let (undecided, oldest_undecided_seconds) = (waiting.versions, waiting.oldest_seconds);
        let is_whole = kept.missing == 0 && kept.problems.is_empty() && kept.unsure == 0;
        if is_whole && live.sites().iter().any(|site| site.are_blobs_older()) {
            inner.count_start(&live, true).await;
        }
        Ok(Kept { undecided, oldest_undecided_seconds, ..kept })
    }
}

/// One pass: the results so far, and the objects to retry.
struct Turn<'a> {
    live: &'a Arc<Live>,
    kept: Kept,
    again: Vec<String>,
    /// Whether this is the last pass.
    is_last: bool,
}

impl Turn<'_> {
    fn take(&mut self, key: String, healed: Result<Healed>) {
        match healed {
            Ok(healed) if self.may_try_again() && self.may_be_sure(&healed) => {
                self.kept.did(&healed);
                self.again.push(key);
            }
            // Sites that are busy with the first pass do not answer all of it in time.
            Err(GeoError::Unavailable { .. }) if self.may_try_again() && self.quorum_answers() => {
                self.again.push(key);
            }
            Ok(healed) => {
                self.kept.healed(&key, &healed);
                if !healed.told {
                    let error = GeoError::Unavailable { key: key.clone() };
                    self.kept.problem(&key, &error);
                }
            }
            Err(error) => self.kept.problem(&key, &error),
        }
    }

    fn may_try_again(&self) -> bool {
        !self.is_last && self.again.len() < HEAL_AGAIN_MAX
    }

    /// Whether enough sites answer to read the promises of an object's rows.
    fn quorum_answers(&self) -> bool {
        let terms = self.live.terms();
        let up = terms.voters.iter().filter(|site| !terms.down.contains(site));
        up.count() >= terms.quorums.read()
    }

    /// Whether an object is worth another try: nothing is known to be missing, and a site whose row
    /// was not read answers.
    fn may_be_sure(&self, healed: &Healed) -> bool {
        let answers = |site: &&fulgurite_geo::SiteIndex| {
            let site = self.live.site(**site);
            site.is_some_and(|site| {
                site.table.is_some() && !site.is_down() && !site.standing.rebuilding
            })
        };
        let unread = &healed.unread;
        let may = unread.is_empty() || unread.iter().any(|site| answers(&site));
        may && healed.is_unsure()
    }
}

impl Inner {
    pub(crate) async fn heal_one(&self, live: &Arc<Live>, object: &str) -> Result<Healed> {
        self.heal_as(live, Work::on(object)?).await
    }

    /// Repairs an object. Restores rows that do not vote because they were created while their site
    /// was rebuilt, as nothing else will, and then repairs it once more.
    async fn heal_as(&self, live: &Arc<Live>, work: Work) -> Result<Healed> {
        let healed = self.heal_once(live, &work).await;
        let mut voting = false;
        for site in &healed.silent {
            // While a site is being rebuilt, some programs may not know yet that it lost its rows.
            let made_again = live.site(*site).is_some_and(|site| !site.standing.rebuilding);
            voting |= made_again && self.restore_one(live, &work.object, *site).await.is_ok();
        }
        if !voting {
            return Ok(healed);
        }
        let again = self.heal_once(live, &work).await;
        Ok(Healed {
            settled: healed.settled + again.settled,
            rebuilt: healed.rebuilt + again.rebuilt,
            hidden: [healed.hidden, again.hidden].concat(),
            ..again
        })
    }

    async fn heal_once(&self, live: &Arc<Live>, work: &Work) -> Healed {
        let care = Care {
            needed: usize::from(live.map.needed()),
            finish: true,
            keep: live.map.versions.newest(),
        };
        let mut heal = Heal::new(live.terms(), care, self.clock.now(), self.random());
        let mut healed = run(&mut heal, work, live, &self.means).await;
        // Rows are notified last: one that was skipped may lag behind.
        healed.whole &= work.take_untold() == 0;
        self.tally.rebuilt.fetch_add(u64::from(healed.rebuilt), Ordering::Relaxed);
        healed
    }

    /// Repairs each of some objects with `one`.
    pub(crate) async fn heal_each<F>(
        &self,
        live: &Arc<Live>,
        keys: impl Stream<Item = Result<String>>,
        one: impl Fn(String) -> F,
        told: &(dyn Fn(&Kept) + Send + Sync),
    ) -> Result<Kept>
    where
        F: Future<Output = (String, Result<Healed>)>,
    {
        let (kept, again) = Default::default();
        let mut turn = Turn { live, kept, again, is_last: HEAL_TRIES == 1 };
        let first = keys.map_ok(|key| one(key).map(Ok)).try_buffer_unordered(OBJECTS_AT_ONCE);
        let mut first = std::pin::pin!(first);
        while let Some((key, healed)) = first.try_next().await? {
            turn.take(key, healed);
            told(&turn.kept);
        }
        for tries in 2..=HEAL_TRIES {
            let again = std::mem::take(&mut turn.again);
            if again.is_empty() {
                break;
            }
            turn.is_last = tries == HEAL_TRIES;
            tokio::time::sleep(std::time::Duration::from_nanos(live.map.round.as_nanos())).await;
            let mut healed = stream::iter(again).map(&one).buffer_unordered(HEAL_AGAIN_AT_ONCE);
            while let Some((key, healed)) = healed.next().await {
                turn.take(key, healed);
                told(&turn.kept);
            }
        }
        Ok(turn.kept)
    }
}
