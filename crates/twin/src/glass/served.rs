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
//! With the log of the archive's restores beside it the twin is asked what clients asked: their
//! restores go to the archive's controller of restores, and that asks the library (`restores`).
//! Without it each read comes at the time at which it came, whatever became of those before; only
//! the way of a new platter to its slot follows its verification, as the library takes no other
//! order.

mod order;
mod play;
mod restores;

use std::collections::BTreeMap;
use std::io::BufRead;

use fulgurite_library::log::{Entry, LogError, LogReader, Logged};
use fulgurite_library::{Event, LibraryShape, Mechanics, Outcome, Output, Policy, RequestId};
use fulgurite_restore::Retrieval;
use fulgurite_units::{ByteCount, Duration, Instant, PlatterId, Seed};
use serde::Serialize;

use self::play::{Played, PlayedRestores};
use self::restores::Restores;
use super::busy::{Busy, Shares};
use crate::Error;
use crate::engine::histogram::Histogram;
use crate::engine::histogram::Quantiles;

pub use order::Order;

/// Reads are told apart by how long they had until they were due: up to these, and longer.
const DUE_WITHIN: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(5 * 3600)];

/// What one library was asked, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    shape: LibraryShape,
    policy: Policy,
    asks: Vec<Ask>,
    until: Instant,
    busy: Shares,
    restores: Option<Restores>,
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

/// Restores of a served archive beside those of its twin, from the request to the readable copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RestoresCompared {
    /// All that came to their end.
    pub all: Compared,
    /// Of them the Expedited,
    pub expedited: Compared,
    /// Standard,
    pub standard: Compared,
    /// and Bulk.
    pub bulk: Compared,
    /// Restores with an end in the log and none in the twin.
    pub unended_twin: u64,
    /// Platters that were of no use, and whose sets were asked.
    pub platters_of_no_use: u64,
    /// The order of fetches.
    pub order: Order,
    /// Share of the drives that worked for reads while there was a platter for each: in the log,
    pub busy_served: f64,
    /// and in the twin.
    pub busy_twin: f64,
    /// Share of the shuttles that moved or carried, over the same time: in the log,
    pub shuttles_busy_served: f64,
    /// and in the twin.
    pub shuttles_busy_twin: f64,
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
    /// Where the log of the restores was there too, and the twin was asked for those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restores: Option<RestoresCompared>,
}

impl Served {
    /// Reads the log of a library.
    ///
    /// # Errors
    /// Names the first line that is not sound.
    pub fn read(source: impl BufRead) -> Result<Self, LogError> {
        let mut log = LogReader::new(source)?;
        let (shape, policy) = (log.shape().clone(), log.policy().clone());
        let (mut reading, mut busy) = (Reading::default(), Busy::new(&shape));
        while let Some(entry) = log.next_entry()? {
            match &entry.what {
                Logged::Event(event) => busy.event(entry.at, event),
                Logged::Output(output) => busy.output(entry.at, output),
            }
            reading.take(&entry);
        }
        let Reading { asks, until, .. } = reading;
        Ok(Self { shape, policy, asks, until, busy: busy.shares(), restores: None })
    }

    /// Reads the log of the restores that asked the library, so that the twin is asked for these.
    ///
    /// # Errors
    /// Names the first line that is not sound, or does not say where a piece begins.
    pub fn with_restores(
        mut self,
        source: impl BufRead,
        track_size: ByteCount,
    ) -> Result<Self, fulgurite_restore::log::LogError> {
        self.restores = Some(Restores::read(source, &self.asks, track_size)?);
        Ok(self)
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
        let Played { ends, restores } = play::play(self, mechanics, &Seed::new(seed))?;
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
            if restores.is_some() && matches!(ask.event, Event::Read { .. }) {
                // The twin's reads are others: these have no counterpart, and are counted alone.
                for kind in kinds_of(ask, served) {
                    kinds[kind][0].add(served_at.since(ask.at));
                }
                continue;
            }
            let Some((begun, at, _)) = twin.filter(|(.., end)| *end == served) else {
                result.ended_otherwise += 1;
                continue;
            };
            for kind in kinds_of(ask, served) {
                kinds[kind][0].add(served_at.since(ask.at));
                kinds[kind][1].add(at.since(begun));
            }
        }
        if let (Some(log), Some(twin)) = (&self.restores, &restores) {
            for (left, took) in &twin.reads {
                for kind in [0, 1 + due_kind(*left)] {
                    kinds[kind][1].add(*took);
                }
            }
            result.restores = Some(self.compare(log, twin));
        }
        let [reads, minutes, hours, later, verifications] = kinds
            .map(|[served, twin]| Compared { served: served.quantiles(), twin: twin.quantiles() });
        result.reads = reads;
        (result.due_in_minutes, result.due_in_hours, result.due_later) = (minutes, hours, later);
        result.verifications = verifications;
        Ok(result)
    }

    /// Restores of the log beside those of the twin.
    fn compare(&self, log: &Restores, twin: &PlayedRestores) -> RestoresCompared {
        let mut kinds: [[Histogram; 2]; 4] = Default::default();
        let mut unended_twin = 0;
        for (restore, (asked, retrieval)) in &log.course.asked {
            let Some(done) = log.course.done.get(restore) else { continue };
            let of_twin = &twin.course;
            let in_twin = of_twin.asked.get(restore).zip(of_twin.done.get(restore));
            let Some(((asked_twin, _), done_twin)) = in_twin else {
                unended_twin += 1;
                continue;
            };
            let own = match retrieval {
                Retrieval::Expedited => 1,
                Retrieval::Standard => 2,
                Retrieval::Bulk => 3,
            };
            for kind in [0, own] {
                kinds[kind][0].add(done.since(*asked));
                kinds[kind][1].add(done_twin.since(*asked_twin));
            }
        }
        let [all, expedited, standard, bulk] = kinds
            .map(|[served, twin]| Compared { served: served.quantiles(), twin: twin.quantiles() });
        RestoresCompared {
            all,
            expedited,
            standard,
            bulk,
            unended_twin,
            platters_of_no_use: log.shelf.of_no_use(),
            order: order::compare(&log.course, &twin.course),
            busy_served: self.busy.drives,
            busy_twin: twin.busy.drives,
            shuttles_busy_served: self.busy.shuttles,
            shuttles_busy_twin: twin.busy.shuttles,
        }
    }
}

/// Of the kinds of reads told apart by how long they had: which.
fn due_kind(left: Duration) -> usize {
    DUE_WITHIN.iter().take_while(|within| left > **within).count()
}

/// Where what came of an ask counts, of the kinds of a [`ServedResult`] in their order.
fn kinds_of(ask: &Ask, end: End) -> Vec<usize> {
    match (&ask.event, end) {
        (Event::Read { deadline, .. }, End::Finished(Outcome::Read)) => {
            vec![0, 1 + due_kind(deadline.since(ask.at))]
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
