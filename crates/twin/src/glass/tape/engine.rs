//! The event loop of the tape library: a heap ordered by time, then by the order of scheduling.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::hash::Hasher as _;
use std::ops::Range;

use fulgurite_units::{Duration, Instant, RandomStream, Seed};

use super::{BatchOrder, READS_WAITING_MAX, TapeDriveTime, TapeLibrary, TapeResult};
use crate::engine::RunHash;
use crate::engine::histogram::Histogram;
use crate::workload::{Placement, PlacementSampler};
use crate::{Error, TraceRead};

/// Completion events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Event {
    /// A robot has brought the cartridge of this drive.
    Brought(u16),
    /// The cartridge is threaded.
    Loaded(u16),
    /// A read is done.
    Done(u16),
    /// The cartridge is ejected.
    Unloaded(u16),
    /// A robot has taken the cartridge back.
    Returned(u16),
}

/// Inputs of the hash of a run.
#[derive(Hash)]
enum HashInput {
    /// A read arrived.
    Arrived { cartridge: u32, offset: u64 },
    /// Something ended.
    Ended(Event),
}

/// A robot move requested for a drive.
#[derive(Clone, Copy, Debug)]
struct Move {
    drive: u16,
    bring: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    read: TraceRead,
    offset: u64,
}

#[derive(Debug, Default)]
struct Cartridge {
    queue: VecDeque<Waiting>,
    /// Whether it is on its way to a drive, in it, or on its way back.
    out: bool,
}

#[derive(Debug, Default)]
struct Drive {
    cartridge: u32,
    along: f64,
    bytes_read: u64,
    batch: VecDeque<Waiting>,
    current: Option<Waiting>,
    /// When it began to wait for a robot.
    robot_from: u64,
}

/// Nanoseconds spent, summed over all drives.
#[derive(Debug, Default)]
struct TimeSpent {
    read: u64,
    locate: u64,
    load: u64,
    unmount: u64,
    robot: u64,
    robots_busy: u64,
}

struct Engine<'a> {
    library: &'a TapeLibrary,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    cartridges: Vec<Cartridge>,
    /// Cartridges in their slots with waiting reads, keyed by the number of the oldest.
    waiting: BTreeSet<(u64, u32)>,
    waiting_count: usize,
    drives: Vec<Drive>,
    drives_free: BTreeSet<u16>,
    robots_free: u16,
    moves: VecDeque<Move>,
    spent: TimeSpent,
    measured: Range<Instant>,
    completions: Histogram,
    hash: RunHash,
    result: TapeResult,
}

pub(super) fn run(
    library: &TapeLibrary,
    reads: impl Iterator<Item = TraceRead>,
    measured: Range<Instant>,
    placement: Placement,
    seed: Seed,
) -> Result<TapeResult, Error> {
    let mut sampler =
        PlacementSampler::new(placement, library.cartridges, seed.child(b"cartridges"))?;
    let mut offsets = seed.child(b"offsets").stream();
    let mut engine = Engine::new(library, measured);
    let (mut last, mut count) = (Instant::ZERO, 0);
    for read in reads {
        if read.at < last {
            let line = count + 1;
            return Err(Error::OutOfOrder { line, at: read.at, previous: last });
        }
        last = read.at;
        while engine.step(read.at.as_nanos()) {}
        let offset = offset(library, &read, &mut offsets)?;
        engine.handle_arrival(sampler.draw(), Waiting { number: count, read, offset })?;
        count += 1;
    }
    while engine.step(u64::MAX) {}
    Ok(engine.finish(count))
}

/// Draws the offset of a read: anywhere in its cartridge, as long as it ends there too.
fn offset(
    library: &TapeLibrary,
    read: &TraceRead,
    random: &mut RandomStream,
) -> Result<u64, Error> {
    let room = library.cartridge_capacity.get().checked_sub(read.size.get());
    let room = room.ok_or_else(|| Error::Parameter {
        field: "cartridge_capacity",
        value: library.cartridge_capacity.to_string(),
        expected: "as large as the largest read",
    })?;
    Ok(random.below(room.saturating_add(1)))
}

impl<'a> Engine<'a> {
    fn new(library: &'a TapeLibrary, measured: Range<Instant>) -> Self {
        Self {
            library,
            now: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            cartridges: (0..library.cartridges).map(|_| Cartridge::default()).collect(),
            waiting: BTreeSet::new(),
            waiting_count: 0,
            drives: (0..library.drives).map(|_| Drive::default()).collect(),
            drives_free: (0..library.drives).collect(),
            robots_free: library.robots,
            moves: VecDeque::new(),
            spent: TimeSpent::default(),
            measured,
            completions: Histogram::default(),
            hash: RunHash::default(),
            result: TapeResult::default(),
        }
    }

    fn handle_arrival(&mut self, cartridge: u32, waiting: Waiting) -> Result<(), Error> {
        self.now = waiting.read.at.as_nanos();
        self.hash
            .record(waiting.read.at, &HashInput::Arrived { cartridge, offset: waiting.offset });
        if self.waiting_count == READS_WAITING_MAX {
            return Err(Error::Overloaded { limit: READS_WAITING_MAX });
        }
        self.waiting_count += 1;
        self.result.queue_max = self.result.queue_max.max(self.waiting_count as u64);
        let place = &mut self.cartridges[cartridge as usize];
        place.queue.push_back(waiting);
        if !place.out && place.queue.len() == 1 {
            self.waiting.insert((waiting.number, cartridge));
        }
        self.dispatch();
        Ok(())
    }

    /// Processes the next event, if there is one before `until`. Arrivals at the same time go
    /// first.
    fn step(&mut self, until: u64) -> bool {
        let Some(&Reverse((at, _, event))) = self.events.peek() else { return false };
        if at >= until {
            return false;
        }
        self.events.pop();
        assert!(at >= self.now, "time never goes back");
        self.now = at;
        self.hash.record(Instant::from_nanos(at), &HashInput::Ended(event));
        match event {
            Event::Brought(drive) => {
                self.robot_ends(drive);
                let load = self.library.load.as_nanos();
                self.spent.load += load;
                self.schedule(load, Event::Loaded(drive));
            }
            Event::Loaded(drive) => {
                self.result.mounts += 1;
                self.take_batch(drive);
                self.read_next(drive);
            }
            Event::Done(drive) => {
                self.complete(drive);
                self.read_next(drive);
            }
            Event::Unloaded(drive) => {
                self.request_robot(Move { drive, bring: false });
            }
            Event::Returned(drive) => {
                self.robot_ends(drive);
                self.put_back(drive);
            }
        }
        true
    }

    /// Assigns the cartridge with the oldest waiting read to a free drive, as long as there are
    /// both.
    fn dispatch(&mut self) {
        while !self.waiting.is_empty() {
            let Some(drive) = self.drives_free.pop_first() else { return };
            let Some((_, cartridge)) = self.waiting.pop_first() else { return };
            self.cartridges[cartridge as usize].out = true;
            self.drives[usize::from(drive)].cartridge = cartridge;
            self.request_robot(Move { drive, bring: true });
        }
    }

    fn request_robot(&mut self, wanted: Move) {
        self.drives[usize::from(wanted.drive)].robot_from = self.now;
        self.moves.push_back(wanted);
        self.start_moves();
    }

    fn start_moves(&mut self) {
        while self.robots_free > 0 {
            let Some(Move { drive, bring }) = self.moves.pop_front() else { return };
            self.robots_free -= 1;
            let time = self.library.robot_move.as_nanos();
            self.spent.robots_busy += time;
            let event = if bring { Event::Brought(drive) } else { Event::Returned(drive) };
            self.schedule(time, event);
        }
    }

    fn robot_ends(&mut self, drive: u16) {
        self.spent.robot += self.now - self.drives[usize::from(drive)].robot_from;
        self.robots_free += 1;
        self.start_moves();
    }

    fn put_back(&mut self, drive: u16) {
        let cartridge = self.drives[usize::from(drive)].cartridge;
        let place = &mut self.cartridges[cartridge as usize];
        place.out = false;
        if let Some(oldest) = place.queue.front() {
            self.waiting.insert((oldest.number, cartridge));
        }
        self.drives_free.insert(drive);
        self.dispatch();
    }

    /// Takes the reads waiting for the cartridge of this drive, oldest first, up to the batch
    /// limit.
    fn take_batch(&mut self, drive: u16) {
        let drive = &mut self.drives[usize::from(drive)];
        let queue = &mut self.cartridges[drive.cartridge as usize].queue;
        let count = queue.len().min(self.library.batch_reads_max as usize);
        drive.batch.extend(queue.drain(..count));
        if self.library.order == BatchOrder::Offset {
            drive.batch.make_contiguous().sort_by_key(|waiting| (waiting.offset, waiting.number));
        }
    }

    /// Begins the next read of a drive, or unmounts: after a batch, the cartridge stays only if no
    /// other has an older read.
    fn read_next(&mut self, index: u16) {
        let drive = &self.drives[usize::from(index)];
        if drive.batch.is_empty() {
            let own = self.cartridges[drive.cartridge as usize].queue.front();
            let other = self.waiting.first().map_or(u64::MAX, |&(number, _)| number);
            if own.is_some_and(|oldest| oldest.number < other) {
                self.take_batch(index);
            }
        }
        let library = self.library;
        let drive = &mut self.drives[usize::from(index)];
        let Some(next) = choose(library, drive) else {
            let time = library.unmount(drive.along, drive.bytes_read);
            (drive.along, drive.bytes_read) = (0.0, 0);
            self.spent.unmount += time;
            self.schedule(time, Event::Unloaded(index));
            return;
        };
        let locate = library.locate(drive.along, library.along(next.offset));
        let transfer = library.transfer(next.read.size);
        drive.along = library.along(next.offset + next.read.size.get());
        drive.bytes_read += next.read.size.get();
        drive.current = Some(next);
        self.spent.locate += locate;
        self.spent.read += transfer;
        self.schedule(locate + transfer, Event::Done(index));
    }

    fn complete(&mut self, drive: u16) {
        let done = self.drives[usize::from(drive)].current.take();
        assert!(done.is_some(), "only a drive that reads can finish a read");
        let Some(Waiting { read, .. }) = done else { return };
        self.waiting_count -= 1;
        if self.measured.contains(&read.at) {
            let time = Instant::from_nanos(self.now).since(read.at);
            self.completions.add(time);
            self.result.bytes += read.size.get();
        }
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((self.now + after, self.scheduled, event)));
    }

    fn finish(self, reads: u64) -> TapeResult {
        assert_eq!(self.waiting_count, 0, "every read is answered");
        assert_eq!(self.drives_free.len(), self.drives.len(), "every cartridge is back");
        let all = self.now as f64 * self.drives.len() as f64;
        let share = |nanos: u64| if all > 0.0 { nanos as f64 / all } else { 0.0 };
        let spent = &self.spent;
        let mut time = TapeDriveTime {
            read: share(spent.read),
            locate: share(spent.locate),
            load: share(spent.load),
            unmount: share(spent.unmount),
            robot: share(spent.robot),
            idle: 0.0,
        };
        time.idle = 1.0 - (time.read + time.locate + time.load + time.unmount + time.robot);
        let robots = f64::from(self.library.robots) / self.drives.len() as f64;
        TapeResult {
            completion: self.completions.quantiles(),
            drive_time: time,
            robots_busy: share(spent.robots_busy) / robots,
            reads_per_mount: reads as f64 / self.result.mounts.max(1) as f64,
            makespan: Duration::from_nanos(self.now).as_secs_f64(),
            hash: self.hash.finish(),
            ..self.result
        }
    }
}

/// Chooses the next read from the batch of a drive.
fn choose(library: &TapeLibrary, drive: &mut Drive) -> Option<Waiting> {
    if library.order != BatchOrder::Nearest {
        return drive.batch.pop_front();
    }
    let far = |waiting: &Waiting| (library.along(waiting.offset) - drive.along).abs();
    let nearest = (0..drive.batch.len())
        .min_by(|&a, &b| far(&drive.batch[a]).total_cmp(&far(&drive.batch[b])))?;
    drive.batch.remove(nearest)
}
