//! The ledger of spin-ups: which disk was spun up, when and why.
//!
//! Operators of spun-down disks ask for this first, and no other tool records it. In memory: for
//! each disk and group its totals over its life by cause, its last spin-up, and its last day by
//! hours; and the most recent spin-ups of all. The rest is in the ledger's file ([`LedgerFile`]).

mod file;
mod hours;
mod totals;

use std::collections::{BTreeMap, VecDeque};

use crate::limits::RECENT_SPIN_UPS_MAX;
use crate::{CauseKind, GroupId, PlaceId, SpinUp};

pub use file::{LedgerFile, LoadReport};
pub use totals::Totals;

/// A ledger of spin-ups.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    places: BTreeMap<PlaceId, Totals>,
    groups: BTreeMap<GroupId, Totals>,
    recent: VecDeque<SpinUp>,
    start: u64,
}

impl Ledger {
    /// Creates an empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a spin-up. Records come in order of time. One that does not, because the clock was
    /// set back, counts for the latest known hour.
    pub fn record(&mut self, spin_up: SpinUp) {
        for place in &spin_up.places {
            self.places.entry(*place).or_default().record(spin_up.at, spin_up.cause);
        }
        if let Some(group) = spin_up.group {
            self.groups.entry(group).or_default().record(spin_up.at, spin_up.cause);
        }
        if self.recent.len() == RECENT_SPIN_UPS_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(spin_up);
    }

    /// Records that a disk was replaced: the totals of its place start again.
    pub fn replaced(&mut self, place: PlaceId) {
        self.places.remove(&place);
    }

    /// Returns the latest start of its owner that was recorded; 0 if none was.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the totals of a disk.
    #[must_use]
    pub fn disk_totals(&self, place: PlaceId) -> Option<&Totals> {
        self.places.get(&place)
    }

    /// Returns the totals of a group.
    #[must_use]
    pub fn group_totals(&self, group: GroupId) -> Option<&Totals> {
        self.groups.get(&group)
    }

    /// Returns the totals of all disks that were ever spun up, in order of place.
    pub fn places(&self) -> impl Iterator<Item = (PlaceId, &Totals)> {
        self.places.iter().map(|(&place, totals)| (place, totals))
    }

    /// Returns the totals of all groups that were ever spun up, in order.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Totals)> {
        self.groups.iter().map(|(&group, totals)| (group, totals))
    }

    /// Returns the spin-ups of all disks by this kind of cause.
    #[must_use]
    pub fn spin_ups_by(&self, kind: CauseKind) -> u64 {
        self.places.values().map(|totals| totals.count(kind)).sum()
    }

    /// Returns the most recent spin-ups, newest first.
    pub fn recent(&self) -> impl Iterator<Item = &SpinUp> {
        self.recent.iter().rev()
    }
}
