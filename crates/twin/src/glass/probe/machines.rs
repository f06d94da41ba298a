//! Times of the machines, sampled from [`Mechanics`] like in the engine.

use fulgurite_glass_core::control::{
    Action, Destination, DriveSlot, Mechanics, MechanicsParameters, RailPosition, ShelfIndex,
    Source, Throughput,
};
use fulgurite_units::{
    ByteCount, DriveIndex, PlatterId, RandomStream, Seed, ShuttleIndex, SlotIndex, TrackIndex,
};
use serde::Deserialize;

use super::to_f64;

/// Samples per operation.
const SAMPLES: usize = 20_000;
/// Points per curve.
const CURVE_POINTS: u32 = 60;

/// An operation of section 7.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineOperation {
    /// One shelf up.
    Crab,
    /// One shelf down.
    CrabDown,
    /// Picking a platter.
    Pick,
    /// Placing a platter.
    Place,
    /// Mounting a platter in a drive.
    Mount,
    /// Unmounting a platter.
    Unmount,
    /// Switching to the other slot of a drive.
    Switch,
    /// Seeking to a track.
    Seek,
}

const SHUTTLE: ShuttleIndex = ShuttleIndex::new(0);
const DRIVE: DriveIndex = DriveIndex::new(0);

impl MachineOperation {
    fn action(self) -> Action {
        let platter = PlatterId::from_random([0; 16]);
        let (shuttle, drive, slot) = (SHUTTLE, DRIVE, DriveSlot::First);
        let place = SlotIndex::new(0);
        match self {
            Self::Crab => {
                Action::Crab { shuttle, from: ShelfIndex::new(0), to: ShelfIndex::new(1) }
            }
            Self::CrabDown => {
                Action::Crab { shuttle, from: ShelfIndex::new(1), to: ShelfIndex::new(0) }
            }
            Self::Pick => Action::Pick { shuttle, platter, from: Source::Storage(place) },
            Self::Place => Action::Place { shuttle, platter, to: Destination::Storage(place) },
            Self::Mount => Action::Mount { drive, slot, platter },
            Self::Unmount => Action::Unmount { drive, slot, platter },
            Self::Switch => Action::Switch { drive, to: slot },
            Self::Seek => Action::Seek { drive, platter, track: TrackIndex::new(0) },
        }
    }
}

/// Samples the times of an operation, in s.
pub(super) fn times(operation: MachineOperation, seed: u64) -> Vec<f64> {
    let (mechanics, mut random) = machines(seed);
    let action = operation.action();
    (0..SAMPLES).map(|_| mechanics.duration(&action, &mut random).as_secs_f64()).collect()
}

/// Returns how much longer a pick takes than a place, on average.
pub(super) fn pick_minus_place(seed: u64) -> f64 {
    let mean = |operation| times(operation, seed).iter().sum::<f64>() / to_f64(SAMPLES);
    mean(MachineOperation::Pick) - mean(MachineOperation::Place)
}

/// Returns a statistic of crabs up minus that of crabs down, with independent draws.
pub(super) fn crab_up_minus_down(statistic: super::Statistic, seed: u64) -> f64 {
    let (mechanics, mut random) = machines(seed);
    let [mut up, mut down] = [Vec::new(), Vec::new()];
    for _ in 0..SAMPLES {
        for (operation, times) in
            [(MachineOperation::Crab, &mut up), (MachineOperation::CrabDown, &mut down)]
        {
            times.push(mechanics.duration(&operation.action(), &mut random).as_secs_f64());
        }
    }
    statistic.compute(up) - statistic.compute(down)
}

/// Returns the time of a motion beyond its trapezoidal speed profile, which is computed from the
/// speed alone here.
pub(super) fn fine_tuning(meters: f64, seed: u64) -> f64 {
    let MechanicsParameters { speed, acceleration, .. } = MechanicsParameters::PAPER;
    let ramps = speed * speed / acceleration;
    let trapezoid = if meters < ramps {
        2.0 * (meters / acceleration).sqrt()
    } else {
        2.0 * speed / acceleration + (meters - ramps) / speed
    };
    let (mechanics, mut random) = machines(seed);
    mechanics.duration(&go(meters), &mut random).as_secs_f64() - trapezoid
}

/// Returns the cumulative distribution of an operation's time: pairs of time and share.
pub(super) fn shares(operation: MachineOperation) -> Vec<(f64, f64)> {
    let mut times = times(operation, 1);
    times.sort_by(f64::total_cmp);
    let step = |number: u32| {
        let share = f64::from(number) / f64::from(CURVE_POINTS);
        (super::Statistic::Quantile(share).compute(times.clone()), share)
    };
    (0..=CURVE_POINTS).map(step).collect()
}

/// Returns the time of a motion as a function of its length.
pub(super) fn motion(meters: f64) -> Vec<(f64, f64)> {
    let (mechanics, mut random) = machines(1);
    let mut point = |number: u32| {
        let length = meters * f64::from(number) / f64::from(CURVE_POINTS);
        (length, mechanics.duration(&go(length), &mut random).as_secs_f64())
    };
    (1..=CURVE_POINTS).map(&mut point).collect()
}

fn go(meters: f64) -> Action {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rail is some meters long"
    )]
    let end = (meters * 1e6).round() as u64;
    let (from, to) = (RailPosition::new(0), RailPosition::new(end));
    Action::Move { shuttle: SHUTTLE, from, to, reports: false }
}

fn machines(seed: u64) -> (Mechanics, RandomStream) {
    let mechanics = Mechanics::new(Throughput::PAPER, ByteCount::new(20_000_000));
    (mechanics, Seed::new(seed).child(b"probe").stream())
}
