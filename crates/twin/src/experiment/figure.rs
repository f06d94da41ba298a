//! The numbers behind a figure: our curves with their range over the seeds, and the points that the
//! paper states in its text.

use serde::Serialize;

use super::companions::figure_title;
use super::curve::{Curve, Measured, median};
use super::file::{Axis, Figure, FigureKind, Limit, Unit};
use super::outcome::Row;
use super::{CurveProbe as _, PaperSystem};
use crate::scenario::{label, number};

/// The name of the series when each bar is a run of its own.
const BARS: &str = "twin";

/// A figure, ready to be drawn.
#[derive(Clone, Debug, Serialize)]
pub struct FigureData {
    /// Its number in the paper.
    pub id: String,
    /// What it shows, and which comparisons of it dropped work.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// The unit of every value.
    pub unit: Unit,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series; for bars, all series have the same positions.
    pub series: Vec<PlotSeries>,
    /// The points that the paper states.
    pub paper: Vec<Mark>,
    /// A limit line to stay below.
    pub limit: Option<Limit>,
}

/// One line, the bars of one color, or the stacked parts of one color.
#[derive(Clone, Debug, Serialize)]
pub struct PlotSeries {
    /// Its label in the legend.
    pub label: String,
    /// Color and shape.
    pub style: usize,
    /// Its points.
    pub points: Vec<PlotPoint>,
}

/// One of our points.
#[derive(Clone, Debug, Serialize)]
pub struct PlotPoint {
    /// Horizontal position; for bars, the index of the position.
    pub x: f64,
    /// The axis label there, when the position is not a number.
    pub label: String,
    /// Median over the seeds.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// One of the paper's points.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// The number of the series.
    pub series: usize,
    /// Horizontal position.
    pub x: f64,
    /// Value.
    pub y: f64,
}

/// Returns the names of the runs that a figure draws.
pub(crate) fn runs<S: PaperSystem>(figure: &Figure<S>) -> impl Iterator<Item = &str> {
    figure.series.iter().filter_map(|series| series.run.as_deref())
}

/// Returns the names of the metrics that a figure draws.
pub(crate) fn metrics<S: PaperSystem>(figure: &Figure<S>) -> impl Iterator<Item = &String> {
    figure.metric.iter().chain(figure.parts.iter().map(|part| &part.metric))
}

/// Returns the first series label of the paper's points that no series has. Bars that are a run
/// each form one series.
pub(crate) fn unknown_label<S: PaperSystem>(figure: &Figure<S>) -> Option<&str> {
    let series = figure.series.iter().map(|series| series.label.as_str());
    let parts = figure.parts.iter().map(|part| part.label.as_str());
    let known: Vec<&str> = match figure.kind {
        FigureKind::Lines => series.collect(),
        FigureKind::Bars => series.chain([BARS]).collect(),
        FigureKind::Stacked => parts.collect(),
    };
    let mut labels = figure.paper.iter().map(|point| point.series.as_str());
    labels.find(|label| !known.contains(label))
}

/// Returns the data of a figure.
pub(crate) fn data<S: PaperSystem>(
    measured: &Measured<'_, S>,
    figure: &Figure<S>,
    rows: &[Row],
) -> Result<FigureData, String> {
    let drawn: Vec<&str> = runs(figure).collect();
    let series = match figure.kind {
        FigureKind::Lines => lines(measured, figure)?,
        FigureKind::Bars => bars(lines(measured, figure)?, figure)?,
        FigureKind::Stacked => stacked(measured, figure)?,
    };
    Ok(FigureData {
        id: figure.id.clone(),
        title: figure_title(&figure.title, &drawn, rows),
        kind: figure.kind,
        unit: figure.unit,
        x: figure.x.clone(),
        y: figure.y.clone(),
        paper: marks(figure, &series),
        series,
        limit: figure.limit.clone(),
    })
}

fn lines<S: PaperSystem>(
    measured: &Measured<'_, S>,
    figure: &Figure<S>,
) -> Result<Vec<PlotSeries>, String> {
    let mut all = Vec::new();
    for (index, source) in figure.series.iter().enumerate() {
        let metric = figure.metric.as_deref().unwrap_or_default();
        let points = match (&source.run, &source.curve) {
            (Some(run), None) => points(&measured.curve(run, metric)?, figure.unit),
            (None, Some(probe)) => {
                let drawn = probe.points(measured.bases)?;
                let unit = figure.unit;
                drawn.into_iter().map(|(x, label, y)| exact(x, label, unit.convert(y))).collect()
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(format!("series {} needs a run or a curve", source.label));
            }
        };
        let style = source.style.unwrap_or(index);
        all.push(PlotSeries { label: source.label.clone(), style, points });
    }
    Ok(all)
}

fn points(curve: &Curve, unit: Unit) -> Vec<PlotPoint> {
    let point = |point: &super::curve::CurvePoint| {
        let of = |pick: fn(f64, f64) -> f64| {
            unit.convert(point.samples.iter().copied().fold(f64::NAN, pick))
        };
        PlotPoint {
            x: point.x,
            label: point.label.clone(),
            median: unit.convert(median(&point.samples)),
            min: of(f64::min),
            max: of(f64::max),
        }
    };
    curve.points.iter().map(point).collect()
}

const fn exact(x: f64, label: String, y: f64) -> PlotPoint {
    PlotPoint { x, label, median: y, min: y, max: y }
}

/// Turns series of one point each into the bars of one series, named by the legend; or groups them
/// side by side, where they have places.
fn bars<S: PaperSystem>(
    series: Vec<PlotSeries>,
    figure: &Figure<S>,
) -> Result<Vec<PlotSeries>, String> {
    if figure.series.iter().any(|source| source.place.is_some()) {
        return grouped(series, figure);
    }
    if series.iter().any(|series| series.points.len() != 1) {
        return Ok(series);
    }
    let mut points = Vec::new();
    let mut x = 0.0;
    for PlotSeries { label, points: mut only, .. } in series {
        points.extend(only.pop().map(|point| PlotPoint { x, label, ..point }));
        x += 1.0;
    }
    Ok(vec![PlotSeries { label: BARS.to_owned(), style: 1, points }])
}

/// Groups bars: those of one label form a series, those of one place stand side by side.
fn grouped<S: PaperSystem>(
    series: Vec<PlotSeries>,
    figure: &Figure<S>,
) -> Result<Vec<PlotSeries>, String> {
    let places = figure.series.iter().map(|source| source.place.clone());
    let places: Option<Vec<String>> = places.collect();
    let places = places.ok_or("either all bars have places or none")?;
    let mut known: Vec<String> = Vec::new();
    let mut all: Vec<PlotSeries> = Vec::new();
    for (PlotSeries { label, style, points }, place) in series.into_iter().zip(places) {
        let [only] = <[PlotPoint; 1]>::try_from(points)
            .map_err(|_| "a bar needs a run of exactly one point")?;
        let index = known.iter().position(|name| *name == place).unwrap_or(known.len());
        if index == known.len() {
            known.push(place.clone());
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure has few bars")]
        let point = PlotPoint { x: index as f64, label: place, ..only };
        match all.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(point),
            None => all.push(PlotSeries { label, style, points: vec![point] }),
        }
    }
    let has_all = |series: &PlotSeries| series.points.len() == known.len();
    if all.iter().all(has_all) {
        Ok(all)
    } else {
        Err("every series needs a bar at every place".to_owned())
    }
}

fn stacked<S: PaperSystem>(
    measured: &Measured<'_, S>,
    figure: &Figure<S>,
) -> Result<Vec<PlotSeries>, String> {
    let mut all = Vec::new();
    for (style, part) in figure.parts.iter().enumerate() {
        let mut stack = Vec::new();
        let mut x = 0.0;
        for source in &figure.series {
            let run = source.run.as_deref().ok_or("a stacked bar needs a run")?;
            let curve = measured.curve(run, &part.metric)?;
            let [only] = points(&curve, figure.unit)
                .try_into()
                .map_err(|_| "a stacked bar needs a run of exactly one point")?;
            stack.push(PlotPoint { x, label: source.label.clone(), ..only });
            x += 1.0;
        }
        all.push(PlotSeries { label: part.label.clone(), style, points: stack });
    }
    Ok(all)
}

fn marks<S: PaperSystem>(figure: &Figure<S>, series: &[PlotSeries]) -> Vec<Mark> {
    let mark = |point: &super::file::PaperPoint| {
        let index = series.iter().position(|series| series.label == point.series)?;
        let name = label(&point.x);
        let places = series[index].points.iter();
        let named = places.filter(|place| place.label == name).map(|place| place.x);
        let x = match figure.kind {
            FigureKind::Lines => number(&point.x),
            FigureKind::Bars | FigureKind::Stacked => named.max_by(f64::total_cmp),
        };
        Some(Mark { series: index, x: x?, y: point.y })
    };
    figure.paper.iter().filter_map(mark).collect()
}
