//! The planner of racks: its search, its verdicts, and its rows in the table.

use fulgurite_units::ByteCount;
use serde_json::{Value, json};

use super::trial::{Trial, evaluate};
use super::{Candidate, PlanRequest, Provision};
use crate::Error;
use crate::engine::run;
use crate::plan::{Labels, Plan, Planner, SearchProblem, Verdict, costs, search};
use crate::rack::result::RunResult;
use crate::rack::run::Rack;
use crate::runner::Runner;

/// Spin-ups per day that add up, in five years, to 300,000, the lowest rating in data sheets.
const RATED_SPIN_UPS_PER_DAY: f64 = 164.0;

impl Planner for PlanRequest {
    type Trial = Trial;
    const LABELS: Labels =
        Labels { tail_axis: "99th percentile to the first byte", ..Labels::OF_SERVICE };

    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn search(
        &self,
        runner: &dyn Runner,
        on_trial: &mut dyn FnMut(&Trial),
    ) -> Result<Plan<Trial>, Error> {
        search(self, self.runs_max, runner, on_trial)
    }

    fn verdict(&self, trial: &Trial) -> Verdict {
        Verdict {
            cost: trial.cost,
            is_enough: trial.is_enough(),
            objective_share: trial.tail_s / self.objective(),
            is_whole: true,
        }
    }

    fn objective(&self) -> f64 {
        self.objective.as_secs_f64()
    }

    fn seeds(&self) -> u32 {
        self.seeds
    }

    fn currency(&self) -> &str {
        &self.costs.currency
    }

    fn assumed(&self) -> Vec<String> {
        costs::assumed(&self.costs)
    }

    fn basis(&self) -> Result<Value, Error> {
        Ok(json!({
            "objective_s": self.objective(),
            "user_bytes": self.user_bytes(),
            "raw_bytes": self.raw_bytes(),
        }))
    }

    fn summary(trial: &Trial) -> String {
        let candidate = &trial.candidate;
        format!(
            "{} x (disks of {:.1} TB, {} spin, {} x {} Gbit/s): {:.1} s",
            candidate.racks,
            terabytes(candidate.disk),
            candidate.provision.awake(),
            candidate.servers,
            candidate.nic_gbps,
            trial.tail_s,
        )
    }

    fn rows(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let candidate = &trial.candidate;
        let domains = match candidate.provision {
            Provision::Sleeping => "2 of 16, 1 of 12",
            Provision::All => "all, all",
        };
        let servers = format!("{} x {}", candidate.servers, candidate.nic_gbps);
        let is_met = if trial.constraints.is_met() { "met" } else { "not met" };
        vec![
            ("  of that, machines", format!("{:.3}", trial.capital / 1e6)),
            ("racks", candidate.racks.to_string()),
            ("disks", candidate.disks().to_string()),
            ("  each, TB", format!("{:.1}", terabytes(candidate.disk))),
            ("spinning disks at most, per rack", candidate.provision.awake().to_string()),
            ("  per tray and column", domains.to_owned()),
            ("servers x Gbit/s, per rack", servers),
            ("power and cooling, kW per rack", format!("{:.2}", trial.supplied_w / 1e3)),
            ("maximum power of its disks, kW", format!("{:.2}", trial.power_w_max / 1e3)),
            ("energy, kWh per day", format!("{:.1}", trial.kwh_per_day)),
            ("capacity used at that age", format!("{:.1} %", trial.used * 100.0)),
            ("first byte, mean, s", format!("{:.2}", trial.mean_s)),
            ("first byte, 99th percentile, s", format!("{:.2}", trial.tail_s)),
            ("  left of the objective", format!("{:.1} %", trial.margin * 100.0)),
            ("reads rejected", format!("{:.2} %", trial.refused * 100.0)),
            ("spin-ups per disk and day", format!("{:.1}", trial.spin_ups_a_day)),
            ("constraints", is_met.to_owned()),
        ]
    }

    fn notes(&self, trial: &Trial) -> Vec<String> {
        trial.constraints.missed().into_iter().collect()
    }

    fn remarks(&self, plan: &Plan<Trial>) -> Result<Vec<String>, Error> {
        let bounds = match (self.power_w_max, self.spin_ups_a_day_max) {
            (None, None) => "no power limit and no spin-up budget was set",
            (Some(_), None) => "no spin-up budget was set",
            (None, Some(_)) => "no power limit was set",
            (Some(_), Some(_)) => "power and spin-ups are limited",
        };
        let mut remarks = vec![format!(
            "constraints: no rejected reads, room for all data, bandwidth for the ingest; {bounds}"
        )];
        let best = plan.best.as_ref().filter(|_| self.spin_ups_a_day_max.is_none());
        if let Some(best) = best.filter(|best| best.spin_ups_a_day > RATED_SPIN_UPS_PER_DAY) {
            remarks.push(format!(
                "spin-ups: {:.0} per disk and year; data sheets rate disks for 300,000 to \
                 1,000,000 in their lifetime. Limit them with spin_ups_a_day_max",
                best.spin_ups_a_day * 365.25
            ));
        }
        remarks.push(
            "not included: how writes delay reads (they wait for an idle rack), and replaced disks."
                .to_owned(),
        );
        let [user, raw] = [self.user_bytes(), self.raw_bytes()].map(|bytes| bytes / 1e15);
        remarks.push(format!("\n{user:.2} PB of blobs are {raw:.2} PB on disks"));
        Ok(remarks)
    }
}

impl SearchProblem for PlanRequest {
    type Candidate = Candidate;
    type Run = RunResult;

    fn candidates(&self) -> Vec<Candidate> {
        Self::candidates(self)
    }

    fn cost_lower_bound(&self, candidate: &Candidate) -> f64 {
        self.costs.cost_lower_bound(self, candidate)
    }

    fn run(&self, candidate: &Candidate, seed: u64) -> Result<RunResult, Error> {
        run::<Rack>(&self.scenario(candidate), seed)
    }

    fn evaluate(&self, candidate: &Candidate, runs: &[RunResult]) -> Trial {
        evaluate(self, candidate, runs)
    }

    fn rules_out(trial: &Trial, candidate: &Candidate) -> bool {
        trial.rules_out_smaller() && trial.candidate.covers(candidate)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a disk is below 2^53 bytes")]
fn terabytes(size: ByteCount) -> f64 {
    size.get() as f64 / 1e12
}
