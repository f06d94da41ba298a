//! What a rack shows of itself: of each group what it does, who waits, what it drew; no disk is
//! asked.

use fulgurite_disks::{CauseKind, GroupId, PlaceId, Power};
use fulgurite_units::{RackId, UnixTime};
use serde::Serialize;

/// A rack at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Which rack.
    pub rack: RackId,
    /// Whether its disks are simulated: directories that do not turn.
    pub simulated: bool,
    /// How often a disk may spin up in any 24 hours, if there is a budget.
    pub max_spinups_per_day: Option<u32>,
    /// Times that a group was woken though its budget was used up.
    pub overdrawn: u64,
    /// Its groups, in their order.
    pub groups: Vec<GroupSnapshot>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
}

/// A group at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSnapshot {
    /// Which group.
    pub group: GroupId,
    /// Its class: of the groups of one, one spins at a time.
    pub class: u32,
    /// Its disks, in the order of their places.
    pub disks: Vec<DiskSnapshot>,
    /// Operations that wait or run.
    pub waiting: u64,
    /// Times that it was woken, as the ledger has it.
    pub spin_ups: u64,
    /// The same by cause.
    pub spin_ups_by: Vec<(CauseKind, u64)>,
    /// Those of the last day, as the ledger counts: by hours, so it looks back an hour more.
    pub spin_ups_of_a_day: u64,
    /// Until when its budget lets it be woken only for what is due soon or in danger.
    pub rests_until: Option<UnixTime>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
}

/// A disk at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct DiskSnapshot {
    /// Its place.
    pub place: PlaceId,
    /// What it does.
    pub power: Power,
    /// Spin-ups over its life, as the ledger has them.
    pub spin_ups: u64,
    /// What is wrong with it; nothing when nothing is known to be.
    pub trouble: Option<String>,
}
