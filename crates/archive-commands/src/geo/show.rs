//! Formats the state of a namespace over several sites as text.

use fulgurite_geo::objects::{MaintenanceReport, Snapshot, UndecidedReport};
use fulgurite_terminal::output::pluralize;
use fulgurite_terminal::style::{self, Tone};
use fulgurite_units::Duration;

/// Formats a snapshot of a namespace: the counters of the process that has it open.
pub(super) fn status(geo: &Snapshot) -> String {
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

/// Formats the result of repairs.
pub(super) fn repaired(report: &MaintenanceReport) -> String {
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

/// Formats the undecided versions.
pub(super) fn undecided(waiting: &UndecidedReport) -> String {
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
