//! The search: groups of candidates that differ only in shuttles, the likely cheap ones first.
//!
//! ```text
//!   open groups --next_query, from known facts--> queries ---runs, in parallel---> Knowledge
//!        ^                                                                                   |
//!        '----- a group without a query is closed: it cannot change the plan <---------------'
//! ```
//!
//! A group is skipped without a run when its lower bound of cost is no better than the runner-up,
//! when its drives cannot verify the ingest, or when a candidate with at least as much of
//! everything was already too slow. To make the last rule effective, the largest candidate for each
//! number of libraries is tried before smaller ones; among candidates with the same drives the
//! highest throughput is tried first, then the middle one, and so on down. Within a group, a binary
//! search finds the least number of shuttles.
//!
//! A run ends as soon as a miss is certain, and a candidate whose first seed misses gets no others.
//! A candidate that verifies too little rules out no others: slower drives leave up to a quarter
//! more of their time for verification, and more shuttles may leave less.

use super::groups::{can_verify, groups};
use super::knowledge::Knowledge;
use super::trial::{Depth, Trial, examine};
use super::{Candidate, PlanRequest};
use crate::Error;
use crate::plan::Plan;
use crate::runner::{Runner, collect};

/// Queries run in parallel. More of them keep more processors busy, but the result of one might
/// make the next unnecessary. The number of processors does not matter: it must not change which
/// candidates are tried.
const CONCURRENT_QUERIES: usize = 4;

/// A search in progress.
pub(super) struct Search<'a> {
    request: &'a PlanRequest,
    runner: &'a dyn Runner,
    on_trial: &'a mut dyn FnMut(&Trial),
    /// The groups, each with the most shuttles, and the lower bounds of their cost.
    groups: Vec<(f64, Candidate)>,
    /// Groups that can no longer change the plan.
    closed: Vec<bool>,
    knowledge: Knowledge<'a>,
    runs: u32,
}

/// A query: runs to execute.
#[derive(Debug)]
struct Query {
    candidate: Candidate,
    /// The first and the last seed.
    seeds: [u32; 2],
    depth: Depth,
}

/// Whether a group is worth more runs.
#[derive(Debug)]
enum Outlook {
    Some,
    None,
    /// Unknown until this query has run.
    Unknown(Query),
}

impl Query {
    fn first(candidate: Candidate, depth: Depth) -> Self {
        Self { candidate, seeds: [1, 1], depth }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        request: &'a PlanRequest,
        runner: &'a dyn Runner,
        on_trial: &'a mut dyn FnMut(&Trial),
    ) -> Result<Self, Error> {
        let set_racks = request.set_racks()?;
        let groups = groups(request, set_racks);
        let closed = groups.iter().map(|(_, group)| !can_verify(request, group)).collect();
        let knowledge = Knowledge::new(request);
        Ok(Self { request, runner, on_trial, groups, closed, knowledge, runs: 0 })
    }

    pub(super) fn run(mut self) -> Result<Plan<Trial>, Error> {
        while self.runs < self.request.runs_max {
            let queries = self.queries();
            if queries.is_empty() {
                break;
            }
            self.run_queries(&queries)?;
        }
        Ok(self.finish())
    }

    /// Returns the queries of the first open groups, and closes groups that have none. Of groups
    /// with the same drives only one is queried at a time: its result mostly decides the others.
    fn queries(&mut self) -> Vec<Query> {
        let bound = self.knowledge.bound();
        let mut asking: Vec<usize> = Vec::new();
        let mut queries: Vec<Query> = Vec::new();
        for (index, (lower, group)) in self.groups.iter().enumerate() {
            if queries.len() == CONCURRENT_QUERIES {
                break;
            }
            let waits = asking.iter().any(|&other| self.groups[other].1.has_drives_of(group));
            if self.closed[index] || *lower >= bound || waits {
                continue;
            }
            let Some(query) = self.next_query(group, bound) else {
                self.closed[index] = true;
                continue;
            };
            asking.push(index);
            if queries.iter().all(|other| other.candidate != query.candidate) {
                queries.push(query);
            }
        }
        queries
    }

    /// Returns the next query on the way to the least number of shuttles of a group, as long as
    /// it may be among the two cheapest; `None` when the number is known, or will not change the
    /// plan.
    fn next_query(&self, group: &Candidate, bound: f64) -> Option<Query> {
        let largest = self.largest_of_libraries(group);
        match self.knowledge.too_slow(largest) {
            None => return Some(Query::first(largest.clone(), Depth::Whole)),
            Some(true) => return None,
            Some(false) => {}
        }
        let starts = self.starts(group, bound)?;
        let ladder = self.ladder(group, bound);
        let mut rung = ladder.len() - 1;
        loop {
            match self.outlook(ladder[rung], &starts) {
                Outlook::Unknown(query) => return Some(query),
                Outlook::None if rung == 0 => return None,
                // It may lack time to verify, which says less about slower drives.
                Outlook::None => rung = 0,
                Outlook::Some if rung == 0 => return self.fewer_shuttles(group, &starts),
                Outlook::Some => rung /= 2,
            }
        }
    }

    /// Returns the shuttles to start the binary search with: the fewest with which a smaller
    /// candidate meets the requirements, or else the most. Two per drive leave no slot for new
    /// platters; one may still do.
    fn starts(&self, group: &Candidate, bound: f64) -> Option<Vec<u16>> {
        let cost_lower_bound =
            |shuttles| self.request.costs.cost_lower_bound(&group.with_shuttles(shuttles));
        let most = (1..=group.shuttles_per_panel)
            .rev()
            .find(|&shuttles| cost_lower_bound(shuttles) < bound)?;
        let one_each = group.with_shuttles(most).one_shuttle_each();
        let smaller = self.knowledge.fewest_of_smaller(group, most);
        Some(smaller.into_iter().chain([most, one_each]).collect())
    }

    /// Returns whether a group passes the first seed with any of the initial numbers of shuttles.
    fn outlook(&self, group: &Candidate, starts: &[u16]) -> Outlook {
        for &shuttles in starts {
            let candidate = group.with_shuttles(shuttles);
            match self.knowledge.enough(&candidate) {
                Some(true) => return Outlook::Some,
                Some(false) => {}
                None if self.knowledge.seeds_passed(&candidate) > 0 => return Outlook::Some,
                None => return Outlook::Unknown(self.query(group, shuttles)),
            }
        }
        Outlook::None
    }

    /// Returns the next step of the binary search.
    fn fewer_shuttles(&self, group: &Candidate, starts: &[u16]) -> Option<Query> {
        let enough = |shuttles| self.knowledge.enough(&group.with_shuttles(shuttles));
        let most = starts.iter().copied().max()?;
        let Some(high) = (1..=most).find(|&shuttles| enough(shuttles) == Some(true)) else {
            let open = starts.iter().copied().find(|&shuttles| enough(shuttles).is_none());
            return open.map(|shuttles| self.query(group, shuttles));
        };
        let missing = (1..high).rev().find(|&shuttles| enough(shuttles) == Some(false));
        let low = missing.map_or(1, |missing| missing + 1);
        (low < high).then(|| self.query(group, u16::midpoint(low, high)))
    }

    /// Returns the query whether a candidate meets the requirements: the first seed alone,
    /// because most misses show at once, and then all others.
    fn query(&self, group: &Candidate, shuttles: u16) -> Query {
        let candidate = group.with_shuttles(shuttles);
        let passed = self.knowledge.seeds_passed(&candidate);
        if passed > 0 {
            let seeds = [passed + 1, self.request.seeds];
            return Query { candidate, seeds, depth: Depth::Tail };
        }
        let doubtful = self.knowledge.may_verify_too_little(&candidate);
        Query::first(candidate, if doubtful { Depth::Verification } else { Depth::Tail })
    }

    /// Executes all runs of the queries, with the parallelism of the runner.
    fn run_queries(&mut self, queries: &[Query]) -> Result<(), Error> {
        let (request, runner) = (self.request, self.runner);
        let jobs: Vec<(&Query, u32)> = queries
            .iter()
            .flat_map(|query| (query.seeds[0]..=query.seeds[1]).map(move |seed| (query, seed)))
            .collect();
        let results = collect(runner, jobs.len(), |index| {
            let (query, seed) = jobs[index];
            examine(request, &query.candidate, seed, query.depth, runner)
        });
        self.runs += u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        let mut results = results.into_iter();
        for query in queries {
            let count = (query.seeds[1] + 1 - query.seeds[0]) as usize;
            let runs = results.by_ref().take(count).collect::<Result<Vec<_>, Error>>()?;
            if let Some(trial) = self.knowledge.add_runs(&query.candidate, runs) {
                (self.on_trial)(trial);
            }
        }
        Ok(())
    }

    /// Returns the largest candidate with as many libraries.
    fn largest_of_libraries<'s>(&'s self, group: &'s Candidate) -> &'s Candidate {
        let groups = self.groups.iter().map(|(_, other)| other);
        let larger = groups.filter(|other| other.covers(group));
        larger.max_by_key(|other| (other.drives(), other.throughput)).unwrap_or(group)
    }

    /// Returns the group and those with the same drives of a higher throughput that may be among
    /// the two cheapest, sorted by throughput.
    fn ladder<'s>(&'s self, group: &'s Candidate, bound: f64) -> Vec<&'s Candidate> {
        let faster = self.groups.iter().filter(|(lower, other)| {
            *lower < bound && other.has_drives_of(group) && other.throughput > group.throughput
        });
        let mut ladder: Vec<&Candidate> = faster.map(|(_, other)| other).collect();
        ladder.push(group);
        ladder.sort_by_key(|other| other.throughput);
        ladder
    }

    fn finish(self) -> Plan<Trial> {
        let [best, runner_up] = self.knowledge.two_cheapest().map(Option::<&Trial>::cloned);
        let shuttles = |(_, group): &(f64, Candidate)| u64::from(group.shuttles_per_panel);
        Plan {
            best,
            runner_up,
            runs: self.runs,
            candidates: self.groups.iter().map(shuttles).sum(),
            is_cut_short: self.runs >= self.request.runs_max,
            tried: self.knowledge.tried,
        }
    }
}
