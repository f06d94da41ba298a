//! Constraints that a plan of racks must meet, next to its tail.

use serde::Serialize;

use super::{Candidate, PlanRequest};
use crate::constraints::{self, Finding, Summary};
use crate::rack::result::RunResult;

const DAYS_A_YEAR: f64 = 365.25;

/// Constraints of a candidate for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraints {
    /// Maximum power of a rack's disks, in watts.
    power_w: Option<f64>,
    /// Maximum mean spin-ups per disk and day.
    spin_ups_a_day: Option<f64>,
    /// Ingest per rack, in bytes per second.
    ingest: f64,
    /// Network bandwidth of a rack, in bytes per second.
    network: f64,
}

/// One of the constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// No read is rejected.
    RefuseNone,
    /// No rack draws more than the bound.
    Power,
    /// The mean spin-ups per disk do not exceed the budget.
    SpinUps,
    /// The network has enough bandwidth left for the ingest.
    TakeIn,
}

impl Constraints {
    /// Returns the constraints of a request, for a candidate.
    #[must_use]
    pub fn for_candidate(request: &PlanRequest, candidate: &Candidate) -> Self {
        let gbps = f64::from(candidate.servers) * f64::from(candidate.nic_gbps);
        #[expect(clippy::cast_precision_loss, reason = "the ingest of a day is below 2^53 bytes")]
        let ingest = request.ingest_per_day.get() as f64 / 86_400.0 / f64::from(candidate.racks);
        Self {
            power_w: request.power_w_max,
            spin_ups_a_day: request.spin_ups_a_day_max,
            ingest,
            network: gbps * 1e9 / 8.0,
        }
    }

    /// Returns which constraints a run meets, and by how much it misses the others.
    #[must_use]
    pub fn findings(&self, run: &RunResult) -> [Finding<Constraint>; 4] {
        #[expect(clippy::cast_precision_loss, reason = "reads of a run are below 2^53")]
        let refused = run.rejected as f64;
        let over = |value: f64, bound: f64| (value - bound).max(0.0);
        let finding = |constraint, missed_by| Finding { constraint, missed_by };
        let a_day = run.spin_ups / DAYS_A_YEAR;
        [
            finding(Constraint::RefuseNone, Some(refused)),
            finding(Constraint::Power, self.power_w.map(|bound| over(run.power_max, bound))),
            finding(Constraint::SpinUps, self.spin_ups_a_day.map(|bound| over(a_day, bound))),
            finding(Constraint::TakeIn, Some(over(run.throughput + self.ingest, self.network))),
        ]
    }

    /// Summarizes the findings over the runs of several seeds.
    #[must_use]
    pub fn summary(&self, runs: &[RunResult]) -> Summary {
        let all: Vec<_> = runs.iter().map(|run| self.findings(run)).collect();
        Summary::from_findings(&all, None)
    }
}

impl constraints::Constraint for Constraint {
    const ALL: &'static [Self] = &[Self::RefuseNone, Self::Power, Self::SpinUps, Self::TakeIn];
    const SUBJECT: &'static str = "racks";

    fn name(self) -> &'static str {
        match self {
            Self::RefuseNone => "refuse-none",
            Self::Power => "power",
            Self::SpinUps => "spin-ups",
            Self::TakeIn => "take-in",
        }
    }

    fn missed(self, amount: f64) -> String {
        match self {
            Self::RefuseNone => format!("{amount:.0} reads rejected"),
            Self::Power => format!("{amount:.0} W above the bound"),
            Self::SpinUps => format!("{amount:.1} spin-ups per disk and day too many"),
            Self::TakeIn => {
                format!("{:.1} TB/day of network bandwidth missing", amount * 86_400.0 / 1e12)
            }
        }
    }
}
