//! Companion figures of runs of a glass library, for statements of the paper.

use super::constraints::Constraints;
use super::probe::{CurveProbe, Probe};
use super::result::RunResult;
use super::scenario::Scenario;
use super::{Glass, metrics};
use crate::experiment::{CompanionFigure, CompanionFigures, PaperSystem, Unit, median};

impl PaperSystem for Glass {
    type Probe = Probe;
    type Curve = CurveProbe;
    const TIMES: &'static str = "completion.";

    fn companions(scenario: &Scenario, runs: &[&RunResult]) -> CompanionFigures {
        let all = |of: &dyn Fn(&RunResult) -> f64| -> Vec<f64> {
            runs.iter().map(|result| of(result)).collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "bytes of a run are below 2^53")]
        let verified = median(&all(&|of| of.verified_bytes as f64));
        let tail = median(&all(&|of| of.completion.p999));
        let oldest = all(&|of| of.unverified_age_max).into_iter().fold(0.0, f64::max);
        let energy = median(&all(&metrics::energy_per_operation));
        let number =
            |name, title, value, unit| CompanionFigure { name, title, value, unit, words: None };
        let mut numbers = vec![
            number("tail_s", "99.9th percentile", tail, Unit::Hours),
            number("verified_bytes", "Verified in the window", verified, Unit::Terabytes),
            number("unverified_age_s", "Oldest unverified", oldest, Unit::Hours),
            number("energy_per_operation", "Energy of an operation, in starts", energy, Unit::One),
        ];
        numbers[0].words = Some(format!("tail {:.2} h", tail / 3600.0));
        numbers[1].words = Some(format!("{:.1} TB verified", verified / 1e12));
        let constraints = Constraints::for_scenario(scenario).summary(runs.iter().copied());
        CompanionFigures { numbers, work: Some((verified, "verifies")), constraints }
    }
}
