//! The planner of glass: its search, its verdicts, and its rows in the table.

use serde_json::{Value, json};

use super::search::Search;
use super::{PlanRequest, Trial};
use crate::plan::{Labels, Plan, Planner, Verdict, costs};
use crate::runner::Runner;
use crate::{Error, Trace};

impl Planner for PlanRequest {
    type Trial = Trial;
    const LABELS: Labels =
        Labels { tail_axis: "99.9th percentile of reads", tail_unit: "h", ..Labels::OF_SERVICE };

    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn with_trace(mut self, trace: Trace) -> Option<Self> {
        self.demand.trace = Some(trace);
        Some(self)
    }

    fn search(
        &self,
        runner: &dyn Runner,
        on_trial: &mut dyn FnMut(&Trial),
    ) -> Result<Plan<Trial>, Error> {
        Search::new(self, runner, on_trial)?.run()
    }

    fn verdict(&self, trial: &Trial) -> Verdict {
        Verdict {
            cost: trial.cost,
            is_enough: trial.is_enough(),
            objective_share: trial.tail_s / self.objective.as_secs_f64(),
            is_whole: trial.given_up_s.is_none(),
        }
    }

    fn objective(&self) -> f64 {
        self.objective.as_secs_f64() / 3600.0
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
            "objective_s": self.objective.as_secs_f64(),
            "platters": self.platters(),
            "set_racks": self.set_racks()?,
            "verify_bytes_per_day": self.verify_per_day(),
        }))
    }

    fn summary(trial: &Trial) -> String {
        let candidate = &trial.candidate;
        format!(
            "{} x ({} drives of {} MB/s, {} shuttles): {}{:.1} h",
            candidate.libraries,
            candidate.drives(),
            u32::from(candidate.throughput),
            candidate.shuttles(),
            if trial.given_up_s.is_some() { "at least " } else { "" },
            trial.tail_s / 3600.0,
        )
    }

    fn rows(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let candidate = &trial.candidate;
        let drives = format!("{} x {}", candidate.read_racks, candidate.drives_per_read_rack);
        let is_met = if trial.constraints.is_met() { "met" } else { "not met" };
        vec![
            ("  of that, machines", format!("{:.3}", trial.capital / 1e6)),
            ("libraries", candidate.libraries.to_string()),
            ("policy", candidate.policy.clone()),
            ("read racks x drives, each", drives),
            ("drive throughput, MB/s", u32::from(candidate.throughput).to_string()),
            ("shuttles, each", candidate.shuttles().to_string()),
            ("storage racks, each", candidate.storage_racks.to_string()),
            ("energy, kWh per day", format!("{:.1}", trial.kwh_per_day)),
            ("drive utilization", format!("{:.1} %", trial.utilization * 100.0)),
            ("99.9th percentile of reads, h", format!("{:.2}", trial.tail_s / 3600.0)),
            ("  left of the objective", format!("{:.1} %", trial.margin * 100.0)),
            ("verification over ingest", format!("{:.2}", trial.verify_margin)),
            ("constraints", is_met.to_owned()),
        ]
    }

    fn notes(&self, trial: &Trial) -> Vec<String> {
        trial.constraints.missed().into_iter().collect()
    }

    fn remarks(&self, _: &Plan<Trial>) -> Result<Vec<String>, Error> {
        let (platters, racks) = (self.platters(), self.set_racks()?);
        Ok(vec![
            "constraints: every read is answered, and as much is verified in the measured window \
             as is"
                .to_owned(),
            "written in it. A new platter always waits there, so the age of the oldest one is not \
             checked."
                .to_owned(),
            format!("\n{platters} platters; a set needs {racks} storage racks"),
        ])
    }
}
