//! Event stream of a set of tomes for a subscriber: a snapshot, then events, and from time to time
//! the differences that a poll finds.
//!
//! ```text
//! scene   a snapshot; comes first, and again after missed events
//! step    an event, numbered without a gap from the start of the subscription
//! look    differences since the last scene or look; alarms that were raised, or cleared
//! missed  events were overwritten before they were read; a scene follows
//! ```
//!
//! A scene or a look may be ahead of the steps that follow it: each step reports a state, so
//! applying them in order leads to the current one. There is no back-pressure from subscribers. Not
//! here: the encoding ([`crate::TomeStore::watch`] has no format).

use std::collections::BTreeMap;

use fulgurite_tomes::{Happened, Watching};
use fulgurite_units::error_chain;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior};

use crate::limits::LOOK_EVERY;
use crate::{Result, Snapshot, TomeStore};

/// An item of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A snapshot, after this many steps.
    Scene(u64, Box<Snapshot>),
    /// An event, with its number.
    Step(u64, Happened),
    /// Differences, after this many steps.
    Look(u64, Box<Look>),
    /// Missed steps: the number of the last one, and how many.
    Missed(u64, u64),
}

/// Differences from the previous snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Look {
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
    happened: Watching,
    step: u64,
    /// The last reported snapshot; `None` while a scene is due.
    told: Option<Box<Snapshot>>,
    looking: Option<BoxFuture<'static, Result<Snapshot>>>,
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
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        TomesWatch {
            store: self.clone(),
            happened: self.set().watch(),
            step: 0,
            told: None,
            looking: None,
            ticks,
        }
    }
}

impl TomesWatch {
    /// Returns the next item; `None` when the set is gone. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<Seen> {
        loop {
            let looking = self.looking.as_mut();
            let looked = async {
                match looking {
                    Some(looking) => looking.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                found = looked => {
                    self.looking = None;
                    if let Some(seen) = self.looked(found) {
                        return Some(seen);
                    }
                }
                // Events before the scene wait in the ring.
                happened = self.happened.next(), if self.told.is_some() => {
                    return Some(match happened? {
                        Ok(happened) => {
                            self.step += 1;
                            Seen::Step(self.step, happened)
                        }
                        Err(missed) => {
                            self.step += missed.0;
                            self.told = None;
                            self.look();
                            Seen::Missed(self.step, missed.0)
                        }
                    });
                }
                _ = self.ticks.tick() => self.look(),
            }
        }
    }

    /// Starts a poll, unless one is running.
    fn look(&mut self) {
        let store = self.store.clone();
        self.looking.get_or_insert_with(|| async move { store.snapshot().await }.boxed());
    }

    /// Returns the item for the result of a poll.
    fn looked(&mut self, found: Result<Snapshot>) -> Option<Seen> {
        let now = match found {
            Ok(now) => Box::new(now),
            Err(error) => {
                // The next tick polls again.
                tracing::warn!("the tomes could not be looked at: {}", error_chain(&error));
                return None;
            }
        };
        let before = self.told.replace(now.clone());
        let Some(before) = before else { return Some(Seen::Scene(self.step, now)) };
        if before == now {
            return None;
        }
        Some(Seen::Look(self.step, Box::new(Look::between(&before, *now))))
    }
}

impl Look {
    fn between(before: &Snapshot, mut now: Snapshot) -> Self {
        let new = |of: &[String], others: &[String]| -> Vec<String> {
            of.iter().filter(|reason| !others.contains(reason)).cloned().collect()
        };
        let known: BTreeMap<u32, _> = before.tomes.iter().map(|tome| (tome.tome, tome)).collect();
        now.tomes.retain(|tome| known.get(&tome.tome) != Some(&tome));
        Self {
            raised: new(&now.reasons, &before.reasons),
            cleared: new(&before.reasons, &now.reasons),
            tomes: now,
        }
    }
}
