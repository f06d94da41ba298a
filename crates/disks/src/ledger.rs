//! The ledger of wakes: who woke which disk, when and why.
//!
//! What people who let disks sleep ask for first, and what no tool tells them. Kept at hand: for
//! each disk and group its totals over its life, by cause, its last wake and its last day by hours;
//! of all of them the last wakes. The rest is in the ledger's file ([`LedgerFile`]).

mod file;
mod hours;
mod totals;

use std::collections::{BTreeMap, VecDeque};

use crate::limits::WAKES_KEPT;
use crate::{CauseKind, GroupId, PlaceId, Wake};

pub use file::{LedgerFile, Reloaded};
pub use totals::Totals;

/// Who woke which disk.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    places: BTreeMap<PlaceId, Totals>,
    groups: BTreeMap<GroupId, Totals>,
    recent: VecDeque<Wake>,
    start: u64,
}

impl Ledger {
    /// Nothing was woken yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Disks were woken. Wakes come in the order of their time; one that does not, since somebody
    /// set the clock back, counts for the latest hour that is known.
    pub fn note(&mut self, wake: Wake) {
        for place in &wake.places {
            self.places.entry(*place).or_default().note(wake.at, wake.cause);
        }
        if let Some(group) = wake.group {
            self.groups.entry(group).or_default().note(wake.at, wake.cause);
        }
        if self.recent.len() == WAKES_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(wake);
    }

    /// A disk was replaced: its place begins a life of its own.
    pub fn replaced(&mut self, place: PlaceId) {
        self.places.remove(&place);
    }

    /// The latest start of its owner that it knows of; 0 when it knows of none.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The totals of a disk.
    #[must_use]
    pub fn of(&self, place: PlaceId) -> Option<&Totals> {
        self.places.get(&place)
    }

    /// The totals of a group.
    #[must_use]
    pub fn of_group(&self, group: GroupId) -> Option<&Totals> {
        self.groups.get(&group)
    }

    /// The totals of all disks that were ever woken, in the order of their places.
    pub fn places(&self) -> impl Iterator<Item = (PlaceId, &Totals)> {
        self.places.iter().map(|(&place, totals)| (place, totals))
    }

    /// The totals of all groups that were ever woken, in their order.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Totals)> {
        self.groups.iter().map(|(&group, totals)| (group, totals))
    }

    /// Spin-ups of all disks, by this kind of cause.
    #[must_use]
    pub fn spin_ups_by(&self, kind: CauseKind) -> u64 {
        self.places.values().map(|totals| totals.by(kind)).sum()
    }

    /// The last wakes, the latest first.
    pub fn recent(&self) -> impl Iterator<Item = &Wake> {
        self.recent.iter().rev()
    }
}
