//! Constraints that a run must meet besides a good result. Delaying or dropping work can shorten a
//! tail, so every tail is shown with the constraints that were met, and by how much the others were
//! missed.

use std::fmt::Debug;

use serde::Serialize;

/// One of the constraints of a system.
pub trait Constraint: Copy + Debug + PartialEq + 'static {
    /// All constraints.
    const ALL: &'static [Self];
    /// The subject of a check that some runs skip.
    const SUBJECT: &'static str;

    /// Its name.
    fn name(self) -> &'static str;

    /// Describes the violation, given the largest miss of any seed.
    fn missed(self, amount: f64) -> String;

    /// Returns the remark to show where no run can be checked.
    fn unchecked_remark(self) -> Option<&'static str> {
        None
    }
}

/// A constraint, and by how much it was missed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Finding<K> {
    /// The constraint.
    pub constraint: K,
    /// Zero if it is met, else the miss in its own unit. `None` if the run cannot be checked.
    pub missed_by: Option<f64>,
}

/// A constraint over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstraintSummary {
    /// The constraint.
    pub constraint: &'static str,
    /// Seeds that can be checked.
    pub asked: usize,
    /// Of these, the seeds that meet it.
    pub held: usize,
    /// The largest miss of any seed, in its own unit.
    pub missed_by: f64,
    /// The same in words.
    #[serde(skip)]
    missed: String,
    /// The remark to show where no run can be checked.
    #[serde(skip)]
    unchecked_remark: Option<&'static str>,
}

/// All constraints over the seeds of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of runs.
    pub seeds: usize,
    /// Runs that meet every constraint.
    pub held: usize,
    /// Each constraint.
    pub each: Vec<ConstraintSummary>,
    /// Why `subject` was not checked, if it was not.
    pub not_asked: Option<&'static str>,
    /// The subject that `not_asked` refers to.
    #[serde(skip)]
    subject: &'static str,
}

impl<K> Finding<K> {
    /// Returns whether the constraint is met, or cannot be checked.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.missed_by.is_none_or(|amount| amount <= 0.0)
    }
}

impl Summary {
    /// Summarizes the findings of all seeds.
    #[must_use]
    pub fn from_findings<K: Constraint, F: AsRef<[Finding<K>]>>(
        all: &[F],
        not_asked: Option<&'static str>,
    ) -> Self {
        let each = |constraint: &K| {
            let findings = all.iter().flat_map(AsRef::as_ref);
            let findings = findings.filter(|finding| finding.constraint == *constraint);
            let known: Vec<f64> = findings.filter_map(|finding| finding.missed_by).collect();
            let missed_by = known.iter().copied().fold(0.0, f64::max);
            ConstraintSummary {
                constraint: constraint.name(),
                asked: known.len(),
                held: known.iter().filter(|missed_by| **missed_by <= 0.0).count(),
                missed_by,
                missed: constraint.missed(missed_by),
                unchecked_remark: constraint.unchecked_remark(),
            }
        };
        let is_met = |run: &&F| run.as_ref().iter().all(Finding::is_met);
        Self {
            seeds: all.len(),
            held: all.iter().filter(is_met).count(),
            each: K::ALL.iter().map(each).collect(),
            not_asked,
            subject: K::SUBJECT,
        }
    }

    /// Returns whether every seed meets every constraint it was checked for.
    #[must_use]
    pub const fn is_met(&self) -> bool {
        self.held == self.seeds
    }

    /// Describes the constraints that were missed; `None` if all are met.
    #[must_use]
    pub fn missed(&self) -> Option<String> {
        let missed = self.each.iter().filter(|one| one.held < one.asked).map(|one| {
            let seeds = match one.asked {
                1 => String::new(),
                asked => format!(" ({} of {asked} seeds)", asked - one.held),
            };
            format!("{}{seeds}", one.missed)
        });
        let missed: Vec<String> = missed.collect();
        (!missed.is_empty()).then(|| missed.join("; "))
    }

    /// Describes in one line which constraints are met and which could not be checked.
    #[must_use]
    pub fn line(&self) -> String {
        if self.each.is_empty() {
            return "none".to_owned();
        }
        let verdict = match (self.missed(), self.seeds) {
            (Some(missed), 1) => format!("not met: {missed}"),
            (Some(missed), seeds) => {
                format!("met by {} of {seeds} seeds: {missed}", self.held)
            }
            (None, _) => "met".to_owned(),
        };
        let mut unchecked = self.each.iter().filter(|one| one.asked == 0);
        let remark = unchecked.find_map(|one| one.unchecked_remark);
        match (self.not_asked, remark) {
            (Some(why), _) => format!("{verdict}; {} not checked: {why}", self.subject),
            (None, Some(remark)) => format!("{verdict}; {remark}"),
            (None, None) => verdict,
        }
    }
}
