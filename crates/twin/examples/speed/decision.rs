//! Measures what one step of the controller costs at a given queue length. The loop is closed: each
//! finished read is replaced by another, so the queue length stays constant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant as Clock;

use fulgurite_glass_core::control::limits::REPORT_UM;
use fulgurite_glass_core::control::{
    Action, Command, Event, Library, LibraryShape, Mechanics, Output, Policy, RailPosition,
    RequestId, Throughput, TrackSpan,
};
use fulgurite_twin::engine::histogram::Histogram;
use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, Outbox, PlatterId, RandomStream, Seed,
    SlotIndex, TrackIndex,
};

/// Steps before the measurement starts.
const WARM_UP: u64 = 100_000;
/// Measured steps.
const STEPS: u64 = 1_000_000;

/// Cost of a step, in nanoseconds.
pub(crate) struct Cost {
    pub(crate) queued: u64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The 99th percentile over the steps that issued a command.
    pub(crate) p99_commands: f64,
}

pub(crate) fn print(queued: u64) {
    for policy in ["silica", "fulgurite", "shortest-paths"] {
        let cost = measure(queued, policy);
        println!(
            "{{\"policy\":\"{policy}\",\"queued\":{queued},\"shuttles\":40,\"steps\":{STEPS},\
             \"mean_ns\":{:.0},\"p50_ns\":{:.0},\"p99_ns\":{:.0},\"p99_commands_ns\":{:.0}}}",
            cost.mean, cost.p50, cost.p99, cost.p99_commands
        );
    }
}

/// Measures with 20 drives and 40 shuttles.
pub(crate) fn measure(queued: u64, policy: &str) -> Cost {
    let mut shape = LibraryShape::mdu();
    // Here reads go to any slot.
    shape.spare_slots_per_shelf = 0;
    shape.shuttles_per_panel = 20;
    let mut driver = Driver::new(shape, policy);
    for request in 0..queued {
        driver.wanted = request;
        driver.read();
    }
    let (mut all, mut commands) = (Histogram::default(), Histogram::default());
    for number in 0..WARM_UP + STEPS {
        let (took, gave) = driver.next();
        if number >= WARM_UP {
            all.add(took);
            if gave {
                commands.add(took);
            }
        }
    }
    let quantiles = all.quantiles();
    let p99_commands = commands.quantiles().p99 * 1e9;
    Cost {
        queued,
        mean: quantiles.mean * 1e9,
        p50: quantiles.p50 * 1e9,
        p99: quantiles.p99 * 1e9,
        p99_commands,
    }
}

/// A pending event, ordered by time and sequence number.
type Entry = (Instant, u64, PendingEvent);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PendingEvent {
    Done(u64),
    Passed(u64, u64),
    Timer,
}

struct Driver {
    library: Library,
    shape: LibraryShape,
    mechanics: Mechanics,
    random: RandomStream,
    out: Outbox<Output>,
    heap: BinaryHeap<Reverse<Entry>>,
    now: Instant,
    sequence: u64,
    timer: Option<Instant>,
    /// Request numbers free for reuse.
    free: Vec<u64>,
    wanted: u64,
}

impl Driver {
    fn new(shape: LibraryShape, policy: &str) -> Self {
        let policy = Policy::named(policy).unwrap();
        Self {
            library: Library::with_policy(&shape, policy).unwrap(),
            shape,
            mechanics: Mechanics::new(Throughput::PAPER, ByteCount::new(20_000_000)),
            random: Seed::new(1).stream(),
            out: Outbox::new(),
            heap: BinaryHeap::new(),
            now: Instant::ZERO,
            sequence: 0,
            timer: None,
            free: Vec::new(),
            wanted: 0,
        }
    }

    /// Runs one step: replaces a finished request, or handles the next pending event.
    fn next(&mut self) -> (Duration, bool) {
        if let Some(request) = self.free.pop() {
            self.wanted = request;
            return self.read();
        }
        loop {
            let Reverse((at, _, next)) = self.heap.pop().unwrap();
            self.now = at;
            match next {
                PendingEvent::Done(command) => {
                    let command = fulgurite_glass_core::control::CommandId::new(command);
                    return self.step(Event::Completed { command });
                }
                PendingEvent::Passed(command, at) => {
                    let command = fulgurite_glass_core::control::CommandId::new(command);
                    return self.step(Event::Passed { command, at: RailPosition::new(at) });
                }
                PendingEvent::Timer if self.timer == Some(at) => {
                    self.timer = None;
                    return self.step(Event::Timer);
                }
                PendingEvent::Timer => {}
            }
        }
    }

    /// Requests one track from a random slot.
    fn read(&mut self) -> (Duration, bool) {
        let slot = u32::try_from(self.random.below(u64::from(self.shape.slot_count()))).unwrap();
        let mut id = [0; 16];
        id[..4].copy_from_slice(&slot.to_le_bytes());
        self.step(Event::Read {
            request: RequestId::new(self.wanted),
            platter: PlatterId::from_bytes(id),
            slot: SlotIndex::new(slot),
            tracks: TrackSpan::new(TrackIndex::new(0), 1),
            deadline: self.now + Duration::from_secs(15 * 3600),
        })
    }

    fn step(&mut self, event: Event) -> (Duration, bool) {
        let begin = Clock::now();
        self.library.step(self.now, event, &mut self.out);
        let took = begin.elapsed();
        let mut gave = false;
        let outputs: Vec<Output> = self.out.drain().collect();
        for output in outputs {
            match output {
                Output::Do(command) => {
                    gave = true;
                    self.start(&command);
                }
                Output::Finished { request, .. } => self.free.push(request.get()),
                Output::Rejected { reason, .. } => panic!("{reason}"),
                Output::Halt { .. } | Output::Traveled(_) => {}
            }
        }
        if let Some(due) = self.library.deadline()
            && self.timer.is_none_or(|timer| due < timer)
        {
            self.timer = Some(due);
            self.push(due, PendingEvent::Timer);
        }
        (Duration::from_nanos(u64::try_from(took.as_nanos()).unwrap()), gave)
    }

    fn start(&mut self, command: &Command) {
        let ends = self.now + self.mechanics.duration(&command.action, &mut self.random);
        let id = command.id.get();
        if let Action::Move { from, to, reports: true, .. } = command.action {
            for step in 1..from.get().abs_diff(to.get()).div_ceil(REPORT_UM) {
                let part = step * REPORT_UM;
                let at = if from < to { from.get() + part } else { from.get() - part };
                let behind = from.meters_to(RailPosition::new(at));
                let meters = from.meters_to(to);
                let Some(after) = self.mechanics.passes(meters, behind) else { break };
                self.push(self.now + after, PendingEvent::Passed(id, at));
            }
        }
        self.push(ends, PendingEvent::Done(id));
    }

    fn push(&mut self, at: Instant, next: PendingEvent) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, next)));
    }
}
