//! A plan as a table, as JSON and as a picture, alike for every system.

use serde_json::{Value, json};

use super::picture::Drawn;
use super::{Plan, Planner};
use crate::Error;

/// Width of a column.
const WIDE: usize = 18;

/// A plan to show.
#[derive(Clone, Debug)]
pub struct PlanReport {
    /// Whether anything meets the requirements.
    pub is_found: bool,
    /// The table of the cheapest trials, or of the nearest miss, and what it leaves out.
    pub lines: Vec<String>,
    /// The plan with all trials.
    pub json: Value,
    /// Cost and tail of all trials, as SVG; `None` if nothing was tried.
    pub picture: Option<String>,
}

impl PlanReport {
    /// Shows a plan.
    ///
    /// # Errors
    /// When a parameter is out of range, or the picture cannot be drawn.
    pub(crate) fn new<P: Planner>(planner: &P, plan: &Plan<P::Trial>) -> Result<Self, Error> {
        let is_tried = !plan.tried.is_empty();
        Ok(Self {
            is_found: plan.best.is_some(),
            lines: lines(planner, plan)?,
            json: to_json(planner, plan)?,
            picture: is_tried.then(|| Drawn::new(planner, plan).svg()).transpose()?,
        })
    }
}

fn to_json<P: Planner>(planner: &P, plan: &Plan<P::Trial>) -> Result<Value, Error> {
    let trial = |trial: &P::Trial| {
        let (mut value, verdict) = (json!(trial), planner.verdict(trial));
        value["is_enough"] = json!(verdict.is_enough);
        value["objective_share"] = json!(verdict.objective_share);
        value
    };
    Ok(json!({
        "best": plan.best.as_ref().map(trial),
        "runner_up": plan.runner_up.as_ref().map(trial),
        "basis": planner.basis()?,
        "seeds": planner.seeds(),
        "runs": plan.runs,
        "candidates": plan.candidates,
        "is_cut_short": plan.is_cut_short,
        "currency": planner.currency(),
        "assumed": planner.assumed(),
        "tried": plan.tried.iter().map(trial).collect::<Vec<_>>(),
    }))
}

/// Returns the trials to show with the heads of their columns: the cheapest and the runner-up, or
/// the nearest miss.
fn columns<'a, P: Planner>(
    planner: &P,
    plan: &'a Plan<P::Trial>,
) -> Vec<(&'static str, &'a P::Trial)> {
    let found = [("least cost", &plan.best), ("runner-up", &plan.runner_up)];
    let found = found.into_iter().filter_map(|(head, trial)| Some((head, trial.as_ref()?)));
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        return found;
    }
    // The tail of a trial that was stopped early is unknown.
    let misses = plan.tried.iter().map(|trial| (planner.verdict(trial), trial));
    let nearest = misses.min_by(|(a, _), (b, _)| {
        b.is_whole.cmp(&a.is_whole).then(a.objective_share.total_cmp(&b.objective_share))
    });
    nearest.map(|(_, trial)| ("not enough", trial)).into_iter().collect()
}

fn lines<P: Planner>(planner: &P, plan: &Plan<P::Trial>) -> Result<Vec<String>, Error> {
    let columns = columns(planner, plan);
    let row = |name: &str, values: &mut dyn Iterator<Item = String>| {
        format!("{name:<34}{}", values.map(|value| format!("{value:>WIDE$}")).collect::<String>())
    };
    let mut lines = vec![row("", &mut columns.iter().map(|(head, _)| (*head).to_owned()))];
    let cost = |trial| format!("{:.3}", planner.verdict(trial).cost / P::LABELS.money);
    let name = format!("{} {}", P::LABELS.cost, planner.currency());
    lines.push(row(&name, &mut columns.iter().map(|(_, trial)| cost(*trial))));
    let rows: Vec<_> = columns.iter().map(|(_, trial)| planner.rows(trial)).collect();
    for (index, (name, _)) in rows.first().into_iter().flatten().enumerate() {
        lines.push(row(name, &mut rows.iter().map(|rows| rows[index].1.clone())));
    }
    for (head, trial) in &columns {
        lines.extend(planner.notes(trial).iter().map(|note| format!("{head}: {note}")));
    }
    lines.extend(planner.remarks(plan)?);
    lines.push(format!(
        "{} runs for {} of {} candidates, {} seeds each{}",
        plan.runs,
        plan.tried.len(),
        plan.candidates,
        planner.seeds(),
        if plan.is_cut_short { "; stopped at the limit of runs" } else { "" }
    ));
    let assumed = planner.assumed();
    if !assumed.is_empty() {
        let assumed = assumed.join(", ");
        lines.push(format!("assumed prices and powers (set them in [costs]): {assumed}"));
    }
    lines.push("Simulated: nothing here was measured on machines.".to_owned());
    Ok(lines)
}
