//! The outcome: a row per check, and the data for the report.

use serde::Serialize;

use super::base::Unknown;
use super::companions::PointCompanions;
use super::figure::FigureData;
use super::file::{Fitted, Unit};

/// Whether our value lies in the band of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Hit,
    /// It does not, or there is none.
    Miss,
}

/// The paper's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Expected {
    /// A value, in the unit of the check.
    Value(f64),
    /// A relation, in words.
    Words(String),
}

/// The twin's value, over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwinValue {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// One check: the stable part of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The check.
    pub id: String,
    /// The paper's value.
    pub expected: Expected,
    /// The twin's value: the median over the seeds; `None` when a run failed.
    pub ours: Option<f64>,
    /// Lowest and highest value that counts as a hit; `None` for no bound.
    pub band: [Option<f64>; 2],
    /// Whether our value lies in the band.
    pub verdict: Verdict,
    /// Whether a parameter was fitted so that this holds.
    pub fitted: bool,
    /// Further details.
    pub details: Details,
}

impl Row {
    /// Returns the meaning of a hit.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match (self.details.own, self.fitted) {
            (true, _) => Kind::Own,
            (false, true) => Kind::Fitted,
            (false, false) => Kind::Predicted,
        }
    }
}

/// The meaning of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was fitted for it: the twin predicted it.
    Predicted,
    /// A parameter was fitted so that it holds.
    Fitted,
    /// The paper does not state it: a target of this project.
    Own,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Predicted, Self::Fitted, Self::Own];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Own => "own target",
        }
    }
}

/// The numbers behind a relation: medians over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationInputs {
    /// How the relation is computed from them.
    pub made: Derivation,
    /// The medians, in `unit`.
    pub of: Vec<f64>,
    /// Their unit.
    pub unit: Unit,
}

/// How one number is computed from several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Derivation {
    /// The first over the second.
    Ratio,
    /// The largest.
    Largest,
    /// The smallest.
    Smallest,
    /// The largest step up.
    StepUp,
    /// The largest step down.
    StepDown,
    /// The smallest ratio of one to the one before.
    Order,
    /// The second slope over the first.
    Slopes,
    /// How well a straight line fits.
    Line,
}

/// Further details of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Details {
    /// The statement it belongs to.
    pub statement: String,
    /// Its claim, and what a comparison dropped.
    pub title: String,
    /// The section of the paper.
    pub section: String,
    /// Whether it is a target of this project rather than a statement of the paper.
    pub own: bool,
    /// The unit of every number of the row.
    pub unit: Unit,
    /// Smallest over the seeds.
    pub min: Option<f64>,
    /// Largest over the seeds.
    pub max: Option<f64>,
    /// Number of seeds.
    pub seeds: u32,
    /// What our value is computed from, where it has several inputs.
    pub working: Option<RelationInputs>,
    /// For a check of times: the companion figures of each run, at most two.
    pub constraints: Vec<PointCompanions>,
    /// What the sides of a comparison dropped; the title mentions it too.
    pub dropped: Vec<String>,
    /// Why there is no value.
    pub problem: Option<String>,
}

/// One statement with its checks.
#[derive(Clone, Debug, Serialize)]
pub struct StatementReport {
    /// Its name.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The paper's configuration.
    pub setting: String,
    /// The section of the paper.
    pub section: String,
    /// The paper's values, in its words.
    pub paper: String,
    /// Whether it is a target of this project rather than a statement of the paper.
    pub own: bool,
    /// Parameters fitted for it.
    pub fitted: Vec<Fitted>,
    /// Why a check may miss.
    pub explanation: Option<String>,
    /// Where the paper contradicts itself.
    pub contradiction: Option<String>,
    /// Its checks.
    pub rows: Vec<Row>,
    /// The companion figures of each run, for a target of this project.
    pub beside: Vec<PointCompanions>,
    /// Its figure, if every run of it succeeded.
    pub figure: Option<FigureData>,
    /// Why there is no figure although the file asks for one.
    pub figure_problem: Option<String>,
}

impl StatementReport {
    /// Whether a check misses.
    #[must_use]
    pub fn misses(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Miss)
    }
}

/// A base scenario, with the values that the paper does not give.
#[derive(Clone, Debug, Serialize)]
pub struct BaseReport {
    /// Its name.
    pub name: String,
    /// Its description.
    pub summary: String,
    /// Values that were chosen.
    pub unknowns: Vec<Unknown>,
}

/// The comparison with the paper.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The statements, in their order.
    pub statements: Vec<StatementReport>,
    /// The base scenarios.
    pub bases: Vec<BaseReport>,
    /// Number of distinct runs.
    pub jobs: usize,
}

impl Report {
    /// Returns the rows of all statements.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.statements.iter().flat_map(|statement| &statement.rows)
    }

    /// Returns the number of checks of a kind that hit, and of all of that kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> (usize, usize) {
        let rows = || self.rows().filter(|row| row.kind() == kind);
        (rows().filter(|row| row.verdict == Verdict::Hit).count(), rows().count())
    }
}
