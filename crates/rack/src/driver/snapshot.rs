//! A snapshot of a rack for operators: the state, the queue and the power draw of each group.
//! Taking it accesses no disk.

use fulgurite_disks::{CauseKind, GroupId, Health, PlaceId, Power};
use fulgurite_units::{RackId, UnixTime};
use serde::{Deserialize, Serialize};

/// A disk is worn when less than one part in this many of its rated spin-ups is left. That leaves
/// time to rebuild its stacks elsewhere.
const WORN_PART: u64 = 10;

/// The state of a rack at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Id of the rack.
    pub rack: RackId,
    /// Whether its disks are simulated: directories that do not spin.
    pub simulated: bool,
    /// How often a disk may spin up in any 24 hours, if there is a budget.
    pub max_spinups_per_day: Option<u32>,
    /// How often a group was spun up although its budget was used up.
    pub overdrawn: u64,
    /// Spin-ups that a disk is rated for over its life, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated_spin_ups: Option<u64>,
    /// When the group that was verified longest ago was last fully verified; none if one never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_oldest: Option<UnixTime>,
    /// Its groups, in their order.
    pub groups: Vec<GroupSnapshot>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
    /// Blobs that a read since the start found damaged and that could not be repaired.
    #[serde(default)]
    pub unrepaired: u64,
    /// Whether its index is an older copy and the disks have not been searched since: objects put
    /// after the copy are missing, and garbage collection is suspended.
    #[serde(default)]
    pub index_is_older: bool,
}

/// Shown when disks cannot be used.
const FAILED_DISKS: &str = "disks have failed or are missing";

impl Snapshot {
    /// Returns the kinds of failures, naming no disk or blob; empty when the rack is healthy.
    #[must_use]
    pub fn degraded_kinds(&self) -> Vec<&'static str> {
        let fails = |disk: &DiskSnapshot| {
            disk.health.as_ref().is_some_and(|health| health.passes == Some(false))
        };
        let kinds = [
            (self.failed_disks().next().is_some(), FAILED_DISKS),
            (self.disks().any(fails), "disks predict their own failure (SMART)"),
            (self.index_is_older, "its index is an older copy: run `fulgurite tier recover NAME`"),
            (self.unsound() > 0, "blobs have lost stacks that could not be rebuilt"),
        ];
        kinds.into_iter().filter(|(is_so, _)| *is_so).map(|(_, kind)| kind).collect()
    }

    /// The same for operators: with the number of failed disks and the failure of the first.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let named = |kind: &'static str| match self.failed_disks().next() {
            Some(first) if kind == FAILED_DISKS => {
                let reason = first.failure.as_deref().unwrap_or_else(|| first.power.name());
                let (count, place) = (self.failed_disks().count(), first.place);
                format!("{count} {kind}; the first is disk {place}: {reason}")
            }
            Some(_) | None => kind.to_owned(),
        };
        self.degraded_kinds().into_iter().map(named).collect()
    }

    fn disks(&self) -> impl Iterator<Item = &DiskSnapshot> {
        self.groups.iter().flat_map(|group| &group.disks)
    }

    /// Returns the disks that cannot be used.
    fn failed_disks(&self) -> impl Iterator<Item = &DiskSnapshot> {
        self.disks().filter(|disk| disk.failure.is_some() || disk.power.is_out_of_service())
    }

    /// Returns the number of blobs that lack stacks, perhaps too many to be read, as far as
    /// verifications and reads know. A blob found by both counts twice.
    #[must_use]
    pub fn unsound(&self) -> u64 {
        self.groups.iter().map(|group| group.unsound).sum::<u64>() + self.unrepaired
    }

    /// Returns the disks of a group that have used nearly all of their rated spin-ups, or more.
    pub fn worn<'a>(
        &self,
        group: &'a GroupSnapshot,
    ) -> impl Iterator<Item = &'a DiskSnapshot> + use<'a> {
        let from = self.rated_spin_ups.map(|rated| rated - rated / WORN_PART);
        group.disks.iter().filter(move |disk| from.is_some_and(|from| disk.spin_ups >= from))
    }
}

/// The state of a group at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshot {
    /// Id of the group.
    pub group: GroupId,
    /// Its class. Of the groups of a class, one spins at a time.
    pub class: u32,
    /// Its state.
    pub state: GroupState,
    /// Since when; none if it was so before the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixTime>,
    /// Its disks, in the order of their places.
    pub disks: Vec<DiskSnapshot>,
    /// Operations that wait or run.
    pub waiting: u64,
    /// Blobs that lie in it.
    pub blobs: u64,
    /// Their bytes, without redundancy.
    pub bytes: u64,
    /// Blobs that its current or last verification could neither read from all of their stacks nor
    /// repair: they lack redundancy, or too many stacks to be read.
    #[serde(default)]
    pub unsound: u64,
    /// The space of its disks; none until each has been queried since it was inserted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<GroupRoom>,
    /// How often it was spun up over its life, according to the ledger.
    pub spin_ups: u64,
    /// The same over its life, by cause.
    pub spin_ups_by: Vec<(CauseKind, u64)>,
    /// Spin-ups of the last day. The ledger counts by hours, so this looks back up to an hour more.
    pub spin_ups_of_a_day: u64,
    /// Until when its budget allows spin-ups only for what is due soon or at risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_until: Option<UnixTime>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
    /// When all of its blobs were last read from all of their stacks; none if they never were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<UnixTime>,
    /// Whether a verification is running.
    pub verifies: bool,
}

/// The total space of a group's disks, redundancy included. Disks that share a file system count
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRoom {
    /// Free bytes.
    pub free: u64,
    /// Total bytes.
    pub total: u64,
    /// When the oldest of these figures was queried.
    pub at: UnixTime,
}

/// The state of a disk at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSnapshot {
    /// Its place.
    pub place: PlaceId,
    /// Its power state.
    pub power: Power,
    /// Spin-ups over its life, according to the ledger.
    pub spin_ups: u64,
    /// Health that it reported when it last came up since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Its failure; none if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// None of its disks spins.
    Asleep,
    /// Commanded to spin up, and not ready yet.
    SpinningUp,
    /// Ready.
    Spinning,
    /// Commanded to spin down, and still spinning.
    SpinningDown,
}

impl GroupState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Asleep, Self::SpinningUp, Self::Spinning, Self::SpinningDown];

    /// Returns the name used in output and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asleep => "asleep",
            Self::SpinningUp => "spinning-up",
            Self::Spinning => "spinning",
            Self::SpinningDown => "spinning-down",
        }
    }
}

impl From<fulgurite_rack_core::GroupState> for GroupState {
    fn from(state: fulgurite_rack_core::GroupState) -> Self {
        match state {
            fulgurite_rack_core::GroupState::Asleep => Self::Asleep,
            fulgurite_rack_core::GroupState::SpinningUp => Self::SpinningUp,
            fulgurite_rack_core::GroupState::Spinning => Self::Spinning,
            fulgurite_rack_core::GroupState::SpinningDown => Self::SpinningDown,
        }
    }
}

/// When each group entered its current state.
#[derive(Debug, Default)]
pub(super) struct StateTimes(Vec<(GroupState, UnixTime)>);

impl StateTimes {
    /// Updates the states of a rack's groups, given in order. Returns the positions of those that
    /// went to sleep since the last call.
    pub(super) fn poll(
        &mut self,
        states: impl Iterator<Item = GroupState>,
        now: UnixTime,
    ) -> Vec<usize> {
        let mut slept = Vec::new();
        for (at, state) in states.enumerate() {
            match self.0.get_mut(at) {
                Some(known) if known.0 == state => {}
                Some(known) => {
                    *known = (state, now);
                    if state == GroupState::Asleep {
                        slept.push(at);
                    }
                }
                // Before the first call it may have been so for a long time.
                None => self.0.push((state, UnixTime::default())),
            }
        }
        slept
    }

    pub(super) fn group_since(&self, group: GroupId) -> Option<UnixTime> {
        let since = self.0.get(group.as_usize()).map(|(_, since)| *since);
        since.filter(|since| *since != UnixTime::default())
    }
}
