//! Waiting and running jobs of a set of tomes: jobs of several steps, and the tomes they involve.
//! Not here: their order.

use fulgurite_units::{Duration, Instant};

use super::layout::Code;
use super::scenario::{Rebuild, Scenario, takes};

/// A job, by its slot.
pub(crate) type JobIndex = u32;

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Applies a tome's new data to the parity of others.
    Protection,
    /// Rebuilds a lost tome from others of its group.
    Rebuild,
}

/// A job: one tome spins all the time, others one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) tome: u32,
    pub(crate) bytes: u64,
    /// Tomes that currently spin for it.
    pub(crate) helpers: Vec<u32>,
    /// Tomes still to spin for it.
    pub(crate) left: Vec<u32>,
    /// When the client got its answer, or the tome was lost.
    pub(crate) since: Instant,
    /// How often each place was written and read in a rebuild.
    pub(crate) writes: u32,
    pub(crate) reads: u32,
    /// Whether data has already been written there.
    has_data: bool,
}

impl Job {
    pub(crate) const fn new(kind: Kind, tome: u32, bytes: u64, left: Vec<u32>) -> Self {
        Self {
            kind,
            tome,
            bytes,
            helpers: Vec::new(),
            left,
            since: Instant::ZERO,
            writes: 0,
            reads: 0,
            has_data: false,
        }
    }

    /// Restarts the job from these tomes.
    pub(crate) fn restart(&mut self, left: Vec<u32>) {
        self.left = left;
        (self.writes, self.reads, self.has_data) = (0, 0, false);
    }

    /// Counts a completed step.
    pub(crate) fn stepped(&mut self) {
        self.writes += 1;
        self.reads += u32::from(self.has_data);
        self.has_data = true;
    }

    /// Returns how long the next step takes with this many helpers, once all spin. The parts of a
    /// rebuild overlap, so the slowest counts. The network and the processor of the target handle
    /// what all sources send. Its disk writes each place once, and reads it first if it already has
    /// data (Pergamum (FAST 2008), section 4.3.2).
    pub(crate) fn step_duration(&self, scenario: &Scenario, helpers: usize) -> Duration {
        let rates = &scenario.rates;
        if self.kind == Kind::Protection {
            return takes(self.bytes, rates.fold);
        }
        let sources = match scenario.rebuild {
            Rebuild::Staggered => 1.0,
            Rebuild::Parallel => f64::from(u32::try_from(helpers).unwrap_or(u32::MAX)),
        };
        let passes = if self.has_data { 2.0 } else { 1.0 };
        let ways = [
            rates.network / sources,
            rates.multiply / sources,
            rates.source,
            rates.target / passes,
        ];
        takes(self.bytes, ways.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// Jobs by slot.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Vec<Option<Job>>,
    free_slots: Vec<JobIndex>,
}

impl Jobs {
    pub(crate) fn put(&mut self, job: Job) -> JobIndex {
        if let Some(index) = self.free_slots.pop() {
            self.jobs[index as usize] = Some(job);
            return index;
        }
        self.jobs.push(Some(job));
        u32::try_from(self.jobs.len() - 1).unwrap_or(u32::MAX)
    }

    /// # Panics
    /// When there is none.
    pub(crate) fn get(&self, index: JobIndex) -> &Job {
        let job = self.jobs[index as usize].as_ref();
        job.unwrap_or_else(|| unreachable!("job {index} has not ended"))
    }

    /// # Panics
    /// When there is none.
    pub(crate) fn get_mut(&mut self, index: JobIndex) -> &mut Job {
        let job = self.jobs[index as usize].as_mut();
        job.unwrap_or_else(|| unreachable!("job {index} has not ended"))
    }

    /// # Panics
    /// When there is none.
    pub(crate) fn take(&mut self, index: JobIndex) -> Job {
        self.free_slots.push(index);
        let job = self.jobs[index as usize].take();
        job.unwrap_or_else(|| unreachable!("job {index} has not ended"))
    }
}

/// The groups of tomes: consecutive tomes form a group; those left over at the end are spares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    groups: u32,
    code: Code,
}

impl Layout {
    pub(crate) const fn new(scenario: &Scenario) -> Self {
        Self { groups: scenario.tomes / scenario.group.members(), code: scenario.group }
    }

    /// Returns the number of tomes that are in a group; the others are spares.
    pub(crate) const fn members(&self) -> u32 {
        self.groups * self.code.members()
    }

    /// Returns the tomes in an order in which neighbors are in different groups.
    pub(crate) const fn across(&self, place: u32) -> u32 {
        place % self.groups * self.code.members() + place / self.groups
    }

    /// Returns the others of a tome's group, starting after it.
    pub(crate) fn others(&self, tome: u32) -> impl Iterator<Item = u32> + use<> {
        let members = self.code.members();
        let (first, place) = (tome - tome % members, tome % members);
        (1..members).map(move |step| first + (place + step) % members)
    }

    /// Returns the tomes with the parity of data written to a tome now. Parity is spread over all
    /// tomes of a group, region by region; these stand for those of a region.
    pub(crate) fn parity_of(&self, tome: u32) -> Vec<u32> {
        self.others(tome).take(self.code.parity as usize).collect()
    }
}
