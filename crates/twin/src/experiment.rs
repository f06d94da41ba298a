//! Experiments: compare the statements of the papers with what the twin measures.
//!
//! ```text
//! experiments/silica/base-*.toml ----.
//! experiments/silica/*.toml --parse--> Suite --plan--> jobs --JobRunner--> results
//!                                        |                                    |
//!                              probes (no run needed) ----> judge <-----------'
//!                                                             |
//!                                                           Report --> rows, HTML
//! ```
//!
//! Every statement of a paper is one file: its setting, the paper's values with their section, what
//! to run, and checks with a band each. A file states for every check whether a parameter was
//! fitted for it. Bands come from the paper and from the acceptance table of the design, never from
//! what the twin happened to measure.
//!
//! Nothing here reads files, starts threads or looks at a clock: files are passed in as text, and
//! jobs are passed to a [`JobRunner`].

mod base;
mod companions;
mod curve;
mod error;
mod evaluation;
mod figure;
mod file;
mod outcome;
mod paper_system;
mod plan;
mod runner;
mod suite;

pub use base::{Base, Bases, Unknown};
pub use companions::{CompanionFigure, CompanionFigures, PointCompanions};
pub(crate) use curve::median;
pub use error::ExperimentError;
pub use figure::{FigureData, Mark, PlotPoint, PlotSeries};
pub use file::{
    Axis, Check, Derived, DerivedKind, Figure, FigureKind, Fitted, Limit, Measure, PaperPoint,
    Part, PointRef, Run, SeriesSource, Statement, Sweep, Unit,
};
pub use fulgurite_units::ErrorKind;
pub use outcome::{
    BaseReport, Derivation, Details, Expected, Kind, RelationInputs, Report, Row, StatementReport,
    TwinValue, Verdict,
};
pub use paper_system::{CurveProbe, NoProbe, PaperSystem, Probe};
pub use runner::{Job, JobResult, JobRunner, Progress};
pub use suite::{SourceFile, Suite, run_all};

#[cfg(test)]
pub(crate) mod tests;
