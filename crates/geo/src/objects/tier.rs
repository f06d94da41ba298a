//! The namespace as its operator sees it: operations; and state, events, metrics, from the counters
//! of this process, for which no site is contacted.

use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_tier::{
    Operation, OperationArgs, Progress, Target, Tier, TierError, TierEvent, TierKind, TierMetrics,
    TierOperation,
};
use fulgurite_units::ErrorKind;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::objects::{
    GeoError, GeoStore, GeoSubscriber, GeoUpdate, MaintenanceReport, SiteEntry, SiteSnapshot,
    SiteStore, Snapshot,
};

/// What a namespace can do; targets are sites.
const OPERATIONS: [TierOperation; 4] = [
    TierOperation::new(Operation::Verify, Target::None),
    TierOperation::new(Operation::Scrub, Target::None),
    TierOperation::with_addresses(Operation::Replace, Target::Required),
    TierOperation::new(Operation::Collect, Target::None),
];

impl From<GeoError> for TierError {
    fn from(error: GeoError) -> Self {
        Self::new(error.kind(), &error)
    }
}

#[async_trait]
impl Tier for GeoStore {
    fn kind(&self) -> TierKind {
        TierKind::Geo
    }

    fn operations(&self) -> &'static [TierOperation] {
        &OPERATIONS
    }

    async fn run(
        &self,
        operation: Operation,
        args: &OperationArgs,
        progress: &Arc<Progress>,
    ) -> Result<Value, TierError> {
        self.check(operation, args)?;
        let (store, progress) = (self.clone(), Arc::clone(progress));
        let work: BoxFuture<'static, Result<Value, TierError>> = match operation {
            Operation::Verify => Box::pin(async move { Ok(json!(store.verify(&progress).await?)) }),
            Operation::Scrub => Box::pin(async move {
                let count = |count| progress.set_message(format!("{count} checked"));
                Ok(json!(store.scrub(&count).await?))
            }),
            Operation::Collect => {
                Box::pin(async move { Ok(json!(store.sweep_and_collect(&progress).await?)) })
            }
            Operation::Replace => {
                let (place, stores) = store.new_location(args)?;
                Box::pin(async move { Ok(json!(store.replace(place, &stores, &progress).await?)) })
            }
            Operation::Rebuild | Operation::Retire | Operation::Inventory | Operation::Recover => {
                return Err(TierError::no_such_operation(self.kind(), operation));
            }
        };
        // What has begun is finished, even if the caller is gone.
        tokio::spawn(work).await.map_err(|error| TierError::new(ErrorKind::Internal, &error))?
    }

    async fn snapshot(&self) -> Result<Value, TierError> {
        Ok(json!(self.snapshot()))
    }

    async fn watch(&self) -> Result<BoxStream<'static, TierEvent>, TierError> {
        let events = futures::stream::unfold(self.watch(), |mut watch: GeoSubscriber| async move {
            let event = match watch.next().await {
                GeoUpdate::Snapshot(geo) => TierEvent::new("snapshot", 0, json!({ "geo": geo })),
                GeoUpdate::Step(step, happened) => {
                    TierEvent::new("step", step, json!({ "happened": happened }))
                }
            };
            Some((event, watch))
        });
        let mut stops = self.0.stops.subscribe();
        let stopped = async move {
            // The store may be gone.
            let _ = stops.wait_for(|stops| *stops).await;
        };
        Ok(events.take_until(stopped).boxed())
    }

    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError> {
        Ok(failure(&self.snapshot()).into_iter().collect())
    }

    async fn reasons(&self) -> Result<Vec<String>, TierError> {
        Ok(self.snapshot().reasons())
    }

    /// Ends its subscriptions. It has no thread, and no disk.
    fn stop(&self) {
        self.0.stops.send_replace(true);
    }

    async fn write_metrics(&self, metrics: &mut TierMetrics<'_>) -> Result<(), TierError> {
        let geo = self.snapshot();
        write_totals(metrics, &geo);
        for site in &geo.sites {
            for (name, help, get) in METRICS {
                add(metrics, &format!("site_{name}"), help, &[("site", &site.name)], get(site));
            }
        }
        Ok(())
    }
}

impl GeoStore {
    async fn sweep_and_collect(&self, progress: &Progress) -> Result<MaintenanceReport, GeoError> {
        let fragments = |count| progress.set_message(format!("{count} fragments checked"));
        let swept = self.sweep(self.0.orphan_age, &fragments).await?;
        let objects = |count| progress.set_message(format!("{count} objects checked"));
        let mut report = self.collect(&objects).await?;
        report.add(swept);
        Ok(report)
    }

    /// Returns the new location of the site that the arguments name, and those of its stores that
    /// are new.
    fn new_location(&self, args: &OperationArgs) -> Result<(SiteEntry, Vec<SiteStore>), TierError> {
        let OperationArgs { target, table, blobs } = args;
        let (map, name) = (self.map(), target.as_deref().unwrap_or_default());
        let Some(current) = map.sites.iter().find(|entry| entry.name == name) else {
            let names: Vec<&str> = map.sites.iter().map(|entry| entry.name.as_str()).collect();
            let message = format!("the map has no site {name:?}; it has {}", names.join(", "));
            return Err(TierError::not_found(message));
        };
        if table.is_none() && blobs.is_none() {
            let message = "name the new location of the site: the address of its table, its blobs \
                           or both (--table URL, --blobs URL)";
            return Err(TierError::invalid(message.to_owned()));
        }
        let new = SiteEntry { table: table.clone(), blobs: blobs.clone(), ..current.clone() };
        let stores = SiteStore::of_site(&new)?;
        let place = SiteEntry {
            table: new.table.or_else(|| current.table.clone()),
            blobs: new.blobs.or_else(|| current.blobs.clone()),
            ..current.clone()
        };
        Ok((place, stores))
    }

    /// Replaces a site, if the doctor accepts its new stores.
    async fn replace(
        &self,
        place: SiteEntry,
        stores: &[SiteStore],
        progress: &Progress,
    ) -> Result<MaintenanceReport, TierError> {
        for store in stores {
            progress.set_message(format!("examining the {store}"));
            let examined = store.examine(&*self.0.opener, &self.0.ctx.entropy, false).await;
            let report = examined.map_err(|reason| TierError {
                kind: ErrorKind::Unavailable,
                is_busy: false,
                message: format!("the {store} could not be examined: {reason}"),
            })?;
            if let Err(refused) = report.accept() {
                return Err(TierError::invalid(format!("the {store}: {refused}")));
            }
        }
        let name = place.name.clone();
        let on_progress = |what: &'static str, count| {
            progress.set_message(format!("{what}: {count}"));
        };
        Ok(self.replace_site(&name, place, &on_progress).await?)
    }
}

/// Returns what is wrong with the sites, without naming any; `None` when all are healthy.
fn failure(geo: &Snapshot) -> Option<String> {
    let count = |predicate: fn(&SiteSnapshot) -> bool| {
        geo.sites.iter().filter(|site| predicate(site)).count()
    };
    let (down, rebuilding) = (count(|site| !site.up), count(|site| site.rebuilding));
    if geo.is_healthy() {
        return None;
    }
    let site_count = geo.sites.len();
    Some(format!(
        "{down} of {site_count} sites did not respond recently, {rebuilding} are being rebuilt; {} \
         reads found a lost version",
        geo.reads_lost
    ))
}

/// Adds a counter if its name ends in `_total`, else a gauge.
fn add(
    metrics: &mut TierMetrics<'_>,
    name: &str,
    help: &str,
    labels: &[(&str, &dyn std::fmt::Display)],
    value: f64,
) {
    if name.ends_with("_total") {
        metrics.counter(name, help, labels, value);
    } else {
        metrics.gauge(name, help, labels, value);
    }
}

fn write_totals(metrics: &mut TierMetrics<'_>, geo: &Snapshot) {
    let healthy = u8::from(geo.is_healthy());
    metrics.gauge("healthy", "1 when nothing is wrong with the tier.", &[], healthy);
    for (outcome, count) in [
        ("fast", geo.writes_fast),
        ("slow", geo.writes_slow),
        ("refused", geo.writes_refused),
        ("failed", geo.writes_failed),
        ("indeterminate", geo.writes_indeterminate),
    ] {
        let help = "Writes over sites since the start, by outcome.";
        metrics.counter("writes_total", help, &[("outcome", &outcome)], count);
    }
    for (operation, count) in [("write", geo.write_rounds), ("read", geo.read_rounds)] {
        let help = "Rounds between sites that writes and reads took.";
        metrics.counter("rounds_total", help, &[("operation", &operation)], count);
    }
    for (name, help, value) in totals(geo) {
        add(metrics, name, help, &[], value as f64);
    }
}

/// Returns the metrics without labels: name, help text and value.
const fn totals(geo: &Snapshot) -> [(&'static str, &'static str, u64); 15] {
    [
        ("epoch", "Number of the map of sites.", geo.epoch as u64),
        (
            "map_confirmed_seconds",
            "Time since enough sites confirmed the map.",
            geo.confirmed_seconds_ago,
        ),
        ("reads_total", "Reads over sites.", geo.reads),
        ("reads_unavailable_total", "Reads with too few sites.", geo.reads_unavailable),
        ("reads_lost_total", "Reads of versions that are lost.", geo.reads_lost),
        (
            "reads_unsure_total",
            "Reads of versions that were not known to be durable.",
            geo.reads_unsure,
        ),
        ("hints", "Objects that this server knows to be incomplete at a site.", geo.hints),
        ("undecided", "Objects with a version that this server found undecided.", geo.undecided),
        (
            "oldest_undecided_seconds",
            "Age of the oldest of those versions; 0 if there are none.",
            geo.oldest_undecided_seconds,
        ),
        ("fragments_rebuilt_total", "Fragments rebuilt.", geo.fragments_rebuilt),
        ("versions_collected_total", "Obsolete versions removed.", geo.versions_collected),
        ("fragments_swept_total", "Orphaned fragments removed.", geo.fragments_swept),
        ("cache_hits_total", "Fragments found in the cache.", geo.cache_hits),
        ("cache_misses_total", "Fragments not found there.", geo.cache_misses),
        ("cache_bytes", "Bytes of fragments of other sites in the cache.", geo.cache_bytes),
    ]
}

/// A metric of each site: name, help text and value.
type Metric = (&'static str, &'static str, fn(&SiteSnapshot) -> f64);

const METRICS: [Metric; 9] = [
    ("up", "1 when the stores of a site could be opened and responded recently.", |site| {
        f64::from(u8::from(site.up))
    }),
    ("rebuilding", "1 while the data of a site is being rebuilt.", |site| {
        f64::from(u8::from(site.rebuilding))
    }),
    ("row_seconds", "Typical response time for a row.", |site| site.row_ms / 1000.0),
    ("row_requests_total", "Requests about rows.", |site| site.row_requests as f64),
    ("row_calls_total", "Calls to a site's table for them.", |site| site.row_calls as f64),
    ("row_failures_total", "Requests about rows that failed.", |site| site.row_failures as f64),
    ("written_bytes_total", "Bytes of fragments sent to a site.", |site| site.bytes_written as f64),
    ("read_bytes_total", "Bytes of fragments received from a site.", |site| site.bytes_read as f64),
    ("blob_failures_total", "Calls about fragments that failed.", |site| site.blob_failures as f64),
];
