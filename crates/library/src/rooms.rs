//! Room for lists that are made and dropped within an event, used again and again: on a crowded
//! panel somebody waits at nearly every event. Empty between events.

use fulgurite_units::ShuttleIndex;

/// Of one library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rooms {
    /// Those that wait for their way, by rank.
    pub(crate) waiting: Vec<(u64, ShuttleIndex)>,
    /// Those that stand in a way.
    pub(crate) standing: Vec<ShuttleIndex>,
}
