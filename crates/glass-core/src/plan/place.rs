//! Assigns platters to slots in one library: no two platters of a set share a cell, the emptiest
//! first.
//!
//! A zone here is one shelf of one rack (Silica section 6), the smallest unit that a failure can
//! affect. Failures of several zones at once, and several libraries, are handled in
//! [`crate::plan::fleet`]. This module does not know the library's shape; it takes zones as numbers
//! and chooses among them.

use std::cmp::Ordering;

use fulgurite_units::SlotIndex;

use crate::plan::LayoutError;

/// One shelf of one rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// Number of the zone.
    pub zone: u32,
    /// Number of its slots.
    pub total: u32,
    /// Number of its free slots.
    pub free: u32,
    /// Slot that the next platter would take; `None` when none is free.
    pub next: Option<SlotIndex>,
    /// Whether it already holds a platter of the same set.
    pub holds_member: bool,
}

/// Chooses a slot for each of `platters` platters of one set, each in another zone. Zones with the
/// smallest share of used slots come first, among equals those with lower numbers.
///
/// # Errors
/// [`LayoutError::TooFewZones`] when too few zones have a free slot.
pub fn choose_zones(zones: &[ZoneState], platters: usize) -> Result<Vec<SlotIndex>, LayoutError> {
    let mut usable: Vec<(&ZoneState, SlotIndex)> = zones
        .iter()
        .filter(|zone| !zone.holds_member && zone.free > 0)
        .filter_map(|zone| zone.next.map(|slot| (zone, slot)))
        .collect();
    if usable.len() < platters {
        return Err(LayoutError::TooFewZones { platters, zones: usable.len() });
    }
    usable.sort_by(|(a, _), (b, _)| compare_used_share(a, b));
    Ok(usable[..platters].iter().map(|&(_, slot)| slot).collect())
}

/// Orders zones by the share of used slots, then by number.
pub(crate) fn compare_used_share(a: &ZoneState, b: &ZoneState) -> Ordering {
    // used_a / total_a < used_b / total_b, without the division.
    let used = |zone: &ZoneState| u64::from(zone.total.saturating_sub(zone.free));
    let (left, right) = (used(a) * u64::from(b.total), used(b) * u64::from(a.total));
    left.cmp(&right).then(a.zone.cmp(&b.zone))
}
