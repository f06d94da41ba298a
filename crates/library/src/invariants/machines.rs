//! What must hold of shuttles and drives after every event.

use std::collections::BTreeSet;

use fulgurite_units::ShuttleIndex;

use crate::controller::{Actor, Library, actor};
use crate::errands::Findings;
use crate::floor::Position;
use crate::shuttles::storage_slot;
use crate::state::{Place, Stage, Trip};
use crate::traffic::Span;
use crate::{Action, Destination, DriveSlot, Movement, Source};

impl Library {
    /// Every command belongs to one busy machine, which works.
    pub(super) fn check_commands(&self) {
        let mut seen = BTreeSet::new();
        for (index, shuttle) in self.indexed_shuttles() {
            if let Some((command, _)) = shuttle.current() {
                assert_eq!(actor(command), Actor::Shuttle(index), "{command} is another's");
                assert!(seen.insert(command), "command {command} is carried out twice");
            }
            let at_work = shuttle.trip.is_some() && shuttle.broken;
            assert!(!at_work, "shuttle {index} is broken and on a trip");
        }
        for (index, drive) in self.indexed_drives() {
            if let Some(work) = drive.work {
                assert_eq!(
                    actor(work.command),
                    Actor::Drive(index),
                    "{} is another's",
                    work.command
                );
                assert!(seen.insert(work.command), "command {} is carried out twice", work.command);
                assert!(!drive.broken, "drive {index} is broken and works");
            }
        }
        assert_eq!(self.damaged, self.is_anything_broken(), "what is broken is known");
    }

    /// What drives hold, expect and face fits together.
    pub(super) fn check_drives(&self) {
        for (index, drive) in self.indexed_drives() {
            for slot in DriveSlot::BOTH {
                let bay = drive.bay(slot);
                let empty = bay.platter.is_none();
                assert!(!empty || !bay.mounted, "drive {index} has nothing mounted in {slot:?}");
                let second = !empty && bay.reserved.is_some();
                assert!(!second, "drive {index} expects a second platter in {slot:?}");
            }
            let facing = drive.facing;
            let mounted = facing.is_none_or(|slot| drive.bay(slot).mounted);
            assert!(mounted, "drive {index} faces {facing:?}, which is not mounted");
            assert!(drive.head.is_none() || facing.is_some(), "drive {index} reads nothing");
            let new = drive.bay(DriveSlot::Second).platter.map(|key| self.platter(key).stage);
            let new = matches!(new, Some(Stage::Unverified { .. }));
            assert!(!drive.insists || new, "drive {index} insists on what it does not have");
        }
    }

    /// Each trip is for a platter that is where the trip takes it from, or on board, and what it
    /// needs is reserved for it and for nobody else.
    pub(super) fn check_trips(&self) {
        let mut obscured = vec![0; self.obscured.len()];
        for (index, shuttle) in self.indexed_shuttles() {
            let Some(trip) = &shuttle.trip else { continue };
            if let Some(slot) = trip.current.and_then(|(_, action)| storage_slot(action)) {
                obscured[(slot.get() / u32::from(self.shape().slots_per_shelf)) as usize] += 1;
            }
            self.check_trip(index, trip);
        }
        assert_eq!(obscured, self.obscured, "who stands before a zone is counted");
        for (_, platter) in self.known() {
            let Some(claim) = platter.claim else { continue };
            let shuttle = &self.shuttles[claim.as_usize()];
            let errand = shuttle.trip.as_ref().and_then(|trip| trip.errand);
            let comes = errand.is_some_and(|errand| self.platter(errand.platter).id == platter.id);
            assert!(comes && shuttle.cargo.is_none(), "nobody comes for {}", platter.id);
        }
        for (index, drive) in self.indexed_drives() {
            for slot in DriveSlot::BOTH {
                let Some(shuttle) = drive.bay(slot).reserved else { continue };
                let trip = self.shuttles[shuttle.as_usize()].trip.as_ref();
                let to = trip.and_then(|trip| trip.errand).map(|errand| errand.to);
                assert_eq!(to, Some(Destination::Drive(index, slot)), "a reservation is forgotten");
            }
        }
    }

    fn check_trip(&self, index: ShuttleIndex, trip: &Trip) {
        let cargo = self.shuttles[index.as_usize()].cargo;
        assert!(!trip.charges || trip.errand.is_none(), "shuttle {index} charges on an errand");
        let Some(errand) = trip.errand else {
            let purpose = trip.charges || trip.detour.is_some();
            assert!(purpose, "shuttle {index} is under way for nothing");
            self.check_charging(index, trip);
            return;
        };
        let platter = self.platter(errand.platter);
        if cargo.is_some() {
            assert_eq!(cargo, Some(errand.platter), "shuttle {index} carries another");
            assert_eq!(platter.claim, None, "platter {} is claimed on board", platter.id);
        } else {
            assert_eq!(platter.claim, Some(index), "platter {} is claimed", platter.id);
            let from = match errand.from {
                Source::EjectBay(panel) => Place::EjectBay(panel),
                Source::Storage(slot) => Place::Storage(slot),
                Source::Drive(drive, slot) => Place::Drive(drive, slot),
            };
            assert_eq!(platter.place, from, "platter {} is not there to pick", platter.id);
        }
        if let Destination::Drive(drive, slot) = errand.to {
            let reserved = self.drives[drive.as_usize()].bay(slot).reserved;
            assert_eq!(reserved, Some(index), "drive {drive} expects shuttle {index}");
        }
        let panel = self.floor.panel_of(index);
        assert_eq!(trip.goal.panel, panel, "shuttle {index} leaves its panel");
    }

    /// Whether a shuttle is low follows from its level, but between the two bounds.
    pub(super) fn check_batteries(&self) {
        let (below, until) = (self.policy.charge_below, self.policy.charge_until);
        for (index, shuttle) in self.indexed_shuttles() {
            let due = match shuttle.battery {
                None => Some(false),
                Some(percent) if percent < below => Some(true),
                Some(percent) if percent >= until => Some(false),
                Some(_) => None,
            };
            let known = shuttle.battery.is_none() || self.has_batteries;
            let fits = due.is_none_or(|low| low == shuttle.low);
            assert!(known && fits, "shuttle {index} does not know its battery");
        }
    }

    /// A shuttle charges standing, at a dock of its panel.
    fn check_charging(&self, index: ShuttleIndex, trip: &Trip) {
        let at = self.shuttles[index.as_usize()].at;
        assert_eq!(trip.goal.panel, at.panel, "shuttle {index} leaves its panel");
        if let Some((_, Action::Charge { .. })) = trip.current {
            let mut sites = self.floor.drives().iter();
            let docked = sites.any(|site| {
                (site.panel, site.rail) == (at.panel, at.rail)
                    && site.shelves.contains(&at.shelf.get())
            });
            assert!(trip.charges && docked, "shuttle {index} charges where there is no power");
        }
    }

    /// A shuttle on a trip works or waits; those that wait are listed, and claim what they wait
    /// for.
    pub(super) fn check_waiting_shuttles(&self) {
        let mut blocked = BTreeSet::new();
        let mut claims: Vec<(u16, Span)> = Vec::new();
        for (index, shuttle) in self.indexed_shuttles() {
            let Some(trip) = &shuttle.trip else { continue };
            let works = trip.current.is_some();
            assert_ne!(works, trip.blocked.is_some(), "shuttle {index} works or waits");
            if let Some((span, since)) = trip.blocked {
                blocked.insert(index);
                assert!(since <= self.now, "shuttle {index} waits since the future");
                claims.push((index.get(), span));
            }
        }
        let listed: BTreeSet<ShuttleIndex> = self.blocked.iter().copied().collect();
        assert_eq!(listed.len(), self.blocked.len(), "a shuttle is twice blocked");
        assert_eq!(listed, blocked, "those that wait are known");
        let mut made: Vec<_> = self.traffic.claims().collect();
        made.sort_unstable_by_key(|(shuttle, _)| *shuttle);
        assert_eq!(made, claims, "claims are of those that wait");
    }

    /// No two shuttles are in one place, and each holds all it covers and nothing else.
    pub(super) fn check_lanes(&self) {
        self.traffic.check();
        for (index, shuttle) in self.indexed_shuttles() {
            let held: Vec<Span> = self.traffic.held_by(index.get()).collect();
            let here = self.traffic.footprint(shuttle.at);
            if shuttle.broken {
                let covers = held.iter().any(|span| {
                    span.lane == here.lane && span.from <= here.from && here.to <= span.to
                });
                assert!(covers, "shuttle {index} is not where it broke");
                let barred = held.iter().all(|span| self.traffic.is_barred(span));
                assert!(barred, "the place of broken shuttle {index} is open");
                continue;
            }
            let mut due = match shuttle.current().map(|(_, action)| action) {
                Some(Action::Move { to, .. }) => vec![self.traffic.sweep(shuttle.at, to)],
                Some(Action::Crab { to, .. }) => {
                    vec![here, self.traffic.footprint(Position { shelf: to, ..shuttle.at })]
                }
                _ => vec![here],
            };
            due.sort_unstable_by_key(|span| span.lane);
            assert_eq!(held, due, "shuttle {index} holds what it covers");
        }
    }

    /// Nothing rests that has something to do, and no customer waits for a verification that was
    /// not asked to stop.
    pub(super) fn check_work_conserved(&self) {
        for (index, drive) in self.indexed_drives() {
            let due = match drive.work {
                None => self.next_action(index).is_some(),
                Some(work) => self.is_halt_due(index, &work),
            };
            assert!(!due, "drive {index} rests although a platter waits in it");
        }
        if self.policy.movement == Movement::NoShuttles {
            for (index, drive) in self.indexed_drives().filter(|(_, drive)| !drive.broken) {
                let mut free = DriveSlot::BOTH.into_iter().filter(|slot| drive.admits(*slot));
                let due = free.any(|slot| self.next_for(slot).is_some());
                assert!(!due, "drive {index} is empty although a platter waits for it");
            }
            return;
        }
        if self.damaged {
            // Ways open and close with every move of every shuttle then; all groups look at their
            // work again with the next trip that ends.
            return;
        }
        for index in 0..u16::try_from(self.partitions.groups.len()).unwrap_or(u16::MAX) {
            let trip = self.next_trip(index, &mut Findings::default());
            assert!(trip.is_none(), "a shuttle of group {index} rests although {trip:?} is due");
        }
        for (index, _) in self.indexed_shuttles() {
            let point = self.charging_due(index);
            assert!(point.is_none(), "shuttle {index} rests although it could charge at {point:?}");
        }
    }

    /// Nobody older than the bound was passed over for a nearer one.
    pub(super) fn check_age_bound(&self) {
        let passed_over = self.counters.passed_over_max_ns;
        let bound = self.policy.age_bound.as_nanos();
        assert!(passed_over <= bound, "a read of {passed_over} ns was passed over");
    }
}
