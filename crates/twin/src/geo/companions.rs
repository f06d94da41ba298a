//! Companion figures of runs of several sites, for statements of the paper.

use super::probe::{CurveProbe, Probe};
use super::result::RunResult;
use super::run::Geo;
use super::scenario::Scenario;
use crate::experiment::{CompanionFigure, CompanionFigures, PaperSystem, Unit, median};

impl PaperSystem for Geo {
    type Probe = Probe;
    type Curve = CurveProbe;
    const TIMES: &'static str = "put.";

    /// Shows the amount of work next to the times: a time is shorter where something failed.
    fn companions(_: &Scenario, runs: &[&RunResult]) -> CompanionFigures {
        let all = |metric: fn(&RunResult) -> f64| {
            median(&runs.iter().map(|run| metric(run)).collect::<Vec<_>>())
        };
        let number =
            |name, title, value, unit| CompanionFigure { name, title, value, unit, words: None };
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let failed = all(|run| run.failed as f64);
        let (fast, rounds) = (all(|run| run.fast), all(|run| run.put_rounds));
        let mut numbers = vec![
            number("fast", "Writes decided in one fast round", fast, Unit::Percent),
            number("put_rounds", "Rounds of a write", rounds, Unit::One),
            number("failed", "Writes and reads that failed", failed, Unit::One),
        ];
        numbers[0].words = Some(format!("{:.1} % in one fast round", fast * 100.0));
        numbers[1].words = Some(format!("{rounds:.2} rounds"));
        numbers[2].words = Some(format!("{failed:.0} failed"));
        CompanionFigures { numbers, ..CompanionFigures::default() }
    }
}
