//! Snapshots of the rack, taken by the driver's thread on request.

use std::collections::BTreeMap;

use fulgurite_disks::{CauseKind, GroupId, PlaceId, Power};
use fulgurite_units::{UnixTime, error_chain};

use super::super::snapshot::{DiskSnapshot, GroupRoom, GroupSnapshot, Snapshot};
use super::Loop;
use crate::index::TotalsRow;

impl Loop {
    pub(super) fn snapshot(&self) -> Snapshot {
        let groups: Vec<GroupSnapshot> =
            self.assignment.groups().map(|group| self.group_snapshot(group)).collect();
        let oldest = groups.iter().map(|group| group.verified).min().flatten();
        Snapshot {
            verified_oldest: oldest,
            rack: self.worker.ctx.rack,
            simulated: self.worker.backend.is_simulated(),
            max_spinups_per_day: self
                .core
                .controller
                .policy()
                .budget
                .map(|budget| budget.max_spinups_per_day),
            overdrawn: self.core.controller.counters().overdrawn,
            rated_spin_ups: self.rated_spin_ups,
            watts: groups.iter().map(|group| group.watts).sum(),
            groups,
            unrepaired: self.worker.ctx.unrepaired.count(),
            index_is_older: self.worker.ctx.starts.is_index_older(),
        }
    }

    fn group_snapshot(&self, group: GroupId) -> GroupSnapshot {
        let id = group;
        let ledger = self.ledger.ledger();
        let disk = |&place: &PlaceId| DiskSnapshot {
            place,
            power: self.worker.ctx.guard.power(place).unwrap_or(Power::Absent),
            spin_ups: ledger.disk_totals(place).map_or(0, fulgurite_disks::Totals::lifetime_count),
            health: self.health.get(&place).cloned(),
            failure: self.failures.get(&place).cloned().or_else(|| {
                let is_new = self.worker.ctx.places.is_new(place);
                is_new.then(|| "it is not initialized for the rack yet (replace)".to_owned())
            }),
        };
        let disks: Vec<DiskSnapshot> = self.assignment.places(group).iter().map(disk).collect();
        let totals = ledger.group_totals(id);
        let by = CauseKind::ALL.into_iter().filter_map(|kind| {
            let count = totals.map_or(0, |totals| totals.count(kind));
            (count > 0).then_some((kind, count))
        });
        let waiting = self.tasks.values().filter(|waiting| waiting.group == id).count();
        let lies = self.worker.ctx.index.totals(id).unwrap_or_else(|error| {
            tracing::warn!(group = %id, "cannot count its blobs: {}", error_chain(&error));
            TotalsRow::default()
        });
        let unsound = self.worker.ctx.index.problems(id).unwrap_or_else(|error| {
            tracing::warn!(group = %id, "cannot count its bad blobs: {}", error_chain(&error));
            0
        });
        let (verified, verifies) = self.scrubs.status(id);
        GroupSnapshot {
            group: id,
            class: self.assignment.class_of(group).get(),
            state: self.core.controller.group_state(group).into(),
            since: self.since.group_since(group),
            waiting: crate::format::bytes(waiting),
            blobs: lies.blobs,
            bytes: lies.bytes.get(),
            unsound,
            room: self.group_room(group),
            spin_ups: totals.map_or(0, fulgurite_disks::Totals::lifetime_count),
            spin_ups_by: by.collect(),
            spin_ups_of_a_day: totals.map_or(0, |totals| totals.day(self.core.clock.now())),
            rests_until: self.core.controller.over_budget_until(id).map(|at| {
                let left = at.since(self.core.now()).as_nanos() / 1_000_000;
                UnixTime::from_millis(self.core.clock.now().as_millis() + left)
            }),
            watts: disks.iter().map(|disk| self.watts_of(disk.power)).sum(),
            verified,
            verifies,
            disks,
        }
    }

    /// Returns the space of a group's disks together; none while that of one is unknown.
    fn group_room(&self, group: GroupId) -> Option<GroupRoom> {
        let mut systems = BTreeMap::new();
        let mut at_ms = u64::MAX;
        for &place in self.assignment.places(group) {
            let places = &self.worker.ctx.places;
            if places.is_given_up(place) {
                continue;
            }
            let room = places.room(place)?;
            at_ms = at_ms.min(room.at_ms);
            // On a file system shared by several places the latest query counts.
            let known = systems.entry(room.file_system).or_insert(room);
            if known.at_ms < room.at_ms {
                *known = room;
            }
        }
        let free = systems.values().map(|room| room.free.get()).sum();
        let total = systems.values().map(|room| room.total.get()).sum();
        let at = UnixTime::from_millis(at_ms);
        (!systems.is_empty()).then_some(GroupRoom { free, total, at })
    }
}
