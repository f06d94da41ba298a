//! The picture of `lab compare`: one small chart per metric, with one interval per fidelity.

use fulgurite_decode::Interval;
use plotters::prelude::*;

/// Size of one chart in pixels.
const CHART: (u32, u32) = (340, 250);

/// Charts per row.
const COLUMNS: usize = 3;

/// Colors of metrics that agree, and that differ.
const AGREES: RGBColor = RGBColor(20, 80, 160);
const DIFFERS: RGBColor = RGBColor(190, 40, 20);

/// One metric.
pub(super) struct Panel {
    pub(super) metric: &'static str,
    pub(super) agree: bool,
    /// Fidelities that have the metric.
    pub(super) levels: Vec<(&'static str, Interval)>,
}

/// Draws all metrics, as SVG.
pub(super) fn draw(title: &str, panels: &[Panel]) -> anyhow::Result<String> {
    let rows = panels.len().div_ceil(COLUMNS);
    let to_u32 = |count: usize| u32::try_from(count).unwrap_or(1);
    let size = (CHART.0 * to_u32(COLUMNS), CHART.1 * to_u32(rows) + 40);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let area = area.titled(title, ("sans-serif", 18))?;
        for (area, panel) in area.split_evenly((rows, COLUMNS)).iter().zip(panels) {
            chart(area, panel)?;
        }
        area.present()?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn chart(area: &Area<'_>, panel: &Panel) -> anyhow::Result<()> {
    let levels = &panel.levels;
    let low = levels.iter().map(|(_, interval)| interval.low).fold(f64::INFINITY, f64::min);
    let high = levels.iter().map(|(_, interval)| interval.high).fold(0.0, f64::max);
    // Padding, for intervals of zero width.
    let room = 0.15 * (high - low).max(1e-3 * high).max(1e-12);
    let (color, word) = if panel.agree { (AGREES, "") } else { (DIFFERS, ": differ") };
    #[expect(clippy::cast_precision_loss, reason = "at most three")]
    let last = levels.len() as f64 - 0.5;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}{word}", panel.metric), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..last, low - room..high + room)?;
    let name = |at: &f64| {
        let named = (0..).map(f64::from).zip(levels).find(|(i, _)| (i - at).abs() < 1e-9);
        named.map_or_else(String::new, |(_, (name, _))| (*name).to_owned())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * levels.len() + 1)
        .x_label_formatter(&name)
        .y_labels(5)
        .y_label_formatter(&|value| format!("{value:.3e}"))
        .light_line_style(BLACK.mix(0.04))
        .label_style(("sans-serif", 13))
        .draw()?;
    chart.draw_series((0..).map(f64::from).zip(levels).map(|(at, (_, interval))| {
        let Interval { value, low, high } = *interval;
        ErrorBar::new_vertical(at, low, value, high, color.filled(), 12)
    }))?;
    Ok(())
}
