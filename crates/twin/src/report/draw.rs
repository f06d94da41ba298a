//! Draws a figure as SVG: our values as lines or bars with the range over the seeds, the paper's
//! stated points as diamonds.

use super::canvas::{Canvas, Key, STYLES};
use super::scale::{Scale, number};
use crate::experiment::{FigureData, FigureKind, PlotSeries};

/// Number of points of a line beyond which they are not marked individually.
const DOTS_MAX: usize = 15;
/// Share of a place that its bars fill.
const BARS_WIDTH: f64 = 0.7;

/// Draws a figure as SVG. Its colors are CSS classes of the page.
#[must_use]
pub fn figure(data: &FigureData) -> String {
    match data.kind {
        FigureKind::Lines => lines(data),
        FigureKind::Bars => bars(data),
        FigureKind::Stacked => stacked(data),
    }
}

fn lines(data: &FigureData) -> String {
    let points = || data.series.iter().filter(|series| !constant(series)).flat_map(|s| &s.points);
    let places = || points().map(|point| point.x).chain(data.paper.iter().map(|mark| mark.x));
    let x = Scale::covering(places(), data.x.log, true);
    let y = Scale::covering(heights(data), data.y.log, false);
    let mut canvas = Canvas::new(&data.title, &legend(data, Key::Line), x, y);
    canvas.y_axis(&data.y.label);
    let mut marks: Vec<f64> = points().map(|point| point.x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let few = marks.len() <= DOTS_MAX;
    let ticks = if few { marks } else { x.ticks() };
    let named: Vec<_> = ticks.iter().map(|&tick| (tick, number(tick))).collect();
    canvas.x_axis(&data.x.label, &named);
    if let Some(limit) = &data.limit {
        canvas.limit(limit.y, &limit.label);
    }
    for series in &data.series {
        let style = series.style % STYLES;
        if constant(series) {
            canvas.across(&format!("line line{style}"), series.points[0].median);
            continue;
        }
        let points: Vec<[f64; 4]> = series
            .points
            .iter()
            .map(|point| [point.x, point.median, point.min, point.max])
            .collect();
        canvas.curve(style, &points, few);
    }
    paper_points(data, &mut canvas);
    canvas.finish()
}

fn bars(data: &FigureData) -> String {
    let (x, named) = places(data);
    let y = Scale::covering(heights(data), data.y.log, false);
    let mut canvas = Canvas::new(&data.title, &legend(data, Key::Fill), x, y);
    canvas.y_axis(&data.y.label);
    canvas.x_axis(&data.x.label, &named);
    if let Some(limit) = &data.limit {
        canvas.limit(limit.y, &limit.label);
    }
    for (index, series) in data.series.iter().enumerate() {
        for point in &series.points {
            let (at, width) = bar_position(point.x, index, data.series.len());
            canvas.bar(series.style % STYLES, at, [0.0, point.median], width * 0.94);
            if point.max > point.min {
                canvas.whisker(at, point.min, point.max);
            }
        }
    }
    // After all bars, so that none covers a number.
    for (index, series) in data.series.iter().enumerate() {
        for point in &series.points {
            let (at, _) = bar_position(point.x, index, data.series.len());
            canvas.note(at, point.max, &number(point.median));
        }
    }
    for mark in &data.paper {
        let (at, _) = bar_position(mark.x, mark.series, data.series.len());
        canvas.paper(style(data, mark.series), at, mark.y);
    }
    canvas.finish()
}

fn stacked(data: &FigureData) -> String {
    let (x, named) = places(data);
    let below = |series: usize, at: usize| -> f64 {
        let parts = data.series[..series].iter();
        parts.filter_map(|part| part.points.get(at)).map(|point| point.median).sum()
    };
    let count = data.series.first().map_or(0, |series| series.points.len());
    let y = Scale::covering((0..count).map(|at| below(data.series.len(), at)), false, false);
    let mut canvas = Canvas::new(&data.title, &legend(data, Key::Fill), x, y);
    canvas.y_axis(&data.y.label);
    canvas.x_axis(&data.x.label, &named);
    for (index, series) in data.series.iter().enumerate() {
        for (at, point) in series.points.iter().enumerate() {
            let from = below(index, at);
            canvas.bar(series.style % STYLES, point.x, [from, from + point.median], BARS_WIDTH);
        }
    }
    for mark in &data.paper {
        let points = data.series[mark.series].points.iter();
        let same = |point: &crate::experiment::PlotPoint| (point.x - mark.x).abs() < 0.5;
        let from = points.clone().position(same).map_or(0.0, |at| below(mark.series, at));
        canvas.paper(style(data, mark.series), mark.x, from + mark.y);
    }
    canvas.finish()
}

fn paper_points(data: &FigureData, canvas: &mut Canvas) {
    for mark in &data.paper {
        canvas.paper(style(data, mark.series), mark.x, mark.y);
    }
}

fn style(data: &FigureData, series: usize) -> usize {
    data.series.get(series).map_or(0, |series| series.style % STYLES)
}

/// Returns whether a series is one point without a position: it holds everywhere.
fn constant(series: &PlotSeries) -> bool {
    matches!(series.points.as_slice(), [only] if only.label.is_empty())
}

/// Returns the positions of bars, and their axis labels.
fn places(data: &FigureData) -> (Scale, Vec<(f64, String)>) {
    let points = data.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let ends = points.iter().flat_map(|point| [point.x - 0.5, point.x + 0.5]);
    let named = points.iter().map(|point| (point.x, point.label.clone())).collect();
    (Scale::covering(ends, false, true), named)
}

/// Returns the position and width of one of several bars side by side.
fn bar_position(x: f64, index: usize, count: usize) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "a figure has few series")]
    let (index, count) = (index as f64, count.max(1) as f64);
    let width = BARS_WIDTH / count;
    (x + (index + 0.5) * width - BARS_WIDTH / 2.0, width)
}

fn heights(data: &FigureData) -> impl Iterator<Item = f64> {
    let points = data.series.iter().flat_map(|series| &series.points);
    let ours = points.flat_map(|point| [point.median, point.min, point.max]);
    let paper = data.paper.iter().map(|mark| mark.y);
    ours.chain(paper).chain(data.limit.iter().map(|limit| limit.y))
}

fn legend(data: &FigureData, key: fn(usize) -> Key) -> Vec<(Key, String)> {
    let series = data.series.iter();
    let mut legend: Vec<(Key, String)> =
        series.map(|series| (key(series.style % STYLES), series.label.clone())).collect();
    if !data.paper.is_empty() {
        legend.push((Key::Paper, "stated in the paper".to_owned()));
    }
    legend
}
