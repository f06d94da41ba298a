//! What a system needs so that its runs can be shown: rows of numbers, what may not be given up,
//! and pictures of what happened over time.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;

use crate::columns::Curve;
use crate::constraints::Summary;
use crate::engine::{Observer, System};
use crate::measured::Dimension;

/// A system whose runs can be shown.
pub trait Reported: System {
    /// Records a run.
    type Recorder: Observer<Self>;
    /// What was recorded.
    type Course: Course;
    /// Rows that stand out on a page, by their names.
    const TOTALS: &'static [&'static str];
    /// Metrics that a sweep shows unless it is asked for others.
    const SWEPT: &'static [&'static str];

    /// A recorder for a run of this scenario with this seed.
    fn recorder(scenario: &Self::Scenario, seed: u64) -> Self::Recorder;

    /// What a recorder recorded.
    fn course(recorder: Self::Recorder) -> Self::Course;

    /// What there is to draw, for the courses of several seeds.
    fn pictures<'a>(scenario: &Self::Scenario, courses: &'a [Self::Course]) -> Vec<Picture<'a>>;

    /// The numbers of runs that are shown, in their order.
    fn rows(scenario: &Self::Scenario, runs: &[Self::Result]) -> Vec<Number<Self::Result>>;

    /// What may not be given up, for JSON.
    fn constraints(_: &Self::Scenario) -> Value {
        Value::Null
    }

    /// Which of that a run holds, for JSON.
    fn findings(_: &Self::Scenario, _: &Self::Result) -> Value {
        Value::Array(Vec::new())
    }

    /// The same over the runs of several seeds.
    fn summary(_: &Self::Scenario, _: &[Self::Result]) -> Summary {
        Summary::default()
    }
}

/// A number of a run that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Number<R> {
    /// What it is called.
    pub name: &'static str,
    /// How it is shown.
    pub shown: Shown,
    /// Where it is.
    pub of: fn(&R) -> f64,
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Seconds, in the unit that suits them.
    Time,
    /// A share, in percent.
    Share,
    /// A whole number.
    Count,
    /// With two decimals.
    Decimal,
}

/// One run over time, in columns of equal length.
pub trait Course: Debug + PartialEq + Serialize + Send {
    /// The seed.
    fn seed(&self) -> u64;

    /// Seconds of a column; the last one may be shorter.
    fn column_s(&self) -> f64;

    /// Seconds of all.
    fn end_s(&self) -> f64;
}

/// Something to draw over time.
#[derive(Clone, Debug)]
pub enum Picture<'a> {
    /// A number over time.
    Curve(CurvePicture),
    /// How busy each machine was.
    Strip(StripPicture<'a>),
    /// There is nothing to draw, in a sentence.
    Nothing(&'static str),
}

/// A number over time, of each course.
#[derive(Clone, Debug)]
pub struct CurvePicture {
    /// What it is.
    pub title: &'static str,
    /// What else there is to say of it.
    pub note: String,
    /// What it counts.
    pub dimension: Dimension,
    /// A value to stay below, with its name.
    pub bound: Option<(f64, &'static str)>,
    /// One of each course.
    pub curves: Vec<Curve>,
}

/// A row for each machine of the first course.
#[derive(Clone, Debug)]
pub struct StripPicture<'a> {
    /// What they do.
    pub title: &'static str,
    /// What else there is to say of it.
    pub note: &'static str,
    /// What a row is.
    pub machine: &'static str,
    /// Shares of the columns, of each machine.
    pub rows: Vec<&'a [f64]>,
}
