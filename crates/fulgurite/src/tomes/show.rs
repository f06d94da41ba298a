//! What people see of a set of tomes: a line for each.

use fulgurite_disks::Wake;
use fulgurite_tome_store::{MoveSnapshot, Snapshot, TomeSnapshot};

use crate::inspect::timestamp;
use crate::objects::counted;
use crate::output::{bytes, grouped};
use crate::style::{self, Tone};

const HEAD: &str = "tome  disk           pieces   unprotected  for       woken  healed  scrubs";

/// A set at one moment.
pub(super) fn snapshot(set: &Snapshot) -> String {
    let health = match set.is_well {
        true => style::out(Tone::Good, "well").to_string(),
        false => style::out(Tone::Notice, "not well").to_string(),
    };
    let mut lines = vec![
        format!("set          {}", set.set),
        format!("health       {health}"),
        format!("objects      {}, {}", counted(set.objects, "object"), bytes(set.bytes)),
        format!("unprotected  {}", bytes(set.unprotected_bytes)),
        format!("power        {:.1} W, estimated", set.watts),
        String::new(),
        style::out(Tone::Strong, HEAD).to_string(),
    ];
    lines.extend(set.tomes.iter().map(tome));
    lines.extend(set.moves.iter().map(seat));
    if !set.out.is_empty() {
        let out: Vec<String> = set.out.iter().map(ToString::to_string).collect();
        lines.push(format!("out          {}: no seat is theirs any more", out.join(", ")));
    }
    let reasons = set.reasons.iter().map(|why| format!("reason       {why}"));
    lines.extend(reasons.map(|line| style::out(Tone::Notice, line).to_string()));
    lines.join("\n")
}

/// A seat that moves.
fn seat(moving: &MoveSnapshot) -> String {
    let MoveSnapshot { group, from, to, done, trouble } = moving;
    let trouble = trouble.as_ref().map_or_else(String::new, |why| format!("; waits: {why}"));
    let done = done * 100.0;
    format!("moves        seat of group {group}: tome {from} to {to}, {done:.0} %{trouble}")
}

/// A wake.
pub(super) fn wake(wake: &Wake) -> String {
    let tomes: Vec<String> = wake.places.iter().map(ToString::to_string).collect();
    format!("{:<24}  {:<14}  tome {}", timestamp(wake.at), wake.cause.to_string(), tomes.join(" "))
}

fn tome(tome: &TomeSnapshot) -> String {
    let power = match (&tome.trouble, &tome.away) {
        (Some(_), _) => "given up".to_owned(),
        (None, Some(_)) => "away".to_owned(),
        (None, None) => tome.power.to_string(),
    };
    let minutes = tome.unprotected_seconds / 60.0;
    format!(
        "{:>4}  {power:<13}{:>8}  {:>12}  {minutes:>5.0} min  {:>5}  {:>6}  {:>6}",
        tome.tome,
        grouped(tome.pieces),
        bytes(tome.unprotected_bytes),
        grouped(tome.wakes),
        grouped(tome.healed),
        grouped(tome.scrubs),
    )
}
