//! What a system must provide so that its runs can be shown: rows of numbers, constraints, and
//! pictures over time.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;

use crate::columns::Curve;
use crate::constraints::Summary;
use crate::engine::{Observer, System};
use crate::metrics::Dimension;

/// A system whose runs can be shown.
pub trait ReportedSystem: System {
    /// Records a run.
    type Recorder: Observer<Self>;
    /// A recording.
    type Timeline: Timeline;
    /// Names of the rows to highlight on a page.
    const HIGHLIGHTS: &'static [&'static str];
    /// Metrics that a sweep shows by default.
    const DEFAULT_METRICS: &'static [&'static str];

    /// Creates a recorder for a run of this scenario with this seed.
    fn recorder(scenario: &Self::Scenario, seed: u64) -> Self::Recorder;

    /// Returns the recording.
    fn timeline(recorder: Self::Recorder) -> Self::Timeline;

    /// Returns the pictures for the recordings of several seeds.
    fn pictures<'a>(scenario: &Self::Scenario, timelines: &'a [Self::Timeline])
    -> Vec<Picture<'a>>;

    /// Returns the numbers of runs to show, in order.
    fn rows(scenario: &Self::Scenario, runs: &[Self::Result]) -> Vec<Number<Self::Result>>;

    /// Returns the constraints, for JSON.
    fn constraints(_: &Self::Scenario) -> Value {
        Value::Null
    }

    /// Returns which constraints a run meets, for JSON.
    fn findings(_: &Self::Scenario, _: &Self::Result) -> Value {
        Value::Array(Vec::new())
    }

    /// Summarizes the constraints over the runs of several seeds.
    fn summary(_: &Self::Scenario, _: &[Self::Result]) -> Summary {
        Summary::default()
    }
}

/// A number of a run to show.
#[derive(Clone, Copy, Debug)]
pub struct Number<R> {
    /// Its name.
    pub name: &'static str,
    /// Its format.
    pub format: NumberFormat,
    /// Gets the number from a result.
    pub value: fn(&R) -> f64,
}

/// The format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// Seconds, in a suitable unit.
    Time,
    /// A share, in percent.
    Share,
    /// A whole number.
    Count,
    /// A number with two decimals.
    Decimal,
}

/// One run over time, in columns of equal length.
pub trait Timeline: Debug + PartialEq + Serialize + Send {
    /// The seed.
    fn seed(&self) -> u64;

    /// Seconds per column; the last one may be shorter.
    fn column_s(&self) -> f64;

    /// Seconds in total.
    fn end_s(&self) -> f64;
}

/// A picture over time.
#[derive(Clone, Debug)]
pub enum Picture<'a> {
    /// A number over time.
    Curve(CurvePicture),
    /// How busy each machine was.
    Strip(StripPicture<'a>),
    /// No picture, with the reason in a sentence.
    Nothing(&'static str),
}

/// A number over time, for each recording.
#[derive(Clone, Debug)]
pub struct CurvePicture {
    /// Its title.
    pub title: &'static str,
    /// A remark.
    pub note: String,
    /// The dimension of the number.
    pub dimension: Dimension,
    /// A value to stay below, with its name.
    pub bound: Option<(f64, &'static str)>,
    /// One curve per recording.
    pub curves: Vec<Curve>,
}

/// A row for each machine of the first recording.
#[derive(Clone, Debug)]
pub struct StripPicture<'a> {
    /// Its title: what the machines do.
    pub title: &'static str,
    /// A remark.
    pub note: &'static str,
    /// The kind of machine of a row.
    pub machine: &'static str,
    /// Shares of the columns, for each machine.
    pub rows: Vec<&'a [f64]>,
}
