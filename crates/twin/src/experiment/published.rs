//! What a system needs so that statements of a paper can be held against it.

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Aside, Bases};
use crate::engine::System;

/// A system that statements of a paper are held against.
pub trait Published: System {
    /// Numbers that need no run.
    type Probe: Probe;
    /// Curves that need no run.
    type Curve: CurveProbe;
    /// How metrics begin that can be bought with work that is dropped.
    const TIMES: &'static str;

    /// What is said beside the runs of one point, one for each seed.
    fn aside(scenario: &Self::Scenario, runs: &[&Self::Result]) -> Aside;
}

/// A number that needs no run.
pub trait Probe: Debug + DeserializeOwned {
    /// The number, repeated with every seed.
    ///
    /// # Errors
    /// When a base is none, or does not say what is needed.
    fn measure(&self, bases: &Bases, seed: u64) -> Result<f64, String>;
}

/// A curve that needs no run.
pub trait CurveProbe: Debug + DeserializeOwned {
    /// Places, their names when they are no numbers, and values.
    ///
    /// # Errors
    /// When a base is none, or does not say what is needed.
    fn points(&self, bases: &Bases) -> Result<Vec<(f64, String, f64)>, String>;
}

/// Of a system that has nothing to measure but its runs.
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
