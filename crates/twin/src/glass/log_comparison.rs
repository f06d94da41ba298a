//! Replays the requests of a served library in the twin.
//!
//! ```text
//! log of a library --> requests and their times --> Library + the twin's machines
//!                 '--> logged latency <---- versus ----> simulated latency
//! ```
//!
//! A replay of a log ([`fulgurite_glass_core::control::log`]) compares the decisions of a library
//! with its own events. Here only the external events are taken - requests, machines that broke and
//! were repaired, batteries - each at its time; what machines do and when is simulated again. So
//! the two tails show whether a simulated library serves the same requests as fast as the real one.
//!
//! With the log of the archive's restores, the twin gets the requests of the clients: their
//! restores go to the archive's restore controller, which sends reads to the library
//! (`restore_log`). Without it, each read arrives at its logged time, whatever happened to earlier
//! ones. Only the storing of a new platter follows its verification, because the library accepts
//! no other order.

mod fetch_order;
mod replayer;
mod restore_log;

use std::collections::BTreeMap;
use std::io::BufRead;

use fulgurite_glass_core::control::log::{Entry, LogError, LogReader, Logged};
use fulgurite_glass_core::control::{
    Event, LibraryShape, Mechanics, Outcome, Output, Policy, RequestId,
};
use fulgurite_restore::Retrieval;
use fulgurite_units::{ByteCount, Duration, Instant, PlatterId, Seed};
use serde::Serialize;

use self::replayer::{ReplayResult, RestoreReplay};
use self::restore_log::Restores;
use super::utilization::{ReadUtilization, Shares};
use crate::Error;
use crate::engine::histogram::Histogram;
use crate::engine::histogram::Quantiles;

pub use fetch_order::FetchOrder;

/// Reads are classified by the time until their deadline: up to each of these, and longer.
const DUE_WITHIN: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(5 * 3600)];

/// The external events of one library, and their outcomes.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedLog {
    shape: LibraryShape,
    policy: Policy,
    external_events: Vec<ExternalEvent>,
    until: Instant,
    busy: Shares,
    restores: Option<Restores>,
}

/// An external event.
#[derive(Clone, Debug, PartialEq)]
struct ExternalEvent {
    at: Instant,
    /// The event, with its index as its request number: a log may reuse numbers.
    event: Event,
    /// For a store request, the verification that it followed.
    follows: Option<usize>,
    /// How and when its request ended in the log.
    ended: Option<(Instant, End)>,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished(Outcome),
    Rejected,
}

/// Times of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyComparison {
    /// In the log.
    pub served: Quantiles,
    /// In the twin.
    pub twin: Quantiles,
}

/// Restores of a served archive compared with those of its twin, from the request to the readable
/// copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RestoreComparison {
    /// All that finished.
    pub all: LatencyComparison,
    /// Expedited ones.
    pub expedited: LatencyComparison,
    /// Standard ones.
    pub standard: LatencyComparison,
    /// Bulk ones.
    pub bulk: LatencyComparison,
    /// Restores that finished in the log but not in the twin.
    pub unended_twin: u64,
    /// Unusable platters, whose sets were read instead.
    pub platters_of_no_use: u64,
    /// The order of fetches.
    pub order: FetchOrder,
    /// Share of the drives that worked for reads while there was a platter for each, in the log.
    pub busy_served: f64,
    /// The same share in the twin.
    pub busy_twin: f64,
    /// Share of the shuttles that moved or carried, over the same time, in the log.
    pub shuttles_busy_served: f64,
    /// The same share in the twin.
    pub shuttles_busy_twin: f64,
}

/// A served library compared with its twin; times are in seconds of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServedResult {
    /// The seed of the twin's machines.
    pub seed: u64,
    /// All reads that finished.
    pub reads: LatencyComparison,
    /// Reads due within five minutes.
    pub due_in_minutes: LatencyComparison,
    /// Reads due within five hours.
    pub due_in_hours: LatencyComparison,
    /// Reads due later.
    pub due_later: LatencyComparison,
    /// Verifications.
    pub verifications: LatencyComparison,
    /// Requests that ended differently in the twin, or not at all.
    pub ended_otherwise: u64,
    /// Requests whose end is not in the log.
    pub unended: u64,
    /// Restores, if their log was given and replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restores: Option<RestoreComparison>,
}

impl ServedLog {
    /// Reads the log of a library.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn read(source: impl BufRead) -> Result<Self, LogError> {
        let mut log = LogReader::new(source)?;
        let (shape, policy) = (log.shape().clone(), log.policy().clone());
        let (mut reading, mut busy) = (LogParser::default(), ReadUtilization::new(&shape));
        while let Some(entry) = log.next_entry()? {
            match &entry.record {
                Logged::Event(event) => busy.event(entry.at, event),
                Logged::Output(output) => busy.output(entry.at, output),
            }
            reading.take(&entry);
        }
        let LogParser { external_events, until, .. } = reading;
        Ok(Self { shape, policy, external_events, until, busy: busy.shares(), restores: None })
    }

    /// Reads the log of the restores that used the library, so that the twin replays these.
    ///
    /// # Errors
    /// Names the first invalid line, or one that does not say where a piece begins.
    pub fn with_restores(
        mut self,
        source: impl BufRead,
        track_size: ByteCount,
    ) -> Result<Self, fulgurite_restore::log::LogError> {
        self.restores = Some(Restores::read(source, &self.external_events, track_size)?);
        Ok(self)
    }

    /// Returns the number of external events, requests included.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.external_events.len()
    }

    /// Replays the external events with simulated machines.
    ///
    /// # Errors
    /// When the library of the log cannot be created.
    pub fn run(&self, mechanics: Mechanics, seed: u64) -> Result<ServedResult, Error> {
        let ReplayResult { ends, restores } = replayer::play(self, mechanics, &Seed::new(seed))?;
        let mut result = ServedResult { seed, ..ServedResult::default() };
        let mut kinds: [[Histogram; 2]; 5] = Default::default();
        for (ask, twin) in self.external_events.iter().zip(ends) {
            if request_of(&ask.event).is_none() {
                continue;
            }
            let Some((served_at, served)) = ask.ended else {
                result.unended += 1;
                continue;
            };
            if restores.is_some() && matches!(ask.event, Event::Read { .. }) {
                // The twin's reads are different ones: these have no counterpart, and are counted
                // alone.
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
        let [reads, minutes, hours, later, verifications] = kinds.map(|[served, twin]| {
            LatencyComparison { served: served.quantiles(), twin: twin.quantiles() }
        });
        result.reads = reads;
        (result.due_in_minutes, result.due_in_hours, result.due_later) = (minutes, hours, later);
        result.verifications = verifications;
        Ok(result)
    }

    /// Compares restores of the log with those of the twin.
    fn compare(&self, log: &Restores, twin: &RestoreReplay) -> RestoreComparison {
        let mut kinds: [[Histogram; 2]; 4] = Default::default();
        let mut unended_twin = 0;
        for (restore, (requested, retrieval)) in &log.history.requested {
            let Some(done) = log.history.done.get(restore) else { continue };
            let twin_history = &twin.history;
            let in_twin = twin_history.requested.get(restore).zip(twin_history.done.get(restore));
            let Some(((requested_twin, _), done_twin)) = in_twin else {
                unended_twin += 1;
                continue;
            };
            let own = match retrieval {
                Retrieval::Expedited => 1,
                Retrieval::Standard => 2,
                Retrieval::Bulk => 3,
            };
            for kind in [0, own] {
                kinds[kind][0].add(done.since(*requested));
                kinds[kind][1].add(done_twin.since(*requested_twin));
            }
        }
        let [all, expedited, standard, bulk] = kinds.map(|[served, twin]| LatencyComparison {
            served: served.quantiles(),
            twin: twin.quantiles(),
        });
        RestoreComparison {
            all,
            expedited,
            standard,
            bulk,
            unended_twin,
            platters_of_no_use: log.platter_map.unusable_count(),
            order: fetch_order::compare(&log.history, &twin.history),
            busy_served: self.busy.drives,
            busy_twin: twin.busy.drives,
            shuttles_busy_served: self.busy.shuttles,
            shuttles_busy_twin: twin.busy.shuttles,
        }
    }
}

/// Returns the class of a read by the time until its deadline.
fn due_kind(left: Duration) -> usize {
    DUE_WITHIN.iter().take_while(|within| left > **within).count()
}

/// Returns the kinds of a [`ServedResult`], in their order, under which an external event counts.
fn kinds_of(ask: &ExternalEvent, end: End) -> Vec<usize> {
    match (&ask.event, end) {
        (Event::Read { deadline, .. }, End::Finished(Outcome::Read)) => {
            vec![0, 1 + due_kind(deadline.since(ask.at))]
        }
        (Event::Verify { .. }, End::Finished(Outcome::Verified)) => vec![4],
        _ => Vec::new(),
    }
}

/// State of reading a log.
#[derive(Debug, Default)]
struct LogParser {
    external_events: Vec<ExternalEvent>,
    /// Unfinished requests, by the log's request number.
    open: BTreeMap<RequestId, usize>,
    /// The last verification of each platter.
    verified: BTreeMap<PlatterId, usize>,
    until: Instant,
}

impl LogParser {
    fn take(&mut self, entry: &Entry) {
        self.until = entry.at;
        match &entry.record {
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
            self.external_events[number].ended = Some((at, end));
        }
    }

    fn event(&mut self, at: Instant, mut event: Event) {
        let number = self.external_events.len();
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
                // A cancel of a request that has ended names none of ours.
                let canceled = self.open.get(request).copied().unwrap_or(number);
                *request = RequestId::new(canceled as u64);
            }
            Event::Broke { .. } | Event::Repaired { .. } | Event::Battery { .. } => {}
            // These come from the machines, and are simulated.
            Event::Completed { .. }
            | Event::Passed { .. }
            | Event::Halted { .. }
            | Event::Failed { .. }
            | Event::Timer => return,
        }
        self.external_events.push(ExternalEvent { at, event, follows, ended: None });
    }
}

/// Returns the request number of an event that is a request.
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
