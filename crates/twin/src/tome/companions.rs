//! Companion figures of runs of a set of tomes, for statements of the paper.

use super::probe::{CurveProbe, Probe};
use super::result::RunResult;
use super::run::TomeSet;
use super::scenario::Scenario;
use crate::experiment::{CompanionFigure, CompanionFigures, PaperSystem, Unit, median};

impl PaperSystem for TomeSet {
    type Probe = Probe;
    type Curve = CurveProbe;
    const TIMES: &'static str = "protection";

    /// Shows what was protected next to times of protection: a set that ingests less is faster.
    fn companions(_: &Scenario, runs: &[&RunResult]) -> CompanionFigures {
        let all = |metric: fn(&RunResult) -> f64| {
            median(&runs.iter().map(|run| metric(run)).collect::<Vec<_>>())
        };
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let (protected, most) =
            (all(|run| run.protected as f64 / 1e12), all(|run| run.spinning_max as f64));
        let number =
            |name, title, value, unit| CompanionFigure { name, title, value, unit, words: None };
        let power = all(|run| run.power);
        let mut numbers = vec![
            number("protected_tb", "Protected, TB", protected, Unit::One),
            number("spinning_max", "Maximum spinning disks", most, Unit::One),
            number("power_w", "Mean power, W", power, Unit::One),
        ];
        numbers[0].words = Some(format!("{protected:.1} TB protected"));
        numbers[1].words = Some(format!("{most:.0} disks at most"));
        numbers[2].words = Some(format!("{:.2} kW", power / 1e3));
        CompanionFigures {
            numbers,
            work: Some((protected, "protects")),
            ..CompanionFigures::default()
        }
    }
}
