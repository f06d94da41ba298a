//! The rack as its operator sees it: state, operations, events, metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_tier::{
    Operation, OperationArgs, Progress, Target, Tier, TierError, TierEvent, TierKind, TierMetrics,
    TierOperation,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::{DiskSnapshot, Notification, PlaceId, RackError, RackStore, Snapshot};

/// What a rack can do; targets are places of disks.
const OPERATIONS: [TierOperation; 4] = [
    TierOperation::new(Operation::Scrub, Target::None),
    TierOperation::new(Operation::Rebuild, Target::Required),
    TierOperation::new(Operation::Replace, Target::Required),
    TierOperation::new(Operation::Recover, Target::None),
];

impl From<RackError> for TierError {
    fn from(error: RackError) -> Self {
        let is_busy = matches!(error, RackError::Busy { .. });
        Self { is_busy, ..Self::new(error.kind(), &error) }
    }
}

#[async_trait]
impl Tier for RackStore {
    fn kind(&self) -> TierKind {
        TierKind::Rack
    }

    fn operations(&self) -> &'static [TierOperation] {
        &OPERATIONS
    }

    async fn snapshot(&self) -> Result<Value, TierError> {
        Ok(json!(self.status().await?))
    }

    async fn ledger(&self) -> Result<Value, TierError> {
        Ok(json!(self.ledger().await?))
    }

    async fn run(
        &self,
        operation: Operation,
        args: &OperationArgs,
        progress: &Arc<Progress>,
    ) -> Result<Value, TierError> {
        self.check(operation, args)?;
        let place = PlaceId::new(args.number()?.unwrap_or_default());
        Ok(match operation {
            Operation::Scrub => json!(self.scrub_with_progress(progress).await?),
            Operation::Rebuild => json!(self.rebuild_with_progress(place, progress).await?),
            Operation::Replace => json!(self.replace_with_progress(place, progress).await?),
            Operation::Recover => json!(self.recover().await?),
            Operation::Verify | Operation::Retire | Operation::Inventory | Operation::Collect => {
                return Err(TierError::no_such_operation(self.kind(), operation));
            }
        })
    }

    async fn watch(&self) -> Result<BoxStream<'static, TierEvent>, TierError> {
        let watch = self.watch().await?;
        let events = futures::stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            Some(match watch.next().await? {
                Ok(seen) => (event(&seen), Some(watch)),
                Err(_) => (TierEvent::Late, None),
            })
        });
        Ok(events.boxed())
    }

    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError> {
        Ok(self.status().await?.degraded_kinds().into_iter().map(str::to_owned).collect())
    }

    async fn reasons(&self) -> Result<Vec<String>, TierError> {
        Ok(self.status().await?.reasons())
    }

    async fn write_metrics(&self, metrics: &mut TierMetrics<'_>) -> Result<(), TierError> {
        let rack = self.status().await?;
        write_rack(metrics, &rack);
        write_groups(metrics, &rack);
        Ok(())
    }

    fn stop(&self) {
        self.stop();
    }
}

fn event(seen: &Notification) -> TierEvent {
    match seen {
        Notification::Snapshot { step, at, rack } => {
            TierEvent::new("snapshot", *step, json!({ "at": at, "rack": rack }))
        }
        Notification::Step { step, at, event, commands } => {
            let data = json!({ "at": at, "event": event, "commands": commands });
            TierEvent::new("step", *step, data)
        }
        Notification::Unrepaired { step, at, group, blob, detail } => {
            let data = json!({ "at": at, "group": group, "blob": blob, "what": detail });
            TierEvent::new("unrepaired", *step, data)
        }
    }
}

fn write_rack(metrics: &mut TierMetrics<'_>, rack: &Snapshot) {
    let simulated = u8::from(rack.simulated);
    metrics.gauge("simulated", "1 when the disks are simulated by directories.", &[], simulated);
    let healthy = u8::from(rack.degraded_kinds().is_empty());
    metrics.gauge("healthy", "1 when nothing is wrong with the tier.", &[], healthy);
    let blobs: u64 = rack.groups.iter().map(|group| group.blobs).sum();
    let bytes: u64 = rack.groups.iter().map(|group| group.bytes).sum();
    metrics.gauge("objects", "Objects in the tier; in a rack, their blobs.", &[], blobs);
    metrics.gauge("bytes", "Bytes of these objects, without redundancy.", &[], bytes);
    let help = "Estimated power draw of the disks; nothing is measured.";
    metrics.gauge("watts", help, &[], format_args!("{:.2}", rack.watts));
    let help = "Blobs with lost stacks that reads found and that could not be rebuilt.";
    metrics.gauge("blobs_unrepaired", help, &[], rack.unrepaired);
}

fn write_groups(metrics: &mut TierMetrics<'_>, rack: &Snapshot) {
    let help = "Spin-ups of a disk or of a group of disks, by cause, over its life.";
    for group in &rack.groups {
        for (cause, count) in &group.spin_ups_by {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("group", &group.group), ("cause", cause)];
            metrics.counter("spinups_total", help, &labels, count);
        }
    }
    for group in &rack.groups {
        let labels: [(&str, &dyn std::fmt::Display); 1] = [("group", &group.group)];
        let mut gauge =
            |name, help, value: &dyn std::fmt::Display| metrics.gauge(name, help, &labels, value);
        let count = |is_counted: fn(&DiskSnapshot) -> bool| {
            group.disks.iter().filter(|disk| is_counted(disk)).count()
        };
        gauge("disks_failed", "Faulty disks of a group.", &count(|disk| disk.failure.is_some()));
        let fails = |disk: &DiskSnapshot| {
            disk.health.as_ref().is_some_and(|health| health.passes == Some(false))
        };
        let help = "Disks of a group that predict their own failure (SMART).";
        gauge("disks_failing", help, &count(fails));
        if rack.rated_spin_ups.is_some() {
            let help =
                "Disks of a group with less than a tenth left of the spin-ups they are rated for.";
            gauge("disks_worn", help, &rack.worn(group).count());
        }
        let help = "Spin-ups of a disk or of a group in the last 25 hours, as budgets count them.";
        gauge("spinups_day", help, &group.spin_ups_of_a_day);
        let help = "Operations waiting for a group or running in it.";
        gauge("waiting", help, &group.waiting);
        gauge("blobs", "Blobs stored in a group.", &group.blobs);
        gauge("blob_bytes", "Bytes of the blobs of a group, without redundancy.", &group.bytes);
        let help = "Blobs of a group that its last scrub could not rebuild.";
        gauge("blobs_unsound", help, &group.unsound);
        if let Some(room) = group.room {
            let help = "Free bytes of a group's disks when last checked; shared file systems \
                        count once.";
            gauge("free_bytes", help, &room.free);
        }
        let help = "Estimated power draw of a group's disks; nothing is measured.";
        gauge("group_watts", help, &format_args!("{:.2}", group.watts));
    }
    for group in &rack.groups {
        let mut counts = BTreeMap::<&str, u64>::new();
        for disk in &group.disks {
            *counts.entry(disk.power.name()).or_default() += 1;
        }
        for (power, count) in counts {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("group", &group.group), ("power", &power)];
            metrics.gauge("disks", "Disks of a group, by power state.", &labels, count);
        }
    }
}
