//! Which shelves of which racks shuttles stand before to pick or place: what lies there cannot be
//! seen by others.
//!
//! A platter that was passed over for it is looked at again when somebody leaves such a place. Not
//! here: the lanes in which shuttles stand (`traffic.rs`).

use fulgurite_units::SlotIndex;

/// Who stands before each zone, which is one shelf of one rack.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    /// Shuttles that pick or place there.
    obscured: Vec<u16>,
    slots_per_zone: u32,
    /// Somebody passed over a platter because it was obscured.
    passed_over: bool,
}

impl Zones {
    pub(crate) fn new(zones: u32, slots_per_zone: u16) -> Self {
        let slots_per_zone = u32::from(slots_per_zone);
        Self { obscured: vec![0; zones as usize], slots_per_zone, passed_over: false }
    }

    /// Whether a shuttle picks or places in front of the zone of a slot.
    #[inline]
    pub(crate) fn is_obscured(&self, slot: SlotIndex) -> bool {
        self.obscured[self.zone(slot)] > 0
    }

    /// A shuttle picks from a slot, or places there.
    pub(crate) fn obscure(&mut self, slot: SlotIndex) {
        let zone = self.zone(slot);
        self.obscured[zone] += 1;
    }

    /// It is done. Whether somebody passed over a platter since the last was.
    pub(crate) fn clear(&mut self, slot: SlotIndex) -> bool {
        let zone = self.zone(slot);
        self.obscured[zone] -= 1;
        std::mem::take(&mut self.passed_over)
    }

    /// Somebody may have passed over a platter because it was obscured.
    pub(crate) const fn note_passed_over(&mut self, passed_over: bool) {
        self.passed_over |= passed_over;
    }

    const fn zone(&self, slot: SlotIndex) -> usize {
        (slot.get() / self.slots_per_zone) as usize
    }

    /// These slots are those that shuttles pick from or place into now.
    pub(crate) fn check(&self, busy: impl Iterator<Item = SlotIndex>) {
        let mut obscured = vec![0; self.obscured.len()];
        busy.for_each(|slot| obscured[self.zone(slot)] += 1);
        assert_eq!(obscured, self.obscured, "who stands before a zone is counted");
    }
}
