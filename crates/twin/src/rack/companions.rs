//! Companion figures of runs of a rack, for statements of the paper.

use super::probe::{CurveProbe, Probe};
use super::result::RunResult;
use super::run::Rack;
use super::scenario::Scenario;
use crate::experiment::{CompanionFigure, CompanionFigures, PaperSystem, Unit, median};

impl PaperSystem for Rack {
    type Probe = Probe;
    type Curve = CurveProbe;
    const TIMES: &'static str = "first_byte";

    /// Shows what was served next to times to the first byte: a rack that rejects more is faster.
    fn companions(_: &Scenario, runs: &[&RunResult]) -> CompanionFigures {
        let all = |metric: fn(&RunResult) -> f64| {
            median(&runs.iter().map(|run| metric(run)).collect::<Vec<_>>())
        };
        let (tail, rejected) = (all(|run| run.first_byte.p99), all(|run| run.reject_rate));
        let (power, spin_ups) = (all(|run| run.power), all(|run| run.spin_ups));
        let number =
            |name, title, value, unit| CompanionFigure { name, title, value, unit, words: None };
        let mut numbers = vec![
            number("first_byte_p99_s", "99th percentile to the first byte", tail, Unit::Seconds),
            number("reject_rate", "Rejected", rejected, Unit::Percent),
            number("power_w", "Mean power, W", power, Unit::One),
            number("spin_ups", "Spin-ups of a disk in a year", spin_ups, Unit::One),
        ];
        numbers[0].words = Some(format!("p99 to the first byte {tail:.1} s"));
        numbers[1].words = Some(format!("{:.1} % rejected", rejected * 100.0));
        numbers[2].words = Some(format!("{:.2} kW", power / 1e3));
        numbers[3].words = Some(format!("{spin_ups:.0} spin-ups a year"));
        CompanionFigures {
            numbers,
            work: Some((1.0 - rejected, "serves")),
            ..CompanionFigures::default()
        }
    }
}
