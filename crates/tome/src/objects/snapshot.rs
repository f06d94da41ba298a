//! Snapshot of a set of tomes, for programs and people to read. No disk is accessed.

use fulgurite_disks::{CauseKind, Draw, Power};
use fulgurite_tome_core::Spending;
use fulgurite_tome_core::limits::FULL_SCRUB;
use fulgurite_units::{ByteCount, TomeSetId, UnixTime};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::objects::{PutGuarantee, Result, TomeStore};
use crate::{MoveStatus, TomeStatus};

/// A tome of the paper: 0.5 W with its disk and its computer idle; spinning, 7.5 W for the disk,
/// 3.5 W for the board and 0.6 W for NVRAM; up to 13 W (Pergamum (FAST 2008), section 2 and table
/// 2). Nothing is measured.
const DRAW: Draw = Draw { standby_mw: 500, spinning_up_mw: 13_000, active_mw: 11_600 };

/// A set at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Id of the set.
    pub set: TomeSetId,
    /// Whether its disks are simulated: plain directories.
    pub simulated: bool,
    /// Whether the set is healthy; otherwise `reasons` says why not.
    pub is_well: bool,
    /// Why it is not healthy, a line each.
    pub reasons: Vec<String>,
    /// What a put guarantees.
    pub promise: PutGuarantee,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes that are on one tome and not in every parity yet.
    pub unprotected_bytes: u64,
    /// Age of the oldest of them, in seconds.
    pub unprotected_seconds: f64,
    /// Estimated draw of the disks now, in watts, without tomes that do not answer.
    pub watts: f64,
    /// Each tome.
    pub tomes: Vec<TomeSnapshot>,
    /// Moves of member slots of tomes that are lost or being retired.
    pub moves: Vec<MoveSnapshot>,
    /// Tomes whose member slots move to others.
    pub leaving: Vec<u32>,
    /// Tomes without member slots: their disks may be removed.
    pub out: Vec<u32>,
    /// Degraded reads of pieces because their tomes are lost, since the start.
    pub read_without_lost: u64,
    /// Degraded reads of pieces from spinning tomes while their own slept, since the start.
    pub read_without_asleep: u64,
}

/// A move of a member slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveSnapshot {
    /// The group.
    pub group: u32,
    /// The previous holder.
    pub from: u32,
    /// The new holder.
    pub to: u32,
    /// Fraction of the sources read, from 0 to 1.
    pub done: f64,
    /// Why it is stuck, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// One tome at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TomeSnapshot {
    /// Its number.
    pub tome: u32,
    /// Power state of its disk.
    pub power: Power,
    /// Pieces of objects that it has.
    pub pieces: u64,
    /// Bytes of them that its groups do not protect yet.
    pub unprotected_bytes: u64,
    /// Age of the oldest of them, in seconds.
    pub unprotected_seconds: f64,
    /// Spin-ups of its disk over its life.
    pub spin_ups: u64,
    /// Spin-ups by cause, for causes with any.
    pub spin_ups_by: Vec<(CauseKind, u64)>,
    /// Spin-ups of its last day as budgets count them: by hours, so it covers up to an hour more.
    pub spin_ups_of_a_day: u64,
    /// State of its spin-up budget, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSnapshot>,
    /// Bad blocks not rebuilt yet.
    pub bad: u64,
    /// Bad blocks rebuilt since it was opened.
    pub healed: u64,
    /// Full scrubs of its disk.
    pub scrubs: u64,
    /// Progress of the present pass of the full scrub, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubSnapshot>,
    /// Bytes of its disk left of a requested scrub.
    pub to_scrub_bytes: u64,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why it does not answer; it reconnects by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<String>,
    /// Alarms for the operator, the latest last.
    pub alarms: Vec<String>,
}

/// State of a spin-up budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSnapshot {
    /// Deferrable spin-ups allowed in 24 hours.
    pub per_day: u32,
    /// Spin-ups left now.
    pub left: u32,
    /// How long the oldest deferred work has waited, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_off_seconds: Option<f64>,
    /// Spin-ups beyond the budget since the start: for requests, and for work deferred to its
    /// limit.
    pub overdrawn: u64,
}

/// Progress of a pass of the full scrub. Its times assume an even pace, which it keeps to within a
/// 24th of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScrubSnapshot {
    /// Fraction of the disk that was read, from 0 to 1.
    pub share: f64,
    /// When the pass began.
    pub began: UnixTime,
    /// When it was due to be where it is.
    pub paced: UnixTime,
    /// When it is due to end.
    pub ends: UnixTime,
}

impl From<Spending> for BudgetSnapshot {
    fn from(Spending { per_day, left, deferred_for, overdrawn }: Spending) -> Self {
        let put_off_seconds = deferred_for.map(|deferred_for| deferred_for.as_secs_f64());
        Self { per_day, left, put_off_seconds, overdrawn }
    }
}

impl ScrubSnapshot {
    fn new(status: &TomeStatus) -> Option<Self> {
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
    /// Takes a snapshot. No disk is accessed.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async move {
            let (status, totals) = (self.status().await, self.totals()?);
            let block = self.set().layout().block_bytes();
            let draw = |tome: &TomeStatus| match tome.away {
                Some(_) => 0,
                None => DRAW.milliwatts(tome.power),
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
                tomes: status
                    .tomes
                    .into_iter()
                    .map(|tome| TomeSnapshot::new(tome, block))
                    .collect(),
                moves: status.moves.under_way.into_iter().map(MoveSnapshot::from).collect(),
                leaving: status.moves.leaving.iter().map(|tome| tome.get()).collect(),
                out: status.moves.out.iter().map(|tome| tome.get()).collect(),
                read_without_lost: status.degraded_reads.lost,
                read_without_asleep: status.degraded_reads.asleep,
                reasons: status.reasons,
            })
        })
    }
}

impl From<MoveStatus> for MoveSnapshot {
    fn from(MoveStatus { planned, done, failure }: MoveStatus) -> Self {
        Self {
            group: planned.group.get(),
            from: planned.from.tome.get(),
            to: planned.to.tome.get(),
            done: done.get(),
            failure,
        }
    }
}

impl TomeSnapshot {
    fn new(status: TomeStatus, block_bytes: u64) -> Self {
        let causes = CauseKind::ALL.into_iter().zip(status.spin_ups_by_cause);
        Self {
            tome: status.tome.get(),
            power: status.power,
            pieces: status.objects,
            unprotected_bytes: status.unprotected.bytes.get(),
            unprotected_seconds: status.unprotected.age.as_secs_f64(),
            spin_ups: status.spin_ups,
            spin_ups_by: causes.filter(|(_, count)| *count > 0).collect(),
            spin_ups_of_a_day: status.spin_ups_last_day,
            budget: status.spending.map(BudgetSnapshot::from),
            bad: status.bad,
            healed: status.healed,
            scrubs: status.scrubbed.passes,
            scrub: ScrubSnapshot::new(&status),
            to_scrub_bytes: status.to_scrub * block_bytes,
            failure: status.failure,
            away: status.away,
            alarms: status.alarms,
        }
    }
}
