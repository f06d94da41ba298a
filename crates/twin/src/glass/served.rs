//! What was asked of a served library, asked of the twin.
//!
//! ```text
//! log of a library --> what it was asked, and when --> Library + the twin's machines
//!                 '--> how long it took  <---- beside ----> how long it takes
//! ```
//!
//! A replay of a log ([`fulgurite_library::log`]) holds the decisions of a library against its own
//! events. Here only what came from without is taken - requests, machines that broke and were
//! repaired, batteries - each at its time; what machines do and when is simulated anew. So the two
//! tails say whether a simulated library serves the same requests as fast as the one that served
//! them.
//!
//! What it is not: a simulation of the archive above. A read that was asked because another one
//! failed comes at the time at which it came; only the way of a new platter to its slot follows its
//! verification, as the library takes no other order.

mod play;

use std::collections::BTreeMap;
use std::io::BufRead;

use fulgurite_library::log::{Entry, LogError, LogReader, Logged};
use fulgurite_library::{Event, LibraryShape, Mechanics, Outcome, Output, Policy, RequestId};
use fulgurite_units::{Duration, Instant, PlatterId, Seed};
use serde::Serialize;

use crate::Error;
use crate::engine::histogram::Histogram;
use crate::engine::histogram::Quantiles;

/// Reads are told apart by how long they had until they were due: up to these, and longer.
const DUE_WITHIN: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(5 * 3600)];

/// What one library was asked, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    shape: LibraryShape,
    policy: Policy,
    asks: Vec<Ask>,
    until: Instant,
}

/// Something from without.
#[derive(Clone, Debug, PartialEq)]
struct Ask {
    at: Instant,
    /// With the ask's place as the number of its request: a log may use numbers again.
    event: Event,
    /// Of an order to store: the verification that it followed.
    follows: Option<usize>,
    /// How its request ended in the log, and when.
    ended: Option<(Instant, End)>,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished(Outcome),
    Rejected,
}

/// How long the reads of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// In the log.
    pub served: Quantiles,
    /// In the twin.
    pub twin: Quantiles,
}

/// A served library beside its twin; times in seconds of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServedResult {
    /// The seed of the twin's machines.
    pub seed: u64,
    /// All reads that came to their end.
    pub reads: Compared,
    /// Of them, those that had at most five minutes,
    pub due_in_minutes: Compared,
    /// at most five hours,
    pub due_in_hours: Compared,
    /// and longer.
    pub due_later: Compared,
    /// Verifications.
    pub verifications: Compared,
    /// Requests whose end was another one, or that had none in the twin.
    pub ended_otherwise: u64,
    /// Requests that the log does not say the end of.
    pub unended: u64,
}

impl Served {
    /// Reads the log of a library.
    ///
    /// # Errors
    /// Names the first line that is not sound.
    pub fn read(source: impl BufRead) -> Result<Self, LogError> {
        let mut log = LogReader::new(source)?;
        let (shape, policy) = (log.shape().clone(), log.policy().clone());
        let mut reading = Reading::default();
        while let Some(entry) = log.next_entry()? {
            reading.take(&entry);
        }
        Ok(Self { shape, policy, asks: reading.asks, until: reading.until })
    }

    /// Requests and everything else that came from without.
    #[must_use]
    pub fn ask_count(&self) -> usize {
        self.asks.len()
    }

    /// Asks the same of a library with simulated machines.
    ///
    /// # Errors
    /// When there is no library like that of the log.
    pub fn run(&self, mechanics: Mechanics, seed: u64) -> Result<ServedResult, Error> {
        let ends = play::play(self, mechanics, &Seed::new(seed))?;
        let mut result = ServedResult { seed, ..ServedResult::default() };
        let mut kinds: [[Histogram; 2]; 5] = Default::default();
        for (ask, twin) in self.asks.iter().zip(ends) {
            if request_of(&ask.event).is_none() {
                continue;
            }
            let Some((served_at, served)) = ask.ended else {
                result.unended += 1;
                continue;
            };
            let Some((begun, at, _)) = twin.filter(|(.., end)| *end == served) else {
                result.ended_otherwise += 1;
                continue;
            };
            for kind in kinds_of(ask, served) {
                kinds[kind][0].add(served_at.since(ask.at));
                kinds[kind][1].add(at.since(begun));
            }
        }
        let [reads, minutes, hours, later, verifications] = kinds
            .map(|[served, twin]| Compared { served: served.quantiles(), twin: twin.quantiles() });
        result.reads = reads;
        (result.due_in_minutes, result.due_in_hours, result.due_later) = (minutes, hours, later);
        result.verifications = verifications;
        Ok(result)
    }
}

/// Where what came of an ask counts, of the kinds of a [`ServedResult`] in their order.
fn kinds_of(ask: &Ask, end: End) -> Vec<usize> {
    match (&ask.event, end) {
        (Event::Read { deadline, .. }, End::Finished(Outcome::Read)) => {
            let left = deadline.since(ask.at);
            let due = DUE_WITHIN.iter().take_while(|within| left > **within).count();
            vec![0, 1 + due]
        }
        (Event::Verify { .. }, End::Finished(Outcome::Verified)) => vec![4],
        _ => Vec::new(),
    }
}

/// What is known of a log so far.
#[derive(Debug, Default)]
struct Reading {
    asks: Vec<Ask>,
    /// Asks without an end, by the log's number of the request.
    open: BTreeMap<RequestId, usize>,
    /// The last verification of each platter.
    verified: BTreeMap<PlatterId, usize>,
    until: Instant,
}

impl Reading {
    fn take(&mut self, entry: &Entry) {
        self.until = entry.at;
        match &entry.what {
            Logged::Event(event) => self.event(entry.at, *event),
            Logged::Output(Output::Finished { request, outcome }) => {
                self.end(entry.at, *request, End::Finished(*outcome));
            }
            Logged::Output(Output::Rejected { request, .. }) => {
                self.end(entry.at, *request, End::Rejected);
            }
            Logged::Output(Output::Do(_) | Output::Halt { .. } | Output::Traveled(_)) => {}
        }
    }

    fn end(&mut self, at: Instant, request: RequestId, end: End) {
        if let Some(number) = self.open.remove(&request) {
            self.asks[number].ended = Some((at, end));
        }
    }

    fn event(&mut self, at: Instant, mut event: Event) {
        let number = self.asks.len();
        let renamed = RequestId::new(number as u64);
        let mut follows = None;
        match &mut event {
            Event::Read { request, .. } => {
                self.open.insert(std::mem::replace(request, renamed), number);
            }
            Event::Verify { request, platter, .. } => {
                self.verified.insert(*platter, number);
                self.open.insert(std::mem::replace(request, renamed), number);
            }
            Event::Store { request, platter, .. } => {
                follows = self.verified.get(platter).copied();
                self.open.insert(std::mem::replace(request, renamed), number);
            }
            Event::Cancel { request } => {
                // What it names is none of ours if that had its end already.
                let canceled = self.open.get(request).copied().unwrap_or(number);
                *request = RequestId::new(canceled as u64);
            }
            Event::Broke { .. } | Event::Repaired { .. } | Event::Battery { .. } => {}
            // These are the machines' own, and simulated.
            Event::Completed { .. }
            | Event::Passed { .. }
            | Event::Halted { .. }
            | Event::Failed { .. }
            | Event::Timer => return,
        }
        self.asks.push(Ask { at, event, follows, ended: None });
    }
}

/// The request of an event that is one.
const fn request_of(event: &Event) -> Option<RequestId> {
    match event {
        Event::Read { request, .. }
        | Event::Verify { request, .. }
        | Event::Store { request, .. } => Some(*request),
        Event::Cancel { .. }
        | Event::Completed { .. }
        | Event::Passed { .. }
        | Event::Halted { .. }
        | Event::Failed { .. }
        | Event::Broke { .. }
        | Event::Repaired { .. }
        | Event::Battery { .. }
        | Event::Timer => None,
    }
}

#[cfg(test)]
mod tests;
