//! What waits and what goes on in a set of tomes: jobs of several steps, and which tomes they are
//! about. Not here: who goes first.

use fulgurite_units::{Duration, Instant};

use super::layout::Code;
use super::scenario::{Rebuild, Scenario, takes};

/// A job, by its place.
pub(crate) type JobIndex = u32;

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tome's new data is folded into the parity of others.
    Protection,
    /// A lost tome is filled from others of its group.
    Rebuild,
}

/// A job: one tome turns all the time, others one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) tome: u32,
    pub(crate) bytes: u64,
    /// Tomes that turn for it now.
    pub(crate) helpers: Vec<u32>,
    /// Tomes that are still to.
    pub(crate) left: Vec<u32>,
    /// When the client had its answer, or the tome was lost.
    pub(crate) since: Instant,
    /// Times each place was written and read where it is rebuilt.
    pub(crate) writes: u32,
    pub(crate) reads: u32,
    /// Whether something lies there already.
    has_some: bool,
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
            has_some: false,
        }
    }

    /// All is to be done again, from these.
    pub(crate) fn restart(&mut self, left: Vec<u32>) {
        self.left = left;
        (self.writes, self.reads, self.has_some) = (0, 0, false);
    }

    /// A step is done.
    pub(crate) fn stepped(&mut self) {
        self.writes += 1;
        self.reads += u32::from(self.has_some);
        self.has_some = true;
    }

    /// How long the next step takes with so many helpers, once all turn. The parts of a rebuild go
    /// on side by side, so that the slowest counts: the network and the processor of the target
    /// have what all sources send, its disk writes each place once and reads it first if something
    /// lies there (Pergamum (FAST 2008), section 4.3.2).
    pub(crate) fn step_takes(&self, scenario: &Scenario, helpers: usize) -> Duration {
        let rates = &scenario.rates;
        if self.kind == Kind::Protection {
            return takes(self.bytes, rates.fold);
        }
        let sources = match scenario.rebuild {
            Rebuild::Staggered => 1.0,
            Rebuild::Parallel => f64::from(u32::try_from(helpers).unwrap_or(u32::MAX)),
        };
        let passes = if self.has_some { 2.0 } else { 1.0 };
        let ways = [
            rates.network / sources,
            rates.multiply / sources,
            rates.source,
            rates.target / passes,
        ];
        takes(self.bytes, ways.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// Jobs by their places.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Vec<Option<Job>>,
    unused: Vec<JobIndex>,
}

impl Jobs {
    pub(crate) fn put(&mut self, job: Job) -> JobIndex {
        if let Some(index) = self.unused.pop() {
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
        self.unused.push(index);
        let job = self.jobs[index as usize].take();
        job.unwrap_or_else(|| unreachable!("job {index} has not ended"))
    }
}

/// Which tomes are a group: one after the other; those at the end that make none are spares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    groups: u32,
    code: Code,
}

impl Layout {
    pub(crate) const fn new(scenario: &Scenario) -> Self {
        Self { groups: scenario.tomes / scenario.group.members(), code: scenario.group }
    }

    /// Tomes that are in a group; the others are spares.
    pub(crate) const fn members(&self) -> u32 {
        self.groups * self.code.members()
    }

    /// The tomes in an order in which neighbors are of different groups.
    pub(crate) const fn across(&self, place: u32) -> u32 {
        place % self.groups * self.code.members() + place / self.groups
    }

    /// The others of a tome's group, beginning behind it.
    pub(crate) fn others(&self, tome: u32) -> impl Iterator<Item = u32> + use<> {
        let members = self.code.members();
        let (first, place) = (tome - tome % members, tome % members);
        (1..members).map(move |step| first + (place + step) % members)
    }

    /// The tomes with the parity of what is written to a tome now. Parity is spread over all tomes
    /// of a group, region by region; these stand for those of a region.
    pub(crate) fn parity_of(&self, tome: u32) -> Vec<u32> {
        self.others(tome).take(self.code.parity as usize).collect()
    }
}
