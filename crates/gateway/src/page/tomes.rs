//! Metrics of a set of tomes, per tome, from the state of its driver. No disk is touched.

use std::fmt::Write as _;

use fulgurite_tome::objects::{MoveSnapshot, Snapshot, TomeSnapshot};
use fulgurite_units::UnixTime;

use super::metrics::head;

/// Returns the metrics of a set of tomes in the Prometheus text format.
pub(super) fn tomes_page(set: &Snapshot) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_set(&mut page, set);
    let _ = write_tomes(&mut page, set);
    page
}

fn write_set(page: &mut String, set: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_tomes_healthy";
    head(page, name, "gauge", "1 when the set of tomes is healthy.")?;
    writeln!(page, "{name} {}", u8::from(set.is_well))?;
    let name = "fulgurite_tomes_simulated";
    head(page, name, "gauge", "1 when the disks are simulated by directories.")?;
    writeln!(page, "{name} {}", u8::from(set.simulated))?;
    let name = "fulgurite_tomes_objects";
    head(page, name, "gauge", "Objects stored on tomes.")?;
    writeln!(page, "{name} {}", set.objects)?;
    let name = "fulgurite_tomes_bytes";
    head(page, name, "gauge", "Bytes of these objects, without redundancy.")?;
    writeln!(page, "{name} {}", set.bytes)?;
    let name = "fulgurite_tomes_moving_seats";
    head(page, name, "gauge", "Member slots that move because their tomes are lost or leaving.")?;
    writeln!(page, "{name} {}", set.moves.len())?;
    let name = "fulgurite_tomes_move_share";
    head(page, name, "gauge", "Share of the reads done to move a member slot, from 0 to 1.")?;
    for MoveSnapshot { group, from, to, done, .. } in &set.moves {
        writeln!(page, "{name}{{group=\"{group}\",from=\"{from}\",to=\"{to}\"}} {done:.4}")?;
    }
    let name = "fulgurite_tomes_leaving";
    head(page, name, "gauge", "Tomes whose member slots move to others.")?;
    writeln!(page, "{name} {}", set.leaving.len())?;
    let name = "fulgurite_tomes_read_around_total";
    head(
        page,
        name,
        "counter",
        "Degraded reads: pieces read without their own tome, since the start.",
    )?;
    writeln!(page, "{name}{{own=\"lost\"}} {}", set.read_without_lost)?;
    writeln!(page, "{name}{{own=\"asleep\"}} {}", set.read_without_asleep)?;
    let name = "fulgurite_tomes_watts";
    head(page, name, "gauge", "Estimated power draw of the tomes; nothing is measured.")?;
    writeln!(page, "{name} {:.2}", set.watts)
}

fn write_tomes(page: &mut String, set: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_tomes_power";
    head(page, name, "gauge", "1 for the power state of a tome's disk.")?;
    for tome in &set.tomes {
        writeln!(page, "{name}{{tome=\"{}\",power=\"{}\"}} 1", tome.tome, tome.power)?;
    }
    let name = "fulgurite_tomes_usable";
    head(page, name, "gauge", "1 when a tome can be used.")?;
    for tome in &set.tomes {
        let is_usable = tome.failure.is_none() && tome.away.is_none();
        writeln!(page, "{name}{{tome=\"{}\"}} {}", tome.tome, u8::from(is_usable))?;
    }
    let name = "fulgurite_tomes_wakes_total";
    head(page, name, "counter", "Spin-ups of a tome's disk, by cause, over its life.")?;
    for tome in &set.tomes {
        for (cause, count) in &tome.wakes_by {
            writeln!(page, "{name}{{tome=\"{}\",cause=\"{cause}\"}} {count}", tome.tome)?;
        }
    }
    for Metric { name, kind, help, get } in METRICS {
        let name = format!("fulgurite_tomes_{name}");
        let known = set.tomes.iter().filter_map(|tome| Some((tome.tome, get(tome)?)));
        let mut known = known.peekable();
        if known.peek().is_some() {
            head(page, &name, kind, help)?;
        }
        for (tome, value) in known {
            writeln!(page, "{name}{{tome=\"{tome}\"}} {value}")?;
        }
    }
    Ok(())
}

/// A metric of each tome; left out where its value is unknown.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    get: fn(&TomeSnapshot) -> Option<f64>,
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    get: fn(&TomeSnapshot) -> Option<f64>,
) -> Metric {
    Metric { name, kind: "gauge", help, get }
}

const fn counter(
    name: &'static str,
    help: &'static str,
    get: fn(&TomeSnapshot) -> Option<f64>,
) -> Metric {
    Metric { name, kind: "counter", help, get }
}

const METRICS: [Metric; 14] = [
    gauge("pieces", "Pieces of objects on a tome.", |tome| Some(tome.pieces as f64)),
    gauge(
        "unprotected_bytes",
        "Bytes on a tome not yet covered by all parity of their groups.",
        |tome| Some(tome.unprotected_bytes as f64),
    ),
    gauge(
        "unprotected_seconds",
        "Age of the oldest unprotected bytes; alarms after a day.",
        |tome| Some(tome.unprotected_seconds),
    ),
    gauge("bad_blocks", "Bad blocks not rebuilt yet.", |tome| Some(tome.bad as f64)),
    counter("healed_total", "Bad blocks rebuilt, since the start.", |tome| {
        Some(tome.healed as f64)
    }),
    counter("scrubs_total", "Full scrub passes over a disk.", |tome| Some(tome.scrubs as f64)),
    gauge(
        "scrub_share",
        "Share of a disk that the current scrub pass has read, from 0 to 1.",
        |tome| Some(tome.scrub?.share),
    ),
    gauge(
        "scrub_began_timestamp_seconds",
        "When the current pass of the full scrub began.",
        |tome| Some(seconds(tome.scrub?.began)),
    ),
    gauge(
        "scrub_paced_timestamp_seconds",
        "When an evenly paced pass would be where this one is; if in the past, it is behind.",
        |tome| Some(seconds(tome.scrub?.paced)),
    ),
    gauge(
        "spinups_day",
        "Spin-ups of a disk in the last 25 hours, as budgets count them.",
        |tome| Some(tome.wakes_of_a_day as f64),
    ),
    gauge("spinups_left", "Spin-ups left in the budget for work that can wait.", |tome| {
        Some(f64::from(tome.budget?.left))
    }),
    counter("spinups_overdrawn_total", "Spin-ups beyond the budget, since the start.", |tome| {
        Some(tome.budget?.overdrawn as f64)
    }),
    gauge("put_off_seconds", "Age of the oldest work that the budget defers.", |tome| {
        Some(tome.budget?.put_off_seconds.unwrap_or(0.0))
    }),
    gauge("to_scrub_bytes", "Bytes left of a requested scrub.", |tome| {
        Some(tome.to_scrub_bytes as f64)
    }),
];

fn seconds(time: UnixTime) -> f64 {
    time.as_millis() as f64 / 1000.0
}
