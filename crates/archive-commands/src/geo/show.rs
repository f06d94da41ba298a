//! Formats the state of a namespace over several sites as text.

use fulgurite_geo::objects::{MaintenanceReport, Snapshot, UndecidedReport};
use fulgurite_terminal::output::pluralize;
use fulgurite_terminal::style::{self, Tone};
use fulgurite_units::Duration;

use super::NamespaceStatus;
use super::probe::{SiteStatus, StoreStatus};

/// Formats a snapshot of a namespace.
pub(super) fn status(status: &NamespaceStatus) -> String {
    let health = match (status.is_open, status.is_well) {
        (true, true) => style::out(Tone::Good, "well").to_string(),
        (true, false) => style::out(Tone::Notice, "not well").to_string(),
        (false, _) => style::out(Tone::Bad, "cannot be used").to_string(),
    };
    let mut lines = vec![
        format!("namespace    {}", status.name),
        format!("health       {health}"),
        format!("map          number {}", status.epoch),
        format!(
            "objects      {} of {} fragments give one back",
            status.data,
            status.data + status.parity
        ),
    ];
    lines.extend(status.undecided.as_ref().map(undecided));
    lines.extend(status.sites.iter().flat_map(site));
    lines.join("\n")
}

fn undecided(waiting: &UndecidedReport) -> String {
    let mut line = format!("undecided    {}", pluralize(waiting.versions, "version"));
    if waiting.versions > 0 {
        line.push_str(&format!(", the oldest for {}", ago(waiting.oldest_seconds)));
        let others = waiting.versions - waiting.objects.len() as u64;
        line.push_str(&format!(": {}", waiting.objects.join(", ")));
        if others > 0 {
            line.push_str(&format!(" and {others} more"));
        }
    }
    line
}

fn ago(seconds: u64) -> String {
    Duration::from_secs(seconds).to_string()
}

fn site(site: &SiteStatus) -> Vec<String> {
    let stores = [("table", &site.table), ("blobs", &site.blobs)];
    let lines = stores.into_iter().filter_map(|(part, store)| Some((part, store.as_ref()?)));
    lines.map(|(part, store)| line(site, part, store)).collect()
}

fn line(site: &SiteStatus, part: &str, store: &StoreStatus) -> String {
    let state = match (&store.failure, store.milliseconds) {
        (Some(failure), _) => style::out(Tone::Bad, failure).to_string(),
        (None, Some(milliseconds)) => format!("answers in {milliseconds:.1} ms"),
        (None, None) => String::new(),
    };
    let rebuilding = if site.rebuilding { "; is being rebuilt" } else { "" };
    format!("{:<12} {part}  {}  {state}{rebuilding}", site.name, store.place)
}

/// Formats the counters of a namespace, which the process that has it open keeps.
pub(super) fn counters(geo: &Snapshot) -> String {
    let health = match geo.is_healthy() {
        true => style::out(Tone::Good, "well").to_string(),
        false => style::out(Tone::Notice, "not well").to_string(),
    };
    let (data, parity) = geo.code;
    let mut lines = vec![
        format!("namespace    {}", geo.name),
        format!("health       {health}"),
        format!("map          number {}", geo.epoch),
        format!("objects      {data} of {} fragments give one back", data + parity),
        format!(
            "writes       {} fast, {} slow, {} refused, {} failed, {} with an unknown outcome",
            geo.writes_fast,
            geo.writes_slow,
            geo.writes_refused,
            geo.writes_failed,
            geo.writes_indeterminate
        ),
        format!(
            "reads        {}; {} with too few sites, {} of a lost version",
            geo.reads, geo.reads_unavailable, geo.reads_lost
        ),
    ];
    lines.extend(geo.sites.iter().map(|site| {
        let state = if site.up { "answers" } else { "does not answer" };
        let rebuilding = if site.rebuilding { "; is being rebuilt" } else { "" };
        format!("{:<12} {state}, rows in {:.1} ms{rebuilding}", site.name, site.row_ms)
    }));
    let reasons = geo.reasons().into_iter().map(|why| format!("reason       {why}"));
    lines.extend(reasons.map(|line| style::out(Tone::Notice, line).to_string()));
    lines.join("\n")
}

/// Formats the result of healing.
pub(super) fn healed(report: &MaintenanceReport) -> String {
    let mut line = format!(
        "{} checked, {} whole; {} rebuilt",
        pluralize(report.objects, "object"),
        report.whole,
        pluralize(report.rebuilt, "fragment")
    );
    for (count, what) in [
        (report.restored, "rows are at their site again"),
        (report.settled, "open versions decided"),
        (report.hidden, "versions hidden that nobody was told of"),
        (report.missing, "fragments still missing"),
        (report.unsure, "objects not checked in time"),
        (report.undecided, "versions still undecided"),
    ] {
        if count > 0 {
            line.push_str(&format!("; {count} {what}"));
        }
    }
    if report.undecided > 0 {
        line.push_str(&format!(", the oldest for {}", ago(report.oldest_undecided_seconds)));
    }
    line
}
