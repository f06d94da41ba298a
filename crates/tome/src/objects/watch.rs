//! Event stream of a set of tomes for a subscriber: a snapshot, then events, and from time to time
//! the differences that a poll finds.
//!
//! ```text
//! snapshot  comes first, and again after missed events
//! step      an event, numbered without a gap from the start of the subscription
//! diff      differences since the last snapshot or diff; alarms that were raised, or cleared
//! missed    events were overwritten before they were read; a snapshot follows
//! ```
//!
//! A snapshot or a diff may be ahead of the steps that follow it: each step reports a state, so
//! applying them in order leads to the current one. There is no back-pressure from subscribers. Not
//! here: the encoding ([`crate::objects::TomeStore::watch`] has no format).

use std::collections::BTreeMap;

use fulgurite_units::error_chain;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior};

use crate::objects::limits::WATCH_POLL_INTERVAL;
use crate::objects::{Result, Snapshot, TomeStore};
use crate::{TimestampedEvent, Watch};

/// An item of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchItem {
    /// A snapshot, after this many steps.
    Snapshot(u64, Box<Snapshot>),
    /// An event, with its number.
    Step(u64, TimestampedEvent),
    /// Differences, after this many steps.
    SnapshotDiff(u64, Box<SnapshotDiff>),
    /// Missed steps: the number of the last one, and how many.
    Missed(u64, u64),
}

/// Differences from the previous snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotDiff {
    /// New reasons why the set is not healthy.
    pub raised: Vec<String>,
    /// Reasons that no longer hold.
    pub cleared: Vec<String>,
    /// The set, with only those tomes that have changed.
    pub tomes: Snapshot,
}

/// A subscription to a set.
pub struct TomesWatch {
    store: TomeStore,
    events: Watch<TimestampedEvent>,
    step: u64,
    /// The last reported snapshot; `None` while a snapshot is due.
    last_reported: Option<Box<Snapshot>>,
    polling: Option<BoxFuture<'static, Result<Snapshot>>>,
    ticks: Interval,
}

impl std::fmt::Debug for TomesWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TomesWatch").field("step", &self.step).finish_non_exhaustive()
    }
}

impl TomeStore {
    /// Subscribes from now on. Must be called in a runtime with timers.
    #[must_use]
    pub fn watch(&self) -> TomesWatch {
        let mut ticks = tokio::time::interval(WATCH_POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        TomesWatch {
            store: self.clone(),
            events: self.set().watch(),
            step: 0,
            last_reported: None,
            polling: None,
            ticks,
        }
    }
}

impl TomesWatch {
    /// Returns the next item; `None` when the set is gone. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<WatchItem> {
        loop {
            let polling = self.polling.as_mut();
            let poll_result = async {
                match polling {
                    Some(polling) => polling.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                found = poll_result => {
                    self.polling = None;
                    if let Some(seen) = self.poll_result(found) {
                        return Some(seen);
                    }
                }
                // Events before the snapshot wait in the ring.
                event = self.events.next(), if self.last_reported.is_some() => {
                    return Some(match event? {
                        Ok(event) => {
                            self.step += 1;
                            WatchItem::Step(self.step, event)
                        }
                        Err(missed) => {
                            self.step += missed.0;
                            self.last_reported = None;
                            self.poll();
                            WatchItem::Missed(self.step, missed.0)
                        }
                    });
                }
                _ = self.ticks.tick() => self.poll(),
            }
        }
    }

    /// Starts a poll, unless one is running.
    fn poll(&mut self) {
        let store = self.store.clone();
        self.polling.get_or_insert_with(|| async move { store.snapshot().await }.boxed());
    }

    /// Returns the item for the result of a poll.
    fn poll_result(&mut self, found: Result<Snapshot>) -> Option<WatchItem> {
        let now = match found {
            Ok(now) => Box::new(now),
            Err(error) => {
                // The next tick polls again.
                tracing::warn!("the tomes could not be polled: {}", error_chain(&error));
                return None;
            }
        };
        let before = self.last_reported.replace(now.clone());
        let Some(before) = before else { return Some(WatchItem::Snapshot(self.step, now)) };
        if before == now {
            return None;
        }
        Some(WatchItem::SnapshotDiff(self.step, Box::new(SnapshotDiff::between(&before, *now))))
    }
}

impl SnapshotDiff {
    fn between(before: &Snapshot, mut now: Snapshot) -> Self {
        let missing_in = |reasons: &[String], others: &[String]| -> Vec<String> {
            reasons.iter().filter(|reason| !others.contains(reason)).cloned().collect()
        };
        let known: BTreeMap<u32, _> = before.tomes.iter().map(|tome| (tome.tome, tome)).collect();
        now.tomes.retain(|tome| known.get(&tome.tome) != Some(&tome));
        Self {
            raised: missing_in(&now.reasons, &before.reasons),
            cleared: missing_in(&before.reasons, &now.reasons),
            tomes: now,
        }
    }
}
