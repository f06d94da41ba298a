//! Operator requests to a set, followed to their end: moves of member slots, scrubs and inventories
//! of disks, group checks.
//!
//! Cancelling the wait stops nothing that was begun. Not here: how it is done
//! ([`crate`]).

use std::collections::BTreeSet;
use std::time::Duration;

use fulgurite_disks::SpinUp;
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Ratio, error_chain};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};

use crate::objects::limits::PROBLEMS_MAX;
use crate::objects::{Progress, Result, TomeStore};
use crate::{GroupChecked, Moves, TomeStatus};

/// Poll interval for progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Result of moving member slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// The tome that had them.
    pub tome: u32,
    /// Member slots that have moved since the request.
    pub slots: u64,
    /// Member slots to move in all, including those without room.
    pub of: u64,
    /// What is waited for, or was lost, a line each.
    pub problems: Vec<String>,
}

/// Result of scrubs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// Tomes whose disks were scrubbed.
    pub tomes: u64,
    /// Bad blocks rebuilt on the way.
    pub healed: u64,
    /// Tomes that were not scrubbed, and what their parity cannot rebuild, a line each.
    pub problems: Vec<String>,
}

/// Result of comparing groups by their metadata stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Number of groups.
    pub groups: u64,
    /// Groups whose members agree.
    pub agree: u64,
    /// Signatures exchanged.
    pub signatures: u64,
    /// Groups that could not be compared, and wrong blocks, a line each.
    pub problems: Vec<String>,
    /// Number of further problems beyond the limit.
    pub more_problems: u64,
}

impl TomeStore {
    /// Moves the member slots of a lost tome to others, and returns when they have moved or wait
    /// for room.
    ///
    /// # Errors
    /// As [`crate::TomeSet::rebuild`].
    pub fn rebuild<'a>(
        &'a self,
        tome: TomeId,
        work: &'a Progress,
    ) -> BoxFuture<'a, Result<Rebuilt>> {
        Box::pin(async move {
            let planned = self.set().rebuild(tome).await?;
            Ok(self.follow_moves(tome, planned, work).await)
        })
    }

    /// Retires a tome that is here, and returns when its member slots have moved or wait for room.
    ///
    /// # Errors
    /// As [`crate::TomeSet::retire`].
    pub fn retire<'a>(
        &'a self,
        tome: TomeId,
        work: &'a Progress,
    ) -> BoxFuture<'a, Result<Rebuilt>> {
        Box::pin(async move {
            let planned = self.set().retire(tome).await?;
            Ok(self.follow_moves(tome, planned, work).await)
        })
    }

    /// Waits until no member slot of a tome moves.
    async fn follow_moves(&self, tome: TomeId, planned: Moves, work: &Progress) -> Rebuilt {
        let region = self.region_bytes();
        let left_of = |moves: &Moves| {
            let own = moves.under_way.iter().filter(|moving| moving.planned.from.tome == tome);
            own.map(|moving| remaining(moving.done, region)).collect::<Vec<u64>>()
        };
        let mut moves = planned;
        // Member slots that move, and more if a tome that is added meanwhile has room for them.
        let (mut most, mut left) = (0, left_of(&moves));
        while moves.leaving.contains(&tome) && !left.is_empty() {
            most = most.max(left.len());
            let total = most as u64 * region;
            work.set(total.saturating_sub(left.iter().sum()), total);
            tokio::time::sleep(POLL_INTERVAL).await;
            moves = self.set().moves();
            left = left_of(&moves);
        }
        let slots = most.saturating_sub(left.len()) as u64;
        // Those that wait for room must move as well.
        let of = most as u64 + moves.waiting.get(&tome).copied().unwrap_or(0);
        Rebuilt { tome: tome.get(), slots, of, problems: moves.reasons }
    }

    /// Scrubs the disk of a tome, or of all, each once it has a token; returns when done.
    ///
    /// # Errors
    /// Kind `NotFound` when there is no such tome.
    pub fn scrub<'a>(
        &'a self,
        tome: Option<TomeId>,
        work: &'a Progress,
    ) -> BoxFuture<'a, Result<Scrubbed>> {
        Box::pin(async move {
            let (before, block) = (self.status().await.tomes, self.set().layout().block_bytes());
            let selected: BTreeSet<TomeId> = match tome {
                Some(tome) => BTreeSet::from([tome]),
                None => before.iter().map(|status| status.tome).collect(),
            };
            let out = self.set().moves().out;
            let mut scrubs: FuturesUnordered<_> = selected
                .iter()
                .filter(|tome| !out.contains(tome))
                .map(|tome| async { (*tome, self.set().scrub(*tome).await) })
                .collect();
            let mut scrubbed = Scrubbed::default();
            let mut ticks = tokio::time::interval(POLL_INTERVAL);
            loop {
                tokio::select! {
                    done = scrubs.next() => match done {
                        None => break,
                        Some((_, Ok(()))) => scrubbed.tomes += 1,
                        Some((_, Err(error))) if tome.is_some() => return Err(error.into()),
                        Some((_, Err(error))) => scrubbed.problems.push(error_chain(&error)),
                    },
                    _ = ticks.tick() => {
                        let now = self.status().await.tomes;
                        let own = || now.iter().filter(|status| selected.contains(&status.tome));
                        let total: u64 = own().map(|status| status.blocks * block).sum();
                        let left: u64 = own().map(|status| status.to_scrub * block).sum();
                        work.set(total.saturating_sub(left), total);
                    }
                }
            }
            drop(scrubs);
            for after in self.status().await.tomes {
                let same = |status: &&TomeStatus| status.tome == after.tome;
                let Some(before) = before.iter().find(same) else { continue };
                if selected.contains(&after.tome) {
                    scrubbed.healed += after.healed.saturating_sub(before.healed);
                    let new = after.alarms.iter().filter(|alarm| !before.alarms.contains(alarm));
                    scrubbed.problems.extend(new.map(|why| format!("tome {}: {why}", after.tome)));
                }
            }
            Ok(scrubbed)
        })
    }

    /// Compares the members of all groups by their metadata stores, without a spin-up.
    ///
    /// # Errors
    /// When groups cannot be read.
    pub fn compare<'a>(&'a self, work: &'a Progress) -> BoxFuture<'a, Result<Compared>> {
        Box::pin(async move {
            let (region, groups) = (self.region_bytes(), self.set().groups()? as u64);
            let mut compared = Compared::default();
            let report = |checked: GroupChecked| {
                compared.groups += 1;
                compared.signatures += checked.exchanged;
                let problems = problems_of(&checked);
                compared.agree += u64::from(problems.is_empty());
                for problem in problems {
                    if compared.problems.len() < PROBLEMS_MAX {
                        compared.problems.push(problem);
                    } else {
                        compared.more_problems += 1;
                    }
                }
                work.set(compared.groups * region, groups * region);
            };
            self.set().verify(report).await?;
            Ok(compared)
        })
    }

    fn region_bytes(&self) -> u64 {
        let layout = self.set().layout();
        u64::from(layout.region_blocks()) * layout.block_bytes()
    }

    /// Returns the last spin-ups of all tomes that answer, the latest first.
    pub fn ledger(&self) -> BoxFuture<'_, Vec<SpinUp>> {
        Box::pin(async move {
            let mut spin_ups = self.set().spin_ups().await;
            spin_ups.reverse();
            spin_ups
        })
    }
}

/// Returns the bytes that are not done yet, to the thousandth.
fn remaining(done: Ratio, bytes: u64) -> u64 {
    let is_left = |thousandth: &u32| f64::from(*thousandth) > done.get() * 1000.0;
    bytes / 1000 * (1..=1000).filter(is_left).count() as u64
}

/// Returns what is wrong with a group, a line each.
fn problems_of(checked: &GroupChecked) -> Vec<String> {
    let group = checked.group;
    let tomes: Vec<String> = checked.tomes.iter().map(ToString::to_string).collect();
    let tomes = tomes.join(", ");
    if let Some(why) = &checked.failure {
        return vec![format!("group {group} of tomes {tomes} could not be compared: {why}")];
    }
    let finding = |finding: &fulgurite_tome_core::consistency::Finding| {
        let culprit =
            match finding.verdict.wrong_member().and_then(|member| checked.tome_of(member)) {
                Some(tome) => format!("tome {tome} is wrong"),
                None => format!("it is unknown which of tomes {tomes} is wrong"),
            };
        format!("group {group}, block {}: {culprit}", finding.offset)
    };
    checked.findings.iter().map(finding).collect()
}
