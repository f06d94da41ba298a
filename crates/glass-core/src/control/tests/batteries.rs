//! Simulated batteries for the tests, and how a library manages them.
//!
//! Levels are in thousandths of a percent. A shuttle that ended a trip with less than the policy's
//! bound must not pick anything up until it has charged: that is checked here against the driver's
//! reports, not against the controller's memory.

use std::collections::BTreeMap;

use fulgurite_units::{Seed, ShuttleIndex};

use super::swarm::{Run, assert_served, cases};
use super::twin::Twin;
use crate::control::{Action, Event, Fault, LibraryShape, Machine, Outcome, Policy};

const FULL: u64 = 100_000;

/// The batteries of all shuttles.
#[derive(Clone, Debug)]
pub(super) struct Batteries {
    levels: Vec<u64>,
    /// The last level that each driver reported.
    reported: Vec<Option<u8>>,
    /// Whether each shuttle has to charge before it picks.
    must_charge: Vec<bool>,
    /// Energy of an operation, and energy gained in a charging interval.
    energy_per_operation: u64,
    energy_per_charge: u64,
    below: u8,
    until: u8,
    pub(super) flat: u64,
}

impl Batteries {
    pub(super) fn new(
        shape: &LibraryShape,
        policy: &Policy,
        energy_per_operation: u64,
        energy_per_charge: u64,
    ) -> Self {
        let count = usize::from(shape.panels * shape.shuttles_per_panel);
        Self {
            levels: vec![FULL; count],
            reported: vec![None; count],
            must_charge: vec![false; count],
            energy_per_operation,
            energy_per_charge,
            below: policy.charge_below,
            until: policy.charge_until,
            flat: 0,
        }
    }

    /// Creates batteries for fifty to a thousand operations, a charging interval for ten or more,
    /// and some policy about them: with a low bound some go flat.
    pub(super) fn any(seed: u64, shape: &LibraryShape, policy: &mut Policy) -> Self {
        let mut random = Seed::new(seed).child(b"batteries").stream();
        let most = [4, 60][usize::from(random.below(2) == 0)];
        policy.charge_below = u8::try_from(1 + random.below(most)).unwrap();
        let more = 1 + random.below(u64::from(100 - policy.charge_below));
        policy.charge_until = policy.charge_below + u8::try_from(more).unwrap();
        let energy_per_operation = 100 + random.below(1_900);
        let mut batteries = Self::new(
            shape,
            policy,
            energy_per_operation,
            10 * energy_per_operation + random.below(20_000),
        );
        batteries.levels.iter_mut().for_each(|level| *level = 5_000 + random.below(95_001));
        batteries
    }

    pub(super) fn start(&self, action: &Action) {
        if let Action::Pick { shuttle, .. } = action {
            let must = self.must_charge[shuttle.as_usize()];
            assert!(!must, "shuttle {shuttle} takes an errand with a low battery");
        }
    }

    /// Accounts for a finished operation. Returns whether the battery went flat before its end.
    pub(super) fn account_for(&mut self, action: &Action) -> bool {
        let Machine::Shuttle(shuttle) = action.machine() else { return false };
        let level = &mut self.levels[shuttle.as_usize()];
        *level = if matches!(action, Action::Charge { .. }) {
            FULL.min(*level + self.energy_per_charge)
        } else {
            level.saturating_sub(self.energy_per_operation)
        };
        let low = *level / 1000 < u64::from(self.below);
        self.must_charge[shuttle.as_usize()] |= low && matches!(action, Action::Place { .. });
        self.flat += u64::from(*level == 0);
        *level == 0
    }

    pub(super) fn swap(&mut self, shuttle: ShuttleIndex) {
        let index = shuttle.as_usize();
        (self.levels[index], self.reported[index]) = (FULL, None);
        self.must_charge[index] = false;
    }

    /// Forgets all reports, and which shuttles were low: until the controller gets a report of each
    /// shuttle again, it may give an errand to any.
    pub(super) fn forget_reports(&mut self) {
        self.reported.iter_mut().for_each(|reported| *reported = None);
        self.must_charge.fill(false);
    }

    /// Returns the new reports of the drivers of working shuttles.
    pub(super) fn new_reports(
        &mut self,
        broken: impl Fn(ShuttleIndex) -> bool,
    ) -> Vec<(ShuttleIndex, u8)> {
        let mut new_reports = Vec::new();
        for (index, level) in self.levels.iter().enumerate() {
            let shuttle = ShuttleIndex::new(u16::try_from(index).unwrap());
            let percent = u8::try_from(level / 1000).unwrap();
            if self.reported[index] == Some(percent) || broken(shuttle) {
                continue;
            }
            self.reported[index] = Some(percent);
            self.must_charge[index] &= percent < self.until;
            new_reports.push((shuttle, percent));
        }
        new_reports
    }
}

fn one_shuttle() -> LibraryShape {
    LibraryShape {
        read_racks: 1,
        drives_per_read_rack: 2,
        shuttles_per_panel: 1,
        spare_slots_per_shelf: 1,
        ..LibraryShape::small()
    }
}

fn battery(twin: &mut Twin, at_ms: u64, percent: u8) {
    twin.at(at_ms, Event::Battery { shuttle: ShuttleIndex::new(0), percent });
}

fn on_batteries(shape: &LibraryShape, policy: Policy, energy_per_operation: u64) -> Twin {
    let batteries = Batteries::new(shape, &policy, energy_per_operation, 5_000);
    let mut twin = Twin::with_policy(shape, policy, 3);
    twin.batteries = Some(batteries);
    twin
}

#[test]
fn low_shuttle_charges_before_fetching() {
    let mut twin = Twin::new(&one_shuttle(), 1);
    battery(&mut twin, 0, 19);
    twin.read(1, 1, 1, 1_234, 0);
    for minutes in 2..20 {
        battery(&mut twin, 60_000 * minutes, 20 + 4 * u8::try_from(minutes).unwrap());
    }
    twin.run_to_rest();
    let charges = twin.transcript.find("charges").unwrap();
    let picks = twin.transcript.find("picks").unwrap();
    assert!(charges < picks, "{}", twin.transcript);
    // It goes as soon as 80 % is reported, which is 16 min after midnight here.
    let (outcome, at) = twin.outcome(1).unwrap();
    assert_eq!(outcome, Outcome::Read);
    assert!((900..1_200).contains(&(at.as_nanos() / 1_000_000_000)), "{at:?}");
}

#[test]
fn idle_shuttle_charges_up_to_its_bound() {
    let mut twin = on_batteries(&one_shuttle(), Policy::fulgurite(), 4_000);
    for number in 0..6 {
        twin.read(0, u64::from(number), number, 700 * number + 5, 0);
    }
    twin.run_to_rest();
    let percent = twin.library.snapshot().shuttles[0].battery.unwrap();
    assert!((80..85).contains(&percent), "{percent}");
    let charges = u64::try_from(twin.transcript.matches("charges").count()).unwrap();
    assert_eq!(twin.library.counters().charges, charges);
    assert!(charges > 3, "{charges}");
}

/// A battery too small for the way goes flat; after the swap the work goes on.
#[test]
fn flat_battery_breaks_its_shuttle_until_repair() {
    let policy = Policy { charge_below: 1, charge_until: 2, ..Policy::fulgurite() };
    let mut twin = on_batteries(&one_shuttle(), policy, 30_000);
    twin.read(0, 1, 1, 1_234, 0);
    twin.run();
    assert_eq!(twin.batteries.as_ref().unwrap().flat, 1);
    assert!(matches!(twin.outcome(1), Some((Outcome::Failed(_), _))), "{}", twin.transcript);
    let snapshot = twin.library.snapshot();
    assert!(snapshot.shuttles[0].broken);
    twin.batteries.as_mut().unwrap().energy_per_operation = 1;
    twin.repair_at(2_000_000, Machine::Shuttle(ShuttleIndex::new(0)));
    twin.read(2_000_001, 2, 1, 1_234, 0);
    twin.run_to_rest();
    assert!(matches!(twin.outcome(2), Some((Outcome::Read, _))));
    assert_eq!(Fault::BatteryFlat.to_string(), "the shuttle's battery is flat");
}

/// All shuttles are low at once, with fewer charging points than shuttles: each gets its turn.
#[test]
fn shuttles_take_turns_at_a_charging_point() {
    let shape = LibraryShape {
        read_racks: 1,
        drives_per_read_rack: 2,
        shuttles_per_panel: 4,
        spare_slots_per_shelf: 1,
        ..LibraryShape::small()
    };
    let policy = Policy { charge_below: 60, charge_until: 90, ..Policy::fulgurite() };
    let mut twin = on_batteries(&shape, policy, 500);
    for level in &mut twin.batteries.as_mut().unwrap().levels {
        *level = 40_000;
    }
    for number in 0..20 {
        twin.read(0, u64::from(number), number, 300 * number + 5, 0);
    }
    twin.run_to_rest();
    let all = twin.library.snapshot().shuttles;
    assert!(all.iter().all(|shuttle| shuttle.battery.unwrap() >= 60), "{all:?}");
    assert_eq!(twin.batteries.unwrap().flat, 0);
}

#[test]
fn contradictory_charging_bounds_are_refused() {
    for (charge_below, charge_until) in [(0, 80), (80, 80), (90, 80), (20, 101)] {
        let policy = Policy { charge_below, charge_until, ..Policy::fulgurite() };
        let error = policy.validate().unwrap_err().to_string();
        assert!(error.contains(&format!("charge_below is {charge_below}")), "{error}");
    }
}

/// The swarm with batteries covers the cases it is there for.
#[test]
fn swarm_covers_battery_states() {
    let mut seen = BTreeMap::<&str, u32>::new();
    for seed in 0..u64::from(cases(30)) {
        let run = Run { seed, instant: false, failures_per_mille: 0, batteries: true };
        let twin = assert_served(run);
        let flat = twin.batteries.as_ref().unwrap().flat > 0;
        for (case, met) in [
            ("charges", twin.library.counters().charges > 0),
            ("flat", flat),
            ("none flat", !flat),
            ("ways given", twin.library.counters().give_ways > 0),
        ] {
            *seen.entry(case).or_default() += u32::from(met);
        }
    }
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}
