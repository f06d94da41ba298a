//! Metrics of a namespace over several sites, from the counters of this server. No site is
//! contacted.

use std::fmt::Write as _;

use fulgurite_geo::objects::{SiteSnapshot, Snapshot};

use super::metrics::head;

/// Returns what is wrong with the sites, without naming any; `None` when all are healthy.
pub(super) fn geo_failure(geo: &Snapshot) -> Option<String> {
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

/// Returns the metrics of a namespace in the Prometheus text format.
pub(super) fn geo_page(geo: &Snapshot) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_totals(&mut page, geo);
    let _ = write_sites(&mut page, geo);
    page
}

fn write_totals(page: &mut String, geo: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_geo_writes_total";
    head(page, name, "counter", "Writes over sites since the start, by outcome.")?;
    for (end, count) in [
        ("fast", geo.writes_fast),
        ("slow", geo.writes_slow),
        ("refused", geo.writes_refused),
        ("failed", geo.writes_failed),
        ("indeterminate", geo.writes_indeterminate),
    ] {
        writeln!(page, "{name}{{end=\"{end}\"}} {count}")?;
    }
    let name = "fulgurite_geo_rounds_total";
    head(page, name, "counter", "Rounds between sites that writes and reads took.")?;
    writeln!(page, "{name}{{of=\"writes\"}} {}", geo.write_rounds)?;
    writeln!(page, "{name}{{of=\"reads\"}} {}", geo.read_rounds)?;
    for (name, kind, help, value) in metrics(geo) {
        let name = format!("fulgurite_geo_{name}");
        head(page, &name, kind, help)?;
        writeln!(page, "{name} {value}")?;
    }
    Ok(())
}

/// Returns the metrics without labels: name, kind, help text and value.
fn metrics(geo: &Snapshot) -> [(&'static str, &'static str, &'static str, u64); 16] {
    [
        (
            "healthy",
            "gauge",
            "1 when all sites respond and nothing is lost.",
            u64::from(geo.is_healthy()),
        ),
        ("epoch", "gauge", "Number of the map of sites.", u64::from(geo.epoch)),
        (
            "map_confirmed_seconds",
            "gauge",
            "Time since enough sites confirmed the map.",
            geo.confirmed_seconds_ago,
        ),
        ("reads_total", "counter", "Reads over sites.", geo.reads),
        ("reads_unavailable_total", "counter", "Reads with too few sites.", geo.reads_unavailable),
        ("reads_lost_total", "counter", "Reads of versions that are lost.", geo.reads_lost),
        (
            "reads_unsure_total",
            "counter",
            "Reads of versions that were not known to be durable.",
            geo.reads_unsure,
        ),
        ("hints", "gauge", "Objects that this server knows to be incomplete at a site.", geo.hints),
        (
            "undecided",
            "gauge",
            "Objects with a version that this server found undecided.",
            geo.undecided,
        ),
        (
            "oldest_undecided_seconds",
            "gauge",
            "Age of the oldest of those versions; 0 if there are none.",
            geo.oldest_undecided_seconds,
        ),
        ("fragments_rebuilt_total", "counter", "Fragments rebuilt.", geo.fragments_rebuilt),
        (
            "versions_collected_total",
            "counter",
            "Obsolete versions removed.",
            geo.versions_collected,
        ),
        ("fragments_swept_total", "counter", "Orphaned fragments removed.", geo.fragments_swept),
        ("cache_hits_total", "counter", "Fragments found in the cache.", geo.cache_hits),
        ("cache_misses_total", "counter", "Fragments not found there.", geo.cache_misses),
        (
            "cache_bytes",
            "gauge",
            "Bytes of fragments of other sites in the cache.",
            geo.cache_bytes,
        ),
    ]
}

/// A metric of each site.
type Metric = (&'static str, &'static str, &'static str, fn(&SiteSnapshot) -> f64);

const METRICS: [Metric; 9] = [
    (
        "up",
        "gauge",
        "1 when the stores of a site could be opened and responded recently.",
        |site| f64::from(u8::from(site.up)),
    ),
    ("rebuilding", "gauge", "1 while the data of a site is being rebuilt.", |site| {
        f64::from(u8::from(site.rebuilding))
    }),
    ("row_seconds", "gauge", "Typical response time for a row.", |site| site.row_ms / 1000.0),
    ("row_requests_total", "counter", "Requests about rows.", |site| site.row_requests as f64),
    ("row_calls_total", "counter", "Calls to a site's table for them.", |site| {
        site.row_calls as f64
    }),
    ("row_failures_total", "counter", "Requests about rows that failed.", |site| {
        site.row_failures as f64
    }),
    ("written_bytes_total", "counter", "Bytes of fragments sent to a site.", |site| {
        site.bytes_written as f64
    }),
    ("read_bytes_total", "counter", "Bytes of fragments received from a site.", |site| {
        site.bytes_read as f64
    }),
    ("blob_failures_total", "counter", "Calls about fragments that failed.", |site| {
        site.blob_failures as f64
    }),
];

fn write_sites(page: &mut String, geo: &Snapshot) -> std::fmt::Result {
    for (name, kind, help, get) in METRICS {
        let name = format!("fulgurite_geo_site_{name}");
        head(page, &name, kind, help)?;
        for site in &geo.sites {
            writeln!(page, "{name}{{site=\"{}\"}} {}", label(&site.name), get(site))?;
        }
    }
    Ok(())
}

/// Escapes a name as the value of a label: an operator may have written anything.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_names_are_escaped_in_labels() {
        let site = SiteSnapshot { name: "a\"b\\c\nd".to_owned(), up: true, ..Default::default() };
        let geo = Snapshot { sites: vec![site], ..Snapshot::default() };
        let page = geo_page(&geo);
        assert!(page.contains("fulgurite_geo_site_up{site=\"a\\\"b\\\\c\\nd\"} 1\n"), "{page}");
        assert_eq!(geo_failure(&geo), None);
    }
}
