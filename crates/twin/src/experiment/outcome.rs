//! What came out: a row for each check, and what the report draws.

use serde::Serialize;

use super::base::Unknown;
use super::beside::Beside;
use super::figure::FigureData;
use super::file::{Fitted, Unit};

/// Whether a check holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours lies in the band.
    Hit,
    /// It does not, or there is none.
    Miss,
}

/// What the paper says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Expected {
    /// A value, in the unit of the check.
    Value(f64),
    /// A relation, in words.
    Words(String),
}

/// What the twin says, over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ours {
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
    /// What the paper says.
    pub expected: Expected,
    /// What the twin says: the median over the seeds; none when a run failed.
    pub ours: Option<f64>,
    /// Lowest and highest value that hit; none for no bound.
    pub band: [Option<f64>; 2],
    /// Whether ours lies in the band.
    pub verdict: Verdict,
    /// Whether a parameter was chosen so that this holds.
    pub fitted: bool,
    /// The rest.
    pub details: Details,
}

impl Row {
    /// What a hit means.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match (self.details.own, self.fitted) {
            (true, _) => Kind::Own,
            (false, true) => Kind::Fitted,
            (false, false) => Kind::Predicted,
        }
    }
}

/// What it means that a check hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was chosen for it: the twin predicted it.
    Predicted,
    /// A parameter was chosen so that it holds.
    Fitted,
    /// The paper says nothing of it: a target of this project.
    Own,
}

impl Kind {
    /// All of them.
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

/// What a relation was made of: medians over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Working {
    /// What was made of them.
    pub made: Made,
    /// The medians, in the unit.
    pub of: Vec<f64>,
    /// Their unit.
    pub unit: Unit,
}

/// How several numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
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

/// What else there is to say of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Details {
    /// The statement it belongs to.
    pub statement: String,
    /// What it says, and what a comparison dropped.
    pub title: String,
    /// The section of the paper.
    pub section: String,
    /// Whether it is a target of this project, and no statement of the paper.
    pub own: bool,
    /// The unit of every number of the row.
    pub unit: Unit,
    /// Smallest over the seeds.
    pub min: Option<f64>,
    /// Largest over the seeds.
    pub max: Option<f64>,
    /// Seeds.
    pub seeds: u32,
    /// What our value is made of, where it is made of several.
    pub working: Option<Working>,
    /// For a check of times of one run or of two: what stands beside the tail of each.
    pub constraints: Vec<Beside>,
    /// What the sides of a comparison dropped; the title says it too.
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
    /// Whether it is a target of this project, and no statement of the paper.
    pub own: bool,
    /// Parameters chosen for it.
    pub fitted: Vec<Fitted>,
    /// Why a check may miss.
    pub explanation: Option<String>,
    /// Where the paper contradicts itself.
    pub contradiction: Option<String>,
    /// Its checks.
    pub rows: Vec<Row>,
    /// What stands beside the tail of each run, for a target of this project.
    pub beside: Vec<Beside>,
    /// Its figure, when every run of it went well.
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

/// A base scenario, with what the paper does not say about it.
#[derive(Clone, Debug, Serialize)]
pub struct BaseReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub summary: String,
    /// Values that were chosen.
    pub unknowns: Vec<Unknown>,
}

/// Everything that was held against the paper.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The statements, in their order.
    pub statements: Vec<StatementReport>,
    /// The base scenarios.
    pub bases: Vec<BaseReport>,
    /// Different runs that were needed.
    pub jobs: usize,
}

impl Report {
    /// The rows of all statements.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.statements.iter().flat_map(|statement| &statement.rows)
    }

    /// Checks of a kind that hit, and all of them.
    #[must_use]
    pub fn count(&self, kind: Kind) -> (usize, usize) {
        let rows = || self.rows().filter(|row| row.kind() == kind);
        (rows().filter(|row| row.verdict == Verdict::Hit).count(), rows().count())
    }
}
