//! Scratch buffers for lists that live within one event, kept for reuse: on a crowded panel
//! shuttles wait at nearly every event. Empty between events.

use fulgurite_units::ShuttleIndex;

/// The buffers of one library.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchBuffers {
    /// Shuttles that wait for their way, by rank.
    pub(crate) waiting: Vec<(u64, ShuttleIndex)>,
    /// Shuttles that stand in a way.
    pub(crate) standing: Vec<ShuttleIndex>,
}
