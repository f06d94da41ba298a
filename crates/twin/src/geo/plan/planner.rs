//! The planner of sites: its search, its verdicts, and its rows in the table.

use serde_json::{Value, json};

use super::trial::{Trial, evaluate};
use super::{Candidate, PlanRequest};
use crate::Error;
use crate::engine::run;
use crate::geo::result::RunResult;
use crate::geo::run::Geo;
use crate::plan::{Labels, Plan, Planner, SearchProblem, Verdict, search};
use crate::runner::Runner;

impl Planner for PlanRequest {
    type Trial = Trial;
    const LABELS: Labels = Labels {
        cost: "cost per month,",
        cost_axis: "a month,",
        money: 1.0,
        tail_axis: "99th percentile over objective",
        tail_unit: "times",
    };

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
        let [put_s, get_s] = self.objectives_s();
        Verdict {
            cost: trial.cost,
            is_enough: trial.is_enough,
            objective_share: (trial.put_s / put_s).max(trial.get_s / get_s),
            is_whole: true,
        }
    }

    fn objective(&self) -> f64 {
        1.0
    }

    fn seeds(&self) -> u32 {
        self.seeds
    }

    fn currency(&self) -> &str {
        &self.currency
    }

    fn basis(&self) -> Result<Value, Error> {
        let [put_s, get_s] = self.objectives_s();
        Ok(json!({
            "put_s": put_s,
            "get_s": get_s,
            "sites": self.site.iter().map(|site| &site.name).collect::<Vec<_>>(),
            "excluded": self.choices().1,
        }))
    }

    fn summary(trial: &Trial) -> String {
        let candidate = &trial.candidate;
        format!(
            "{} + {}, {} vote, {:.2} per month: put {:.0} ms, get {:.0} ms",
            candidate.data,
            candidate.parity,
            candidate.voters.len(),
            trial.cost,
            trial.put_s * 1e3,
            trial.get_s * 1e3,
        )
    }

    fn rows(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let candidate = &trial.candidate;
        let ms = |seconds: f64| format!("{:.0}", seconds * 1e3);
        let fragments = format!("{} + {}", candidate.data, candidate.parity);
        let sizes = format!("{:?}", candidate.sizes.get()).to_lowercase();
        vec![
            ("  stored bytes", format!("{:.2}", trial.of.stored)),
            ("  requests", format!("{:.2}", trial.of.requests)),
            ("  bytes between sites", format!("{:.2}", trial.of.sent)),
            ("fragments, data + parity", fragments),
            ("voting sites", candidate.voters.len().to_string()),
            ("quorum sizes", sizes),
            ("unavailable sites tolerated", trial.goes_with_away.to_string()),
            ("  with puts in one round", trial.fast_with_away.to_string()),
            ("bytes stored per user byte", format!("{:.2}", trial.stored)),
            ("bytes between sites per byte put", format!("{:.2}", trial.put_crossed)),
            ("bytes between sites per byte got", format!("{:.2}", trial.get_crossed)),
            ("losses per year", format!("{:.1e}", trial.losses_a_year)),
            ("put, median, ms", ms(trial.put_median_s)),
            ("put, 99th percentile, ms", ms(trial.put_s)),
            ("get, median, ms", ms(trial.get_median_s)),
            ("get, 99th percentile, ms", ms(trial.get_s)),
        ]
    }

    fn notes(&self, trial: &Trial) -> Vec<String> {
        let names = |places: &[u8]| {
            let names = places.iter().map(|place| self.site[usize::from(*place)].name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let Candidate { holders, voters, .. } = &trial.candidate;
        vec![
            format!("fragments at {}", names(holders)),
            format!("voting rows at {}", names(voters)),
        ]
    }

    fn remarks(&self, _: &Plan<Trial>) -> Result<Vec<String>, Error> {
        let excluded = self.choices().1;
        Ok(vec![
            format!(
                "\nexcluded without a run: {} lose objects too often, {} tolerate too few \
                 unavailable sites, {} are too slow",
                excluded.lost, excluded.away, excluded.late
            ),
            "not included: nodes, healing, retained versions, and failures of two sites at a time."
                .to_owned(),
        ])
    }
}

impl SearchProblem for PlanRequest {
    type Candidate = Candidate;
    type Run = RunResult;

    fn candidates(&self) -> Vec<Candidate> {
        self.choices().0
    }

    fn cost_lower_bound(&self, candidate: &Candidate) -> f64 {
        Self::cost_lower_bound(self, candidate)
    }

    fn run(&self, candidate: &Candidate, seed: u64) -> Result<RunResult, Error> {
        run::<Geo>(&self.scenario(candidate), seed)
    }

    fn evaluate(&self, candidate: &Candidate, runs: &[RunResult]) -> Trial {
        evaluate(self, candidate, runs)
    }
}
