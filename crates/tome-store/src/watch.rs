//! A set of tomes as one watches it: all of it at one moment, then what happens, and from time to
//! time what a look finds to be another than before.
//!
//! ```text
//! scene   what it is like; comes first, and again behind what was missed
//! step    something happened, numbered without a gap from where this one began to watch
//! look    what has changed since the scene or look before; alarms that were raised, or cleared
//! missed  more happened than was read; a scene follows
//! ```
//!
//! A scene and a look may be ahead of the steps right behind them: each step says how something is,
//! so all of them in order lead to how it is. Nothing waits for who watches. Not here: how it is
//! told ([`crate::TomeStore::watch`] has no format).

use std::collections::BTreeMap;

use fulgurite_tomes::{Happened, Watching};
use fulgurite_units::error_chain;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior};

use crate::limits::LOOK_EVERY;
use crate::{Result, Snapshot, TomeStore};

/// What one who watches is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// All of it at one moment, after so many steps.
    Scene(u64, Box<Snapshot>),
    /// Something happened, the so manieth.
    Step(u64, Happened),
    /// What has changed, after so many steps.
    Look(u64, Box<Look>),
    /// So many steps were not told; the number of the last of them.
    Missed(u64, u64),
}

/// What is another than before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Reasons why it is not well that there were none of before.
    pub raised: Vec<String>,
    /// Reasons that are none any more.
    pub cleared: Vec<String>,
    /// The set, with those tomes alone that are not as they were.
    pub tomes: Snapshot,
}

/// One who watches a set.
pub struct TomesWatch {
    store: TomeStore,
    happened: Watching,
    step: u64,
    /// What it was like when it was last told; none while a scene is to come.
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
    /// Watches from now on. It is to be called where timers are.
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
    /// What is to be told next; nothing when the set is gone. Who stops waiting loses nothing.
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
                // What happens before the scene is told waits in the ring.
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

    /// Begins to look, unless it does.
    fn look(&mut self) {
        let store = self.store.clone();
        self.looking.get_or_insert_with(|| async move { store.snapshot().await }.boxed());
    }

    /// What is to be told of what a look found.
    fn looked(&mut self, found: Result<Snapshot>) -> Option<Seen> {
        let now = match found {
            Ok(now) => Box::new(now),
            Err(error) => {
                // It is looked again at the next tick.
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
