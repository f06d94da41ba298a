//! The search: groups of candidates that differ only in shuttles, the cheapest possible first.
//!
//! A group is left out without a run when its lower bound of cost is no better than the runner-up,
//! when its drives cannot verify what comes in, or when something with no less of anything failed
//! already, being too slow. To make the last rule bite, the largest candidate of a number of
//! libraries, and of a number of drives, is tried before any smaller one. Within a group the least
//! number of shuttles is found by halving.

use super::trial::{Trial, judge, simulate};
use super::{Candidate, Plan, PlanRequest};
use crate::Error;
use crate::runner::{Runner, Serial, collect};

/// A search under way.
pub(super) struct Search<'a> {
    request: &'a PlanRequest,
    runner: &'a dyn Runner,
    tell: &'a mut dyn FnMut(&Trial),
    /// With the most shuttles of each; the lower bound of cost beside it; in order of that.
    groups: Vec<(f64, Candidate)>,
    set_racks: u16,
    tried: Vec<Trial>,
    runs: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        request: &'a PlanRequest,
        runner: &'a dyn Runner,
        tell: &'a mut dyn FnMut(&Trial),
    ) -> Result<Self, Error> {
        let set_racks = request.set_racks()?;
        let mut groups: Vec<(f64, Candidate)> = groups(request, set_racks)
            .into_iter()
            .map(|group| (request.costs.least(&group.with_shuttles(1)), group))
            .collect();
        groups.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        Ok(Self { request, runner, tell, groups, set_racks, tried: Vec::new(), runs: 0 })
    }

    pub(super) fn run(mut self) -> Result<Plan, Error> {
        let groups = std::mem::take(&mut self.groups);
        for (lower, group) in &groups {
            if *lower >= self.bound() || self.is_over() {
                break;
            }
            let corners = [false, true].map(|same_drives| corner(&groups, group, same_drives));
            let mut is_hopeless = !self.can_verify(group);
            for corner in corners.into_iter().flatten() {
                is_hopeless = is_hopeless || self.rules_out(&corner)?;
            }
            if !is_hopeless {
                self.solve(group)?;
            }
        }
        let candidates = groups.iter().map(|(_, group)| u64::from(group.shuttles_per_panel)).sum();
        Ok(self.finish(candidates))
    }

    /// The least number of shuttles of a group, as long as it may be among the two cheapest.
    fn solve(&mut self, group: &Candidate) -> Result<(), Error> {
        let (mut low, mut high) = (1, group.shuttles_per_panel);
        let bound = self.bound();
        let least = |shuttles| self.request.costs.least(&group.with_shuttles(shuttles));
        while high > low && least(high) >= bound {
            high -= 1;
        }
        let known = self.tried.iter().filter(|trial| trial.is_enough());
        let known = known.map(|trial| &trial.candidate).filter(|smaller| {
            group.covers(smaller) && (low..=high).contains(&smaller.shuttles_per_panel)
        });
        high = known.map(|smaller| smaller.shuttles_per_panel).min().unwrap_or(high);
        if !self.is_enough(&group.with_shuttles(high))? {
            // Two shuttles for each drive leave no slot to new platters: one may still do.
            let one_each = (group.drives() / group.panels).clamp(1, high);
            if self.rules_out(&group.with_shuttles(high))?
                || !self.is_enough(&group.with_shuttles(one_each))?
            {
                return Ok(());
            }
            high = one_each;
        }
        while low < high && !self.is_over() {
            let middle = u16::midpoint(low, high);
            if self.is_enough(&group.with_shuttles(middle))? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(())
    }

    /// Whether a candidate is too slow for its reads, so that smaller ones are as well.
    fn rules_out(&mut self, candidate: &Candidate) -> Result<bool, Error> {
        if self.is_enough(candidate)? {
            return Ok(false);
        }
        let known = self.tried.iter().find(|trial| trial.candidate == *candidate);
        Ok(known.is_none_or(Trial::rules_out_smaller))
    }

    /// Whether a candidate is enough, by what is known or by running it.
    fn is_enough(&mut self, candidate: &Candidate) -> Result<bool, Error> {
        if let Some(known) = self.tried.iter().find(|trial| trial.candidate == *candidate) {
            return Ok(known.is_enough());
        }
        let mut failed = self.tried.iter().filter(|trial| trial.rules_out_smaller());
        if failed.any(|trial| trial.candidate.covers(candidate)) {
            return Ok(false);
        }
        let trial = self.attempt(candidate)?;
        (self.tell)(&trial);
        let is_enough = trial.is_enough();
        self.tried.push(trial);
        Ok(is_enough)
    }

    /// The first seed alone: most of what is not enough shows at once. Jobs are libraries when
    /// there are several, and seeds otherwise.
    fn attempt(&mut self, candidate: &Candidate) -> Result<Trial, Error> {
        let request = self.request;
        let mut results = vec![simulate(request, candidate, 1, self.runner)?];
        self.runs += 1;
        let first = judge(request, candidate, &results);
        let more = (request.seeds - 1) as usize;
        if !first.is_enough() || more == 0 {
            return Ok(first);
        }
        let seed = |index: usize| u32::try_from(index).unwrap_or(u32::MAX) + 2;
        if candidate.libraries > 1 {
            for index in 0..more {
                results.push(simulate(request, candidate, seed(index), self.runner)?);
            }
        } else {
            let job = |index| simulate(request, candidate, seed(index), &Serial);
            for result in collect(self.runner, more, job) {
                results.push(result?);
            }
        }
        self.runs += request.seeds - 1;
        Ok(judge(request, candidate, &results))
    }

    /// Whether the drives could verify what comes in if they did nothing else.
    fn can_verify(&self, of: &Candidate) -> bool {
        let drives = f64::from(of.drives()) * f64::from(of.libraries);
        #[expect(clippy::cast_precision_loss, reason = "210 MB/s at most")]
        let each = of.throughput.bytes_per_second() as f64;
        drives * each * 86_400.0 >= self.request.verify_per_day()
    }

    fn is_over(&self) -> bool {
        self.runs >= self.request.runs_max
    }

    /// What a group must be cheaper than to change the result.
    fn bound(&self) -> f64 {
        self.two_cheapest()[1].map_or(f64::INFINITY, |trial| trial.cost)
    }

    /// The cheapest trial that is enough, and the cheapest of another group.
    fn two_cheapest(&self) -> [Option<&Trial>; 2] {
        let enough = || self.tried.iter().filter(|trial| trial.is_enough());
        let best = enough().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let other = enough()
            .filter(|trial| best.is_some_and(|best| !trial.candidate.is_group_of(&best.candidate)));
        [best, other.min_by(|a, b| a.cost.total_cmp(&b.cost))]
    }

    fn finish(self, candidates: u64) -> Plan {
        let [best, runner_up] = self.two_cheapest().map(Option::<&Trial>::cloned);
        Plan {
            best,
            runner_up,
            objective_s: self.request.objective.as_secs_f64(),
            platters: self.request.platters(),
            set_racks: self.set_racks,
            verify_per_day: self.request.verify_per_day(),
            seeds: self.request.seeds,
            runs: self.runs,
            candidates,
            is_cut_short: self.is_over(),
            currency: self.request.costs.currency.clone(),
            assumed: self.request.costs.assumed(),
            tried: self.tried,
        }
    }
}

/// The largest group with as many libraries and, if asked for, the same drives.
fn corner(groups: &[(f64, Candidate)], of: &Candidate, same_drives: bool) -> Option<Candidate> {
    let alike = |other: &&Candidate| {
        other.covers(of)
            && (!same_drives
                || (other.read_racks == of.read_racks
                    && other.drives_per_read_rack == of.drives_per_read_rack))
    };
    let candidates = groups.iter().map(|(_, group)| group).filter(alike);
    candidates.max_by_key(|group| (group.drives(), group.throughput)).cloned()
}

/// Everything in the space that fits together, with the most shuttles it may have.
fn groups(request: &PlanRequest, set_racks: u16) -> Vec<Candidate> {
    let space = &request.space;
    let mut groups = Vec::new();
    for libraries in space.libraries[0]..=space.libraries[1] {
        let Some(storage_racks) = storage_racks(request, libraries, set_racks) else { continue };
        for policy in &space.policies {
            for &read_racks in &space.read_racks {
                for &drives_per_read_rack in &space.drives_per_read_rack {
                    for &throughput in &space.throughputs {
                        groups.extend(with_most_shuttles(
                            request,
                            Candidate {
                                libraries,
                                policy: policy.clone(),
                                read_racks,
                                drives_per_read_rack,
                                throughput,
                                storage_racks,
                                panels: request.library.panels,
                                shuttles_per_panel: space.shuttles_per_panel_max,
                            },
                        ));
                    }
                }
            }
        }
    }
    groups
}

/// Racks for the set and for all platters; `None` if they are too many.
fn storage_racks(request: &PlanRequest, libraries: u32, set_racks: u16) -> Option<u16> {
    let shape = &request.library;
    let homes = shape.slots_per_shelf - shape.spare_slots_per_shelf;
    let per_rack = u64::from(shape.panels * shape.shelves_per_panel) * u64::from(homes);
    let platters = request.platters().div_ceil(u64::from(libraries));
    let racks = u16::try_from(platters.div_ceil(per_rack.max(1))).ok()?.max(set_racks);
    (racks <= request.space.storage_racks_max).then_some(racks)
}

/// The library's own rules decide how many shuttles there can be (two for each drive, and room).
fn with_most_shuttles(request: &PlanRequest, group: Candidate) -> Option<Candidate> {
    let most = (1..=group.shuttles_per_panel).rev();
    most.map(|shuttles| group.with_shuttles(shuttles))
        .find(|candidate| candidate.shape(request).validate().is_ok())
}
