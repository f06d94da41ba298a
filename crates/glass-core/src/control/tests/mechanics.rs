//! The durations are those of Silica section 7.1.

use fulgurite_units::{
    ByteCount, Duration, PlatterId, RandomStream, Seed, ShuttleIndex, SlotIndex, TrackIndex,
};

use crate::control::{
    Action, Destination, DriveSlot, Mechanics, RailPosition, RequestId, ShelfIndex, Source,
    Throughput, TrackSpan,
};

const SHUTTLE: ShuttleIndex = ShuttleIndex::new(0);
const DRIVE: fulgurite_units::DriveIndex = fulgurite_units::DriveIndex::new(0);

fn mechanics() -> Mechanics {
    Mechanics::new(Throughput::PAPER, ByteCount::new(20_000_000))
}

fn platter() -> PlatterId {
    PlatterId::from_bytes([1; 16])
}

/// Draws durations; returns them sorted, in seconds.
fn draw(action: Action) -> Vec<f64> {
    let mut random: RandomStream = Seed::new(11).stream();
    let mut seconds: Vec<f64> =
        (0..100_000).map(|_| mechanics().duration(&action, &mut random).as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn mean(seconds: &[f64]) -> f64 {
    seconds.iter().sum::<f64>() / seconds.len() as f64
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} +- {tolerance}");
}

#[test]
fn crabs_differ_by_88_ms() {
    let (from, to) = (ShelfIndex::new(3), ShelfIndex::new(4));
    let seconds = draw(Action::Crab { shuttle: SHUTTLE, from, to });
    let fast = seconds.iter().filter(|s| **s <= 3.0).count();
    assert_near(fast as f64 / seconds.len() as f64, 0.86, 0.005);
    assert_near(seconds[0], 2.932, 0.001);
    assert_near(seconds[seconds.len() - 1], 3.02, 0.001);
}

#[test]
fn pick_takes_170_ms_longer_than_place() {
    let slot = SlotIndex::new(0);
    let from = Source::Storage(slot);
    let pick = draw(Action::Pick { shuttle: SHUTTLE, platter: platter(), from });
    let to = Destination::Storage(slot);
    let place = draw(Action::Place { shuttle: SHUTTLE, platter: platter(), to });
    assert_near(mean(&pick) - mean(&place), 0.17, 0.005);
}

#[test]
fn seeks_have_the_papers_median_and_maximum() {
    let track = TrackIndex::new(1);
    let seconds = draw(Action::Seek { drive: DRIVE, platter: platter(), track });
    assert_near(seconds[seconds.len() / 2], 0.6, 0.01);
    assert_near(seconds[seconds.len() - 1], 2.0, 0.01);
    assert_near(seconds[0], 0.1, 0.01);
}

#[test]
fn drives_mount_and_switch_in_a_second() {
    let (drive, slot, platter) = (DRIVE, DriveSlot::First, platter());
    for action in [
        Action::Mount { drive, slot, platter },
        Action::Unmount { drive, slot, platter },
        Action::Switch { drive, to: slot },
    ] {
        let mut random = Seed::new(1).stream();
        assert_eq!(mechanics().duration(&action, &mut random), Duration::from_secs(1));
    }
}

#[test]
fn motion_is_a_trapezoid_plus_half_a_second() {
    let seconds = |micrometers: u64| {
        let (from, to) = (RailPosition::new(5_000_000), RailPosition::new(5_000_000 + micrometers));
        let action = Action::Move { shuttle: SHUTTLE, from, to, reports: false };
        let back = Action::Move { shuttle: SHUTTLE, from: to, to: from, reports: true };
        let mut random = Seed::new(1).stream();
        let there = mechanics().duration(&action, &mut random);
        assert_eq!(there, mechanics().duration(&back, &mut random), "the way back is as long");
        there.as_secs_f64()
    };
    // Half a panel: 4.8 m at 0.17 m/s, plus 0.34 s to reach that speed.
    assert_near(seconds(4_800_000), 4.8 / 0.17 + 0.34 + 0.5, 1e-6);
    // Too short for top speed: two ramps of sqrt(d / a).
    assert_near(seconds(12_000), 2.0 * (0.012f64 / 0.5).sqrt() + 0.5, 1e-6);
    assert_near(seconds(0), 0.5, 1e-9);
    // The two formulas meet.
    assert_near(seconds(57_799), seconds(57_801), 1e-4);
}

#[test]
fn drives_read_in_steps_of_30_megabytes() {
    for megabytes in [30, 60, 90, 120, 150, 180, 210] {
        Throughput::new(megabytes).unwrap();
    }
    for megabytes in [0, 1, 29, 45, 240] {
        let error = Throughput::new(megabytes).unwrap_err().to_string();
        assert!(error.contains(&megabytes.to_string()), "{error}");
    }
    let tracks = TrackSpan::new(TrackIndex::new(0), 9);
    let request = RequestId::new(0);
    let action = Action::Read { drive: DRIVE, platter: platter(), request, tracks };
    let mut random = Seed::new(1).stream();
    assert_eq!(mechanics().duration(&action, &mut random), Duration::from_secs(3));
}
