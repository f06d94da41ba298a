//! Formats a rack as text: a line per group, with its disks as a picture.

use fulgurite_disks::{Power, SpinUp};
use fulgurite_rack::{DiskSnapshot, GroupSnapshot, GroupState, Snapshot};
use fulgurite_terminal::output::{bytes, group_digits, pluralize, timestamp};
use fulgurite_terminal::style::{self, Tone};

/// Returns the character of a disk in the picture.
fn sign(disk: &DiskSnapshot) -> char {
    match disk.power {
        Power::Failed | Power::Absent | Power::Unclean => 'x',
        _ if disk.failure.is_some() => '!',
        Power::Standby => '.',
        Power::SpinningUp => '^',
        Power::Active => '#',
        Power::Unmounting => 'v',
    }
}

/// Formats a snapshot of a rack.
pub(super) fn snapshot(rack: &Snapshot) -> String {
    let disks: usize = rack.groups.iter().map(|group| group.disks.len()).sum();
    let what = if rack.simulated { "simulated disks: directories" } else { "real disks" };
    let mut lines = vec![
        format!("rack       {}", rack.rack),
        format!(
            "disks      {} in {}; {what}",
            group_digits(disks as u64),
            pluralize(rack.groups.len() as u64, "group")
        ),
        format!("power      {:.1} W, estimated", rack.watts),
        String::new(),
        style::out(Tone::Strong, HEAD).to_string(),
    ];
    lines.extend(rack.groups.iter().map(group));
    lines.push(
        "disks: . asleep, ^ spinning up, # active, v spinning down, ! failing, x out".to_owned(),
    );
    lines.extend(rack.groups.iter().filter_map(alarm));
    let disks = rack.groups.iter().flat_map(|group| &group.disks);
    let failing_disks = disks.filter_map(|disk| Some((disk.place, disk.failure.as_ref()?)));
    lines.extend(
        failing_disks.map(|(place, failure)| format!("failure    disk {place}: {failure}")),
    );
    let disks = rack.groups.iter().flat_map(|group| &group.disks);
    lines.extend(disks.filter_map(failing));
    lines.extend(unsound(rack));
    if rack.index_is_older {
        let line = "alarm      the index is an older copy: run `fulgurite tier recover NAME`";
        lines.push(style::out(Tone::Bad, line).to_string());
    }
    let worn = rack.groups.iter().flat_map(|group| rack.worn(group));
    let rated = rack.rated_spin_ups.unwrap_or_default();
    lines.extend(worn.map(|disk| worn_out(disk, rated)));
    lines.join("\n")
}

/// Formats alarms for blobs that lack stacks.
fn unsound(rack: &Snapshot) -> Vec<String> {
    let alarm_of = |group: &GroupSnapshot| {
        let blobs = pluralize(group.unsound, "blob");
        format!("alarm      group {}: {blobs} could not be rebuilt; see tier scrub", group.group)
    };
    let groups = rack.groups.iter().filter(|group| group.unsound > 0).map(alarm_of);
    let read = (rack.unrepaired > 0).then(|| {
        let blobs = pluralize(rack.unrepaired, "blob");
        format!("alarm      {blobs} that were read could not be rebuilt; see tier scrub")
    });
    groups.chain(read).map(|line| style::out(Tone::Bad, line).to_string()).collect()
}

/// Formats a warning for a disk whose SMART status predicts failure.
fn failing(disk: &DiskSnapshot) -> Option<String> {
    let health = disk.health.as_ref().filter(|health| health.passes == Some(false))?;
    let which = [health.model.as_deref(), health.serial.as_deref()];
    let which = which.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let line =
        format!("warning    disk {} predicts its failure (SMART); replace it: {which}", disk.place);
    Some(style::out(Tone::Notice, line).to_string())
}

/// Formats a warning for a disk that is near its rated number of spin-ups.
fn worn_out(disk: &DiskSnapshot, rated: u64) -> String {
    let line = format!(
        "warning    disk {} has spun up {} times and is rated for {}; replace it",
        disk.place,
        group_digits(disk.spin_ups),
        group_digits(rated)
    );
    style::out(Tone::Notice, line).to_string()
}

const HEAD: &str = concat!(
    "group class  state          spins today  life    watts  waiting  ",
    "   blobs       bytes        free  disks                    since"
);

fn group(group: &GroupSnapshot) -> String {
    let state = format!("{:<13}", group.state.name());
    let tone = match group.state {
        GroupState::Spinning => Tone::Good,
        GroupState::SpinningUp | GroupState::SpinningDown => Tone::Notice,
        GroupState::Asleep => Tone::Faint,
    };
    let signs: String = group.disks.iter().map(sign).collect();
    let free = group.room.map_or_else(|| "?".to_owned(), |room| bytes(room.free));
    let (blobs, all) = (group_digits(group.blobs), bytes(group.bytes));
    let contents = format!("{blobs:>8}  {all:>10}  {free:>10}");
    let since = match group.since {
        Some(since) => timestamp(since),
        None => "before the start".to_owned(),
    };
    format!(
        "{:>5} {:>5}  {}  {:>11}  {:>4}  {:>7.1}  {:>7}  {contents}  {signs:<24} {since}",
        group.group,
        group.class,
        style::out(tone, state),
        group.spin_ups_of_a_day,
        group.spin_ups,
        group.watts,
        group.waiting,
    )
}

/// Formats an alarm for a group that has lost redundancy.
fn alarm(group: &GroupSnapshot) -> Option<String> {
    let away =
        group.disks.iter().filter(|disk| disk.failure.is_some() || disk.power.is_out_of_service());
    let away: Vec<String> = away.map(|disk| disk.place.to_string()).collect();
    (!away.is_empty()).then(|| {
        let line = format!(
            "alarm      group {} has lost redundancy: {} of {} away: {}",
            group.group,
            away.len(),
            pluralize(group.disks.len() as u64, "disk"),
            away.join(", ")
        );
        style::out(Tone::Bad, line).to_string()
    })
}

/// Formats a spin-up.
pub(super) fn spin_up(spin_up: &SpinUp) -> String {
    let group = spin_up.group.map_or_else(|| "-".to_owned(), |group| group.to_string());
    let places: Vec<String> = spin_up.places.iter().map(ToString::to_string).collect();
    format!(
        "{:<24}  group {group:>3}  {:<14}  disks {}",
        timestamp(spin_up.at),
        spin_up.cause.to_string(),
        places.join(" ")
    )
}
