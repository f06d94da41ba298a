//! The page is self-contained, and shows what misses.

use fulgurite_glass_core::control::Policy;

use super::{Facts, Head, ResultRow, format_inputs, html, relation, run_page, sweep_page};
use crate::experiment::tests::{StandIn, files};
use crate::experiment::{Derivation, Expected, Job, RelationInputs, Report, Suite, Unit};
use crate::glass::Glass;
use crate::glass::tests::scenario;
use crate::glass::timeline::Recorder;
use crate::sweep::{Sweep, SweepAxis};

fn report(ids: &[&str]) -> Report {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let suite = Suite::<Glass>::read(&files()).unwrap().only(&ids).unwrap().with_seeds(3).unwrap();
    suite.run(&StandIn, &mut |_| ())
}

fn head() -> Head {
    Head {
        paper: "Project Silica (SOSP 2023)".into(),
        simulated: "a stand-in <for> the engine".into(),
        bands: "a fifth to either side".to_owned(),
        commit: "none".into(),
        command: "cargo test".into(),
        machine: "this one".into(),
    }
}

#[test]
fn page_is_self_contained() {
    let page = html(&report(&["M2", "E4", "E6", "E10"]), &head());
    for external in ["<script", "<link", "<img", "url(", "@import", "src=", "href=\"h"] {
        assert!(!page.contains(external), "{external}");
    }
    assert!(page.contains("a stand-in &lt;for&gt; the engine"));
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    check_svg(&page);
    assert!(page.is_ascii());
}

#[test]
fn misses_are_explained_and_hits_are_not() {
    let page = html(&report(&["M2"]), &head());
    assert!(page.contains("Every check hits."));
    let page = html(&report(&["E4"]), &head());
    // The fake engine gives 7 h at 8 shuttles, not 10.
    assert!(page.contains("<li><a class=\"miss\" href=\"#E4\">E4.silica-8</a>"));
    assert!(page.contains("8 shuttles: a tail of 10 h at 8 and 2.8 h at 20"));
}

#[test]
fn constraints_appear_beside_tails_of_own_targets() {
    let page = html(&report(&["B2"]), &head());
    assert!(page.contains("Constraints beside the tails"));
    assert_eq!(page.matches("<td>fulgurite-siege<td").count(), 1);
    assert!(page.contains("met; no window of two days to check"));
    assert!(!html(&report(&["E4"]), &head()).contains("Constraints beside"));
}

/// Writes the whole page to the path in `FULGURITE_REPORT`, for inspection.
#[test]
fn page_contains_every_statement() {
    let suite = Suite::<Glass>::read(&files()).unwrap().with_seeds(1).unwrap();
    let page = html(&suite.run(&StandIn, &mut |_| ()), &head());
    for id in suite.ids() {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    if let Some(path) = option_env!("FULGURITE_REPORT") {
        std::fs::write(path, page).unwrap();
    }
}

/// Checks that everything is inside its frame, and no number is NaN.
fn check_svg(page: &str) {
    for svg in page.split("<svg ").skip(1) {
        let svg = svg.split("</svg>").next().unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "a number is not finite");
        let frame: Vec<f64> = svg
            .split("viewBox=\"0 0 ")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap()
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        for (sign, most) in [("x", frame[0]), ("y", frame[1])] {
            for name in [format!(" {sign}=\""), format!(" {sign}1=\""), format!(" c{sign}=\"")] {
                for rest in svg.split(&name).skip(1) {
                    let place: f64 = rest.split('"').next().unwrap().parse().unwrap();
                    assert!((-0.5..=most + 0.5).contains(&place), "{name}{place} of {most}");
                }
            }
        }
    }
}

#[test]
fn sweep_page_has_pictures_and_tables() {
    let base = toml::Table::try_from(scenario(Policy::silica())).unwrap();
    let over =
        |field: &str, values: Vec<toml::Value>| SweepAxis { field: field.to_owned(), values };
    let drives = || over("library.shuttles_per_panel", vec![2.into(), 4.into()]);
    let policies = || over("policy", vec!["silica".into(), "no-shuttles".into()]);
    let metrics = ["completion.p999".to_owned()];
    for (fields, pictures) in [
        (vec![drives()], 1),
        (vec![policies()], 1),
        (vec![drives(), over("throughput", vec![30.into(), 60.into()])], 2),
        (vec![policies(), drives()], 2),
    ] {
        let sweep = Sweep::<Glass>::new(&base, &toml::Table::new(), fields).unwrap();
        let run = |job: &Job<_>| crate::glass::run(&job.scenario, job.seed).unwrap();
        let results: Vec<_> = sweep.jobs(&[1, 2]).iter().map(run).collect();
        let sweep = sweep.result(&metrics, &[1, 2], &results).unwrap();
        let page = sweep_page(&sweep, &Facts { scenario: "a<b.toml".into(), ..Facts::default() });
        check_svg(&page);
        assert!(page.contains("<title>Simulated sweep of a&lt;b.toml over "));
        assert_eq!(page.matches("<svg").count(), pictures);
        assert_eq!(page.matches("<table>").count(), 1);
        for field in &sweep.fields {
            assert!(page.contains(&field.field) && page.contains(&field.values[1]));
        }
        assert!(page.is_ascii());
    }
}

#[test]
fn run_page_shows_the_run_over_time() {
    let scenario = scenario(Policy::fulgurite());
    let timelines: Vec<_> = [1, 2]
        .map(|seed| {
            let mut recorder = Recorder::new(&scenario, seed);
            crate::glass::run_observed(&scenario, seed, &mut recorder).unwrap();
            recorder.finish()
        })
        .into();
    let row = ResultRow {
        name: "completion p99.9".into(),
        all: ["2 h", "1 h", "3 h"].map(Into::into),
        each: vec!["2 h".into(), "3 h".into()],
    };
    let facts = Facts {
        scenario: "small.toml".into(),
        list: vec![("Seeds".into(), "1 to 2".into())],
        text: "platters = 300\n".into(),
    };
    let page = run_page::<Glass>(&scenario, &timelines, &[row], &facts);
    check_svg(&page);
    assert!(page.contains("<title>Simulated run of small.toml</title>"));
    for title in [
        "Requests in the queue",
        "Backlog of reads",
        "Age of the oldest request",
        "Platters not verified yet",
        "Age of the oldest platter not verified yet",
        "Drives reading for customers",
        "Drives verifying",
        "Shuttles at work",
    ] {
        assert!(page.contains(&format!("<b>{title}</b>")), "{title}");
    }
    assert_eq!(page.matches("<svg").count(), 8);
    assert_eq!(page.matches("class=\"other\" d=").count(), 5, "the other seed in each curve");
    assert!(page.contains("<b>2 h</b>completion p99.9<br>1 h to 3 h</div>"));
    assert!(page.contains("<td class=\"number\">3 h") && page.contains("platters = 300"));
    assert!(page.is_ascii());
}

#[test]
fn relations_are_formatted_as_numbers() {
    let mut row = report(&["M2"]).rows().next().unwrap().clone();
    row.details.unit = Unit::Hours;
    let mut assert_relation = |ours: f64, band: [Option<f64>; 2], expect: &str| {
        (row.ours, row.band) = (Some(ours), band);
        row.expected = Expected::Words("in words".to_owned());
        assert_eq!(relation(&row).as_deref(), Some(expect));
        row.expected = Expected::Value(1.0);
        assert_eq!(relation(&row), None, "a value is not a relation");
    };
    assert_relation(0.94, [Some(0.0), Some(0.6)], "0.94 > 0.6 h");
    assert_relation(1.42, [None, Some(1.5)], "1.42 <= 1.5 h");
    assert_relation(1.79, [Some(1.5), Some(2.2)], "1.5 <= 1.79 <= 2.2 h");
    assert_relation(1.2, [Some(1.5), Some(2.2)], "1.2 < 1.5 h");
    assert_relation(97.0, [Some(96.0), None], "97 >= 96 h");
    assert_relation(1.0004, [None, Some(1.0)], "1.000400 > 1 h");
    let made =
        |made| format_inputs(&RelationInputs { made, of: vec![5.76, 2.54], unit: Unit::Hours });
    assert_eq!(made(Derivation::Ratio), "5.76 / 2.54 h");
    assert_eq!(made(Derivation::StepUp), "largest step up in 5.76, 2.54 h");
}

/// The inputs of a relation are shown with it, for the files of the repository.
#[test]
fn ratio_lists_its_inputs() {
    let report = report(&["E7"]);
    let ratio = report.rows().find(|row| row.id == "E7.ratio").unwrap();
    let working = ratio.details.working.as_ref().unwrap();
    assert_eq!((working.made, working.unit), (Derivation::Ratio, Unit::Hours));
    let [over, under] = working.of[..] else { panic!("a ratio is of two") };
    assert!((over / under - ratio.ours.unwrap()).abs() < 1e-9);
}
