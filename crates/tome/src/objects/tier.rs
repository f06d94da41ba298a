//! The set of tomes as its operator sees it: state, operations, events, metrics.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_tier::{
    Operation, OperationArgs, Progress, Target, Tier, TierError, TierEvent, TierKind, TierMetrics,
    TierOperation,
};
use fulgurite_tome_core::TomeId;
use fulgurite_units::UnixTime;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::objects::{
    MoveSnapshot, Snapshot, StoreError, TomeSnapshot, TomeStore, TomesWatch, WatchItem,
};

/// What a set can do; targets are tomes.
const OPERATIONS: [TierOperation; 6] = [
    TierOperation::new(Operation::Verify, Target::None),
    TierOperation::new(Operation::Scrub, Target::Optional),
    TierOperation::new(Operation::Rebuild, Target::Required),
    TierOperation::new(Operation::Retire, Target::Required),
    TierOperation::new(Operation::Inventory, Target::Required),
    TierOperation::new(Operation::Recover, Target::None),
];

impl From<StoreError> for TierError {
    fn from(error: StoreError) -> Self {
        Self::new(error.kind(), &error)
    }
}

#[async_trait]
impl Tier for TomeStore {
    fn kind(&self) -> TierKind {
        TierKind::Tome
    }

    fn operations(&self) -> &'static [TierOperation] {
        &OPERATIONS
    }

    async fn snapshot(&self) -> Result<Value, TierError> {
        Ok(json!(self.snapshot().await?))
    }

    async fn ledger(&self) -> Result<Value, TierError> {
        Ok(json!(self.ledger().await))
    }

    async fn run(
        &self,
        operation: Operation,
        args: &OperationArgs,
        progress: &Arc<Progress>,
    ) -> Result<Value, TierError> {
        self.check(operation, args)?;
        let target = args.number()?.map(TomeId::new);
        let tome = target.unwrap_or(TomeId::new(0));
        Ok(match operation {
            Operation::Verify => json!(self.compare(progress).await?),
            Operation::Scrub => json!(self.scrub(target, progress).await?),
            Operation::Rebuild => json!(self.rebuild(tome, progress).await?),
            Operation::Retire => json!(self.retire(tome, progress).await?),
            Operation::Inventory => json!(self.inventory(tome, progress).await?),
            Operation::Recover => json!(self.recover(progress).await?),
            Operation::Replace | Operation::Collect => {
                return Err(TierError::no_such_operation(self.kind(), operation));
            }
        })
    }

    async fn watch(&self) -> Result<BoxStream<'static, TierEvent>, TierError> {
        let events = futures::stream::unfold(self.watch(), |mut watch: TomesWatch| async move {
            Some((event(watch.next().await?), watch))
        });
        Ok(events.take_until(self.stopping()).boxed())
    }

    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError> {
        let status = self.status().await;
        if status.is_well() {
            return Ok(Vec::new());
        }
        let mut kinds = vec!["the set of tomes is not well".to_owned()];
        if status.tomes.iter().any(|tome| tome.away.is_some()) {
            kinds.push("a tome is lost or away".to_owned());
        }
        Ok(kinds)
    }

    async fn reasons(&self) -> Result<Vec<String>, TierError> {
        Ok(self.status().await.reasons)
    }

    async fn write_metrics(&self, metrics: &mut TierMetrics<'_>) -> Result<(), TierError> {
        let set = self.snapshot().await?;
        write_set(metrics, &set);
        for tome in &set.tomes {
            write_tome(metrics, tome);
        }
        Ok(())
    }

    /// A body on its way to the set may wait an hour for parity: it is staged, and moved later.
    fn stop_waiting(&self) {
        self.stop_waiting();
    }

    fn stop(&self) {
        self.stop();
    }
}

fn event(item: WatchItem) -> TierEvent {
    match item {
        WatchItem::Snapshot(step, tomes) => {
            TierEvent::new("snapshot", step, json!({ "tomes": tomes }))
        }
        WatchItem::Step(step, happened) => {
            let data = json!({ "at": happened.at, "happened": happened.what });
            TierEvent::new("step", step, data)
        }
        WatchItem::SnapshotDiff(step, diff) => {
            TierEvent::new("poll", step, json!({ "poll": diff }))
        }
        WatchItem::Missed(step, missed) => {
            TierEvent::new("missed", step, json!({ "missed": missed }))
        }
    }
}

fn write_set(metrics: &mut TierMetrics<'_>, set: &Snapshot) {
    let simulated = u8::from(set.simulated);
    metrics.gauge("simulated", "1 when the disks are simulated by directories.", &[], simulated);
    let healthy = u8::from(set.is_well);
    metrics.gauge("healthy", "1 when nothing is wrong with the tier.", &[], healthy);
    let help = "Objects in the tier; in a rack, their blobs.";
    metrics.gauge("objects", help, &[], set.objects);
    metrics.gauge("bytes", "Bytes of these objects, without redundancy.", &[], set.bytes);
    let help = "Estimated power draw of the disks; nothing is measured.";
    metrics.gauge("watts", help, &[], format_args!("{:.2}", set.watts));
    let help = "Member slots that move because their tomes are lost or leaving.";
    metrics.gauge("moving_slots", help, &[], set.moves.len());
    for MoveSnapshot { group, from, to, done, .. } in &set.moves {
        let help = "Share of the reads done to move a member slot, from 0 to 1.";
        let labels: [(&str, &dyn std::fmt::Display); 3] =
            [("group", group), ("from", from), ("to", to)];
        metrics.gauge("move_share", help, &labels, format_args!("{done:.4}"));
    }
    metrics.gauge("leaving", "Tomes whose member slots move to others.", &[], set.leaving.len());
    for (own, count) in [("lost", set.read_without_lost), ("asleep", set.read_without_asleep)] {
        let help = "Pieces read without their own tome, by why, since the start.";
        metrics.counter("degraded_reads_total", help, &[("own", &own)], count);
    }
}

fn write_tome(metrics: &mut TierMetrics<'_>, tome: &TomeSnapshot) {
    let own: (&str, &dyn std::fmt::Display) = ("tome", &tome.tome);
    let labels = [own, ("power", &tome.power)];
    metrics.gauge("power", "1 for the power state of a tome's disk.", &labels, 1);
    let is_usable = tome.failure.is_none() && tome.away.is_none();
    metrics.gauge("usable", "1 when a tome can be used.", &[own], u8::from(is_usable));
    for (cause, count) in &tome.spin_ups_by {
        let help = "Spin-ups of a disk or of a group of disks, by cause, over its life.";
        metrics.counter("spinups_total", help, &[own, ("cause", cause)], count);
    }
    for Metric { name, help, get } in METRICS {
        let Some(value) = get(tome) else { continue };
        if name.ends_with("_total") {
            metrics.counter(name, help, &[own], value);
        } else {
            metrics.gauge(name, help, &[own], value);
        }
    }
}

/// A metric of each tome; left out where its value is unknown.
struct Metric {
    name: &'static str,
    help: &'static str,
    get: fn(&TomeSnapshot) -> Option<f64>,
}

const fn metric(
    name: &'static str,
    help: &'static str,
    get: fn(&TomeSnapshot) -> Option<f64>,
) -> Metric {
    Metric { name, help, get }
}

const METRICS: [Metric; 14] = [
    metric("pieces", "Pieces of objects on a tome.", |tome| Some(tome.pieces as f64)),
    metric(
        "unprotected_bytes",
        "Bytes on a tome not yet covered by all parity of their groups.",
        |tome| Some(tome.unprotected_bytes as f64),
    ),
    metric(
        "unprotected_seconds",
        "Age of the oldest unprotected bytes; alarms after a day.",
        |tome| Some(tome.unprotected_seconds),
    ),
    metric("bad_blocks", "Bad blocks not rebuilt yet.", |tome| Some(tome.bad as f64)),
    metric("healed_total", "Bad blocks rebuilt, since the start.", |tome| Some(tome.healed as f64)),
    metric("scrubs_total", "Full scrub passes over a disk.", |tome| Some(tome.scrubs as f64)),
    metric(
        "scrub_share",
        "Share of a disk that the current scrub pass has read, from 0 to 1.",
        |tome| Some(tome.scrub?.share),
    ),
    metric(
        "scrub_began_timestamp_seconds",
        "When the current pass of the full scrub began.",
        |tome| Some(seconds(tome.scrub?.began)),
    ),
    metric(
        "scrub_paced_timestamp_seconds",
        "When an evenly paced pass would be where this one is; if in the past, it is behind.",
        |tome| Some(seconds(tome.scrub?.paced)),
    ),
    metric(
        "spinups_day",
        "Spin-ups of a disk or of a group in the last 25 hours, as budgets count them.",
        |tome| Some(tome.spin_ups_of_a_day as f64),
    ),
    metric("spinups_left", "Spin-ups left in the budget for work that can wait.", |tome| {
        Some(f64::from(tome.budget?.left))
    }),
    metric("spinups_overdrawn_total", "Spin-ups beyond the budget, since the start.", |tome| {
        Some(tome.budget?.overdrawn as f64)
    }),
    metric("deferred_seconds", "Age of the oldest work that the budget defers.", |tome| {
        Some(tome.budget?.put_off_seconds.unwrap_or(0.0))
    }),
    metric("to_scrub_bytes", "Bytes left of a requested scrub.", |tome| {
        Some(tome.to_scrub_bytes as f64)
    }),
];

fn seconds(time: UnixTime) -> f64 {
    time.as_millis() as f64 / 1000.0
}
