//! What a rack shows of itself: of each group what it does, who waits, what it drew; no disk is
//! asked.

use fulgurite_disks::{CauseKind, GroupId, Health, PlaceId, Power};
use fulgurite_units::{RackId, UnixTime};
use serde::{Deserialize, Serialize};

/// A disk is worn when less than this part of its rated spin-ups is left: what it has can be made
/// anew elsewhere in time.
const WORN_PART: u64 = 10;

/// A rack at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Which rack.
    pub rack: RackId,
    /// Whether its disks are simulated: directories that do not turn.
    pub simulated: bool,
    /// How often a disk may spin up in any 24 hours, if there is a budget.
    pub max_spinups_per_day: Option<u32>,
    /// Times that a group was woken though its budget was used up.
    pub overdrawn: u64,
    /// Spin-ups that a disk is rated for over its life, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated_spin_ups: Option<u64>,
    /// When that group was whole verified whose verification is the oldest; none when one never
    /// was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_oldest: Option<UnixTime>,
    /// Its groups, in their order.
    pub groups: Vec<GroupSnapshot>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
    /// Blobs that a read since the start found stacks lost of, and that could not be made whole.
    #[serde(default)]
    pub unmended: u64,
    /// Whether its index is an older copy whose disks were not looked through since: what was put
    /// since is not found, and nothing is swept.
    #[serde(default)]
    pub index_is_older: bool,
}

/// That disks cannot be used.
const TROUBLED: &str = "disks are in trouble or away";

impl Snapshot {
    /// What is wrong with it in kinds, without a disk or a blob by name; nothing when it is well.
    #[must_use]
    pub fn degraded_kinds(&self) -> Vec<&'static str> {
        let fails = |disk: &DiskSnapshot| {
            disk.health.as_ref().is_some_and(|health| health.passes == Some(false))
        };
        let kinds = [
            (self.troubled().next().is_some(), TROUBLED),
            (self.disks().any(fails), "disks say that they will fail"),
            (self.index_is_older, "its index is an older copy: run `fulgurite rack recover`"),
            (self.unsound() > 0, "blobs have lost stacks that could not be made anew"),
        ];
        kinds.into_iter().filter(|(is_so, _)| *is_so).map(|(_, kind)| kind).collect()
    }

    /// The same for operators: how many disks are in trouble, and what is wrong with the first.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let named = |kind: &'static str| match self.troubled().next() {
            Some(first) if kind == TROUBLED => {
                let why = first.trouble.as_deref().unwrap_or_else(|| first.power.name());
                let (count, place) = (self.troubled().count(), first.place);
                format!("{count} {kind}; the first is disk {place}: {why}")
            }
            Some(_) | None => kind.to_owned(),
        };
        self.degraded_kinds().into_iter().map(named).collect()
    }

    fn disks(&self) -> impl Iterator<Item = &DiskSnapshot> {
        self.groups.iter().flat_map(|group| &group.disks)
    }

    /// Disks that cannot be used.
    fn troubled(&self) -> impl Iterator<Item = &DiskSnapshot> {
        self.disks().filter(|disk| disk.trouble.is_some() || disk.power.is_out())
    }

    /// Blobs that lack stacks, or more than their redundancy, as far as verifications and reads
    /// know. One that both found counts twice.
    #[must_use]
    pub fn unsound(&self) -> u64 {
        self.groups.iter().map(|group| group.unsound).sum::<u64>() + self.unmended
    }

    /// Disks of a group that had nearly all the spin-ups that they are rated for, or more.
    pub fn worn<'a>(
        &self,
        group: &'a GroupSnapshot,
    ) -> impl Iterator<Item = &'a DiskSnapshot> + use<'a> {
        let from = self.rated_spin_ups.map(|rated| rated - rated / WORN_PART);
        group.disks.iter().filter(move |disk| from.is_some_and(|from| disk.spin_ups >= from))
    }
}

/// A group at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshot {
    /// Which group.
    pub group: GroupId,
    /// Its class: of the groups of one, one spins at a time.
    pub class: u32,
    /// What it does.
    pub state: GroupState,
    /// Since when; none when that was before the start.
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
    /// Those of them that its verification so far, or the last one, could not read from all of
    /// their stacks and not make whole: they lack redundancy, or too many stacks to be read.
    #[serde(default)]
    pub unsound: u64,
    /// The room of its disks; none while not all of them were looked at since they were put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<GroupRoom>,
    /// Times that it was woken over its life, as the ledger has it.
    pub spin_ups: u64,
    /// The same over its life, by cause.
    pub spin_ups_by: Vec<(CauseKind, u64)>,
    /// Those of the last day, as the ledger counts: by hours, so it looks back an hour more.
    pub spin_ups_of_a_day: u64,
    /// Until when its budget lets it be woken only for what is due soon or in danger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_until: Option<UnixTime>,
    /// Estimated draw of its disks now, in watts.
    pub watts: f64,
    /// When all of its blobs were last read from all of their stacks; none when they never were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<UnixTime>,
    /// Whether that is under way again.
    pub verifies: bool,
}

/// The room of the disks of a group together, redundancy included; those that share a file system
/// count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRoom {
    /// Bytes that could be written.
    pub free: u64,
    /// All of them.
    pub total: u64,
    /// When the disk was looked at whose look is the oldest.
    pub at: UnixTime,
}

/// A disk at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSnapshot {
    /// Its place.
    pub place: PlaceId,
    /// What it does.
    pub power: Power,
    /// Spin-ups over its life, as the ledger has them.
    pub spin_ups: u64,
    /// What it said of itself when it last came up since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// What is wrong with it; nothing when nothing is known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// No disk of it turns.
    Asleep,
    /// It was told to turn, and is not ready.
    SpinningUp,
    /// It is ready.
    Spinning,
    /// It was told to stand still, and does not yet.
    SpinningDown,
}

impl GroupState {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Asleep, Self::SpinningUp, Self::Spinning, Self::SpinningDown];

    /// Its name in outputs and metrics.
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

impl From<fulgurite_rack::GroupState> for GroupState {
    fn from(state: fulgurite_rack::GroupState) -> Self {
        match state {
            fulgurite_rack::GroupState::Asleep => Self::Asleep,
            fulgurite_rack::GroupState::SpinningUp => Self::SpinningUp,
            fulgurite_rack::GroupState::Spinning => Self::Spinning,
            fulgurite_rack::GroupState::SpinningDown => Self::SpinningDown,
        }
    }
}

/// Since when each group does what it does.
#[derive(Debug, Default)]
pub(super) struct Since(Vec<(GroupState, UnixTime)>);

impl Since {
    /// Looks at the groups of a rack, in their order; says which went to sleep since the last look.
    pub(super) fn look(
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
                // Before the first look it may have done so for long.
                None => self.0.push((state, UnixTime::default())),
            }
        }
        slept
    }

    pub(super) fn of(&self, group: GroupId) -> Option<UnixTime> {
        let since = self.0.get(group.as_usize()).map(|(_, since)| *since);
        since.filter(|since| *since != UnixTime::default())
    }
}
