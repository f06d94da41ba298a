//! Detects sites whose stores are an older copy, by start counts that the sites keep of each other.
//!
//! ```text
//! row "counts" of a site     its own count, and the last count that it saw of each other one
//! blob "r/COUNT"             the count of the site's blobs
//! ```
//!
//! A program that maintains a namespace counts when it starts and then at every garbage collection:
//! first each site's own count, then all of them at every other site. So a site always has at least
//! the count that the others saw of it. A table with a lower count has forgotten promises and
//! acknowledged writes: it is no longer used, as if its site did not answer. Blobs without their
//! count lack what was written since: all objects are repaired. A copy made after the last count is
//! not detected.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_units::{UnixTime, error_chain};
use futures::future::{BoxFuture, join_all};
use futures::stream::StreamExt as _;

use crate::objects::live_map::LiveMap;
use crate::objects::site::Site;
use crate::objects::store::{GeoStore, Inner};
use crate::objects::{Result, names};
use crate::stores::{BlobError, Decision, Guess, Table, transact};

const FIRST_LINE: &str = "fulgurite starts 1";

/// Contents of a site's row: counts of tables and of blobs, by the names of sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StartCounts {
    tables: BTreeMap<String, u64>,
    blobs: BTreeMap<String, u64>,
}

impl StartCounts {
    fn table(&self, site: &str) -> u64 {
        self.tables.get(site).copied().unwrap_or(0)
    }

    fn blobs(&self, site: &str) -> u64 {
        self.blobs.get(site).copied().unwrap_or(0)
    }

    /// Keeps the higher of each count.
    fn merge(&mut self, other: &Self) {
        for (own, others) in [(&mut self.tables, &other.tables), (&mut self.blobs, &other.blobs)] {
            for (site, &count) in others {
                let own = own.entry(site.clone()).or_default();
                *own = count.max(*own);
            }
        }
    }

    /// Decodes a row; one of another format counts as empty.
    fn decode(bytes: Option<&[u8]>) -> Self {
        let mut counts = Self::default();
        let text = bytes.map(String::from_utf8_lossy).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return counts;
        }
        for line in lines {
            let mut words = line.splitn(3, ' ');
            let (Some(kind), Some(count), Some(site)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(count) = count.parse() else { continue };
            match kind {
                "table" => counts.tables.insert(site.to_owned(), count),
                "blobs" => counts.blobs.insert(site.to_owned(), count),
                _ => None,
            };
        }
        counts
    }

    fn encode(&self, nonce: u128) -> Bytes {
        let mut text = format!("{FIRST_LINE}\n");
        for (kind, counts) in [("table", &self.tables), ("blobs", &self.blobs)] {
            for (site, count) in counts {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{kind} {count} {site}");
            }
        }
        let _ = writeln!(text, "nonce {nonce:032x}");
        Bytes::from(text)
    }
}

impl GeoStore {
    /// Counts a start at all sites that answer, and checks which of them are older copies.
    ///
    /// # Errors
    /// If the site map cannot be confirmed.
    pub fn count_start(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            self.0.count_start(&live, false).await;
            Ok(())
        })
    }
}

impl Inner {
    /// Checks which sites are older copies. A site that does not answer now is not one.
    pub(crate) async fn check_starts(&self, live: &Arc<LiveMap>) {
        let rows = self.read_counts(live).await;
        let known = merged(&rows);
        for (site, own) in &rows {
            if site.state.rebuilding {
                continue;
            }
            let mut is_older = own.table(&site.name) < known.table(&site.name);
            if is_older {
                // A site writes its own count before the others learn it, so a row read before
                // theirs may just be too early.
                let again = self.read_row(live, site).await;
                is_older = again.is_none_or(|own| own.table(&site.name) < known.table(&site.name));
            }
            self.record_table_age(site, is_older);
        }
        for site in live.sites() {
            if site.state.rebuilding || known.blobs(&site.name) == 0 {
                continue;
            }
            let mut is_older = self.lacks_count(live, site, known.blobs(&site.name)).await;
            if is_older {
                let again = merged(&self.read_counts(live).await);
                is_older = self.lacks_count(live, site, again.blobs(&site.name)).await;
            }
            record_blobs_age(site, is_older);
        }
    }

    /// Counts at each site. With `is_healed`, blobs that were an older copy no longer are.
    pub(crate) async fn count_start(&self, live: &Arc<LiveMap>, is_healed: bool) {
        self.check_starts(live).await;
        let known = merged(&self.read_counts(live).await);
        let mut counted = StartCounts::default();
        for site in live.sites() {
            let Some(table) = site.current_table() else { continue };
            let lower_bound = known.table(&site.name);
            if let Some(count) = self.count_table(live, site, table, lower_bound).await {
                counted.tables.insert(site.name.clone(), count);
            }
        }
        for site in live.sites() {
            if site.are_blobs_older() && !is_healed {
                continue;
            }
            let count = known.blobs(&site.name) + 1;
            if self.count_blobs(live, site, count).await {
                counted.blobs.insert(site.name.clone(), count);
                record_blobs_age(site, false);
            }
        }
        let updates = live.sites().iter().filter_map(|site| {
            let table = site.current_table()?;
            Some(self.update(live, site, table, |counts| counts.merge(&counted)))
        });
        join_all(updates).await;
        for (name, count) in &counted.blobs {
            let site = live.sites().iter().find(|site| site.name == *name);
            if let Some(site) = site {
                self.remove_counts_before(live, site, *count).await;
            }
        }
    }

    /// Increments a site's own count; `lower_bound` is what others saw of a site that is being
    /// rebuilt.
    async fn count_table(
        &self,
        live: &LiveMap,
        site: &Site,
        table: &dyn Table,
        lower_bound: u64,
    ) -> Option<u64> {
        let lower_bound = if site.state.rebuilding { lower_bound } else { 0 };
        let counts = self
            .update(live, site, table, |counts| {
                let own = counts.tables.entry(site.name.clone()).or_default();
                *own = lower_bound.max(*own) + 1;
            })
            .await?;
        Some(counts.table(&site.name))
    }

    /// Changes a site's row. Returns its new contents, or none if the site does not answer.
    async fn update(
        &self,
        live: &LiveMap,
        site: &Site,
        table: &dyn Table,
        update: impl Fn(&mut StartCounts) + Send,
    ) -> Option<StartCounts> {
        let decide = move |bytes: Option<&[u8]>| {
            let mut counts = StartCounts::decode(bytes);
            update(&mut counts);
            let nonce = u128::from_le_bytes(self.ctx.entropy.draw());
            Decision::Write(counts.encode(nonce), counts)
        };
        let key = names::starts().ok()?;
        let done = transact(table, &key, Guess::Nothing, &*self.ctx.backoff, decide);
        match with_round_timeout(live, done).await? {
            Ok(done) => Some(done.result),
            Err(error) => {
                let error = error_chain(&error);
                tracing::debug!(site = %site.name, error, "a start could not be counted at a site");
                None
            }
        }
    }

    async fn count_blobs(&self, live: &LiveMap, site: &Site, count: u64) -> bool {
        let (Some(blobs), Ok(key)) = (&site.blobs, names::start(count)) else { return false };
        let created =
            with_round_timeout(live, blobs.create(&key, Bytes::from_static(b"fulgurite start\n")))
                .await;
        created.is_some_and(|created| created.is_ok())
    }

    async fn remove_counts_before(&self, live: &LiveMap, site: &Site, count: u64) {
        let (Some(blobs), Ok(below)) = (&site.blobs, names::starts_of_blobs()) else { return };
        let removal = async {
            let mut found = blobs.list(Some(&below), UnixTime::from_millis(u64::MAX / 2));
            while let Some(Ok(meta)) = found.next().await {
                if names::parse_start(&meta.key).is_some_and(|found| found < count) {
                    // If this fails, the next count removes it.
                    let _ = blobs.delete(&meta.key).await;
                }
            }
        };
        let _ = with_round_timeout(live, removal).await;
    }

    /// Whether the store states that a count of its blobs is missing.
    async fn lacks_count(&self, live: &LiveMap, site: &Site, count: u64) -> bool {
        let (Some(blobs), Ok(key)) = (&site.blobs, names::start(count)) else { return false };
        let head = with_round_timeout(live, blobs.head(&key)).await;
        matches!(head, Some(Err(BlobError::NotFound)))
    }

    /// Reads the rows of all sites that answer.
    async fn read_counts(&self, live: &Arc<LiveMap>) -> Vec<(Arc<Site>, StartCounts)> {
        let read = live
            .sites()
            .iter()
            .map(|site| async move { Some((Arc::clone(site), self.read_row(live, site).await?)) });
        join_all(read).await.into_iter().flatten().collect()
    }

    /// Reads the row of one site, older copy or not; none if it does not answer.
    async fn read_row(&self, live: &LiveMap, site: &Site) -> Option<StartCounts> {
        let (table, key) = (site.table.as_ref()?, names::starts().ok()?);
        let row = with_round_timeout(live, table.read(&key)).await?.ok()?;
        Some(StartCounts::decode(row.as_ref().map(|row| &*row.bytes)))
    }

    fn record_table_age(&self, site: &Site, is_older: bool) {
        if !site.set_table_older(is_older) {
            return;
        }
        if !is_older {
            tracing::info!(site = %site.name, "the table of a site is current again");
            return;
        }
        let name = &site.name;
        tracing::error!(
            site = %name,
            "the table of site {name} is an older copy: it has lost promises, and is not used any \
             more. Restore the newer copy, or replace the site by an empty place: \
             `fulgurite tier replace NAME {name} --table URL --blobs URL`"
        );
    }
}

fn record_blobs_age(site: &Site, is_older: bool) {
    if site.set_blobs_older(is_older) && is_older {
        tracing::warn!(
            site = %site.name,
            "the blobs of site {} are an older copy: a running server repairs all objects in the \
             background; `fulgurite tier scrub NAME` does so at once",
            site.name
        );
    }
}

fn merged(rows: &[(Arc<Site>, StartCounts)]) -> StartCounts {
    let mut all = StartCounts::default();
    rows.iter().for_each(|(_, counts)| all.merge(counts));
    all
}

/// Limits the wait for a site to one round.
async fn with_round_timeout<T>(live: &LiveMap, work: impl Future<Output = T>) -> Option<T> {
    let round = std::time::Duration::from_nanos(live.map.round.as_nanos());
    tokio::time::timeout(round, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_counts_round_trip() {
        let mut counts = StartCounts::default();
        counts.tables.insert("new york".to_owned(), 7);
        counts.tables.insert("oslo".to_owned(), 1);
        counts.blobs.insert("oslo".to_owned(), 3);
        let bytes = counts.encode(5);
        let text = "fulgurite starts 1\ntable 7 new york\ntable 1 oslo\nblobs 3 oslo\n\
                    nonce 00000000000000000000000000000005\n";
        assert_eq!(bytes, text);
        assert_eq!(StartCounts::decode(Some(&bytes)), counts);
        assert_eq!(
            StartCounts::decode(Some(b"fulgurite starts 2\ntable 7 oslo\n")),
            StartCounts::default()
        );
        assert_eq!(StartCounts::decode(None), StartCounts::default());
    }
}
