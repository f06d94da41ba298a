//! The picture of a search for a plan, of any system: cost and tail of each trial.

use plotters::prelude::*;

use super::{Labels, Plan, Planner, Verdict};
use crate::Error;

const SIZE: (u32, u32) = (860, 560);
const ENOUGH: RGBColor = RGBColor(20, 80, 160);
const TOO_LITTLE: RGBColor = RGBColor(150, 150, 150);
const BEST: RGBColor = RGBColor(190, 90, 20);

/// A trial.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Cost, in the unit of the picture.
    cost: f64,
    /// Tail, in the unit of the picture.
    tail: f64,
    is_enough: bool,
    is_whole: bool,
}

/// The content of the picture.
#[derive(Debug)]
pub(super) struct Drawn<'a> {
    points: Vec<Point>,
    /// The cheapest trial.
    best: Option<Point>,
    objective: f64,
    currency: &'a str,
    labels: Labels,
}

impl<'a> Drawn<'a> {
    pub(super) fn new<P: Planner>(planner: &'a P, plan: &Plan<P::Trial>) -> Self {
        let objective = planner.objective();
        let point = |trial: &P::Trial| {
            let Verdict { cost, is_enough, objective_share, is_whole } = planner.verdict(trial);
            let (cost, tail) = (cost / P::LABELS.money, (objective_share * objective).max(1e-3));
            Point { cost, tail, is_enough, is_whole }
        };
        Self {
            points: plan.tried.iter().map(point).collect(),
            best: plan.best.as_ref().map(point),
            objective,
            currency: planner.currency(),
            labels: P::LABELS,
        }
    }

    /// Draws all trials as SVG: cost against the tail, with the objective as a line. The tail of a
    /// trial that was stopped early is drawn at its lower bound.
    ///
    /// # Errors
    /// When nothing was tried, or the picture cannot be drawn.
    pub(super) fn svg(&self) -> Result<String, Error> {
        let mut svg = String::new();
        draw(self, &mut svg).map_err(|error| Error::Picture { problem: error.to_string() })?;
        Ok(svg)
    }
}

fn draw(plan: &Drawn<'_>, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let Labels { cost_axis, tail_axis, tail_unit: unit, .. } = plan.labels;
    let at = |trial: &Point| (trial.cost, trial.tail);
    let points: Vec<(f64, f64)> = plan.points.iter().map(at).collect();
    let objective = plan.objective;
    let right = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let low = points.iter().map(|point| point.1).fold(objective, f64::min);
    let high = points.iter().map(|point| point.1).fold(objective, f64::max);
    if points.is_empty() {
        return Err("nothing was tried".into());
    }
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Cost and tail of all trials", ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right * 1.08, (low / 2.0..high * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(format!("cost {cost_axis} {}", plan.currency))
        .y_desc(format!("{tail_axis}, {unit}"))
        .light_line_style(BLACK.mix(0.06))
        .label_style(("sans-serif", 14))
        .draw()?;
    let limit = [(0.0, objective), (right * 1.08, objective)];
    chart
        .draw_series(LineSeries::new(limit, BLACK.mix(0.6)))?
        .label(format!("objective, {objective:.1} {unit}"))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 14, y)], BLACK.mix(0.6)));
    for (is_enough, is_whole, style, label) in [
        (false, false, TOO_LITTLE.stroke_width(1), "stopped early: at least"),
        (false, true, TOO_LITTLE.filled(), "not enough"),
        (true, true, ENOUGH.filled(), "meets everything"),
    ] {
        let trials = plan.points.iter();
        let trials =
            trials.filter(|point| point.is_enough == is_enough && point.is_whole == is_whole);
        chart
            .draw_series(trials.map(|trial| Circle::new(at(trial), 4, style)))?
            .label(label)
            .legend(move |(x, y)| Circle::new((x + 7, y), 4, style));
    }
    let chosen = plan.best.iter();
    chart
        .draw_series(chosen.map(|trial| Circle::new(at(trial), 9, BEST.stroke_width(2))))?
        .label("least cost")
        .legend(|(x, y)| Circle::new((x + 7, y), 6, BEST.stroke_width(2)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
