//! The knowledge of a search so far: its trials, and their consequences for other candidates.

use std::collections::BTreeMap;

use super::trial::{Miss, Trial, evaluate};
use super::{Candidate, PlanRequest};
use crate::glass::fleet::FleetResult;

/// The knowledge of a search.
#[derive(Debug)]
pub(super) struct Knowledge<'a> {
    request: &'a PlanRequest,
    /// Trials in the order in which they finished.
    pub(super) tried: Vec<Trial>,
    /// Candidates whose first seeds passed and whose other seeds have not been run yet.
    begun: BTreeMap<Candidate, Vec<FleetResult>>,
}

impl<'a> Knowledge<'a> {
    pub(super) fn new(request: &'a PlanRequest) -> Self {
        Self { request, tried: Vec::new(), begun: BTreeMap::new() }
    }

    /// Adds runs of a candidate; returns its trial if it is finished.
    pub(super) fn add_runs(
        &mut self,
        candidate: &Candidate,
        runs: Vec<FleetResult>,
    ) -> Option<&Trial> {
        let mut all = self.begun.remove(candidate).unwrap_or_default();
        all.extend(runs);
        let trial = evaluate(self.request, candidate, &all);
        if trial.is_enough() && trial.seeds < self.request.seeds {
            self.begun.insert(candidate.clone(), all);
            return None;
        }
        self.tried.push(trial);
        self.tried.last()
    }

    /// Returns whether a candidate meets the requirements, if that is known.
    pub(super) fn enough(&self, candidate: &Candidate) -> Option<bool> {
        let own = self.tried.iter().find(|trial| trial.candidate == *candidate);
        let too_slow = || self.is_too_slow(candidate).then_some(false);
        own.map(Trial::is_enough).or_else(too_slow)
    }

    /// Returns whether the reads of a candidate are too slow, if that is known. They are if a
    /// candidate with at least as much of everything is too slow, and are not if one with no more
    /// is fast enough.
    pub(super) fn too_slow(&self, candidate: &Candidate) -> Option<bool> {
        if self.is_too_slow(candidate) {
            return Some(true);
        }
        let quick = self.tried.iter().filter(|trial| trial.is_fast_enough());
        let mut quick = quick.map(|trial| &trial.candidate).chain(self.begun.keys());
        quick.any(|quick| candidate.exceeds(quick)).then_some(false)
    }

    fn is_too_slow(&self, candidate: &Candidate) -> bool {
        let mut slow = self.tried.iter().filter(|trial| trial.rules_out_smaller());
        slow.any(|trial| trial.candidate.covers(candidate))
    }

    /// Returns how many seeds a candidate has passed.
    pub(super) fn seeds_passed(&self, candidate: &Candidate) -> u32 {
        let count = self.begun.get(candidate).map_or(0, Vec::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns whether the last similar candidate missed verification and nothing else. This is a
    /// guess: it only decides what to examine first.
    pub(super) fn may_verify_too_little(&self, candidate: &Candidate) -> bool {
        let last = self.tried.iter().rev().find(|trial| {
            let other = &trial.candidate;
            other.libraries == candidate.libraries
                && other.policy == candidate.policy
                && other.is_crowded() == candidate.is_crowded()
        });
        last.is_some_and(|trial| trial.misses == [Miss::Verification])
    }

    /// Returns the fewest shuttles with which a candidate with no more of anything meets the
    /// requirements.
    pub(super) fn fewest_of_smaller(&self, group: &Candidate, most: u16) -> Option<u16> {
        let enough = self.tried.iter().filter(|trial| trial.is_enough());
        let smaller = enough.map(|trial| &trial.candidate).filter(|other| group.covers(other));
        smaller.map(|other| other.shuttles_per_panel).filter(|&count| count <= most).min()
    }

    /// Returns the cost that a group must beat to change the result.
    pub(super) fn bound(&self) -> f64 {
        self.two_cheapest()[1].map_or(f64::INFINITY, |trial| trial.cost)
    }

    /// Returns the cheapest trial that meets the requirements, and the cheapest of another group.
    pub(super) fn two_cheapest(&self) -> [Option<&Trial>; 2] {
        let enough = || self.tried.iter().filter(|trial| trial.is_enough());
        let best = enough().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let other = enough()
            .filter(|trial| best.is_some_and(|best| !trial.candidate.is_group_of(&best.candidate)));
        [best, other.min_by(|a, b| a.cost.total_cmp(&b.cost))]
    }
}
