//! Metrics of a rack of cold disks, per group, from the state of its driver. No disk is touched.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fulgurite_rack::{DiskSnapshot, Snapshot};

use super::metrics::head;

/// Returns the metrics of a rack in the Prometheus text format.
pub(super) fn rack_page(rack: &Snapshot) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_disks(&mut page, rack);
    let _ = write_groups(&mut page, rack);
    page
}

fn write_disks(page: &mut String, rack: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_rack_simulated";
    head(page, name, "gauge", "1 when the disks are simulated by directories.")?;
    writeln!(page, "{name} {}", u8::from(rack.simulated))?;
    let name = "fulgurite_rack_healthy";
    head(page, name, "gauge", "1 when nothing is wrong with disks or blobs.")?;
    writeln!(page, "{name} {}", u8::from(rack.degraded_kinds().is_empty()))?;
    let name = "fulgurite_rack_blobs_unmended";
    let help = "Blobs with lost stacks that reads found and that could not be rebuilt.";
    head(page, name, "gauge", help)?;
    writeln!(page, "{name} {}", rack.unmended)?;
    let name = "fulgurite_rack_disks";
    head(page, name, "gauge", "Disks of a group, by power state.")?;
    for group in &rack.groups {
        let mut counts = BTreeMap::<&str, u64>::new();
        for disk in &group.disks {
            *counts.entry(disk.power.name()).or_default() += 1;
        }
        for (power, count) in counts {
            writeln!(page, "{name}{{group=\"{}\",power=\"{power}\"}} {count}", group.group)?;
        }
    }
    let name = "fulgurite_rack_disks_failed";
    head(page, name, "gauge", "Faulty disks of a group.")?;
    for group in &rack.groups {
        let faulty = group.disks.iter().filter(|disk| disk.failure.is_some()).count();
        writeln!(page, "{name}{{group=\"{}\"}} {faulty}", group.group)?;
    }
    let name = "fulgurite_rack_disks_failing";
    head(page, name, "gauge", "Disks of a group that predict their own failure (SMART).")?;
    for group in &rack.groups {
        let is_failing = |disk: &&DiskSnapshot| {
            disk.health.as_ref().is_some_and(|health| health.passes == Some(false))
        };
        let failing = group.disks.iter().filter(is_failing).count();
        writeln!(page, "{name}{{group=\"{}\"}} {failing}", group.group)?;
    }
    if rack.rated_spin_ups.is_some() {
        let name = "fulgurite_rack_disks_worn";
        let help =
            "Disks of a group with less than a tenth left of the spin-ups they are rated for.";
        head(page, name, "gauge", help)?;
        for group in &rack.groups {
            let worn = rack.worn(group).count();
            writeln!(page, "{name}{{group=\"{}\"}} {worn}", group.group)?;
        }
    }
    Ok(())
}

fn write_groups(page: &mut String, rack: &Snapshot) -> std::fmt::Result {
    let name = "fulgurite_rack_spinups_total";
    head(page, name, "counter", "Spin-ups of a group, by cause, over its life.")?;
    for group in &rack.groups {
        for (cause, count) in &group.spin_ups_by {
            writeln!(page, "{name}{{group=\"{}\",cause=\"{cause}\"}} {count}", group.group)?;
        }
    }
    let name = "fulgurite_rack_spinups_day";
    head(page, name, "gauge", "Spin-ups of a group in the last 25 hours, as budgets count them.")?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {}", group.group, group.spin_ups_of_a_day)?;
    }
    let name = "fulgurite_rack_waiting";
    head(page, name, "gauge", "Operations waiting for a group or running in it.")?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {}", group.group, group.waiting)?;
    }
    let name = "fulgurite_rack_blobs";
    head(page, name, "gauge", "Blobs stored in a group.")?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {}", group.group, group.blobs)?;
    }
    let name = "fulgurite_rack_blobs_unsound";
    let help = "Blobs of a group that its last verification could not rebuild.";
    head(page, name, "gauge", help)?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {}", group.group, group.unsound)?;
    }
    let name = "fulgurite_rack_blob_bytes";
    head(page, name, "gauge", "Bytes of the blobs of a group, without redundancy.")?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {}", group.group, group.bytes)?;
    }
    let name = "fulgurite_rack_free_bytes";
    head(
        page,
        name,
        "gauge",
        "Free bytes of a group's disks when last checked; shared file systems count once.",
    )?;
    for (group, room) in rack.groups.iter().filter_map(|group| Some((group.group, group.room?))) {
        writeln!(page, "{name}{{group=\"{group}\"}} {}", room.free)?;
    }
    let name = "fulgurite_rack_watts";
    head(page, name, "gauge", "Estimated power draw of a group's disks; nothing is measured.")?;
    for group in &rack.groups {
        writeln!(page, "{name}{{group=\"{}\"}} {:.2}", group.group, group.watts)?;
    }
    Ok(())
}
