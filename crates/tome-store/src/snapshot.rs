//! What a set of tomes says of itself, for programs and people to read. No disk is asked.

use fulgurite_disks::{CauseKind, Draw, Power};
use fulgurite_tome::Spending;
use fulgurite_tome::limits::FULL_SCRUB;
use fulgurite_tomes::{MoveStatus, TomeStatus};
use fulgurite_units::{ByteCount, TomeSetId, UnixTime};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Promise, Result, TomeStore};

/// A tome of the paper: 0.5 W with its disk and its computer idle; turning, 7.5 W of the disk,
/// 3.5 W of the board and 0.6 W of what is awake; up to 13 W (Pergamum (FAST 2008), section 2 and
/// table 2). Nothing is measured.
const DRAW: Draw = Draw { standby_mw: 500, spinning_up_mw: 13_000, active_mw: 11_600 };

/// A set at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Which set.
    pub set: TomeSetId,
    /// Whether its disks are simulated: directories that do not turn.
    pub simulated: bool,
    /// Whether all is well; else `reasons` says what is not.
    pub is_well: bool,
    /// Why it is not well, a line each.
    pub reasons: Vec<String>,
    /// What a put waits for.
    pub promise: Promise,
    /// Objects that lie on it.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes that are on one tome and not in every parity yet.
    pub unprotected_bytes: u64,
    /// How long the oldest of them waits, in seconds.
    pub unprotected_seconds: f64,
    /// Estimated draw of the disks now, in watts; those of other processes are not in it.
    pub watts: f64,
    /// Each tome.
    pub tomes: Vec<TomeSnapshot>,
    /// Seats that move to other tomes, since theirs were lost or are taken out.
    pub moves: Vec<MoveSnapshot>,
    /// Tomes whose seats go to others.
    pub leaving: Vec<u32>,
    /// Tomes that have no seat any more: their disks may be taken away.
    pub out: Vec<u32>,
    /// Pieces that were read of their groups since their tomes are lost, since the start.
    pub read_without_lost: u64,
    /// Pieces that were read of others that turned while their tomes slept on, since the start.
    pub read_without_asleep: u64,
}

/// A seat that moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveSnapshot {
    /// Of which group.
    pub group: u32,
    /// Whose it was.
    pub from: u32,
    /// Whose it is to be.
    pub to: u32,
    /// How much of what is to be read for it was, from 0 to 1.
    pub done: f64,
    /// Why it does not go on, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// One tome at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TomeSnapshot {
    /// Its number.
    pub tome: u32,
    /// What its disk does.
    pub power: Power,
    /// Pieces of objects that it has.
    pub pieces: u64,
    /// Bytes of them that its groups do not protect yet.
    pub unprotected_bytes: u64,
    /// How long the oldest of them waits, in seconds.
    pub unprotected_seconds: f64,
    /// Times that its disk was woken, over its life.
    pub wakes: u64,
    /// Those of each cause that there were any of.
    pub wakes_by: Vec<(CauseKind, u64)>,
    /// Those of its last day, as budgets count: by hours, so it looks back an hour more.
    pub wakes_of_a_day: u64,
    /// How its budget of spin-ups stands, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSnapshot>,
    /// Blocks that are bad and were not made anew yet.
    pub bad: u64,
    /// Blocks that were bad and were made anew, since it was opened.
    pub healed: u64,
    /// Times that its whole disk was read by the full scrub.
    pub scrubs: u64,
    /// How far the present pass of the full scrub is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubSnapshot>,
    /// Bytes of its disk that are left of a scrub that somebody asked for.
    pub to_scrub_bytes: u64,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Why it does not answer; it comes back by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<String>,
    /// What somebody should look at, the latest last.
    pub alarms: Vec<String>,
}

/// How a budget of spin-ups stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSnapshot {
    /// Wakes that 24 hours may have, as far as they can wait.
    pub per_day: u32,
    /// Of those, how many are left now.
    pub left: u32,
    /// How long the oldest of what is put off waits, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_off_seconds: Option<f64>,
    /// Wakes beyond it, since the start: requests, and what was put off for long enough.
    pub overdrawn: u64,
}

/// How far a pass of the full scrub is. Its times are those of an even pace, which it keeps to a
/// 24th of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScrubSnapshot {
    /// How much of the disk is behind it, from 0 to 1.
    pub share: f64,
    /// When it began.
    pub began: UnixTime,
    /// When it was to be where it is.
    pub paced: UnixTime,
    /// When it is to end.
    pub ends: UnixTime,
}

impl From<Spending> for BudgetSnapshot {
    fn from(Spending { per_day, left, put_off, overdrawn }: Spending) -> Self {
        let put_off_seconds = put_off.map(|put_off| put_off.as_secs_f64());
        Self { per_day, left, put_off_seconds, overdrawn }
    }
}

impl ScrubSnapshot {
    fn of(status: &TomeStatus) -> Option<Self> {
        let (began, blocks) = (status.scrub_began?, status.blocks.max(1));
        let share = status.scrubbed.next as f64 / blocks as f64;
        let period_ms = FULL_SCRUB.as_nanos() / 1_000_000;
        let behind = u128::from(period_ms) * u128::from(status.scrubbed.next) / u128::from(blocks);
        let after = |ms: u64| UnixTime::from_millis(began.as_millis().saturating_add(ms));
        let paced = after(u64::try_from(behind).unwrap_or(period_ms));
        Some(Self { share, began, paced, ends: after(period_ms) })
    }
}

impl TomeStore {
    /// What goes on. No disk is asked.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async move {
            let (status, totals) = (self.status().await, self.totals()?);
            let block = self.set().layout().block_bytes();
            let draw = |tome: &TomeStatus| match tome.away {
                Some(_) => 0,
                None => DRAW.of(tome.power),
            };
            let milliwatts: u64 = status.tomes.iter().map(draw).sum();
            let ages = status.tomes.iter().map(|tome| tome.unprotected.age.as_secs_f64());
            let unprotected: ByteCount =
                status.tomes.iter().map(|tome| tome.unprotected.bytes).sum();
            Ok(Snapshot {
                set: self.id(),
                simulated: self.set().is_simulated(),
                is_well: status.is_well(),
                promise: self.promise(),
                objects: totals.objects,
                bytes: totals.bytes,
                unprotected_bytes: unprotected.get(),
                unprotected_seconds: ages.fold(0.0, f64::max),
                watts: milliwatts as f64 / 1000.0,
                tomes: status.tomes.into_iter().map(|tome| TomeSnapshot::of(tome, block)).collect(),
                moves: status.moves.under_way.into_iter().map(MoveSnapshot::from).collect(),
                leaving: status.moves.leaving.iter().map(|tome| tome.get()).collect(),
                out: status.moves.out.iter().map(|tome| tome.get()).collect(),
                read_without_lost: status.around.lost,
                read_without_asleep: status.around.awake,
                reasons: status.reasons,
            })
        })
    }
}

impl From<MoveStatus> for MoveSnapshot {
    fn from(MoveStatus { planned, done, trouble }: MoveStatus) -> Self {
        Self {
            group: planned.group.get(),
            from: planned.from.tome.get(),
            to: planned.to.tome.get(),
            done: done.get(),
            trouble,
        }
    }
}

impl TomeSnapshot {
    fn of(status: TomeStatus, block_bytes: u64) -> Self {
        let by = CauseKind::ALL.into_iter().zip(status.wakes_by);
        Self {
            tome: status.tome.get(),
            power: status.power,
            pieces: status.objects,
            unprotected_bytes: status.unprotected.bytes.get(),
            unprotected_seconds: status.unprotected.age.as_secs_f64(),
            wakes: status.wakes,
            wakes_by: by.filter(|(_, count)| *count > 0).collect(),
            wakes_of_a_day: status.wakes_of_a_day,
            budget: status.spending.map(BudgetSnapshot::from),
            bad: status.bad,
            healed: status.healed,
            scrubs: status.scrubbed.passes,
            scrub: ScrubSnapshot::of(&status),
            to_scrub_bytes: status.to_scrub * block_bytes,
            trouble: status.trouble,
            away: status.away,
            alarms: status.alarms,
        }
    }
}
