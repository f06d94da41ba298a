//! The search: groups of candidates that differ only in shuttles, those likely cheap first.
//!
//! ```text
//!   open groups --next_question, of what is known--> questions --runs, at the same time--> Known
//!        ^                                                                                   |
//!        '----- a group without a question is closed: nothing of it can change the plan <----'
//! ```
//!
//! A group is left out without a run when its lower bound of cost is no better than the runner-up,
//! when its drives cannot verify what comes in, or when something with no less of anything failed
//! already, being too slow. To make the last rule bite, the largest candidate of a number of
//! libraries is tried before any smaller one, and of the same drives the highest throughput, then
//! the middle one, and so on down. Within a group the least number of shuttles is found by halving.
//!
//! A run ends as soon as a miss is certain, and a candidate whose first seed misses has no others.
//! That a candidate verifies too little says nothing of others: slower drives leave up to a quarter
//! more of their time to it, and more shuttles may leave it less.

use super::groups::{can_verify, groups};
use super::known::Known;
use super::trial::{Depth, Trial, examine};
use super::{Candidate, Plan, PlanRequest};
use crate::Error;
use crate::runner::{Runner, collect};

/// Questions asked at the same time. More of them keep more processors busy, but the answer to one
/// might have made the next unnecessary. Not the number of processors: that must not change what
/// is tried.
const QUESTIONS_AT_ONCE: usize = 4;

/// A search under way.
pub(super) struct Search<'a> {
    request: &'a PlanRequest,
    runner: &'a dyn Runner,
    tell: &'a mut dyn FnMut(&Trial),
    /// With the most shuttles of each; the lower bound of cost beside it.
    groups: Vec<(f64, Candidate)>,
    /// Groups that can change the plan no more.
    closed: Vec<bool>,
    known: Known<'a>,
    set_racks: u16,
    runs: u32,
}

/// Runs to make.
#[derive(Debug)]
struct Question {
    candidate: Candidate,
    /// The first and the last.
    seeds: [u32; 2],
    depth: Depth,
}

/// Whether a group is worth more runs.
#[derive(Debug)]
enum Promise {
    Some,
    None,
    /// Unknown before this is answered.
    Unknown(Question),
}

impl Question {
    fn first(candidate: Candidate, depth: Depth) -> Self {
        Self { candidate, seeds: [1, 1], depth }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        request: &'a PlanRequest,
        runner: &'a dyn Runner,
        tell: &'a mut dyn FnMut(&Trial),
    ) -> Result<Self, Error> {
        let set_racks = request.set_racks()?;
        let groups = groups(request, set_racks);
        let closed = groups.iter().map(|(_, group)| !can_verify(request, group)).collect();
        let known = Known::new(request);
        Ok(Self { request, runner, tell, groups, closed, known, set_racks, runs: 0 })
    }

    pub(super) fn run(mut self) -> Result<Plan, Error> {
        while self.runs < self.request.runs_max {
            let questions = self.questions();
            if questions.is_empty() {
                break;
            }
            self.ask(&questions)?;
        }
        Ok(self.finish())
    }

    /// The questions of the first open groups; groups that have none are closed. Of those with the
    /// same drives one is asked at a time, for they mostly answer for each other.
    fn questions(&mut self) -> Vec<Question> {
        let bound = self.known.bound();
        let mut asking: Vec<usize> = Vec::new();
        let mut questions: Vec<Question> = Vec::new();
        for (index, (lower, group)) in self.groups.iter().enumerate() {
            if questions.len() == QUESTIONS_AT_ONCE {
                break;
            }
            let waits = asking.iter().any(|&other| self.groups[other].1.has_drives_of(group));
            if self.closed[index] || *lower >= bound || waits {
                continue;
            }
            let Some(question) = self.next_question(group, bound) else {
                self.closed[index] = true;
                continue;
            };
            asking.push(index);
            if questions.iter().all(|other| other.candidate != question.candidate) {
                questions.push(question);
            }
        }
        questions
    }

    /// What has to be known next to tell the least number of shuttles of a group, as long as it
    /// may be among the two cheapest; `None` when it is known, or will not change the plan.
    fn next_question(&self, group: &Candidate, bound: f64) -> Option<Question> {
        let largest = self.largest_of_libraries(group);
        match self.known.too_slow(largest) {
            None => return Some(Question::first(largest.clone(), Depth::Whole)),
            Some(true) => return None,
            Some(false) => {}
        }
        let starts = self.starts(group, bound)?;
        let ladder = self.ladder(group, bound);
        let mut rung = ladder.len() - 1;
        loop {
            match self.promise(ladder[rung], &starts) {
                Promise::Unknown(question) => return Some(question),
                Promise::None if rung == 0 => return None,
                // It may be for want of time to verify: that says less of slower drives.
                Promise::None => rung = 0,
                Promise::Some if rung == 0 => return self.fewer_shuttles(group, &starts),
                Promise::Some => rung /= 2,
            }
        }
    }

    /// Shuttles to begin the halving with: the fewest with which something smaller is enough, or
    /// else the most. Two for each drive leave no slot to new platters: one may still do.
    fn starts(&self, group: &Candidate, bound: f64) -> Option<Vec<u16>> {
        let least = |shuttles| self.request.costs.least(&group.with_shuttles(shuttles));
        let most =
            (1..=group.shuttles_per_panel).rev().find(|&shuttles| least(shuttles) < bound)?;
        let one_each = group.with_shuttles(most).one_shuttle_each();
        let smaller = self.known.fewest_of_smaller(group, most);
        Some(smaller.into_iter().chain([most, one_each]).collect())
    }

    /// Whether a group passes the first seed with any number of shuttles to begin with.
    fn promise(&self, group: &Candidate, starts: &[u16]) -> Promise {
        for &shuttles in starts {
            let candidate = group.with_shuttles(shuttles);
            match self.known.enough(&candidate) {
                Some(true) => return Promise::Some,
                Some(false) => {}
                None if self.known.seeds_passed(&candidate) > 0 => return Promise::Some,
                None => return Promise::Unknown(self.question(group, shuttles)),
            }
        }
        Promise::None
    }

    /// The next step of the halving.
    fn fewer_shuttles(&self, group: &Candidate, starts: &[u16]) -> Option<Question> {
        let enough = |shuttles| self.known.enough(&group.with_shuttles(shuttles));
        let most = starts.iter().copied().max()?;
        let Some(high) = (1..=most).find(|&shuttles| enough(shuttles) == Some(true)) else {
            let open = starts.iter().copied().find(|&shuttles| enough(shuttles).is_none());
            return open.map(|shuttles| self.question(group, shuttles));
        };
        let missing = (1..high).rev().find(|&shuttles| enough(shuttles) == Some(false));
        let low = missing.map_or(1, |missing| missing + 1);
        (low < high).then(|| self.question(group, u16::midpoint(low, high)))
    }

    /// Whether a candidate is enough: the first seed alone, for most of what is not enough shows
    /// at once, and then all others.
    fn question(&self, group: &Candidate, shuttles: u16) -> Question {
        let candidate = group.with_shuttles(shuttles);
        let passed = self.known.seeds_passed(&candidate);
        if passed > 0 {
            let seeds = [passed + 1, self.request.seeds];
            return Question { candidate, seeds, depth: Depth::Tail };
        }
        let doubtful = self.known.may_verify_too_little(&candidate);
        Question::first(candidate, if doubtful { Depth::Verification } else { Depth::Tail })
    }

    /// Makes all runs of the questions, as many at the same time as the runner likes.
    fn ask(&mut self, questions: &[Question]) -> Result<(), Error> {
        let (request, runner) = (self.request, self.runner);
        let jobs: Vec<(&Question, u32)> = questions
            .iter()
            .flat_map(|of| (of.seeds[0]..=of.seeds[1]).map(move |seed| (of, seed)))
            .collect();
        let results = collect(runner, jobs.len(), |index| {
            let (of, seed) = jobs[index];
            examine(request, &of.candidate, seed, of.depth, runner)
        });
        self.runs += u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        let mut results = results.into_iter();
        for of in questions {
            let count = (of.seeds[1] + 1 - of.seeds[0]) as usize;
            let runs = results.by_ref().take(count).collect::<Result<Vec<_>, Error>>()?;
            if let Some(trial) = self.known.learn(&of.candidate, runs) {
                (self.tell)(trial);
            }
        }
        Ok(())
    }

    /// The largest candidate with as many libraries.
    fn largest_of_libraries<'s>(&'s self, group: &'s Candidate) -> &'s Candidate {
        let groups = self.groups.iter().map(|(_, other)| other);
        let larger = groups.filter(|other| other.covers(group));
        larger.max_by_key(|other| (other.drives(), other.throughput)).unwrap_or(group)
    }

    /// The group, and those with the same drives of a higher throughput that may be among the two
    /// cheapest, in order of that.
    fn ladder<'s>(&'s self, group: &'s Candidate, bound: f64) -> Vec<&'s Candidate> {
        let faster = self.groups.iter().filter(|(lower, other)| {
            *lower < bound && other.has_drives_of(group) && other.throughput > group.throughput
        });
        let mut ladder: Vec<&Candidate> = faster.map(|(_, other)| other).collect();
        ladder.push(group);
        ladder.sort_by_key(|other| other.throughput);
        ladder
    }

    fn finish(self) -> Plan {
        let [best, runner_up] = self.known.two_cheapest().map(Option::<&Trial>::cloned);
        let shuttles = |(_, group): &(f64, Candidate)| u64::from(group.shuttles_per_panel);
        Plan {
            best,
            runner_up,
            objective_s: self.request.objective.as_secs_f64(),
            platters: self.request.platters(),
            set_racks: self.set_racks,
            verify_per_day: self.request.verify_per_day(),
            seeds: self.request.seeds,
            runs: self.runs,
            candidates: self.groups.iter().map(shuttles).sum(),
            is_cut_short: self.runs >= self.request.runs_max,
            currency: self.request.costs.currency.clone(),
            assumed: self.request.costs.assumed(),
            tried: self.known.tried,
        }
    }
}
