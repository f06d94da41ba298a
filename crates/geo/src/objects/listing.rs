//! Listings: merges the rows of several sites in the order of their keys.
//!
//! ```text
//! site A   a  b  .  d      the rows of a key at enough sites to miss no object that was
//! site B   a  .  c  d  --> acknowledged: a listing draws the same conclusions from them as a
//! site C   .  b  c  d      read; where they are not enough, the object is read
//! ```
//!
//! Each object is listed as a read at some moment of the listing would have seen it; the listing as
//! a whole is not a snapshot.

use std::sync::Arc;

use fulgurite_geo_core::{Judgement, KnownVersions, Row, SiteIndex, judge};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use tokio::sync::mpsc;

use crate::objects::limits::LISTING_QUEUE_LEN;
use crate::objects::live_map::LiveMap;
use crate::objects::map::Listing;
use crate::objects::undecided_versions::Open;
use crate::objects::{GeoError, Result, names};
use crate::stores::Key;

/// The rows of one key.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) key: String,
    /// Their merged known versions.
    pub(crate) known: KnownVersions,
    /// Whether they are enough to know the state of the object; if not, it must be read.
    pub(crate) certain: bool,
    /// The last undecided version that some of them have.
    pub(crate) open: Option<Open>,
}

/// The remaining rows of one site.
struct Scan {
    rows: mpsc::Receiver<Result<(Key, Row), ()>>,
    head: Option<(Key, Row)>,
    /// Whether it has ended, and whether it ended with a failure.
    ended: bool,
    broken: bool,
}

impl Scan {
    fn begin(live: &Arc<LiveMap>, site: SiteIndex, (prefix, after): (Key, Option<Key>)) -> Self {
        let (send, rows) = mpsc::channel(LISTING_QUEUE_LEN);
        let site = live.shared(site);
        tokio::spawn(async move {
            let table = site.as_ref().and_then(|site| Some((site, site.current_table()?)));
            let Some((site, table)) = table else {
                let _ = send.send(Err(())).await;
                return;
            };
            let mut scan = table.scan(Some(&prefix), after);
            while let Some(row) = scan.next().await {
                let row = match row {
                    Ok((key, row)) => {
                        Row::decode(&row.bytes).map(|row| (key, row)).map_err(|error| {
                            tracing::error!(site = %site.name, %error, "a row is unreadable");
                        })
                    }
                    Err(error) => {
                        tracing::warn!(site = %site.name, %error, "a table could not be listed");
                        Err(())
                    }
                };
                let failed = row.is_err();
                if send.send(row).await.is_err() || failed {
                    return;
                }
            }
        });
        Self { rows, head: None, ended: false, broken: false }
    }

    /// Reads the next row, unless one is buffered or none is left.
    async fn fill(&mut self) {
        if self.head.is_some() || self.ended {
            return;
        }
        match self.rows.recv().await {
            Some(Ok(row)) => self.head = Some(row),
            Some(Err(())) => (self.ended, self.broken) = (true, true),
            None => self.ended = true,
        }
    }
}

struct Merge {
    live: Arc<LiveMap>,
    scans: Vec<Scan>,
    needed: usize,
    done: bool,
}

impl Merge {
    /// Returns the rows of the next key, of all sites that have it; an error if too few sites came
    /// this far.
    async fn next(&mut self) -> Result<Option<Listed>> {
        if self.done {
            return Ok(None);
        }
        futures::future::join_all(self.scans.iter_mut().map(Scan::fill)).await;
        let intact = self.scans.iter().filter(|scan| !scan.broken).count();
        if intact < self.needed {
            self.done = true;
            return Err(GeoError::Unavailable { key: "a listing".into() });
        }
        let heads = self.scans.iter().filter_map(|scan| scan.head.as_ref());
        let Some(key) = heads.map(|(key, _)| key).min().cloned() else {
            self.done = true;
            return Ok(None);
        };
        let mut rows = Vec::new();
        for scan in &mut self.scans {
            let same = scan.head.as_ref().is_some_and(|(head, _)| *head == key);
            match scan.head.take_if(|_| same) {
                Some((_, row)) => rows.push(row),
                None if scan.broken => {}
                // The site has no such row.
                None => rows.push(Row::default()),
            }
        }
        let Some(name) = names::object(&key) else {
            return Err(GeoError::Invalid { reason: format!("unexpected row {key}") });
        };
        Ok(Some(self.listed(name, &rows)))
    }

    fn listed(&self, key: String, rows: &[Row]) -> Listed {
        let mut known = KnownVersions::default();
        for row in rows {
            known.merge(&row.known);
        }
        let voting: Vec<&Row> = rows.iter().filter(|row| !row.silent).collect();
        let quorums = self.live.quorums();
        let is_single_site = self.needed == 1;
        let mut certain = is_single_site || voting.len() >= quorums.read();
        while certain {
            let version = known.last().next();
            let judged = if is_single_site {
                let open = rows.iter().any(|row| row.accepted(version).is_some());
                if open { Judgement::Open } else { Judgement::Nothing }
            } else {
                judge(quorums, version, &voting)
            };
            match judged {
                Judgement::Nothing => break,
                Judgement::Open => certain = false,
                Judgement::Chosen(value) => {
                    let durable = value.was_written();
                    known.learn(version, &fulgurite_geo_core::Decided { value, durable });
                }
            }
        }
        let latest = known.latest();
        certain &= latest.is_ok_and(|latest| latest.is_none_or(|(_, decided)| decided.durable));
        let open = Open::from_rows(rows);
        Listed { key, known, certain, open }
    }
}

/// Lists objects whose rows are below a key, and after another one if given, as the rows show them.
/// Some may no longer exist.
pub(crate) fn listed(
    live: &Arc<LiveMap>,
    range: (Key, Option<Key>),
    (listing, except): (Listing, Option<SiteIndex>),
) -> impl Stream<Item = Result<Listed>> + Send + use<> {
    let mut sites = live.voters();
    sites.retain(|site| Some(*site) != except);
    let needed = match listing {
        Listing::Quorum => live.quorums().read(),
        Listing::Nearest => 1,
    };
    // One more than needed, if there is one: rows that differ are then resolved without a read.
    let site_count = if listing == Listing::Nearest { 1 } else { sites.len() };
    sites.truncate(site_count);
    let scans = sites.into_iter().map(|site| Scan::begin(live, site, range.clone())).collect();
    let merge = Merge { live: Arc::clone(live), scans, needed, done: false };
    stream::try_unfold(merge, |mut merge| async move {
        let next = merge.next().await?;
        Ok(next.map(|listed| (listed, merge)))
    })
}

/// Lists the keys of all objects and stripes, from enough sites to miss none; `except` is not
/// read.
pub(crate) fn keys(
    live: &Arc<LiveMap>,
    except: Option<SiteIndex>,
) -> Result<impl Stream<Item = Result<String>> + Send + use<>> {
    Ok(all(live, except)?.map_ok(|listed| listed.key))
}

/// The same, with the contents of the rows.
pub(crate) fn all(
    live: &Arc<LiveMap>,
    except: Option<SiteIndex>,
) -> Result<impl Stream<Item = Result<Listed>> + Send + use<>> {
    let objects = listed(live, (names::rows(None)?, None), (Listing::Quorum, except));
    let stripes = listed(live, (names::stripes()?, None), (Listing::Quorum, except));
    Ok(objects.chain(stripes))
}
