//! External arrivals at a library: the reads of its workload, and batches of restores.

use std::iter::Peekable;

use fulgurite_restore::Retrieval;
use fulgurite_units::{Instant, RandomStream, Seed};

use super::scenario::{Restores, Scenario};
use crate::workload::Reads;
use crate::{Error, TraceRead};

/// The read of a file, with its retrieval class where reads are restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The read.
    pub read: TraceRead,
    /// The retrieval class.
    pub retrieval: Retrieval,
}

impl From<TraceRead> for Arrival {
    fn from(read: TraceRead) -> Self {
        Self { read, retrieval: Retrieval::Standard }
    }
}

/// All arrivals in the order of time; at the same time, batches come after reads.
#[derive(Debug)]
pub(crate) struct Arrivals {
    reads: Peekable<Reads>,
    batches: Peekable<std::vec::IntoIter<Arrival>>,
    restores: Option<(Restores, RandomStream)>,
}

impl Arrivals {
    pub(crate) fn new(scenario: &Scenario, seed: &Seed) -> Result<Self, Error> {
        let reads = scenario.workload.reads(seed.child(b"workload"))?;
        let restores = scenario.restores.clone();
        let mut batches: Vec<Arrival> = restores
            .iter()
            .flat_map(|restores| &restores.batches)
            .flat_map(|of| of.reads())
            .collect();
        batches.sort_by_key(|arrival| arrival.read.at);
        Ok(Self {
            reads: reads.peekable(),
            batches: batches.into_iter().peekable(),
            restores: restores.map(|of| (of, seed.child(b"retrievals").stream())),
        })
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let batch_at = self.batches.peek().map(|arrival| arrival.read.at);
        let goes_before = |read: &TraceRead| batch_at.is_none_or(|at: Instant| read.at <= at);
        let Some(read) = self.reads.next_if(goes_before) else { return self.batches.next() };
        let Some((restores, random)) = &mut self.restores else { return Some(read.into()) };
        let drawn = random.unit();
        let retrieval = if drawn < restores.expedited.get() {
            Retrieval::Expedited
        } else if drawn < restores.expedited.get() + restores.bulk.get() {
            Retrieval::Bulk
        } else {
            Retrieval::Standard
        };
        Some(Arrival { read, retrieval })
    }
}
