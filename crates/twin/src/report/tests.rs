//! The page holds everything it shows, and says what misses.

use super::{Head, html};
use crate::experiment::tests::{StandIn, files};
use crate::experiment::{Report, Suite};

fn report(ids: &[&str]) -> Report {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let suite = Suite::read(&files()).unwrap().only(&ids).unwrap().with_seeds(3).unwrap();
    suite.run(&StandIn, &mut |_| ())
}

fn head() -> Head {
    Head {
        simulated: "a stand-in <for> the engine".into(),
        commit: "none".into(),
        command: "cargo test".into(),
        machine: "this one".into(),
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = html(&report(&["M2", "E4", "E6", "E10"]), &head());
    for foreign in ["<script", "<link", "<img", "url(", "@import", "src=", "href="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("a stand-in &lt;for&gt; the engine"));
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(!page.contains("NaN") && !page.contains("inf\""));
    assert!(page.is_ascii());
}

#[test]
fn a_miss_is_explained_and_a_hit_is_not() {
    let page = html(&report(&["M2"]), &head());
    assert!(page.contains("Every check hits."));
    let page = html(&report(&["E4"]), &head());
    // The stand-in has 7 h at 8 shuttles, not 10.
    assert!(page.contains("<li><span class=\"miss\">E4.silica-8</span>"));
    assert!(page.contains("8 shuttles: a tail of 10 h at 8 and 2.8 h at 20"));
}

/// Writes the whole page where `FULGURITE_REPORT` says, to be looked at.
#[test]
fn every_statement_is_on_the_page() {
    let suite = Suite::read(&files()).unwrap().with_seeds(1).unwrap();
    let page = html(&suite.run(&StandIn, &mut |_| ()), &head());
    for id in suite.ids() {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    if let Some(path) = option_env!("FULGURITE_REPORT") {
        std::fs::write(path, page).unwrap();
    }
}
