//! Plots error curves: rates on a logarithmic axis against the symbol error rate.

use plotters::coord::combinators::LogCoord;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::curve::Point;

/// Size of the picture in pixels.
const SIZE: (u32, u32) = (860, 560);
/// Lowest rate shown: a run of hours sees nothing below it.
const FLOOR: f64 = 1e-8;

const FRAMES: RGBColor = RGBColor(20, 80, 160);
const BITS: RGBColor = RGBColor(190, 90, 20);

/// Draws frame and bit error rates of one code, as SVG.
pub(super) fn draw(title: &str, points: &[Point]) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let low = points.iter().map(|point| point.ser).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|point| point.ser).fold(0.0, f64::max);
        let margin = ((high - low) / 12.0).max(high / 100.0);
        let lowest = points
            .iter()
            .flat_map(|point| [point.fer[0].max(point.fer[2] / 10.0), point.ber])
            .filter(|&rate| rate > 0.0)
            .fold(1.0, f64::min);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(
                low - margin..high + margin,
                ((lowest / 3.0).max(FLOOR)..1.0).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_desc("raw symbol error rate")
            .y_desc("error rate after decoding")
            .x_label_formatter(&|ser| format!("{ser:.4}"))
            .y_label_formatter(&|rate| format!("{rate:.0e}"))
            .light_line_style(BLACK.mix(0.06))
            .label_style(("sans-serif", 14))
            .draw()?;
        lines(&mut chart, points)?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, LogCoord<f64>>>;

/// Draws the curves. A point without failures has no rate, only the upper end of its interval: an
/// open triangle.
fn lines(chart: &mut Chart<'_, '_>, points: &[Point]) -> anyhow::Result<()> {
    let seen = || points.iter().filter(|point| point.failures > 0);
    let swatch = |color: RGBColor| {
        move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2))
    };
    chart
        .draw_series(LineSeries::new(
            seen().map(|point| (point.ser, point.fer[1])),
            FRAMES.stroke_width(2),
        ))?
        .label("frames, with 95 % interval")
        .legend(swatch(FRAMES));
    chart
        .draw_series(LineSeries::new(
            seen().map(|point| (point.ser, point.ber)),
            BITS.stroke_width(2),
        ))?
        .label("information bits")
        .legend(swatch(BITS));
    chart.draw_series(seen().map(|point| {
        let [low, rate, high] = point.fer;
        ErrorBar::new_vertical(point.ser, low, rate, high, FRAMES.filled(), 8)
    }))?;
    chart.draw_series(seen().map(|point| Circle::new((point.ser, point.ber), 3, BITS.filled())))?;
    let unseen = points.iter().filter(|point| point.failures == 0);
    chart.draw_series(
        unseen.map(|point| TriangleMarker::new((point.ser, point.fer[2]), 6, FRAMES)),
    )?;
    Ok(())
}
