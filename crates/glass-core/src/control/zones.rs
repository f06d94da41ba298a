//! The shelves of racks that are obscured: a shuttle stands there to pick or place, and others
//! cannot reach what lies behind it.
//!
//! A platter that was passed over for that is tried again when a shuttle leaves such a place. Not
//! here: the lanes in which shuttles stand (`traffic.rs`).

use fulgurite_units::SlotIndex;

/// The shuttles before each zone, which is one shelf of one rack.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    /// Number of shuttles that pick or place there.
    obscured: Vec<u16>,
    slots_per_zone: u32,
    /// Whether a platter was passed over because it was obscured.
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

    /// Counts a shuttle that picks from a slot or places there.
    pub(crate) fn obscure(&mut self, slot: SlotIndex) {
        let zone = self.zone(slot);
        self.obscured[zone] += 1;
    }

    /// Counts a shuttle that is done. Returns whether a platter was passed over since the last one.
    pub(crate) fn clear(&mut self, slot: SlotIndex) -> bool {
        let zone = self.zone(slot);
        self.obscured[zone] -= 1;
        std::mem::take(&mut self.passed_over)
    }

    /// Records whether a platter may have been passed over because it was obscured.
    pub(crate) const fn record_passed_over(&mut self, passed_over: bool) {
        self.passed_over |= passed_over;
    }

    const fn zone(&self, slot: SlotIndex) -> usize {
        (slot.get() / self.slots_per_zone) as usize
    }

    /// Asserts that these are the slots that shuttles pick from or place into now.
    pub(crate) fn check(&self, busy: impl Iterator<Item = SlotIndex>) {
        let mut obscured = vec![0; self.obscured.len()];
        busy.for_each(|slot| obscured[self.zone(slot)] += 1);
        assert_eq!(obscured, self.obscured, "the shuttles in front of each zone are counted");
    }
}
