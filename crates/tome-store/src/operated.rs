//! What an operator has done to a set, followed to its end: seats that move, disks that are read
//! whole, groups that are compared.
//!
//! Who stops waiting stops nothing that was begun. Not here: how it is done ([`fulgurite_tomes`]).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fulgurite_disks::Wake;
use fulgurite_tome::TomeId;
use fulgurite_tomes::{GroupChecked, Moves, TomeStatus};
use fulgurite_units::{ByteCount, Ratio, error_chain};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};

use crate::limits::PROBLEMS_MAX;
use crate::{Result, TomeStore};

/// How often it is looked how far something is.
const LOOK: Duration = Duration::from_millis(200);

/// How far something long is, in bytes of disks.
#[derive(Debug, Default)]
pub struct Work {
    done: AtomicU64,
    total: AtomicU64,
}

/// What came of seats that were to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// Whose seats.
    pub tome: u32,
    /// Seats that have moved since this was asked for.
    pub seats: u64,
    /// Of so many, those among them that find no room.
    pub of: u64,
    /// What is waited for, or was lost, a line each.
    pub problems: Vec<String>,
}

/// What came of reading disks whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// Tomes whose disks were read whole.
    pub tomes: u64,
    /// Blocks that were bad and were made anew on the way.
    pub healed: u64,
    /// Tomes that were not read, and what is beyond their parity, a line each.
    pub problems: Vec<String>,
}

/// What came of comparing groups by what is awake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Groups that there are.
    pub groups: u64,
    /// Groups whose members agree.
    pub agree: u64,
    /// Signatures that members told for it.
    pub signatures: u64,
    /// Groups that could not be compared, and blocks that are not as they should be, a line each.
    pub problems: Vec<String>,
    /// Problems that are not among these: there were too many.
    pub more_problems: u64,
}

impl Work {
    /// Bytes that are done, and of how many.
    #[must_use]
    pub fn bytes(&self) -> (ByteCount, ByteCount) {
        let of = |count: &AtomicU64| ByteCount::new(count.load(Ordering::Relaxed));
        (of(&self.done), of(&self.total))
    }

    pub(crate) fn tell(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }
}

impl TomeStore {
    /// Has the seats of a lost tome move to others, and returns when they have or wait for room.
    ///
    /// # Errors
    /// As [`fulgurite_tomes::TomeSet::rebuild`].
    pub fn rebuild<'a>(&'a self, tome: TomeId, work: &'a Work) -> BoxFuture<'a, Result<Rebuilt>> {
        Box::pin(async move {
            let planned = self.set().rebuild(tome).await?;
            Ok(self.follow(tome, planned, work).await)
        })
    }

    /// Takes a tome out that is here, and returns when its seats have moved or wait for room.
    ///
    /// # Errors
    /// As [`fulgurite_tomes::TomeSet::retire`].
    pub fn retire<'a>(&'a self, tome: TomeId, work: &'a Work) -> BoxFuture<'a, Result<Rebuilt>> {
        Box::pin(async move {
            let planned = self.set().retire(tome).await?;
            Ok(self.follow(tome, planned, work).await)
        })
    }

    /// Waits until no seat of a tome moves.
    async fn follow(&self, tome: TomeId, planned: Moves, work: &Work) -> Rebuilt {
        let region = self.region_bytes();
        let of_tome = |moves: &Moves| {
            let own = moves.under_way.iter().filter(|moving| moving.planned.from.tome == tome);
            own.map(|moving| undone(moving.done, region)).collect::<Vec<u64>>()
        };
        let mut moves = planned;
        // Seats that move, and more when a tome that is added meanwhile has room for them.
        let (mut most, mut left) = (0, of_tome(&moves));
        while moves.leaving.contains(&tome) && !left.is_empty() {
            most = most.max(left.len());
            let total = most as u64 * region;
            work.tell(total.saturating_sub(left.iter().sum()), total);
            tokio::time::sleep(LOOK).await;
            moves = self.set().moves();
            left = of_tome(&moves);
        }
        let seats = most.saturating_sub(left.len()) as u64;
        // Those that wait for room have to move as well.
        let of = most as u64 + moves.waiting.get(&tome).copied().unwrap_or(0);
        Rebuilt { tome: tome.get(), seats, of, problems: moves.reasons }
    }

    /// Has the disks of some tomes read whole, of all if none is named, each when it has a token;
    /// returns when they were.
    ///
    /// # Errors
    /// Kind `NotFound` when there is none of that number.
    pub fn scrub<'a>(
        &'a self,
        tome: Option<TomeId>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Scrubbed>> {
        Box::pin(async move {
            let (before, block) = (self.status().await.tomes, self.set().layout().block_bytes());
            let wanted: BTreeSet<TomeId> = match tome {
                Some(tome) => BTreeSet::from([tome]),
                None => before.iter().map(|status| status.tome).collect(),
            };
            let out = self.set().moves().out;
            let mut asked: FuturesUnordered<_> = wanted
                .iter()
                .filter(|tome| !out.contains(tome))
                .map(|tome| async { (*tome, self.set().scrub(*tome).await) })
                .collect();
            let mut scrubbed = Scrubbed::default();
            let mut ticks = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    done = asked.next() => match done {
                        None => break,
                        Some((_, Ok(()))) => scrubbed.tomes += 1,
                        Some((_, Err(error))) if tome.is_some() => return Err(error.into()),
                        Some((_, Err(error))) => scrubbed.problems.push(error_chain(&error)),
                    },
                    _ = ticks.tick() => {
                        let now = self.status().await.tomes;
                        let own = || now.iter().filter(|status| wanted.contains(&status.tome));
                        let total: u64 = own().map(|status| status.blocks * block).sum();
                        let left: u64 = own().map(|status| status.to_scrub * block).sum();
                        work.tell(total.saturating_sub(left), total);
                    }
                }
            }
            drop(asked);
            for after in self.status().await.tomes {
                let same = |status: &&TomeStatus| status.tome == after.tome;
                let Some(before) = before.iter().find(same) else { continue };
                if wanted.contains(&after.tome) {
                    scrubbed.healed += after.healed.saturating_sub(before.healed);
                    let new = after.alarms.iter().filter(|alarm| !before.alarms.contains(alarm));
                    scrubbed.problems.extend(new.map(|why| format!("tome {}: {why}", after.tome)));
                }
            }
            Ok(scrubbed)
        })
    }

    /// Compares the members of all groups by what they keep awake; no disk is woken.
    ///
    /// # Errors
    /// When groups cannot be read.
    pub fn compare<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Result<Compared>> {
        Box::pin(async move {
            let (region, groups) = (self.region_bytes(), self.set().groups()? as u64);
            let mut compared = Compared::default();
            let tell = |checked: GroupChecked| {
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
                work.tell(compared.groups * region, groups * region);
            };
            self.set().verify(tell).await?;
            Ok(compared)
        })
    }

    fn region_bytes(&self) -> u64 {
        let layout = self.set().layout();
        u64::from(layout.region_blocks()) * layout.block_bytes()
    }

    /// The last wakes of tomes of this process, the latest first.
    pub fn ledger(&self) -> BoxFuture<'_, Vec<Wake>> {
        Box::pin(async move {
            let mut wakes = self.set().wakes().await;
            wakes.reverse();
            wakes
        })
    }
}

/// Bytes of so many of which a share is not done yet, to the thousandth.
fn undone(done: Ratio, bytes: u64) -> u64 {
    let is_left = |thousandth: &u32| f64::from(*thousandth) > done.get() * 1000.0;
    bytes / 1000 * (1..=1000).filter(is_left).count() as u64
}

/// What is wrong with a group, a line each.
fn problems_of(checked: &GroupChecked) -> Vec<String> {
    let group = checked.group;
    let tomes: Vec<String> = checked.tomes.iter().map(ToString::to_string).collect();
    let tomes = tomes.join(", ");
    if let Some(why) = &checked.trouble {
        return vec![format!("group {group} of tomes {tomes} is not compared: {why}")];
    }
    let finding = |finding: &fulgurite_tome::consistency::Finding| {
        let who = match finding.verdict.culprit().and_then(|member| checked.tome_of(member)) {
            Some(tome) => format!("tome {tome} is wrong"),
            None => format!("it cannot be told who of tomes {tomes} is wrong"),
        };
        format!("group {group}, block {}: {who}", finding.offset)
    };
    checked.findings.iter().map(finding).collect()
}
