//! The page of a sweep: a picture and a table per metric. One field gives a line or bars; two give
//! a heat map and, where one of them is a number, a family of lines.

use super::canvas::{Canvas, Frame, Key, STYLES, escape};
use super::draw::figure;
use super::parts::{Facts, close, framed, open, put};
use super::scale::{Scale, number};
use crate::experiment::{Axis, FigureData, FigureKind, PlotPoint, PlotSeries, Unit};
use crate::sweep::{Cell, SweepField, SweepMetric, SweepResult};

/// Strength of the cell with the least value: still visible.
const STRENGTH_MIN: f64 = 0.07;
/// Strength from which the text of a cell has the color of the page.
const INVERSE_FROM: f64 = 0.55;
/// The note on every picture.
const NOTE: &str = "(simulated; medians, with the range over the seeds)";
/// Ratio of largest to smallest value from which the scale is logarithmic.
const LOG_FROM: f64 = 20.0;

/// Returns the report of a sweep as one HTML file.
#[must_use]
pub fn sweep_page(sweep: &SweepResult, facts: &Facts) -> String {
    let fields: Vec<&str> = sweep.fields.iter().map(|field| field.field.as_str()).collect();
    let title = format!("Simulated sweep of {} over {}", facts.scenario, fields.join(" and "));
    let mut page = open(&title, facts);
    for metric in &sweep.metrics {
        put(&mut page, format_args!("<h2>{}</h2>\n", escape(&named(metric))));
        page.push_str("<div class=\"figures\">\n");
        let none = metric.cells.iter().all(|cell| !cell.median.is_finite());
        if none {
            page.push_str("<p>No run has this number.</p>\n");
        }
        for (name, svg) in pictures(sweep, metric).into_iter().filter(|_| !none) {
            framed(&mut page, &name, NOTE, &svg);
        }
        page.push_str("</div>\n");
        table(&mut page, sweep, metric);
    }
    close(page, facts)
}

/// Returns the title of a metric, with its unit.
fn named(metric: &SweepMetric) -> String {
    let name = match metric.name.as_str() {
        "completion.p50" => "Median of completion times",
        "completion.p99" => "99th percentile of completion times",
        "completion.p999" => "99.9th percentile of completion times",
        "completion.max" => "Longest completion time",
        "unverified_age_max" => "Oldest unverified platter",
        "verified_bytes" => "Verified",
        other => other,
    };
    if metric.unit == Unit::One {
        return name.to_owned();
    }
    format!("{name},{}", metric.unit.suffix())
}

/// Returns the pictures of a metric, each with its name.
fn pictures(sweep: &SweepResult, metric: &SweepMetric) -> Vec<(String, String)> {
    let drawn = |data: FigureData| (format!("Along {}", data.x.label), figure(&data));
    match sweep.fields.as_slice() {
        [field] => vec![drawn(one(field, metric))],
        [rows, columns] => {
            let heat = ("All combinations".to_owned(), heat(rows, columns, metric));
            std::iter::once(heat).chain(family(rows, columns, metric).map(drawn)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the axis label of a field: with its unit, where its values do not show it.
fn axis(field: &str) -> String {
    const UNITS: [(&str, &str); 5] =
        [("throughput", "MB/s"), ("_mm", "mm"), ("_kj", "kJ"), ("_w", "W"), ("_j", "J")];
    match UNITS.iter().find(|(end, _)| field.ends_with(end)) {
        Some((_, unit)) => format!("{field}, {unit}"),
        None => field.to_owned(),
    }
}

fn one(field: &SweepField, metric: &SweepMetric) -> FigureData {
    let cells: Vec<&Cell> = metric.cells.iter().collect();
    let series = PlotSeries {
        label: "twin".to_owned(),
        style: 1,
        points: points(field, &cells, metric.unit),
    };
    plot(field, metric, vec![series])
}

/// Returns a line for each value of the non-numeric field, or of the second one; `None` where there
/// would be too many lines to tell apart.
fn family(rows: &SweepField, columns: &SweepField, metric: &SweepMetric) -> Option<FigureData> {
    let width = columns.values.len();
    let along_rows = is_number(rows) || !is_number(columns);
    let (along, across) = if along_rows { (rows, columns) } else { (columns, rows) };
    if across.values.len() > STYLES {
        return None;
    }
    let cell = |place: usize, series: usize| {
        let (row, column) = if along_rows { (place, series) } else { (series, place) };
        &metric.cells[row * width + column]
    };
    let series = across.values.iter().enumerate().map(|(index, value)| {
        let cells: Vec<&Cell> = (0..along.values.len()).map(|place| cell(place, index)).collect();
        PlotSeries {
            label: format!("{} {value}", last_word(&across.field)),
            style: index,
            points: points(along, &cells, metric.unit),
        }
    });
    Some(plot(along, metric, series.collect()))
}

fn plot(along: &SweepField, metric: &SweepMetric, series: Vec<PlotSeries>) -> FigureData {
    let kind = if is_number(along) { FigureKind::Lines } else { FigureKind::Bars };
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.median);
    FigureData {
        id: metric.name.clone(),
        title: format!("{} over {}, simulated", named(metric), along.field),
        kind,
        unit: metric.unit,
        x: Axis { label: axis(&along.field), log: false },
        // Bars need a zero, which a logarithmic axis lacks.
        y: Axis { label: named(metric), log: kind == FigureKind::Lines && is_wide(values) },
        series,
        paper: Vec::new(),
        limit: None,
    }
}

fn points(along: &SweepField, cells: &[&Cell], unit: Unit) -> Vec<PlotPoint> {
    let mut points = Vec::new();
    let mut place = 0.0;
    for ((label, number), cell) in along.values.iter().zip(&along.numbers).zip(cells) {
        points.push(PlotPoint {
            x: number.filter(|_| is_number(along)).unwrap_or(place),
            label: label.clone(),
            median: unit.convert(cell.median),
            min: unit.convert(cell.min),
            max: unit.convert(cell.max),
        });
        place += 1.0;
    }
    // Values that a run does not have are not drawn.
    points.retain(|point| point.median.is_finite());
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

fn is_number(field: &SweepField) -> bool {
    field.numbers.iter().all(Option::is_some)
}

fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    let (least, most) = min_max(values);
    least > 0.0 && most / least > LOG_FROM
}

fn min_max(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        })
}

fn last_word(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

/// Draws the heat map: the first field from top to bottom, the second from left to right.
fn heat(rows: &SweepField, columns: &SweepField, metric: &SweepMetric) -> String {
    let medians = || metric.cells.iter().map(|cell| metric.unit.convert(cell.median));
    let (least, most) = min_max(medians());
    let log = is_wide(medians());
    let strength = |value: f64| {
        let share = match (most > least, log) {
            _ if !value.is_finite() => 0.0,
            (false, _) => 0.5,
            (true, false) => (value - least) / (most - least),
            (true, true) => (value / least).ln() / (most / least).ln(),
        };
        STRENGTH_MIN + (1.0 - STRENGTH_MIN) * share
    };
    let (high, wide) = (count(rows.values.len()), count(columns.values.len()));
    let cell_height = (560.0 / high).clamp(14.0, 52.0);
    let width = if columns.values.len() > 12 { Frame::STRIP.width } else { Frame::HALF.width };
    let frame = Frame { width, height: Frame::MARGINS_HIGH + high * cell_height };
    let cell_width = (width - Frame::MARGINS) / wide;
    let shown = |value: f64| format!("{}{}", number(value), metric.unit.suffix());
    let legend = [
        (Key::Heat(strength(least)), format!("least, {}", shown(least))),
        (Key::Heat(strength(most)), format!("most, {}", shown(most))),
    ];
    let title = format!("{}, simulated", named(metric));
    let (x, y) = (Scale::exact(0.0, wide), Scale::exact(0.0, high));
    let mut canvas = Canvas::framed(frame, &title, &legend, x, y);
    let middle = |index: usize| count(index) + 0.5;
    let from_above = |(index, name): (usize, &String)| (high - middle(index), name.clone());
    let names: Vec<(f64, String)> = rows.values.iter().enumerate().map(from_above).collect();
    canvas.rows(&axis(&rows.field), &names);
    let at = |(index, name): (usize, &String)| (middle(index), name.clone());
    let names: Vec<(f64, String)> = columns.values.iter().enumerate().map(at).collect();
    canvas.x_axis(&axis(&columns.field), &names);
    for (index, cell) in metric.cells.iter().enumerate() {
        let (row, column) = (index / columns.values.len(), index % columns.values.len());
        let (left, below) = (count(column), high - count(row) - 1.0);
        let strength = strength(metric.unit.convert(cell.median));
        let (gap_x, gap_y) = (1.0 / cell_width, 1.0 / cell_height);
        let edges = [left + gap_x, left + 1.0 - gap_x, below + gap_y, below + 1.0 - gap_y];
        canvas.cells(&[edges], strength);
        let texts = texts(cell, metric.unit, cell_width, cell_height);
        canvas.cell_text(left + 0.5, below + 0.5, &texts, strength >= INVERSE_FROM);
    }
    canvas.finish()
}

/// Returns the text that fits in a cell: the median, and the range below it.
fn texts(cell: &Cell, unit: Unit, width: f64, height: f64) -> Vec<String> {
    let [median, min, max] = [cell.median, cell.min, cell.max].map(|value| unit.convert(value));
    if width < 42.0 {
        return Vec::new();
    }
    if width < 100.0 || height < 34.0 || min >= max {
        return vec![number(median)];
    }
    vec![number(median), format!("{} to {}", number(min), number(max))]
}

/// Writes a table of medians with their ranges; with one field, a row for each value.
fn table(page: &mut String, sweep: &SweepResult, metric: &SweepMetric) {
    let (rows, columns) = match sweep.fields.as_slice() {
        [rows, columns] => (rows, columns.values.as_slice()),
        [rows, ..] => (rows, &[] as &[String]),
        [] => return,
    };
    page.push_str("<div class=\"scroll\"><table><thead><tr>");
    let corner = match sweep.fields.get(1) {
        Some(across) => format!("{} (down), {} (across)", axis(&rows.field), axis(&across.field)),
        None => axis(&rows.field),
    };
    put(page, format_args!("<th>{}", escape(&corner)));
    if columns.is_empty() {
        put(page, format_args!("<th>{}", escape(&named(metric))));
    }
    for value in columns {
        put(page, format_args!("<th>{}", escape(value)));
    }
    page.push_str("</tr></thead><tbody>\n");
    for (value, cells) in rows.values.iter().zip(metric.cells.chunks(columns.len().max(1))) {
        put(page, format_args!("<tr><th>{}", escape(value)));
        for cell in cells {
            put(page, format_args!("<td class=\"number\">{}", with_range(cell, metric.unit)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// Formats a median with the range over the seeds: `2.54 (2.31 to 2.6)`.
#[must_use]
pub fn with_range(cell: &Cell, unit: Unit) -> String {
    let [median, min, max] = [cell.median, cell.min, cell.max].map(|value| unit.convert(value));
    if min >= max || !median.is_finite() {
        return number(median);
    }
    format!("{} ({} to {})", number(median), number(min), number(max))
}

#[expect(clippy::cast_precision_loss, reason = "a sweep has few values")]
const fn count(number: usize) -> f64 {
    number as f64
}
