//! What a statement's file may say. Unknown keys are errors, so that a misspelled band is not a
//! band that is never looked at.

use std::fmt;

use fulgurite_units::settings::Spanned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Published;

/// One statement of a paper and how it is held against the twin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", bound(deserialize = ""))]
pub struct Statement<S: Published> {
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
    /// No statement of a paper but a target of this project: it does not count as a prediction.
    #[serde(default)]
    pub own: bool,
    /// Parameters whose value was chosen so that a figure is met.
    #[serde(default)]
    pub fitted: Vec<Fitted>,
    /// Why a check may miss; shown only when one does.
    #[serde(default)]
    pub explanation: Option<String>,
    /// Where the paper contradicts itself here; always shown.
    #[serde(default)]
    pub contradiction: Option<String>,
    /// Seeds of every point: 1 up to this.
    #[serde(default = "seven")]
    pub seeds: u32,
    /// What to simulate.
    #[serde(default, rename = "run")]
    pub runs: Vec<Spanned<Run>>,
    /// Curves made of two others.
    #[serde(default, rename = "derived")]
    pub derived: Vec<Spanned<Derived>>,
    /// What has to hold.
    #[serde(rename = "check")]
    pub checks: Vec<Spanned<Check<S>>>,
    /// The figure of the paper to draw.
    #[serde(default)]
    pub figure: Option<Spanned<Figure<S>>>,
}

const fn seven() -> u32 {
    7
}

/// A value that was chosen, not given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The parameter.
    pub parameter: String,
    /// What it was chosen for.
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
    /// Fields that differ: dotted path to value; shorter paths are set first.
    #[serde(default)]
    pub set: Table,
    /// Optional fields that are taken away.
    #[serde(default)]
    pub unset: Vec<String>,
    /// What varies from point to point.
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

/// What varies from point to point of a run.
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

/// A curve made of two others, point by point; a run of one point fits every point of the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Its name inside the file.
    pub name: String,
    /// How.
    pub kind: DerivedKind,
    /// The runs it is made of.
    pub of: [String; 2],
}

/// How two curves make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedKind {
    /// First over second.
    Ratio,
    /// What the first needs less than the second, as a share of the second.
    Saving,
    /// What the first needs more than the second.
    Excess,
}

/// Something that has to hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct Check<S: Published> {
    /// Its name, like `E4.silica-8`.
    pub id: String,
    /// What it says.
    pub title: String,
    /// Which number of a run; not for probes.
    #[serde(default)]
    pub metric: Option<String>,
    /// The unit of `expected`, `band` and ours.
    pub unit: Unit,
    /// What is made of the number.
    pub measure: Measure<S>,
    /// Lowest and highest value that hit, in `unit`; `inf` for no bound.
    pub band: [f64; 2],
    /// The paper's value, in `unit`, when it gives one.
    #[serde(default)]
    pub expected: Option<f64>,
    /// Whether a parameter was chosen so that this holds.
    pub fitted: bool,
}

/// What one number is made of many runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, bound(deserialize = ""))]
pub enum Measure<S: Published> {
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
    /// The smallest ratio of a point to the one before it: above 1 when they are in this order.
    Order(Vec<PointRef>),
    /// The slope from the second to the third point over that from the first to the second: below
    /// 1 when returns diminish.
    Slopes([PointRef; 3]),
    /// How well a straight line fits a curve: 1 is a line (coefficient of determination).
    Linear(String),
    /// Not a run at all.
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
    /// Milliseconds, of seconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Minutes, of seconds.
    #[serde(rename = "min")]
    Minutes,
    /// Hours, of seconds.
    #[serde(rename = "h")]
    Hours,
    /// Percent, of a share.
    #[serde(rename = "%")]
    Percent,
    /// Megabytes of 1,000,000 bytes, of bytes.
    #[serde(rename = "MB")]
    Megabytes,
    /// Gigabytes of 10^9 bytes, of bytes.
    #[serde(rename = "GB")]
    Gigabytes,
    /// Terabytes of 10^12 bytes, of bytes.
    #[serde(rename = "TB")]
    Terabytes,
    /// A number as it is.
    #[serde(rename = "1")]
    One,
    /// The logarithm to base ten of a number.
    #[serde(rename = "log10")]
    Logarithm,
}

impl Unit {
    /// `value` in this unit.
    #[must_use]
    pub fn of(self, value: f64) -> f64 {
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

    /// What is written behind a number, with the space before it.
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

/// A figure of the paper, drawn again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct Figure<S: Published> {
    /// Its number in the paper.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// Which number of a run; not for curves of probes.
    #[serde(default)]
    pub metric: Option<String>,
    /// The unit of the vertical axis.
    pub unit: Unit,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<SeriesSource<S>>,
    /// The parts of a stacked bar, from below.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Points the paper states in its text.
    #[serde(default)]
    pub paper: Vec<PaperPoint>,
    /// A line to stay below.
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A line for each series.
    Lines,
    /// A bar for each point, those of one place side by side.
    Bars,
    /// A bar for each series, made of parts.
    Stacked,
}

/// An axis of a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it counts, with the unit.
    pub label: String,
    /// Whether equal steps are equal factors.
    #[serde(default)]
    pub log: bool,
}

/// What is drawn as one series: a run, a derived curve or the curve of a probe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""))]
pub struct SeriesSource<S: Published> {
    /// What the legend says.
    pub label: String,
    /// For bars of one run each: the place of the bar, so that those of one label are a series.
    #[serde(default)]
    pub place: Option<String>,
    /// A run or a derived curve.
    #[serde(default)]
    pub run: Option<String>,
    /// A curve that needs no run.
    #[serde(default)]
    pub curve: Option<S::Curve>,
    /// Color and shape, from 0 on, so that a system looks the same in every figure; without it, the
    /// number of the series.
    #[serde(default)]
    pub style: Option<usize>,
}

/// A part of a stacked bar.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What the legend says.
    pub label: String,
    /// Which number of a run.
    pub metric: String,
}

/// A point the paper states in its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPoint {
    /// The label of the series it belongs to.
    pub series: String,
    /// Where: a number, or the label of a bar.
    pub x: Value,
    /// The paper's value, in the figure's unit.
    pub y: f64,
}

/// A line across a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What it is.
    pub label: String,
    /// Where, in the figure's unit.
    pub y: f64,
}
