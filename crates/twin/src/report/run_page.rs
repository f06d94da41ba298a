//! The page of a run: the queue, the age of its requests, and the work of each machine over time,
//! stacked on one time axis.

use fulgurite_units::Duration;

use super::canvas::{Canvas, Frame, Key, escape};
use super::parts::{Facts, close, framed, open, put};
use super::scale::{Scale, number};
use crate::columns::Curve;
use crate::experiment::Unit;
use crate::presentation::{CurvePicture, Picture, ReportedSystem, StripPicture, Timeline};
use crate::scenario::Scenario as _;

/// Number of strengths of the cells of a strip.
const STRENGTHS: u32 = 10;
/// Maximum number of rows of a strip that all have a name.
const NAMED_MAX: usize = 24;
/// A bound is drawn when at least this share of it is reached; else it would flatten the curve.
const BOUND_SHARE: f64 = 0.25;

/// Maximum number of time marks; steps between them are those people count in.
const TICKS_MAX: f64 = 18.0;
const TICK_STEPS: [f64; 12] = [0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 60.0, 120.0, 360.0, 1e3];

/// A row of the table of results: a name, and its value for each seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRow {
    /// Its name.
    pub name: String,
    /// Median, minimum and maximum over the seeds.
    pub all: [String; 3],
    /// Values of the first seeds.
    pub each: Vec<String>,
}

/// Returns the report of a run as one HTML file: the curves over time, with the first run in front,
/// and the results.
///
/// # Panics
/// When there is no timeline.
#[must_use]
pub fn run_page<S: ReportedSystem>(
    scenario: &S::Scenario,
    timelines: &[S::Timeline],
    rows: &[ResultRow],
    facts: &Facts,
) -> String {
    assert!(!timelines.is_empty(), "a run has a timeline");
    let mut page = open(&format!("Simulated run of {}", facts.scenario), facts);
    totals(&mut page, rows, S::HIGHLIGHTS);
    let time = TimeAxis::new(scenario.window(), timelines);
    put(
        &mut page,
        format_args!(
            "<h2>Over time, seed {}</h2>\n<p class=\"soft\">Each column is {} of simulated time. \
             Lines are means, their shades go from the least to the most. The shaded time is the \
             measured one.{}</p>\n<div class=\"wide\">\n",
            timelines[0].seed(),
            format_duration(timelines[0].column_s()),
            if timelines.len() > 1 { " Thin lines are the other seeds." } else { "" }
        ),
    );
    for picture in S::pictures(scenario, timelines) {
        match picture {
            Picture::Curve(curve) => plot(&mut page, &time, timelines, &curve),
            Picture::Strip(machines) => strip(&mut page, &time, &timelines[0], &machines),
            Picture::Nothing(why) => put(&mut page, format_args!("<p>{}</p>\n", escape(why))),
        }
    }
    page.push_str("</div>\n");
    results(&mut page, timelines, rows);
    close(page, facts)
}

/// Writes the most important results, in large letters.
fn totals(page: &mut String, rows: &[ResultRow], names: &[&str]) {
    page.push_str("<div class=\"totals\">");
    for row in rows.iter().filter(|row| names.contains(&row.name.as_str())) {
        let [median, min, max] = &row.all;
        let name = escape(&row.name);
        put(page, format_args!("<div class=\"total\"><b>{}</b>{name}", escape(median)));
        if min != max {
            put(page, format_args!("<br>{} to {}", escape(min), escape(max)));
        }
        page.push_str("</div>");
    }
    page.push_str("</div>\n");
}

fn results<C: Timeline>(page: &mut String, timelines: &[C], rows: &[ResultRow]) {
    page.push_str(
        "<h2>Results</h2>\n<div class=\"scroll\"><table><thead><tr><th>What<th>Median<th>Min\
         <th>Max",
    );
    // With a single seed its numbers equal the median.
    let each = rows.first().map_or(0, |row| row.each.len());
    let each = if each > 1 { each } else { 0 };
    for timeline in timelines.iter().take(each) {
        put(page, format_args!("<th>Seed {}", timeline.seed()));
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in rows {
        put(page, format_args!("<tr><td>{}", escape(&row.name)));
        for value in row.all.iter().chain(&row.each[..each]) {
            put(page, format_args!("<td class=\"number\">{}", escape(value)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// The time axis, the same in every figure.
struct TimeAxis {
    name: &'static str,
    /// Seconds per unit.
    unit: f64,
    end: f64,
    measured: [f64; 2],
}

impl TimeAxis {
    fn new<C: Timeline>(measured: [Duration; 2], timelines: &[C]) -> Self {
        let end = timelines.iter().map(Timeline::end_s).fold(1.0, f64::max);
        let (name, unit) = match end {
            end if end < 3.0 * 3600.0 => ("min", 60.0),
            end if end <= 96.0 * 3600.0 => ("h", 3600.0),
            _ => ("days", 86_400.0),
        };
        let [from, until] = measured.map(|at| at.as_secs_f64().min(end) / unit);
        Self { name, unit, end: end / unit, measured: [from, until] }
    }

    fn scale(&self) -> Scale {
        Scale::exact(0.0, self.end)
    }

    fn draw(&self, canvas: &mut Canvas) {
        let step = TICK_STEPS.into_iter().find(|step| self.end / step <= TICKS_MAX);
        let step = step.unwrap_or(self.end);
        let ticks = std::iter::successors(Some(0.0), |tick| Some(tick + step));
        let ticks = ticks.take_while(|tick| *tick <= self.end).map(|tick| (tick, number(tick)));
        let ticks: Vec<(f64, String)> = ticks.collect();
        canvas.x_axis(&format!("simulated time, {}", self.name), &ticks);
    }

    fn shade(&self, canvas: &mut Canvas) {
        let [from, until] = self.measured;
        if from < until {
            canvas.shade(from, until, "measured");
        }
    }

    /// Returns the middle of a column of a timeline.
    fn middle(&self, timeline: &impl Timeline, column: usize) -> f64 {
        let (from, to) = (count(column), count(column + 1));
        let [from, to] = [from, to].map(|edge| (edge * timeline.column_s()).min(timeline.end_s()));
        f64::midpoint(from, to) / self.unit
    }
}

/// Draws the curve of the first run, and those of the others for comparison.
fn plot<C: Timeline>(page: &mut String, time: &TimeAxis, timelines: &[C], picture: &CurvePicture) {
    let most = |curve: &Curve| curve.max.iter().copied().fold(0.0, f64::max);
    let top = picture.curves.iter().map(most).fold(0.0, f64::max);
    let unit = picture.dimension.unit(top);
    let bound = picture.bound.filter(|(bound, _)| top >= bound * BOUND_SHARE);
    let tops = [top].into_iter().chain(bound.map(|(bound, _)| bound)).map(|top| unit.convert(top));
    let y = Scale::covering(tops.chain([0.0]), false, false);
    let mut legend = vec![(Key::Line(1), format!("seed {}", timelines[0].seed()))];
    if timelines.len() > 1 {
        legend.push((Key::Other, "other seeds".to_owned()));
    }
    let title = format!("{}, simulated", picture.title);
    let mut canvas = Canvas::framed(Frame::STRIP, &title, &legend, time.scale(), y);
    time.shade(&mut canvas);
    canvas.y_axis(&axis(picture.title, unit));
    time.draw(&mut canvas);
    for (timeline, curve) in timelines.iter().zip(&picture.curves).skip(1) {
        let point =
            |(column, mean): (usize, &f64)| [time.middle(timeline, column), unit.convert(*mean)];
        canvas.other(&curve.mean.iter().enumerate().map(point).collect::<Vec<_>>());
    }
    let first = &picture.curves[0];
    let point = |(column, mean): (usize, &f64)| {
        let [mean, min, max] =
            [*mean, first.min[column], first.max[column]].map(|value| unit.convert(value));
        [time.middle(&timelines[0], column), mean, min, max]
    };
    canvas.curve(1, &first.mean.iter().enumerate().map(point).collect::<Vec<_>>(), false);
    if let Some((bound, name)) = bound {
        canvas.limit_left(unit.convert(bound), name);
    }
    framed(page, picture.title, &picture.note, &canvas.finish());
}

fn axis(title: &str, unit: Unit) -> String {
    if unit == Unit::One {
        return title.split(' ').next().unwrap_or_default().to_lowercase();
    }
    unit.suffix().trim().to_owned()
}

/// Draws a row per machine, the stronger the busier it is.
fn strip(page: &mut String, time: &TimeAxis, timeline: &impl Timeline, picture: &StripPicture<'_>) {
    let StripPicture { title, note, machine, rows: machines } = picture;
    if machines.is_empty() {
        return;
    }
    let high = count(machines.len());
    let row_height = if machines.len() <= NAMED_MAX { 15.0 } else { 8.0 };
    let frame = Frame { height: Frame::MARGINS_HIGH + high * row_height, ..Frame::STRIP };
    let legend: Vec<(Key, String)> = [0.0, 0.25, 0.5, 0.75, 1.0]
        .map(|share| (Key::Heat(share), format!("{} %", number(share * 100.0))))
        .into();
    let svg_title = format!("{title}, simulated");
    let y = Scale::exact(0.0, high);
    let mut canvas = Canvas::framed(frame, &svg_title, &legend, time.scale(), y);
    time.draw(&mut canvas);
    let step = if machines.len() <= NAMED_MAX { 1 } else { 5 };
    let names = (0..machines.len()).step_by(step);
    let named: Vec<(f64, String)> =
        names.map(|index| (high - count(index) - 0.5, index.to_string())).collect();
    canvas.rows(machine, &named);
    for strength in 1..=STRENGTHS {
        let mut cells = Vec::new();
        for (index, shares) in machines.iter().enumerate() {
            let (above, below) = (high - count(index) - 0.06, high - count(index) - 0.94);
            for [from, to] in spans(shares, strength) {
                let edge = |column: usize| {
                    (count(column) * timeline.column_s()).min(timeline.end_s()) / time.unit
                };
                cells.push([edge(from), edge(to), below, above]);
            }
        }
        if !cells.is_empty() {
            canvas.cells(&cells, f64::from(strength) / f64::from(STRENGTHS));
        }
    }
    let all: f64 = machines.iter().flat_map(|shares| shares.iter()).sum();
    let columns: usize = machines.iter().map(|shares| shares.len()).sum();
    let mean = number((all / count(columns.max(1)) * 1000.0).round() / 10.0);
    framed(page, title, &format!("{note} mean {mean} %"), &canvas.finish());
}

/// Returns ranges of adjacent columns with this strength.
fn spans(shares: &[f64], strength: u32) -> Vec<[usize; 2]> {
    let is_it = |share: &f64| {
        let rounded = (share * f64::from(STRENGTHS)).round();
        (rounded - f64::from(strength)).abs() < 0.5
    };
    let mut spans: Vec<[usize; 2]> = Vec::new();
    for column in (0..shares.len()).filter(|column| is_it(&shares[*column])) {
        match spans.last_mut() {
            Some(last) if last[1] == column => last[1] += 1,
            _ => spans.push([column, column + 1]),
        }
    }
    spans
}

/// Formats a time in the largest unit of which it has at least one.
pub(crate) fn format_duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        seconds if seconds < 60.0 => (seconds, "s"),
        seconds if seconds < 3600.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    format!("{} {unit}", number(value))
}

#[expect(clippy::cast_precision_loss, reason = "columns and machines are few")]
const fn count(number: usize) -> f64 {
    number as f64
}
