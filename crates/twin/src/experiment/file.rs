//! The format of a statement's file. Unknown keys are errors: a check with a misspelled band would
//! never be judged by it.

use std::fmt;

use fulgurite_units::settings::Spanned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::PaperSystem;

/// One statement of a paper and how it is compared with the twin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", bound(deserialize = ""))]
pub struct Statement<S: PaperSystem> {
    /// Its name, like `E4`.
    pub id: String,
    /// What it is about, in a few words.
    pub title: String,
    /// The paper's configuration.
    pub setting: String,
    /// The section of the paper.
    pub section: String,
    /// The paper's values, in its words.
    pub paper: String,
    /// Whether this is a target of this project rather than a statement of a paper: it does not
    /// count as a prediction.
    #[serde(default)]
    pub own: bool,
    /// Parameters fitted so that a figure of the paper is met.
    #[serde(default)]
    pub fitted: Vec<Fitted>,
    /// Why a check may miss; shown only when one does.
    #[serde(default)]
    pub explanation: Option<String>,
    /// Where the paper contradicts itself here; always shown.
    #[serde(default)]
    pub contradiction: Option<String>,
    /// Number of seeds per point: 1 up to this.
    #[serde(default = "default_seeds")]
    pub seeds: u32,
    /// What to simulate.
    #[serde(default, rename = "run")]
    pub runs: Vec<Spanned<Run>>,
    /// Curves derived from two others.
    #[serde(default, rename = "derived")]
    pub derived: Vec<Spanned<Derived>>,
    /// The checks.
    #[serde(rename = "check")]
    pub checks: Vec<Spanned<Check<S>>>,
    /// The figure of the paper to draw.
    #[serde(default)]
    pub figure: Option<Spanned<Figure<S>>>,
}

const fn default_seeds() -> u32 {
    7
}

/// A fitted value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The parameter.
    pub parameter: String,
    /// What it was fitted to.
    pub to: String,
}

/// One scenario, or one for each point of a sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its name inside the file.
    pub name: String,
    /// The base scenario it starts from.
    pub base: String,
    /// Fields that differ from the base: dotted path to value; shorter paths are set first.
    #[serde(default)]
    pub set: Table,
    /// Optional fields to remove.
    #[serde(default)]
    pub unset: Vec<String>,
    /// The values to sweep over.
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

/// The parameter that varies from point to point of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// `shuttles` (of the whole library), or the dotted path of a field.
    pub of: String,
    /// Other fields that take the same value.
    #[serde(default)]
    pub also: Vec<String>,
    /// Its values.
    pub values: Vec<Value>,
}

/// A curve derived from two others, point by point; a run of one point is used for every point of
/// the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Its name inside the file.
    pub name: String,
    /// The operation.
    pub kind: DerivedKind,
    /// The runs it is derived from.
    pub of: [String; 2],
}

/// How a curve is derived from two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedKind {
    /// First over second.
    Ratio,
    /// What the first saves compared with the second, as a share of the second.
    Saving,
    /// The first minus the second.
    Excess,
}

/// One check of a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct Check<S: PaperSystem> {
    /// Its name, like `E4.silica-8`.
    pub id: String,
    /// Its claim.
    pub title: String,
    /// The metric; not for probes.
    #[serde(default)]
    pub metric: Option<String>,
    /// The unit of `expected`, `band` and our value.
    pub unit: Unit,
    /// How the value is computed from the metric.
    pub measure: Measure<S>,
    /// Lowest and highest value that counts as a hit, in `unit`; `inf` for no bound.
    pub band: [f64; 2],
    /// The paper's value, in `unit`, when it gives one.
    #[serde(default)]
    pub expected: Option<f64>,
    /// Whether a parameter was fitted so that this holds.
    pub fitted: bool,
}

/// How one number is computed from many runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, bound(deserialize = ""))]
pub enum Measure<S: PaperSystem> {
    /// The value at a point.
    Value(PointRef),
    /// The value at the first point over that at the second.
    Ratio([PointRef; 2]),
    /// The largest value of a curve.
    Largest(String),
    /// The smallest value of a curve.
    Smallest(String),
    /// The largest step up of a curve that should fall, as a share of the value before it.
    Falling(String),
    /// The largest step down of a curve that should rise, as a share of the value before it.
    Rising(String),
    /// The smallest ratio of a point to the one before it: above 1 if the points are in ascending
    /// order.
    Order(Vec<PointRef>),
    /// The slope from the second to the third point over that from the first to the second: below
    /// 1 when returns diminish.
    Slopes([PointRef; 3]),
    /// How well a straight line fits a curve: 1 is a line (coefficient of determination).
    Linear(String),
    /// A number that needs no run.
    Probe(S::Probe),
}

/// A point of a run: `silica@8`, or `no-shuttles` for a run of one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct PointRef {
    /// The run or derived curve.
    pub run: String,
    /// The value of the sweep, as written.
    pub at: Option<String>,
}

impl TryFrom<String> for PointRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (run, at) = match text.split_once('@') {
            Some((run, at)) => (run, Some(at)),
            None => (text.as_str(), None),
        };
        if run.is_empty() || at == Some("") {
            return Err(format!("\"{text}\" is not a point; write run or run@value"));
        }
        Ok(Self { run: run.to_owned(), at: at.map(str::to_owned) })
    }
}

impl fmt::Display for PointRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{}@{at}", self.run),
            None => f.write_str(&self.run),
        }
    }
}

/// The unit a number is shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Milliseconds; the value is in seconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Minutes; the value is in seconds.
    #[serde(rename = "min")]
    Minutes,
    /// Hours; the value is in seconds.
    #[serde(rename = "h")]
    Hours,
    /// Percent; the value is a share.
    #[serde(rename = "%")]
    Percent,
    /// Megabytes of 1,000,000 bytes; the value is in bytes.
    #[serde(rename = "MB")]
    Megabytes,
    /// Gigabytes of 10^9 bytes; the value is in bytes.
    #[serde(rename = "GB")]
    Gigabytes,
    /// Terabytes of 10^12 bytes; the value is in bytes.
    #[serde(rename = "TB")]
    Terabytes,
    /// A number as it is.
    #[serde(rename = "1")]
    One,
    /// The base-ten logarithm of a number.
    #[serde(rename = "log10")]
    Logarithm,
}

impl Unit {
    /// Converts `value` to this unit.
    #[must_use]
    pub fn convert(self, value: f64) -> f64 {
        match self {
            Self::Milliseconds => value * 1e3,
            Self::Seconds | Self::One => value,
            Self::Minutes => value / 60.0,
            Self::Hours => value / 3600.0,
            Self::Percent => value * 100.0,
            Self::Megabytes => value / 1e6,
            Self::Gigabytes => value / 1e9,
            Self::Terabytes => value / 1e12,
            Self::Logarithm => value.log10(),
        }
    }

    /// Returns the suffix of a number in this unit, with the space before it.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Milliseconds => " ms",
            Self::Seconds => " s",
            Self::Minutes => " min",
            Self::Hours => " h",
            Self::Percent => " %",
            Self::Megabytes => " MB",
            Self::Gigabytes => " GB",
            Self::Terabytes => " TB",
            Self::One => "",
            Self::Logarithm => " (log10)",
        }
    }
}

/// A figure of the paper, reproduced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct Figure<S: PaperSystem> {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// The metric; not for curves of probes.
    #[serde(default)]
    pub metric: Option<String>,
    /// The unit of the vertical axis.
    pub unit: Unit,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<SeriesSource<S>>,
    /// The parts of a stacked bar, bottom first.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Points the paper states in its text.
    #[serde(default)]
    pub paper: Vec<PaperPoint>,
    /// A limit line to stay below.
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// One line per series.
    Lines,
    /// One bar per point, those of one place side by side.
    Bars,
    /// One bar per series, made of stacked parts.
    Stacked,
}

/// An axis of a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// Whether the axis is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// The source of one series: a run, a derived curve or the curve of a probe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct SeriesSource<S: PaperSystem> {
    /// Its label in the legend.
    pub label: String,
    /// For bars of one run each: the place of the bar. Bars with the same label form a series.
    #[serde(default)]
    pub place: Option<String>,
    /// The name of a run or a derived curve.
    #[serde(default)]
    pub run: Option<String>,
    /// A curve that needs no run.
    #[serde(default)]
    pub curve: Option<S::Curve>,
    /// Color and shape, from 0 on, so that a system looks the same in every figure; defaults to the
    /// index of the series.
    #[serde(default)]
    pub style: Option<usize>,
}

/// A part of a stacked bar.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its label in the legend.
    pub label: String,
    /// The metric.
    pub metric: String,
}

/// A point the paper states in its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPoint {
    /// The label of the series it belongs to.
    pub series: String,
    /// Its position: a number, or the label of a bar.
    pub x: Value,
    /// The paper's value, in the figure's unit.
    pub y: f64,
}

/// A line across a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Its label.
    pub label: String,
    /// Its value, in the figure's unit.
    pub y: f64,
}
