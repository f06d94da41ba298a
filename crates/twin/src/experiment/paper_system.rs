//! What a system must provide so that statements of a paper can be compared with it.

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Bases, CompanionFigures};
use crate::engine::System;

/// A system described by a paper whose statements are checked.
pub trait PaperSystem: System {
    /// Numbers that need no run.
    type Probe: Probe;
    /// Curves that need no run.
    type Curve: CurveProbe;
    /// Prefix of the metrics that can be improved by dropping work.
    const TIMES: &'static str;

    /// Returns the companion figures of the runs at one point, one run per seed.
    fn companions(scenario: &Self::Scenario, runs: &[&Self::Result]) -> CompanionFigures;
}

/// A number that needs no run.
pub trait Probe: Debug + DeserializeOwned {
    /// Measures the number; called again with every seed.
    ///
    /// # Errors
    /// When there is no such base, or it lacks a value.
    fn measure(&self, bases: &Bases, seed: u64) -> Result<f64, String>;
}

/// A curve that needs no run.
pub trait CurveProbe: Debug + DeserializeOwned {
    /// Returns the points: position, its name when it is not a number, and value.
    ///
    /// # Errors
    /// When there is no such base, or it lacks a value.
    fn points(&self, bases: &Bases) -> Result<Vec<(f64, String, f64)>, String>;
}

/// For a system that measures nothing but its runs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum NoProbe {}

impl Probe for NoProbe {
    fn measure(&self, _: &Bases, _: u64) -> Result<f64, String> {
        match *self {}
    }
}

impl CurveProbe for NoProbe {
    fn points(&self, _: &Bases) -> Result<Vec<(f64, String, f64)>, String> {
        match *self {}
    }
}
