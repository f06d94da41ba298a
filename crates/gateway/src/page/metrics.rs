//! Counters of requests, in the Prometheus text format. One lock, held for a few additions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use fulgurite_archive::status::{JobState, Status};

use crate::ServerStatus;

/// Upper bounds of the latency histogram, in milliseconds.
const BOUNDS_MS: [u64; 14] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 15_000, 60_000];

/// The counters of requests.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    counters: Mutex<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    operations: BTreeMap<String, Operation>,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Debug, Default)]
struct Operation {
    by_status: BTreeMap<u16, u64>,
    /// Requests up to each bound and slower than the bound before; the last has no bound.
    by_latency: [u64; BOUNDS_MS.len() + 1],
    seconds: f64,
}

/// One finished request.
#[derive(Debug)]
pub(crate) struct FinishedRequest<'a> {
    pub(crate) operation: &'a str,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl Metrics {
    pub(crate) fn record(&self, finished: &FinishedRequest<'_>) {
        let Ok(mut counters) = self.counters.lock() else { return };
        counters.bytes_in += finished.bytes_in;
        counters.bytes_out += finished.bytes_out;
        if !counters.operations.contains_key(finished.operation) {
            counters.operations.insert(finished.operation.to_owned(), Operation::default());
        }
        let Some(operation) = counters.operations.get_mut(finished.operation) else { return };
        *operation.by_status.entry(finished.status).or_default() += 1;
        let slot = BOUNDS_MS.iter().position(|&ms| finished.duration <= Duration::from_millis(ms));
        operation.by_latency[slot.unwrap_or(BOUNDS_MS.len())] += 1;
        operation.seconds += finished.duration.as_secs_f64();
    }

    /// Returns the page that a Prometheus server scrapes. `archive` is `None` when its status could
    /// not be read.
    pub(crate) fn page(
        &self,
        in_progress: usize,
        server: &ServerStatus,
        archive: Option<&Status>,
    ) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_requests(&mut page, in_progress);
        let _ = write_server(&mut page, server);
        if let Some(archive) = archive {
            let _ = write_archive(&mut page, archive);
        }
        page
    }

    fn write_requests(&self, page: &mut String, in_progress: usize) -> std::fmt::Result {
        let Ok(counters) = self.counters.lock() else { return Ok(()) };
        let name = "fulgurite_requests_total";
        head(page, name, "counter", "Requests answered, by operation and status.")?;
        for (operation, counts) in &counters.operations {
            for (status, count) in &counts.by_status {
                writeln!(page, "{name}{{op=\"{operation}\",status=\"{status}\"}} {count}")?;
            }
        }
        let name = "fulgurite_request_seconds";
        head(page, name, "histogram", "Time from a request's head to the end of its response.")?;
        for (operation, counts) in &counters.operations {
            let mut sum = 0;
            for (bound, count) in BOUNDS_MS.iter().zip(&counts.by_latency) {
                sum += count;
                let le = Duration::from_millis(*bound).as_secs_f64();
                writeln!(page, "{name}_bucket{{op=\"{operation}\",le=\"{le}\"}} {sum}")?;
            }
            sum += counts.by_latency[BOUNDS_MS.len()];
            writeln!(page, "{name}_bucket{{op=\"{operation}\",le=\"+Inf\"}} {sum}")?;
            writeln!(page, "{name}_sum{{op=\"{operation}\"}} {}", counts.seconds)?;
            writeln!(page, "{name}_count{{op=\"{operation}\"}} {sum}")?;
        }
        let text = "Bytes of request bodies received.";
        value(page, "fulgurite_received_bytes_total", "counter", text, counters.bytes_in)?;
        let text = "Bytes of responses sent.";
        value(page, "fulgurite_sent_bytes_total", "counter", text, counters.bytes_out)?;
        let text = "S3 requests being served.";
        value(page, "fulgurite_requests_in_progress", "gauge", text, in_progress as u64)
    }
}

pub(super) fn head(page: &mut String, name: &str, kind: &str, text: &str) -> std::fmt::Result {
    writeln!(page, "# HELP {name} {text}\n# TYPE {name} {kind}")
}

fn value(page: &mut String, name: &str, kind: &str, text: &str, n: u64) -> std::fmt::Result {
    head(page, name, kind, text)?;
    writeln!(page, "{name} {n}")
}

fn write_server(page: &mut String, server: &ServerStatus) -> std::fmt::Result {
    let text = "Connections of clients.";
    value(page, "fulgurite_connections", "gauge", text, server.connections)?;
    let text = "Most connections at a time; more wait until one is idle.";
    value(page, "fulgurite_connections_max", "gauge", text, server.connections_max)?;
    let name = "fulgurite_connections_ended_idle_total";
    let text = "Idle connections closed to make room for others.";
    value(page, name, "counter", text, server.connections_ended_idle)
}

fn write_archive(page: &mut String, status: &Status) -> std::fmt::Result {
    let name = "fulgurite_objects";
    head(page, name, "gauge", "Objects, by where their bytes are.")?;
    writeln!(page, "{name}{{residence=\"online\"}} {}", status.objects_online)?;
    writeln!(page, "{name}{{residence=\"staged\"}} {}", status.objects_staged)?;
    writeln!(page, "{name}{{residence=\"glass\"}} {}", status.objects_on_glass)?;
    writeln!(page, "{name}{{residence=\"tier\"}} {}", status.objects_in_tiers)?;
    let counters = [
        ("fulgurite_copies_dropped_total", "Restored copies found damaged.", status.copies_dropped),
        ("fulgurite_panics_total", "Panics of background threads, caught.", status.panics),
    ];
    for (name, text, n) in counters {
        value(page, name, "counter", text, n)?;
    }
    write_jobs(page, status)?;
    write_gauges(page, status)
}

fn write_jobs(page: &mut String, status: &Status) -> std::fmt::Result {
    let name = "fulgurite_job_state";
    head(page, name, "gauge", "1 for the state that a background job is in.")?;
    for job in &status.jobs {
        for state in JobState::ALL {
            let is_current = u64::from(job.state == state);
            writeln!(
                page,
                "{name}{{job=\"{}\",state=\"{}\"}} {is_current}",
                job.name,
                state.name()
            )?;
        }
    }
    let name = "fulgurite_job_runs_total";
    head(page, name, "counter", "Times a job found something to do.")?;
    for job in &status.jobs {
        writeln!(page, "{name}{{job=\"{}\"}} {}", job.name, job.runs)?;
    }
    let name = "fulgurite_job_failures_total";
    head(page, name, "counter", "Times a job failed; it is tried again.")?;
    for job in &status.jobs {
        writeln!(page, "{name}{{job=\"{}\"}} {}", job.name, job.failures)?;
    }
    let name = "fulgurite_job_last_run_seconds";
    head(page, name, "gauge", "When a job last found something to do, in seconds since 1970.")?;
    for job in &status.jobs {
        if let Some(time) = job.last_run {
            writeln!(page, "{name}{{job=\"{}\"}} {}", job.name, time.as_secs())?;
        }
    }
    Ok(())
}

fn write_gauges(page: &mut String, status: &Status) -> std::fmt::Result {
    let damaged = status.staged_damaged.len() as u64;
    let is_writable = u64::from(status.catalog_refusal.is_none());
    let is_idle = u64::from(status.is_pipeline_idle());
    let gauges = [
        ("fulgurite_staged_bytes", "Plain bytes of bodies staged for glass.", status.staged_bytes),
        (
            "fulgurite_moving_bytes",
            "Plain bytes of bodies staged for tiers of objects.",
            status.moving_bytes,
        ),
        ("fulgurite_staged_damaged", "Staged bodies that have changed, at most 100.", damaged),
        (
            "fulgurite_keys_lost",
            "Slots of the key table whose key cannot be decrypted.",
            status.keys_lost,
        ),
        (
            "fulgurite_bodies_unconfirmed",
            "Bodies in logs that have a key but no catalog row.",
            status.bodies_unconfirmed,
        ),
        ("fulgurite_log_bytes", "Bytes the logs hold on disk.", status.log_bytes),
        ("fulgurite_log_bytes_max", "Most bytes the logs may hold.", status.log_bytes_max),
        ("fulgurite_free_bytes", "Bytes free on the disk.", status.free_bytes),
        ("fulgurite_free_bytes_min", "Free bytes that bodies must leave.", status.free_bytes_min),
        ("fulgurite_reserve_bytes", "Bytes in reserve for a full disk.", status.reserve_bytes),
        ("fulgurite_catalog_writable", "1 when the catalog accepts writes.", is_writable),
        (
            "fulgurite_catalog_damaged",
            "1 when damage to the catalog was found since the start.",
            u64::from(status.catalog_damage.is_some()),
        ),
        (
            "fulgurite_orphaned_segments",
            "Segments of logs that the catalog does not name.",
            status.orphaned_segments,
        ),
        ("fulgurite_orphaned_bytes", "Bytes of these segments on disk.", status.orphaned_bytes),
        ("fulgurite_restores_waiting", "Restores waiting or running.", status.restores_waiting),
        (
            "fulgurite_restores_failed",
            "Restores that were given up and not requested again.",
            status.restores_failed,
        ),
        ("fulgurite_restored_objects", "Restored copies held.", status.restored_objects),
        ("fulgurite_pipeline_idle", "1 when no step is running.", is_idle),
    ];
    for (name, text, n) in gauges {
        value(page, name, "gauge", text, n)?;
    }
    if let Some(oldest) = status.staged_oldest {
        let text = "When the oldest staged body arrived, in seconds since 1970.";
        value(page, "fulgurite_staged_oldest_seconds", "gauge", text, oldest.as_secs())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
