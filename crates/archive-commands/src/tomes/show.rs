//! Formats a set of tomes as text, with a line for each.

use fulgurite_archive::config::TierName;
use fulgurite_disks::{Cause, Power, SpinUp};
use fulgurite_terminal::output::{bytes, group_digits, pluralize, timestamp};
use fulgurite_terminal::style::{self, Tone};
use fulgurite_tome::objects::{BudgetSnapshot, MoveSnapshot, Snapshot, TomeSnapshot};

const HEAD: &str =
    "tome  disk           pieces   unprotected  for       spins  today  healed  scrubs  this one";

/// Formats a snapshot of a set.
pub(super) fn snapshot(set: &Snapshot) -> String {
    let health = match set.is_well {
        true => style::out(Tone::Good, "well").to_string(),
        false => style::out(Tone::Notice, "not well").to_string(),
    };
    let simulated = if set.simulated { "; disks are simulated" } else { "" };
    let mut lines = vec![
        format!("set          {}", set.set),
        format!("health       {health}"),
        format!("objects      {}, {}", pluralize(set.objects, "object"), bytes(set.bytes)),
        format!("unprotected  {}", bytes(set.unprotected_bytes)),
        format!("power        {:.1} W, estimated{simulated}", set.watts),
        String::new(),
        style::out(Tone::Strong, HEAD).to_string(),
    ];
    lines.extend(set.tomes.iter().map(|entry| tome(entry, set.out.contains(&entry.tome))));
    lines.extend(scrub(set));
    lines.extend(set.tomes.iter().filter_map(budget));
    lines.extend(set.moves.iter().map(slot_move));
    if !set.out.is_empty() {
        let out: Vec<String> = set.out.iter().map(ToString::to_string).collect();
        lines.push(format!("out          {}: no member slot is left to them", out.join(", ")));
    }
    let reasons = set.reasons.iter().map(|why| format!("reason       {why}"));
    lines.extend(reasons.map(|line| style::out(Tone::Notice, line).to_string()));
    lines.join("\n")
}

/// Formats when the last tome's full scrub pass will end.
fn scrub(set: &Snapshot) -> Option<String> {
    let ends = set.tomes.iter().filter_map(|tome| tome.scrub).map(|scrub| scrub.ends).max()?;
    let day: String = timestamp(ends).chars().take_while(|char| *char != 'T').collect();
    Some(format!("scrub        every block is read by {day} at the latest"))
}

/// Formats how long a tome's spin-up budget defers work.
fn budget(tome: &TomeSnapshot) -> Option<String> {
    let BudgetSnapshot { per_day, left, put_off_seconds, .. } = tome.budget?;
    let minutes = put_off_seconds? / 60.0;
    let tome = tome.tome;
    Some(format!(
        "deferred     tome {tome}: for {minutes:.0} min, with {left} of {per_day} spin-ups left"
    ))
}

/// Formats the move of a member slot.
fn slot_move(moving: &MoveSnapshot) -> String {
    let MoveSnapshot { group, from, to, done, failure } = moving;
    let failure = failure.as_ref().map_or_else(String::new, |why| format!("; waits: {why}"));
    let done = done * 100.0;
    format!("moves        slot of group {group}: tome {from} to {to}, {done:.0} %{failure}")
}

/// Formats a spin-up.
pub(super) fn spin_up(spin_up: &SpinUp) -> String {
    let tomes: Vec<String> = spin_up.places.iter().map(ToString::to_string).collect();
    // Not caused by a request to this tome: others' deltas are applied, or its own are sent.
    let is_parity = spin_up.cause == Cause::Write(0);
    let cause = if is_parity { "parity".to_owned() } else { spin_up.cause.to_string() };
    format!("{:<24}  {cause:<14}  tome {}", timestamp(spin_up.at), tomes.join(" "))
}

/// Returns a hint for tomes that are given up, if there are any.
pub(super) fn advice(name: &TierName, set: &Snapshot) -> Option<String> {
    let is_given_up =
        |tome: &&TomeSnapshot| tome.failure.is_some() && !set.out.contains(&tome.tome);
    // A tome whose store could not be opened has no disk here.
    let is_lost = |tome: &&TomeSnapshot| is_given_up(tome) && tome.power == Power::Absent;
    if let Some(lost) = set.tomes.iter().find(is_lost) {
        let tome = lost.tome;
        return Some(format!(
            "put back the missing part of tome {tome} and restart the set; else \
             `fulgurite tier inventory {name} {tome}`, if its disk is here, or `fulgurite tier \
             rebuild {name} {tome}`"
        ));
    }
    let tome = set.tomes.iter().find(is_given_up)?.tome;
    Some(format!(
        "tome {tome} continues when there is room and its disk works; if that never happens, \
         `fulgurite tier rebuild {name} {tome}`"
    ))
}

fn tome(tome: &TomeSnapshot, is_out: bool) -> String {
    let power = match (&tome.failure, &tome.away) {
        _ if is_out => "out".to_owned(),
        (Some(_), _) => "given up".to_owned(),
        (None, Some(_)) => "away".to_owned(),
        (None, None) => tome.power.to_string(),
    };
    let minutes = tome.unprotected_seconds / 60.0;
    let pass = tome.scrub.map(|scrub| format!("{:.0} %", scrub.share * 100.0));
    let pass = pass.unwrap_or_default();
    format!(
        "{:>4}  {power:<13}{:>8}  {:>12}  {minutes:>5.0} min  {:>5}  {:>5}  {:>6}  {:>6}  \
         {pass:>8}",
        tome.tome,
        group_digits(tome.pieces),
        bytes(tome.unprotected_bytes),
        group_digits(tome.spin_ups),
        group_digits(tome.spin_ups_of_a_day),
        group_digits(tome.healed),
        group_digits(tome.scrubs),
    )
}
