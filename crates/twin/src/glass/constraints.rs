//! Constraints of a glass library. Delaying or dropping work can shorten a tail, so every tail is
//! shown with these constraints, and by how much any was missed:
//!
//! - no new platter is unverified for longer than the scenario's `verify_within`, at any moment;
//! - over every window of two days as much is verified as is ingested, except for what is in
//!   drives;
//! - every read is answered.
//!
//! The first two apply to runs whose new platters arrive at an interval. Where a new platter always
//! waits, drives verify as much as they have time for, and there is no target to compare with.

use fulgurite_units::Duration;
use serde::Serialize;

use crate::constraints::{self, Summary};
use crate::glass::result::RunResult;
use crate::glass::scenario::{Scenario, Writes};

/// Constraints that a run must meet next to its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Constraints {
    /// The longest that a new platter may be unverified, in the measured window and before; `None`
    /// where new platters do not arrive at an interval.
    pub verify_within: Option<Duration>,
    /// Why verification is not checked, if it is not.
    pub not_asked: Option<&'static str>,
}

/// One of the constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// No new platter is unverified for longer than the bound.
    VerifyWithin,
    /// Over two days as much is verified as is ingested.
    VerifyAsMuch,
    /// Every read is answered.
    AnswerAll,
}

/// A constraint of glass, and by how much it was missed.
pub type Finding = constraints::Finding<Constraint>;

impl Constraints {
    /// Returns the constraints of a scenario.
    #[must_use]
    pub const fn for_scenario(scenario: &Scenario) -> Self {
        match scenario.writes {
            Writes::Every { .. } => {
                Self { verify_within: Some(scenario.policy.verify_within), not_asked: None }
            }
            Writes::None => Self { verify_within: None, not_asked: Some("nothing is written") },
            Writes::Saturated { .. } => {
                Self { verify_within: None, not_asked: Some("a new platter always waits") }
            }
        }
    }

    /// Returns which constraints a run meets, and by how much it misses the others.
    #[must_use]
    pub fn findings(&self, run: &RunResult) -> [Finding; 3] {
        #[expect(clippy::cast_precision_loss, reason = "bytes and reads of a run are below 2^53")]
        let number = |count: u64| count as f64;
        let over = |bound: Duration| (run.unverified_age_max - bound.as_secs_f64()).max(0.0);
        let shortfall = run.verify_shortfall_bytes.filter(|_| self.verify_within.is_some());
        let finding = |constraint, missed_by| Finding { constraint, missed_by };
        [
            finding(Constraint::VerifyWithin, self.verify_within.map(over)),
            finding(Constraint::VerifyAsMuch, shortfall.map(number)),
            finding(Constraint::AnswerAll, Some(number(run.failed))),
        ]
    }

    /// Summarizes the findings over the runs of several seeds.
    #[must_use]
    pub fn summary<'a>(&self, runs: impl IntoIterator<Item = &'a RunResult>) -> Summary {
        let all: Vec<[Finding; 3]> = runs.into_iter().map(|run| self.findings(run)).collect();
        Summary::from_findings(&all, self.not_asked)
    }
}

impl constraints::Constraint for Constraint {
    const ALL: &'static [Self] = &[Self::VerifyWithin, Self::VerifyAsMuch, Self::AnswerAll];
    const SUBJECT: &'static str = "verification";

    fn name(self) -> &'static str {
        match self {
            Self::VerifyWithin => "verify-within",
            Self::VerifyAsMuch => "verify-as-much",
            Self::AnswerAll => "answer-all",
        }
    }

    fn missed(self, amount: f64) -> String {
        match self {
            Self::VerifyWithin => {
                format!("a platter was unverified {:.1} h too long", amount / 3600.0)
            }
            Self::VerifyAsMuch => {
                format!("{:.1} TB verified less than ingested", amount / 1e12)
            }
            Self::AnswerAll => format!("{amount:.0} reads not answered"),
        }
    }

    fn unchecked_remark(self) -> Option<&'static str> {
        (self == Self::VerifyAsMuch).then_some("no window of two days to check")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use fulgurite_units::Duration;

    use super::Constraints;
    use crate::glass::result::RunResult;

    const DAY: Constraints =
        Constraints { verify_within: Some(Duration::from_secs(86_400)), not_asked: None };

    /// Builds a result: hours of the oldest unverified platter, TB of shortfall, reads not
    /// answered.
    fn run(hours: f64, shortfall: Option<u64>, failed: u64) -> RunResult {
        RunResult {
            unverified_age_max: hours * 3600.0,
            verify_shortfall_bytes: shortfall.map(|tb| tb * 1_000_000_000_000),
            failed,
            ..RunResult::default()
        }
    }

    fn check(constraints: Constraints, runs: &[RunResult], expect: Expect) {
        let summary = constraints.summary(runs);
        let held = |run: &&RunResult| constraints.findings(run).iter().all(super::Finding::is_met);
        assert_eq!(summary.held, runs.iter().filter(held).count());
        assert_eq!(summary.is_met(), summary.missed().is_none());
        expect.assert_eq(&summary.line());
    }

    #[test]
    fn missed_constraints_are_listed_with_their_amount() {
        check(DAY, &[run(24.0, Some(0), 0), run(3.0, Some(0), 0)], expect!["met"]);
        check(
            DAY,
            &[run(25.5, Some(0), 0)],
            expect!["not met: a platter was unverified 1.5 h too long"],
        );
        check(
            DAY,
            &[run(25.0, Some(8), 0), run(3.0, Some(2), 0), run(3.0, Some(0), 0)],
            expect![
                "met by 1 of 3 seeds: a platter was unverified 1.0 h too long (1 of 3 seeds); \
                 8.0 TB verified less than ingested (2 of 3 seeds)"
            ],
        );
        check(DAY, &[run(3.0, Some(0), 7)], expect!["not met: 7 reads not answered"]);
    }

    #[test]
    fn unchecked_constraints_are_stated() {
        check(DAY, &[run(3.0, None, 0)], expect!["met; no window of two days to check"]);
        let unchecked = Constraints { verify_within: None, not_asked: Some("nothing is written") };
        // Ages and windows of such a run mean nothing.
        check(
            unchecked,
            &[run(99.0, Some(5), 0)],
            expect!["met; verification not checked: nothing is written"],
        );
        check(
            unchecked,
            &[run(99.0, Some(5), 2)],
            expect!["not met: 2 reads not answered; verification not checked: nothing is written"],
        );
    }
}
