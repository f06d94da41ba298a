//! Tests the delays of simulated disks against their distributions, and injected faults.

use fulgurite_units::{Duration, Ratio, Seed};

use super::place;
use crate::{Backend as _, Fault, LogNormal, Observed, PlaceId, Simulated, Times};

fn disks(scale: f64) -> Simulated {
    let scale = Ratio::new(scale).unwrap();
    Simulated::new((0..24).map(PlaceId::new), Times::PELICAN, scale, Seed::new(5))
}

/// Means of a disk and of the slowest of a group of 24, in seconds, as the distributions were
/// fitted to.
#[test]
fn distributions_have_their_fitted_means() {
    let mut stream = Seed::new(1).stream();
    let mut mean_and_slowest = |distribution: LogNormal| {
        let groups = 4000;
        let mut slowest = 0.0;
        for _ in 0..groups {
            let draws = (0..24).map(|_| distribution.draw(&mut stream).as_secs_f64());
            slowest += draws.fold(0.0, f64::max);
        }
        (distribution.mean_s(), slowest / f64::from(groups))
    };
    let times = Times::PELICAN;
    let slow = Times::PELICAN_SLOW_MOUNTS.mount_loaded;
    for (distribution, mean, slowest) in [
        (times.spin_up, 9.27, 10.32),
        (times.unmount, 0.53, 1.00),
        (times.mount, 1.28, 2.41),
        (times.mount_loaded, 2.0, 4.45),
        (slow, 6.6, 14.8),
    ] {
        let found = mean_and_slowest(distribution);
        assert!((found.0 / mean - 1.0).abs() < 0.02, "mean {found:?}, not {mean}");
        assert!((found.1 / slowest - 1.0).abs() < 0.02, "slowest {found:?}, not {slowest}");
    }
}

#[test]
fn mounts_are_slower_on_a_loaded_rack() {
    let mean = |waiting| {
        let disks = disks(1.0);
        let mounts = (0..2400).map(|i| disks.mount(place(i % 24), waiting).unwrap());
        mounts.map(Duration::as_secs_f64).sum::<f64>() / 2400.0
    };
    assert!(mean(600) < 1.4 && mean(601) > 1.8);
}

#[test]
fn delays_repeat_for_a_seed_and_follow_the_scale() {
    let times = |scale| {
        let disks = disks(scale);
        (0..24).map(move |i| disks.spin_up(place(i)).unwrap()).collect::<Vec<_>>()
    };
    let (whole, tenth) = (times(1.0), times(0.1));
    assert_eq!(whole, times(1.0));
    assert!(whole.iter().all(|time| time.as_secs_f64() > 8.0));
    for (whole, tenth) in whole.iter().zip(tenth) {
        assert!((whole.as_secs_f64() / 10.0 - tenth.as_secs_f64()).abs() < 1e-6);
    }
    assert!(times(0.0).iter().all(|&time| time == Duration::ZERO));
}

#[test]
fn observing_a_disk_does_not_spin_it_up() {
    let disks = disks(0.0);
    let observed = || disks.observe(place(1)).unwrap();
    assert_eq!((observed(), disks.health(place(1)).unwrap()), (Observed::Standby, None));
    disks.spin_up(place(1)).unwrap();
    assert_eq!(disks.spin_up(place(1)).unwrap(), Duration::ZERO, "it spins already");
    assert_eq!(observed(), Observed::Turning);
    assert_eq!(disks.health(place(1)).unwrap().unwrap().spin_ups, Some(1));
    disks.unmount(place(1)).unwrap();
    disks.spin_down(place(1)).unwrap();
    assert_eq!(observed(), Observed::Standby);
    assert!(disks.is_simulated());
}

#[test]
fn injected_faults_take_effect() {
    let disks = disks(0.0);
    let inject = |fault| disks.inject(place(1), fault).unwrap();
    let observed = || disks.observe(place(1)).unwrap();
    inject(Fault::SpinUpFails(2));
    assert!(disks.spin_up(place(1)).is_err() && disks.spin_up(place(1)).is_err());
    assert!(disks.spin_up(place(1)).is_ok());
    disks.spin_down(place(1)).unwrap();

    inject(Fault::ExternalSpinUp);
    assert_eq!(observed(), Observed::Turning);
    for fault in [Fault::Dead, Fault::Pulled] {
        inject(fault);
        assert_eq!(observed(), Observed::Absent);
        let refused = disks.spin_up(place(1)).unwrap_err().to_string();
        assert!(refused.contains("place 1") && refused.contains("simulated"), "{refused}");
        inject(Fault::ExternalSpinUp);
        assert_eq!(observed(), Observed::Absent, "a missing disk is not spun up");
        inject(Fault::Repaired);
        assert_eq!(observed(), Observed::Standby);
    }
    assert!(disks.inject(place(99), Fault::Dead).is_err());
}

#[test]
fn straggler_is_late_once() {
    let disks = disks(0.5);
    disks.inject(place(1), Fault::Straggles(Duration::from_secs(100))).unwrap();
    let mounts = [0, 0].map(|waiting| disks.mount(place(1), waiting).unwrap().as_secs_f64());
    assert!(mounts[0] > 50.0 && mounts[1] < 10.0, "{mounts:?}");
}
