//! What may not be given up for a better result, of any system. A tail can be bought with work that
//! is put off or dropped, so wherever one is shown it is said beside it which constraints are held,
//! and by how much the others are missed.

use std::fmt::Debug;

use serde::Serialize;

/// One of the constraints of a system.
pub trait Constraint: Copy + Debug + PartialEq + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// What some runs are not asked about.
    const SUBJECT: &'static str;

    /// Its name.
    fn name(self) -> &'static str;

    /// What misses it, with the most of any seed.
    fn missed(self, by: f64) -> String;

    /// What is said where no run can tell.
    fn unasked(self) -> Option<&'static str> {
        None
    }
}

/// A constraint, and by how much it was missed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Finding<K> {
    /// Which.
    pub constraint: K,
    /// Zero if it is held, in its own unit. `None` if the run cannot tell.
    pub missed_by: Option<f64>,
}

/// A constraint over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Which.
    pub constraint: &'static str,
    /// Seeds that can tell.
    pub asked: usize,
    /// Those of them that hold it.
    pub held: usize,
    /// The most by which one missed it, in its own unit.
    pub missed_by: f64,
    /// The same in words.
    #[serde(skip)]
    missed: String,
    /// What is said where no run can tell.
    #[serde(skip)]
    unasked: Option<&'static str>,
}

/// All constraints over the seeds of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Runs.
    pub seeds: usize,
    /// Runs that hold every constraint.
    pub held: usize,
    /// Each constraint.
    pub each: Vec<Held>,
    /// Why something was not asked about, if it was not.
    pub not_asked: Option<&'static str>,
    /// What that is.
    #[serde(skip)]
    subject: &'static str,
}

impl<K> Finding<K> {
    /// Whether nothing says that it is missed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.missed_by.is_none_or(|by| by <= 0.0)
    }
}

impl Summary {
    /// Of the findings of each seed.
    #[must_use]
    pub fn of<K: Constraint, F: AsRef<[Finding<K>]>>(
        all: &[F],
        not_asked: Option<&'static str>,
    ) -> Self {
        let each = |constraint: &K| {
            let of = all.iter().flat_map(AsRef::as_ref);
            let of = of.filter(|finding| finding.constraint == *constraint);
            let known: Vec<f64> = of.filter_map(|finding| finding.missed_by).collect();
            let missed_by = known.iter().copied().fold(0.0, f64::max);
            Held {
                constraint: constraint.name(),
                asked: known.len(),
                held: known.iter().filter(|missed_by| **missed_by <= 0.0).count(),
                missed_by,
                missed: constraint.missed(missed_by),
                unasked: constraint.unasked(),
            }
        };
        let is_held = |run: &&F| run.as_ref().iter().all(Finding::is_held);
        Self {
            seeds: all.len(),
            held: all.iter().filter(is_held).count(),
            each: K::ALL.iter().map(each).collect(),
            not_asked,
            subject: K::SUBJECT,
        }
    }

    /// Whether every seed holds every constraint that it was asked about.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.held == self.seeds
    }

    /// What was dropped, in words; nothing if all constraints are held.
    #[must_use]
    pub fn missed(&self) -> Option<String> {
        let missed = self.each.iter().filter(|of| of.held < of.asked).map(|of| {
            let seeds = match of.asked {
                1 => String::new(),
                asked => format!(" ({} of {asked} seeds)", asked - of.held),
            };
            format!("{}{seeds}", of.missed)
        });
        let missed: Vec<String> = missed.collect();
        (!missed.is_empty()).then(|| missed.join("; "))
    }

    /// One line: which constraints are held, and which could not be asked about.
    #[must_use]
    pub fn line(&self) -> String {
        if self.each.is_empty() {
            return "none".to_owned();
        }
        let held = match (self.missed(), self.seeds) {
            (Some(missed), 1) => format!("not held: {missed}"),
            (Some(missed), seeds) => {
                format!("held by {} of {seeds} seeds: {missed}", self.held)
            }
            (None, _) => "held".to_owned(),
        };
        let unasked = self.each.iter().filter(|of| of.asked == 0).find_map(|of| of.unasked);
        match (self.not_asked, unasked) {
            (Some(why), _) => format!("{held}; {} not asked about: {why}", self.subject),
            (None, Some(said)) => format!("{held}; {said}"),
            (None, None) => held,
        }
    }
}
