//! Formats the state of a namespace over several sites as text.

use fulgurite_geo_store::{Kept, Waiting};
use fulgurite_terminal::output::counted;
use fulgurite_terminal::style::{self, Tone};
use fulgurite_units::Duration;

use super::Seen;
use super::look::{SiteSeen, StoreSeen};

/// Formats a snapshot of a namespace.
pub(super) fn seen(seen: &Seen) -> String {
    let health = match (seen.is_open, seen.is_well) {
        (true, true) => style::out(Tone::Good, "well").to_string(),
        (true, false) => style::out(Tone::Notice, "not well").to_string(),
        (false, _) => style::out(Tone::Bad, "cannot be used").to_string(),
    };
    let mut lines = vec![
        format!("namespace    {}", seen.name),
        format!("health       {health}"),
        format!("map          number {}", seen.epoch),
        format!(
            "objects      {} of {} fragments give one back",
            seen.data,
            seen.data + seen.parity
        ),
    ];
    lines.extend(seen.undecided.as_ref().map(undecided));
    lines.extend(seen.sites.iter().flat_map(site));
    lines.join("\n")
}

fn undecided(waiting: &Waiting) -> String {
    let mut line = format!("undecided    {}", counted(waiting.versions, "version"));
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

fn site(site: &SiteSeen) -> Vec<String> {
    let stores = [("table", &site.table), ("blobs", &site.blobs)];
    let lines = stores.into_iter().filter_map(|(part, store)| Some((part, store.as_ref()?)));
    lines.map(|(part, store)| line(site, part, store)).collect()
}

fn line(site: &SiteSeen, part: &str, store: &StoreSeen) -> String {
    let says = match (&store.trouble, store.milliseconds) {
        (Some(trouble), _) => style::out(Tone::Bad, trouble).to_string(),
        (None, Some(milliseconds)) => format!("answers in {milliseconds:.1} ms"),
        (None, None) => String::new(),
    };
    let rebuilding = if site.rebuilding { "; is being made again" } else { "" };
    format!("{:<12} {part}  {}  {says}{rebuilding}", site.name, store.place)
}

/// Formats the result of healing.
pub(super) fn healed(kept: &Kept) -> String {
    let mut line = format!(
        "{} looked at, {} whole; {} made again",
        counted(kept.objects, "object"),
        kept.whole,
        counted(kept.rebuilt, "fragment")
    );
    for (count, what) in [
        (kept.restored, "rows are at their site again"),
        (kept.settled, "open versions decided"),
        (kept.hidden, "versions hidden that nobody was told of"),
        (kept.missing, "fragments missing still"),
        (kept.unsure, "objects not looked at in time"),
        (kept.undecided, "versions undecided still"),
    ] {
        if count > 0 {
            line.push_str(&format!("; {count} {what}"));
        }
    }
    if kept.undecided > 0 {
        line.push_str(&format!(", the oldest for {}", ago(kept.oldest_undecided_seconds)));
    }
    line
}
