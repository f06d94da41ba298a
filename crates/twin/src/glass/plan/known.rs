//! What a search knows so far: its trials, and what follows from them for other candidates.

use std::collections::BTreeMap;

use super::trial::{Miss, Trial, judge};
use super::{Candidate, PlanRequest};
use crate::glass::fleet::FleetResult;

/// What a search knows.
#[derive(Debug)]
pub(super) struct Known<'a> {
    request: &'a PlanRequest,
    /// In the order in which they were over.
    pub(super) tried: Vec<Trial>,
    /// Candidates whose first seeds passed, and were not asked for the others so far.
    begun: BTreeMap<Candidate, Vec<FleetResult>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(request: &'a PlanRequest) -> Self {
        Self { request, tried: Vec::new(), begun: BTreeMap::new() }
    }

    /// Adds runs of a candidate; its trial, if that is over.
    pub(super) fn learn(
        &mut self,
        candidate: &Candidate,
        runs: Vec<FleetResult>,
    ) -> Option<&Trial> {
        let mut all = self.begun.remove(candidate).unwrap_or_default();
        all.extend(runs);
        let trial = judge(self.request, candidate, &all);
        if trial.is_enough() && trial.seeds < self.request.seeds {
            self.begun.insert(candidate.clone(), all);
            return None;
        }
        self.tried.push(trial);
        self.tried.last()
    }

    /// Whether a candidate is enough.
    pub(super) fn enough(&self, candidate: &Candidate) -> Option<bool> {
        let own = self.tried.iter().find(|trial| trial.candidate == *candidate);
        let too_slow = || self.is_too_slow(candidate).then_some(false);
        own.map(Trial::is_enough).or_else(too_slow)
    }

    /// Whether the reads of a candidate take too long. That they do follows from anything that has
    /// no less, that they do not from anything that has no more.
    pub(super) fn too_slow(&self, candidate: &Candidate) -> Option<bool> {
        if self.is_too_slow(candidate) {
            return Some(true);
        }
        let quick = self.tried.iter().filter(|trial| trial.is_quick());
        let mut quick = quick.map(|trial| &trial.candidate).chain(self.begun.keys());
        quick.any(|quick| candidate.exceeds(quick)).then_some(false)
    }

    fn is_too_slow(&self, candidate: &Candidate) -> bool {
        let mut slow = self.tried.iter().filter(|trial| trial.rules_out_smaller());
        slow.any(|trial| trial.candidate.covers(candidate))
    }

    /// Seeds that a candidate passed already.
    pub(super) fn seeds_passed(&self, candidate: &Candidate) -> u32 {
        let count = self.begun.get(candidate).map_or(0, Vec::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Whether verification is what the last one like this missed, and that alone. A guess: it
    /// says what to look at first, and no more.
    pub(super) fn may_verify_too_little(&self, candidate: &Candidate) -> bool {
        let last = self.tried.iter().rev().find(|trial| {
            let of = &trial.candidate;
            of.libraries == candidate.libraries
                && of.policy == candidate.policy
                && of.is_crowded() == candidate.is_crowded()
        });
        last.is_some_and(|trial| trial.misses == [Miss::Verification])
    }

    /// The fewest shuttles with which something that has no more is enough.
    pub(super) fn fewest_of_smaller(&self, group: &Candidate, most: u16) -> Option<u16> {
        let enough = self.tried.iter().filter(|trial| trial.is_enough());
        let smaller = enough.map(|trial| &trial.candidate).filter(|of| group.covers(of));
        smaller.map(|of| of.shuttles_per_panel).filter(|&count| count <= most).min()
    }

    /// What a group must be cheaper than to change the result.
    pub(super) fn bound(&self) -> f64 {
        self.two_cheapest()[1].map_or(f64::INFINITY, |trial| trial.cost)
    }

    /// The cheapest trial that is enough, and the cheapest of another group.
    pub(super) fn two_cheapest(&self) -> [Option<&Trial>; 2] {
        let enough = || self.tried.iter().filter(|trial| trial.is_enough());
        let best = enough().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let other = enough()
            .filter(|trial| best.is_some_and(|best| !trial.candidate.is_group_of(&best.candidate)));
        [best, other.min_by(|a, b| a.cost.total_cmp(&b.cost))]
    }
}
