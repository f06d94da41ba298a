//! What the metrics say of a set of tomes: of each, from what its driver knows. No disk is asked.

use std::fmt::Write as _;

use fulgurite_tome_store::{Snapshot, TomeSnapshot};

use super::metrics::head;

/// The lines of a set, for the page that a Prometheus server scrapes.
pub(super) fn tomes_page(set: &Snapshot) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_set(&mut page, set);
    let _ = write_tomes(&mut page, set);
    page
}

fn write_set(page: &mut String, set: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_tomes_healthy";
    head(page, name, "gauge", "1 when all is well with the set of tomes.")?;
    writeln!(page, "{name} {}", u8::from(set.is_well))?;
    let name = "fulgurite_tomes_objects";
    head(page, name, "gauge", "Objects that lie on tomes.")?;
    writeln!(page, "{name} {}", set.objects)?;
    let name = "fulgurite_tomes_bytes";
    head(page, name, "gauge", "Bytes of these objects, without redundancy.")?;
    writeln!(page, "{name} {}", set.bytes)?;
    let name = "fulgurite_tomes_moving_seats";
    head(page, name, "gauge", "Seats of groups that move since their tomes are lost or leave.")?;
    writeln!(page, "{name} {}", set.moves.len())?;
    let name = "fulgurite_tomes_leaving";
    head(page, name, "gauge", "Tomes whose seats go to others.")?;
    writeln!(page, "{name} {}", set.leaving.len())?;
    let name = "fulgurite_tomes_read_around_total";
    head(page, name, "counter", "Pieces read without their own tome, since the start.")?;
    writeln!(page, "{name}{{own=\"lost\"}} {}", set.read_without_lost)?;
    writeln!(page, "{name}{{own=\"asleep\"}} {}", set.read_without_asleep)?;
    let name = "fulgurite_tomes_watts";
    head(page, name, "gauge", "Estimated draw of the tomes; nothing is measured.")?;
    writeln!(page, "{name} {:.2}", set.watts)
}

fn write_tomes(page: &mut String, set: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_tomes_power";
    head(page, name, "gauge", "1 for what the disk of a tome does.")?;
    for tome in &set.tomes {
        writeln!(page, "{name}{{tome=\"{}\",power=\"{}\"}} 1", tome.tome, tome.power)?;
    }
    let name = "fulgurite_tomes_usable";
    head(page, name, "gauge", "1 when a tome can be used.")?;
    for tome in &set.tomes {
        let is_usable = tome.trouble.is_none() && tome.away.is_none();
        writeln!(page, "{name}{{tome=\"{}\"}} {}", tome.tome, u8::from(is_usable))?;
    }
    type Figure = (&'static str, &'static str, &'static str, fn(&TomeSnapshot) -> f64);
    let figures: [Figure; 6] = [
        ("pieces", "gauge", "Pieces of objects on a tome.", |tome| tome.pieces as f64),
        (
            "unprotected_bytes",
            "gauge",
            "Bytes on a tome that not every parity of their groups has yet.",
            |tome| tome.unprotected_bytes as f64,
        ),
        (
            "unprotected_seconds",
            "gauge",
            "Age of the oldest of these; a day of it is an alarm.",
            |tome| tome.unprotected_seconds,
        ),
        ("wakes_total", "counter", "Times that a tome's disk was woken, over its life.", |tome| {
            tome.wakes as f64
        }),
        ("healed_total", "counter", "Bad blocks made anew, since the start.", |tome| {
            tome.healed as f64
        }),
        ("scrubs_total", "counter", "Times that a whole disk was read by the scrub.", |tome| {
            tome.scrubs as f64
        }),
    ];
    for (figure, kind, what, of) in figures {
        let name = format!("fulgurite_tomes_{figure}");
        head(page, &name, kind, what)?;
        for tome in &set.tomes {
            writeln!(page, "{name}{{tome=\"{}\"}} {}", tome.tome, of(tome))?;
        }
    }
    Ok(())
}
