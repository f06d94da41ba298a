//! Plans of small spaces against an exhaustive search, and invalid files.

use fulgurite_geo_core::QuorumRule;
use fulgurite_units::settings;

use super::{PlanRequest, Trial};
use crate::plan::{Plan, PlanReport, Planner as _, SearchProblem as _, examine};
use crate::runner::Serial;

const FILE: &str = r#"
currency = "EUR"
rtt_ms = [[0, 20, 35, 90], [20, 0, 45, 100], [35, 45, 0, 80], [90, 100, 80, 0]]

[demand]
stored = "10TiB"
object = "4MiB"
puts = 100000
gets = 200000
from = ["a", "b"]

[objective]
put = "600ms"
get = "600ms"
losses_a_year = 1e-3
rebuild_days = 7
sites_away = 1

[space]
data = [1, 2, 3]
parity = [1, 2]
voters = [3]
sizes = ["majority", "flexible"]
"#;

fn site(name: &str, gb_month: f64) -> String {
    format!(
        "\n[[site]]\nname = \"{name}\"\ngb_month = {gb_month}\ngb_sent = 0.02\n\
         writes_1000 = 0.005\nreads_1000 = 0.0004\nrow_updates_1000 = 0.001\n\
         row_reads_1000 = 0.0002\n         losses_a_year = 0.01\n"
    )
}

fn file() -> String {
    let sites = [("a", 0.02), ("b", 0.024), ("c", 0.018), ("d", 0.015)];
    let sites: String = sites.map(|(name, price)| site(name, price)).concat();
    format!("{FILE}{sites}")
}

fn request(change: impl Fn(&mut PlanRequest)) -> PlanRequest {
    let mut request: PlanRequest = settings::from_toml(&file()).unwrap();
    request.seeds = 2;
    change(&mut request);
    request
}

fn planned(request: &PlanRequest) -> Plan<Trial> {
    request.check().unwrap();
    request.search(&Serial, &mut |_| ()).unwrap()
}

#[test]
fn plan_matches_exhaustive_search() {
    let request = request(|_| ());
    let found = planned(&request);
    let (candidates, excluded) = request.choices();
    let mut enough: Vec<Trial> = candidates
        .iter()
        .map(|of| request.evaluate(of, &examine(&request, of, &Serial).unwrap()))
        .inspect(|trial| {
            let cost_lower_bound = request.cost_lower_bound(&trial.candidate);
            assert!(
                cost_lower_bound <= trial.cost,
                "{cost_lower_bound} is more than {}",
                trial.cost
            );
        })
        .filter(|trial| trial.is_enough)
        .collect();
    enough.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    assert_eq!(found.best.as_ref(), enough.first());
    assert_eq!(found.runner_up.as_ref(), enough.get(1));
    let best = found.best.clone().unwrap();
    assert_eq!((best.candidate.data, best.candidate.parity), (3, 1), "{best:?}");
    assert_eq!(best.goes_with_away, 1);
    assert_eq!(
        best.candidate.sizes.get(),
        QuorumRule::Majority,
        "flexible quorums tolerate no unavailable site"
    );
    assert!(excluded.away > 0);
    assert!(PlanReport::new(&request, &found).unwrap().picture.unwrap().contains("EUR"));
}

#[test]
fn stricter_objectives_cost_more() {
    let cheap = planned(&request(|_| ())).best.unwrap();
    let lasting = planned(&request(|of| of.objective.losses_a_year = 1e-5)).best.unwrap();
    assert!(lasting.cost > cheap.cost && lasting.losses_a_year <= 1e-5, "{lasting:?}");
    // Nearer sites: d is too far for a write in 260 ms.
    let quick = planned(&request(|of| {
        of.objective.put = "260ms".parse().unwrap();
        of.objective.get = "250ms".parse().unwrap();
    }));
    let quick = quick.best.unwrap();
    assert!(!quick.candidate.holders.contains(&3), "{quick:?}");
    assert!(quick.put_s <= 0.26 && quick.get_s <= 0.25);
    let late = request(|of| of.objective.put = "20ms".parse().unwrap());
    let none = planned(&late);
    assert!(none.best.is_none() && none.tried.is_empty() && late.choices().1.late > 0);
    assert!(PlanReport::new(&late, &none).unwrap().picture.is_none(), "nothing was tried");
    let short = planned(&request(|of| of.runs_max = 1));
    assert!(short.is_cut_short && short.tried.len() == 1);
}

#[test]
fn fast_round_without_a_site_needs_larger_quorums() {
    let fast = request(|of| {
        of.objective.fast_then = true;
        of.space.voters = vec![3];
    });
    let plan = planned(&fast);
    assert!(plan.best.is_none(), "no quorum sizes of three sites meet both: {:?}", plan.best);
}

#[test]
fn invalid_request_is_rejected_by_field() {
    let refused = |change: fn(&mut PlanRequest), word: &str| {
        let error = request(change).check().unwrap_err().to_string();
        assert!(error.contains(word), "{error} has no {word}");
    };
    refused(|of| of.site.truncate(2), "site");
    refused(|of| of.demand.from = vec!["nowhere".to_owned()], "demand.from");
    refused(|of| of.demand.from.clear(), "demand.from");
    refused(|of| of.demand.puts = -1.0, "demand.puts");
    refused(|of| of.site[1].gb_month = f64::NAN, "site.gb_month");
    refused(|of| of.site[1].losses_a_year = 50.0, "losses_a_year");
    refused(|of| of.site[2].name = "a".to_owned(), "a twice");
    refused(|of| of.objective.losses_a_year = 0.0, "objective.losses_a_year");
    refused(|of| of.objective.rebuild_days = 0.0, "objective.rebuild_days");
    refused(|of| of.objective.put = "0s".parse().unwrap(), "objective.put");
    refused(|of| of.space.data = vec![0], "space.data");
    refused(|of| of.space.voters = vec![2], "space.voters");
    refused(|of| of.space.sizes.clear(), "space");
    refused(|of| of.rtt_ms[0][1] = 3.0, "rtt_ms");
    refused(|of| of.seeds = 0, "seeds");
    refused(|of| of.demand.object = 0.into(), "size");
    let unknown = file().replace("sites_away", "sites_gone");
    assert!(
        settings::from_toml::<PlanRequest>(&unknown)
            .unwrap_err()
            .to_string()
            .contains("sites_gone")
    );
}
