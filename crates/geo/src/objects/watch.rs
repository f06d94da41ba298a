//! Subscription to a namespace over sites: a snapshot, then the changes.
//!
//! Changes are the differences between two polls. Counters lose nothing: they show how much
//! happened between the two. A site that was down for less than a poll interval goes unnoticed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::objects::limits::POLL_INTERVAL;
use crate::objects::status::{SiteSnapshot, Snapshot};
use crate::objects::store::GeoStore;

/// A change of a namespace since the previous poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GeoEvent {
    /// A site does not answer.
    SiteDown {
        /// Its name.
        site: String,
    },
    /// It answers again.
    SiteUp {
        /// Its name.
        site: String,
    },
    /// It was replaced, and is being rebuilt.
    SiteReplaced {
        /// Its name.
        site: String,
    },
    /// It was rebuilt, and votes.
    SiteMadeAgain {
        /// Its name.
        site: String,
    },
    /// The sites have another map.
    Map {
        /// Its epoch.
        epoch: u32,
    },
    /// Acknowledged versions were unreadable, for good.
    VersionsLost {
        /// Reads that met one.
        reads: u64,
    },
    /// Reads failed because too few sites answered.
    Unreadable {
        /// How many.
        reads: u64,
    },
    /// Writes took the slow path.
    SlowWrites {
        /// How many.
        writes: u64,
    },
    /// Writes ended with an unknown outcome.
    Undecided {
        /// How many.
        writes: u64,
    },
    /// The number of hinted objects (incomplete at a site) has changed.
    Hints {
        /// How many there are now.
        hints: u64,
    },
    /// Fragments were rebuilt.
    FragmentsRebuilt {
        /// How many.
        fragments: u64,
    },
    /// Versions were garbage-collected.
    VersionsCollected {
        /// How many.
        versions: u64,
    },
    /// Orphan fragments were removed.
    FragmentsSwept {
        /// How many.
        fragments: u64,
    },
}

/// Returns what changed between two polls: the map, then sites, then the worst.
#[must_use]
pub fn diff_snapshots(before: &Snapshot, now: &Snapshot) -> Vec<GeoEvent> {
    let mut found = Vec::new();
    if before.epoch != now.epoch {
        found.push(GeoEvent::Map { epoch: now.epoch });
    }
    for site in &now.sites {
        let known = before.sites.iter().find(|other| other.name == site.name);
        found.extend(known.into_iter().flat_map(|known| diff_site(known, site)));
    }
    let more = |count: fn(&Snapshot) -> u64| {
        Some(count(now).saturating_sub(count(before))).filter(|&more| more > 0)
    };
    let counted = [
        more(|s| s.reads_lost).map(|reads| GeoEvent::VersionsLost { reads }),
        more(|s| s.reads_unavailable).map(|reads| GeoEvent::Unreadable { reads }),
        more(|s| s.writes_indeterminate).map(|writes| GeoEvent::Undecided { writes }),
        more(|s| s.writes_slow).map(|writes| GeoEvent::SlowWrites { writes }),
        (before.hints != now.hints).then_some(GeoEvent::Hints { hints: now.hints }),
        more(|s| s.fragments_rebuilt).map(|fragments| GeoEvent::FragmentsRebuilt { fragments }),
        more(|s| s.versions_collected).map(|versions| GeoEvent::VersionsCollected { versions }),
        more(|s| s.fragments_swept).map(|fragments| GeoEvent::FragmentsSwept { fragments }),
    ];
    found.extend(counted.into_iter().flatten());
    found
}

fn diff_site(before: &SiteSnapshot, now: &SiteSnapshot) -> impl Iterator<Item = GeoEvent> {
    let site = || now.name.clone();
    let up = (before.up != now.up).then(|| match now.up {
        true => GeoEvent::SiteUp { site: site() },
        false => GeoEvent::SiteDown { site: site() },
    });
    let rebuilding = (before.rebuilding != now.rebuilding).then(|| match now.rebuilding {
        true => GeoEvent::SiteReplaced { site: site() },
        false => GeoEvent::SiteMadeAgain { site: site() },
    });
    up.into_iter().chain(rebuilding)
}

/// An item that a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum GeoUpdate {
    /// The first item: everything.
    Snapshot(Box<Snapshot>),
    /// A change, with a number one higher than that of the previous one.
    Step(u64, GeoEvent),
}

/// A subscriber. It sends nothing to the sites.
#[derive(Debug)]
pub struct GeoSubscriber {
    store: GeoStore,
    last: Option<Snapshot>,
    pending: VecDeque<GeoEvent>,
    step: u64,
}

impl GeoStore {
    /// Subscribes to the namespace.
    #[must_use]
    pub fn watch(&self) -> GeoSubscriber {
        GeoSubscriber { store: self.clone(), last: None, pending: VecDeque::new(), step: 0 }
    }
}

impl GeoSubscriber {
    /// Waits for the next item and returns it. It is cancel-safe: giving up the wait loses nothing.
    pub async fn next(&mut self) -> GeoUpdate {
        let Some(mut last) = self.last.take() else {
            let snapshot = self.store.snapshot();
            self.last = Some(snapshot.clone());
            return GeoUpdate::Snapshot(Box::new(snapshot));
        };
        loop {
            if let Some(event) = self.pending.pop_front() {
                self.last = Some(last);
                self.step += 1;
                return GeoUpdate::Step(self.step, event);
            }
            self.last = Some(last.clone());
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = self.store.snapshot();
            self.pending.extend(diff_snapshots(&last, &now));
            last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> SiteSnapshot {
        SiteSnapshot { name: name.to_owned(), up: true, ..SiteSnapshot::default() }
    }

    #[test]
    fn diff_reports_each_change_once() {
        let before = Snapshot {
            epoch: 1,
            sites: vec![site("lisbon"), site("oslo")],
            hints: 3,
            writes_slow: 5,
            ..Snapshot::default()
        };
        assert_eq!(diff_snapshots(&before, &before), []);
        let mut now = before.clone();
        now.sites[1].up = false;
        now.sites[0].rebuilding = true;
        (now.epoch, now.hints, now.writes_slow, now.reads_lost) = (2, 1, 9, 1);
        let expected = vec![
            GeoEvent::Map { epoch: 2 },
            GeoEvent::SiteReplaced { site: "lisbon".to_owned() },
            GeoEvent::SiteDown { site: "oslo".to_owned() },
            GeoEvent::VersionsLost { reads: 1 },
            GeoEvent::SlowWrites { writes: 4 },
            GeoEvent::Hints { hints: 1 },
        ];
        assert_eq!(diff_snapshots(&before, &now), expected);
        let back = [
            GeoEvent::Map { epoch: 1 },
            GeoEvent::SiteMadeAgain { site: "lisbon".to_owned() },
            GeoEvent::SiteUp { site: "oslo".to_owned() },
            GeoEvent::Hints { hints: 3 },
        ];
        assert_eq!(diff_snapshots(&now, &before), back);
    }
}
