//! Disks turn up and down when they are told, and it is said what became of each.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use fulgurite_units::{Duration, ErrorKind, ManualClock, Ratio, Seed};
use tempfile::TempDir;

use super::{hour, place, wake};
use crate::{
    Backend as _, Cause, CauseKind, Fault, Guard, LedgerFile, Observed, PlaceId, Power, Simulated,
    Spindles, Times, Turned,
};

struct Rig {
    folder: TempDir,
    clock: ManualClock,
    guard: Guard,
    disks: Arc<Simulated>,
    spindles: Spindles,
    told: Receiver<(u32, Turned)>,
}

/// Eight disks that are asleep; times are waited for when `scale` is one.
fn rig(scale: f64) -> Rig {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = LedgerFile::open(&folder.path().join("wakes.ndjson")).unwrap();
    let (clock, guard) = (ManualClock::at(hour(0)), Guard::new());
    let places = || (0..8).map(PlaceId::new);
    places().for_each(|place| guard.add(place, folder.path().join(place.to_string())));
    let scale = Ratio::new(scale).unwrap();
    let disks = Arc::new(Simulated::new(places(), Times::PELICAN, scale, Seed::new(3)));
    let (tells, told) = channel();
    let tell = move |place: PlaceId, turned| tells.send((place.get(), turned)).unwrap();
    let backend = Arc::clone(&disks) as _;
    let spindles = Spindles::new(guard.clone(), backend, ledger, clock.clock(), tell);
    Rig { folder, clock, guard, disks, spindles, told }
}

impl Rig {
    /// What is told of so many disks, in the order of their places.
    fn told(&self, count: usize) -> Vec<(u32, Turned)> {
        let mut told: Vec<_> = (0..count).map(|_| self.told.recv().unwrap()).collect();
        told.sort_by_key(|&(place, _)| place);
        told
    }

    fn power(&self, number: u32) -> Power {
        self.guard.power(place(number)).unwrap()
    }

    fn life(&self, number: u32) -> u64 {
        self.spindles.ledger(|ledger| ledger.of(place(number)).map_or(0, crate::Totals::life))
    }
}

#[test]
fn a_group_is_woken_used_and_put_down() {
    let rig = rig(0.0);
    rig.spindles.wake(wake(hour(0), &[0, 1, 2], Cause::Request(4)), 0).unwrap();
    assert_eq!(rig.told(3), [(0, Turned::Up), (1, Turned::Up), (2, Turned::Up)]);
    assert_eq!(
        (rig.power(1), rig.power(3), rig.life(1), rig.life(3)),
        (Power::Active, Power::Standby, 1, 0)
    );

    let lease = rig.guard.enter(place(0)).unwrap();
    assert_eq!(rig.spindles.put_down(place(0)).unwrap_err().kind(), ErrorKind::Conflict);
    drop(lease);
    for number in 0..3 {
        rig.spindles.put_down(place(number)).unwrap();
    }
    assert_eq!(rig.told(3), [(0, Turned::Down), (1, Turned::Down), (2, Turned::Down)]);
    assert_eq!(rig.power(0), Power::Standby);
    assert_eq!(rig.disks.observe(place(0)).unwrap(), Observed::Standby);
}

/// A disk that turns already is no spin-up, and none is told twice at once.
#[test]
fn only_what_stands_still_is_woken_and_noted() {
    let rig = rig(1.0);
    for _ in 0..3 {
        rig.spindles.wake(wake(hour(0), &[0], Cause::Scrub), 0).unwrap();
    }
    assert_eq!((rig.power(0), rig.life(0)), (Power::SpinningUp, 1));
    assert!(rig.spindles.put_down(place(0)).is_err(), "it is on its way up");
    // It takes eight seconds at least, and something to be mounted.
    rig.clock.advance(Duration::from_secs(7));
    assert_eq!(rig.power(0), Power::SpinningUp);
    let mut told = None;
    while told.is_none() {
        rig.clock.advance(Duration::from_secs(1));
        std::thread::yield_now();
        told = rig.told.try_recv().ok();
    }
    assert_eq!(told, Some((0, Turned::Up)));
}

#[test]
fn a_disk_that_does_not_turn_up_is_tried_again_and_then_given_back() {
    let rig = rig(0.0);
    rig.disks.inject(place(0), Fault::SpinUpFails(2)).unwrap();
    rig.disks.inject(place(1), Fault::SpinUpFails(3)).unwrap();
    rig.disks.inject(place(2), Fault::Pulled).unwrap();
    rig.spindles.wake(wake(hour(0), &[0, 1, 2], Cause::Init), 0).unwrap();
    let told = rig.told(3);
    assert_eq!(told[0], (0, Turned::Up));
    for (number, power) in [(1, Power::Standby), (2, Power::Absent)] {
        assert!(matches!(told[number].1, Turned::UpFailed { .. }), "{told:?}");
        assert_eq!(rig.power(number.try_into().unwrap()), power);
    }
    rig.spindles.wake(wake(hour(0), &[1], Cause::Init), 0).unwrap();
    assert_eq!(rig.told(1), [(1, Turned::Up)]);

    rig.disks.inject(place(2), Fault::Repaired).unwrap();
    rig.spindles.replaced(place(2)).unwrap();
    assert_eq!((rig.power(2), rig.life(2)), (Power::Standby, 0));
    rig.spindles.wake(wake(hour(0), &[2], Cause::Rebuild), 0).unwrap();
    assert_eq!(rig.told(1), [(2, Turned::Up)]);
}

#[test]
fn what_another_program_woke_is_found_noted_once_and_can_be_put_down() {
    let rig = rig(0.0);
    rig.disks.inject(place(3), Fault::ForeignWake).unwrap();
    rig.disks.inject(place(4), Fault::Pulled).unwrap();
    rig.spindles.wake(wake(hour(0), &[5], Cause::Init), 0).unwrap();
    assert_eq!(rig.told(1), [(5, Turned::Up)]);
    for _ in 0..2 {
        rig.spindles.look().unwrap();
    }
    assert_eq!(rig.told(2), [(3, Turned::Woken), (4, Turned::Gone)]);
    assert!(rig.told.try_recv().is_err(), "each is told once");
    let foreign = |rig: &Rig| rig.spindles.ledger(|ledger| ledger.spin_ups_by(CauseKind::Foreign));
    assert_eq!((foreign(&rig), rig.power(3), rig.power(4)), (1, Power::Standby, Power::Absent));
    assert!(rig.guard.enter(place(3)).is_err(), "that it turns is not that it may be used");

    rig.spindles.put_down(place(3)).unwrap();
    assert_eq!(rig.told(1), [(3, Turned::Down)]);
    assert_eq!(rig.disks.observe(place(3)).unwrap(), Observed::Standby);
    rig.disks.inject(place(3), Fault::ForeignWake).unwrap();
    rig.spindles.look().unwrap();
    assert_eq!((rig.told(1), foreign(&rig)), (vec![(3, Turned::Woken)], 2));
    // It turns, so it is ready when it is wanted.
    rig.spindles.wake(wake(hour(0), &[3], Cause::Request(1)), 0).unwrap();
    assert_eq!(rig.told(1), [(3, Turned::Up)]);
}

#[test]
fn a_disk_that_is_given_up_on_its_way_is_not_active() {
    let rig = rig(1.0);
    rig.spindles.wake(wake(hour(0), &[0], Cause::Init), 0).unwrap();
    rig.guard.turn(place(0), Power::Unclean).unwrap();
    drop(rig.spindles);
    let (number, turned) = rig.told.recv().unwrap();
    assert!(number == 0 && matches!(turned, Turned::UpFailed { .. }), "{turned:?}");
    assert_eq!(rig.guard.power(place(0)), Some(Power::Unclean));
}

/// No spin-up is without its line.
#[test]
fn without_its_ledger_nothing_is_woken() {
    let rig = rig(0.0);
    let ledger = rig.folder.path().join("wakes.ndjson");
    drop(rig.spindles);
    // A file that can be read and not written, whoever runs the test.
    let (told, disks) = (rig.told, Arc::clone(&rig.disks) as _);
    let ledger = LedgerFile::unwritable(&ledger);
    let (tells, _) = channel();
    let tell = move |place: PlaceId, turned| tells.send((place.get(), turned)).unwrap();
    let clock = rig.clock.clock();
    let spindles = Spindles::new(rig.guard.clone(), disks, ledger, clock, tell);
    assert!(spindles.wake(wake(hour(0), &[0, 1], Cause::Init), 0).is_err());
    assert_eq!(rig.guard.power(place(0)), Some(Power::Standby));
    assert_eq!(rig.disks.observe(place(0)).unwrap(), Observed::Standby);
    assert!(told.try_recv().is_err());
}
