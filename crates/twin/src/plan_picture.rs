//! The picture of a search for a plan, of any system: cost and tail of each trial.

use plotters::prelude::*;

use crate::Error;

const SIZE: (u32, u32) = (860, 560);
const ENOUGH: RGBColor = RGBColor(20, 80, 160);
const TOO_LITTLE: RGBColor = RGBColor(150, 150, 150);
const BEST: RGBColor = RGBColor(190, 90, 20);

/// Label and scale of the cost of machines and their energy.
pub(crate) const OF_SERVICE: (&str, f64) = ("over the years of service, million", 1e6);

/// A trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) cost: f64,
    pub(crate) tail_s: f64,
    pub(crate) is_enough: bool,
    /// False for a trial that was stopped early: its tail is then a lower bound.
    pub(crate) is_whole: bool,
}

/// The content of the picture.
#[derive(Debug)]
pub(crate) struct Drawn<'a> {
    pub(crate) points: Vec<Point>,
    /// The cheapest trial.
    pub(crate) best: Option<Point>,
    pub(crate) objective_s: f64,
    pub(crate) currency: &'a str,
    /// Label of the cost axis, and the amount of money per unit.
    pub(crate) cost: (&'a str, f64),
    /// Label of the tail axis.
    pub(crate) tail: &'a str,
    /// Unit of the tail axis, and its seconds.
    pub(crate) unit: (&'a str, f64),
}

impl Drawn<'_> {
    /// Draws all trials as SVG: cost against the tail, the objective as a line.
    ///
    /// # Errors
    /// When nothing was tried, or the picture cannot be drawn.
    pub(crate) fn svg(&self) -> Result<String, Error> {
        let mut svg = String::new();
        draw(self, &mut svg).map_err(|error| Error::Picture { problem: error.to_string() })?;
        Ok(svg)
    }
}

fn draw(plan: &Drawn<'_>, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let (unit, seconds) = plan.unit;
    let (paid_for, money) = plan.cost;
    let at = |trial: &Point| (trial.cost / money, (trial.tail_s / seconds).max(1e-3));
    let points: Vec<(f64, f64)> = plan.points.iter().map(at).collect();
    let objective = plan.objective_s / seconds;
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
        .x_desc(format!("cost {paid_for} {}", plan.currency))
        .y_desc(format!("{}, {unit}", plan.tail))
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
