//! Invariants between shuttles, drives and platters, checked after every event.

use std::collections::BTreeSet;

use fulgurite_units::{ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::errands::Findings;
use crate::control::fleet::Trip;
use crate::control::shuttle_dispatch::storage_slot;
use crate::control::state::{Place, Stage};
use crate::control::{Action, Destination, DriveSlot, Movement, Source};

impl Library {
    /// Asserts that every command is carried out by one machine.
    pub(super) fn check_commands(&self) {
        let shuttles = self.fleet.indexed().filter_map(|(_, shuttle)| shuttle.current());
        let shuttles = shuttles.map(|(command, _)| command);
        let drives = self.drives.indexed().filter_map(|(_, drive)| drive.work());
        let mut seen = BTreeSet::new();
        for command in shuttles.chain(drives.map(|work| work.command)) {
            assert!(seen.insert(command), "command {command} is carried out twice");
        }
        assert_eq!(
            self.damaged,
            self.is_anything_broken(),
            "the flag for broken machines is correct"
        );
    }

    /// Asserts that a drive insists only on a new platter inside it.
    pub(super) fn check_drives(&self) {
        for (index, drive) in self.drives.indexed() {
            let new = drive.bay(DriveSlot::Second).platter().map(|key| self.shelf.get(key).stage());
            let new = matches!(new, Some(Stage::Unverified { .. }));
            assert!(
                !drive.is_verify_only() || new,
                "drive {index} insists on what it does not have"
            );
        }
    }

    /// Returns the slots that shuttles pick from or place into.
    pub(super) fn busy_slots(&self) -> impl Iterator<Item = SlotIndex> {
        let current = self.fleet.indexed().filter_map(|(_, shuttle)| shuttle.current());
        current.filter_map(|(_, action)| storage_slot(action))
    }

    /// Asserts that each trip is for a platter that is at its source or on board, and that what it
    /// needs is reserved for it alone.
    pub(super) fn check_trips(&self) {
        for (index, shuttle) in self.fleet.indexed() {
            if let Some(trip) = shuttle.trip() {
                self.check_trip(index, trip);
            }
        }
        for (_, platter) in self.shelf.known() {
            let Some(claim) = platter.claim() else { continue };
            let shuttle = self.fleet.get(claim);
            let errand = shuttle.errand();
            let comes =
                errand.is_some_and(|errand| self.shelf.get(errand.platter).id() == platter.id());
            assert!(
                comes && shuttle.cargo().is_none(),
                "no shuttle comes for claimed platter {}",
                platter.id()
            );
        }
        for (index, drive) in self.drives.indexed() {
            for slot in DriveSlot::BOTH {
                let Some(shuttle) = drive.bay(slot).reserved() else { continue };
                let to = self.fleet.get(shuttle).errand().map(|errand| errand.to);
                assert_eq!(
                    to,
                    Some(Destination::Drive(index, slot)),
                    "a reservation has no matching trip"
                );
            }
        }
    }

    fn check_trip(&self, index: ShuttleIndex, trip: &Trip) {
        let cargo = self.fleet.get(index).cargo();
        assert!(!trip.charges() || trip.errand().is_none(), "shuttle {index} charges on an errand");
        let Some(errand) = trip.errand() else {
            let purpose = trip.charges() || trip.detour().is_some();
            assert!(purpose, "shuttle {index} is on a trip without a purpose");
            self.check_charging(index, trip);
            return;
        };
        let platter = self.shelf.get(errand.platter);
        if cargo.is_some() {
            assert_eq!(
                cargo,
                Some(errand.platter),
                "shuttle {index} carries another platter than its errand"
            );
            assert_eq!(platter.claim(), None, "platter {} is claimed on board", platter.id());
        } else {
            assert_eq!(platter.claim(), Some(index), "platter {} is claimed", platter.id());
            let from = match errand.from {
                Source::EjectBay(panel) => Place::EjectBay(panel),
                Source::Storage(slot) => Place::Storage(slot),
                Source::Drive(drive, slot) => Place::Drive(drive, slot),
            };
            assert_eq!(platter.place(), from, "platter {} is not there to pick", platter.id());
        }
        if let Destination::Drive(drive, slot) = errand.to {
            let reserved = self.drives.get(drive).bay(slot).reserved();
            assert_eq!(reserved, Some(index), "drive {drive} expects shuttle {index}");
        }
        let panel = self.floor.panel_of(index);
        assert_eq!(trip.goal().panel, panel, "shuttle {index} leaves its panel");
    }

    /// Asserts that a shuttle charges standing, at a dock of its panel.
    fn check_charging(&self, index: ShuttleIndex, trip: &Trip) {
        let at = self.fleet.get(index).position();
        assert_eq!(trip.goal().panel, at.panel, "shuttle {index} leaves its panel");
        if let Some((_, Action::Charge { .. })) = trip.current() {
            let mut sites = self.floor.drives().iter();
            let docked = sites.any(|site| {
                (site.panel, site.rail) == (at.panel, at.rail)
                    && site.shelves.contains(&at.shelf.get())
            });
            assert!(trip.charges() && docked, "shuttle {index} charges where there is no power");
        }
    }

    /// Asserts that nothing is idle that has something to do, and that no customer waits for a
    /// verification pass that was not asked to stop.
    pub(super) fn check_work_conserved(&self) {
        for (index, drive) in self.drives.indexed() {
            let due = match drive.work() {
                None => self.next_action(index).is_some(),
                Some(work) => self.is_halt_due(index, &work),
            };
            assert!(!due, "drive {index} is idle although a platter waits in it");
        }
        if self.policy.movement == Movement::NoShuttles {
            for (index, drive) in self.drives.indexed().filter(|(_, drive)| !drive.is_broken()) {
                let mut free = DriveSlot::BOTH.into_iter().filter(|slot| drive.can_accept(*slot));
                let due = free.any(|slot| self.next_platter_for(slot).is_some());
                assert!(!due, "drive {index} is empty although a platter waits for it");
            }
            return;
        }
        if self.damaged {
            // Ways open and close with every move of every shuttle then; all groups search for work
            // again when the next trip ends.
            return;
        }
        for index in 0..self.partitions.count() {
            let trip = self.next_trip(index, &mut Findings::default());
            assert!(trip.is_none(), "a shuttle of group {index} is idle although {trip:?} is due");
        }
        for (index, _) in self.fleet.indexed() {
            let point = self.charging_due(index);
            assert!(
                point.is_none(),
                "shuttle {index} is idle although it could charge at {point:?}"
            );
        }
    }

    /// Asserts that no platter was passed over for a nearer one for longer than the bound.
    pub(super) fn check_age_bound(&self) {
        let passed_over = self.counters.passed_over_max_ns;
        let bound = self.policy.age_bound.as_nanos();
        assert!(passed_over <= bound, "a read was passed over for {passed_over} ns");
    }
}
