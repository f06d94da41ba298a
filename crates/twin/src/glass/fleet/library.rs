//! One library of a fleet: takes its parts, and returns the end of each part.

use std::cell::Cell;

use fulgurite_glass_core::control::{Event, Outcome, Output, RequestId};
use fulgurite_units::{Instant, Ratio, Seed};

use super::split::Share;
use super::stop::{Stop, Stopper};
use crate::engine::histogram::Histogram;
use crate::engine::{Observer, run_arrivals};
use crate::glass::result::RunResult;
use crate::glass::{Glass, Observation};
use crate::{Error, Scenario, TraceRead};

/// The result of one library.
#[derive(Debug)]
pub(super) struct LibraryRun {
    pub(super) result: RunResult,
    /// Measured reads served by this library alone.
    pub(super) completion: Histogram,
    pub(super) reads: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
    /// When its part of each multipart read ended; `None` if it was unavailable.
    pub(super) ends: Vec<(u32, Option<Instant>)>,
    /// When it was stopped, if it was.
    pub(super) stopped_at: Option<Instant>,
}

/// Runs one library. Every part fits into a shard, so it is one request. The run stops when more
/// than `late_max` reads of the fleet are late. Parts in progress then count as ending at the stop.
pub(super) fn run(
    each: &Scenario,
    share: &Share,
    seed: u64,
    number: usize,
    stop: Stop,
    late_max: u64,
) -> Result<LibraryRun, Error> {
    let scenario = Scenario { unavailable: Ratio::ZERO, platters: share.platters, ..each.clone() };
    let label = format!("library {number}");
    let seed = Seed::new(seed).child(label.as_bytes()).stream().next_u64();
    let arriving = Cell::new(None);
    let reads = (0u32..).zip(&share.parts).map(|(number, part)| {
        arriving.set(Some(number));
        TraceRead { at: part.at, size: part.size, key: 0 }.into()
    });
    let window = [scenario.measure_from, scenario.measure_until].map(|at| Instant::ZERO + at);
    let mut watch = PartTracker {
        share,
        stopper: Stopper::new(share, stop, window, late_max),
        window,
        arriving: &arriving,
        parts: Vec::new(),
        completion: Histogram::default(),
        reads: 0,
        bytes: 0,
        failed: 0,
        ends: Vec::with_capacity(share.multipart_reads.len()),
    };
    let result = run_arrivals::<Glass, _>(&scenario, seed, reads, &mut watch)?;
    watch.end_pending();
    let stopped_at = watch.stopper.stopped_at;
    let PartTracker { completion, reads, bytes, failed, ends, .. } = watch;
    Ok(LibraryRun { result, completion, reads, bytes, failed, ends, stopped_at })
}

/// Tracks each part from its request to its end.
struct PartTracker<'a> {
    share: &'a Share,
    stopper: Stopper<'a>,
    /// Measured reads arrive from the first time on, and before the second.
    window: [Instant; 2],
    /// The arriving part, until it has been requested.
    arriving: &'a Cell<Option<u32>>,
    /// The part of each request number; numbers are reused.
    parts: Vec<Option<u32>>,
    completion: Histogram,
    reads: u64,
    bytes: u64,
    failed: u64,
    ends: Vec<(u32, Option<Instant>)>,
}

impl PartTracker<'_> {
    fn ended(&mut self, request: RequestId, end: Option<Instant>) {
        let Ok(request) = u32::try_from(request.get()) else { return };
        let Some(number) = self.parts.get_mut(request as usize).and_then(Option::take) else {
            return;
        };
        self.stopper.ended(number);
        self.part_ended(number, end);
    }

    /// Ends the parts in progress when the library is stopped: they take at least until then.
    fn end_pending(&mut self) {
        let Some(stopped_at) = self.stopper.stopped_at else { return };
        for number in self.stopper.pending().collect::<Vec<u32>>() {
            self.part_ended(number, Some(stopped_at));
        }
    }

    fn part_ended(&mut self, number: u32, end: Option<Instant>) {
        let multipart_reads = &self.share.multipart_reads;
        if let Ok(at) = multipart_reads.binary_search_by_key(&number, |(part, _)| *part) {
            self.ends.push((multipart_reads[at].1, end));
            return;
        }
        let part = self.share.parts[number as usize];
        if part.at < self.window[0] || part.at >= self.window[1] {
            return;
        }
        let Some(end) = end else {
            self.failed += 1;
            return;
        };
        self.reads += 1;
        self.bytes += part.size.get();
        self.completion.add(end.since(part.at));
    }
}

impl Observer<Glass> for PartTracker<'_> {
    fn observe(&mut self, now: Instant, observation: Observation<'_>) {
        match observation {
            Observation::Event(event) => self.event(now, event),
            Observation::Output(output) => self.output(now, output),
            Observation::Stepped(_)
            | Observation::RestoreEvent(_)
            | Observation::RestoreCommand(_) => {}
        }
    }

    fn is_satisfied(&self) -> bool {
        self.stopper.stopped_at.is_some()
    }
}

impl PartTracker<'_> {
    fn event(&mut self, now: Instant, event: &Event) {
        self.stopper.passed(now);
        let &Event::Read { request, .. } = event else { return };
        let Ok(request) = usize::try_from(request.get()) else { return };
        if request >= self.parts.len() {
            self.parts.resize(request + 1, None);
        }
        // Requests that the engine makes itself after a rejection belong to no part.
        self.parts[request] = self.arriving.take();
    }

    fn output(&mut self, now: Instant, output: &Output) {
        match *output {
            Output::Finished { request, outcome: Outcome::Read } => self.ended(request, Some(now)),
            Output::Finished { request, outcome: Outcome::Failed(_) }
            | Output::Rejected { request, .. } => self.ended(request, None),
            Output::Finished { .. } | Output::Do(_) | Output::Halt { .. } | Output::Traveled(_) => {
            }
        }
    }
}
