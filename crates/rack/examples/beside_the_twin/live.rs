//! The live rack. It is created once and reopened for each burst, so that every burst starts with
//! all disks spun down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fulgurite_disks::{Pace, PlaceId, Simulated, Times};
use fulgurite_rack::format::FRAGMENT_BYTES;
use fulgurite_rack::work::{Failing, Injected};
use fulgurite_rack::{Entropy, Notification, RackOptions, RackStore, ScrubPolicy};
use fulgurite_rack::{FAIL_POINTS, FailPoints};
use fulgurite_rack_core::{
    Assignment, Command, Event, OpId, OpKind, Policy, Shape, presets, solve,
};
use fulgurite_units::{ByteCount, Clock, Duration, Instant, Ratio, Seed, UnixTime};
use futures::StreamExt as _;
use object_store::{ObjectStoreExt as _, path::Path};

use crate::twin::BLOB_BYTES;
use crate::{Averages, ReadArrival};

/// Information stacks of a blob, and the read rate of a Pelican disk in bytes per second.
const STACKS: u64 = 15;
const DISK_RATE: f64 = 105e6;
/// Number of reads of one gigabyte that may be overtaken, as in the paper.
const REACH_READS: u64 = 500;

/// A rack on directories, with the settings it runs under.
pub(crate) struct LiveRack {
    folder: PathBuf,
    shape: Shape,
    assignment: Assignment,
    stripes: u64,
    scale: f64,
    clock: Clock,
    runtime: tokio::runtime::Runtime,
}

/// What the controller's events reveal about reads.
#[derive(Debug, Default)]
struct ReadLog {
    since: BTreeMap<u32, Instant>,
    /// Arrival time and class of each read.
    arrived: BTreeMap<OpId, (Instant, u32)>,
    run: BTreeMap<OpId, Instant>,
    /// When each read's turn came, and how long it took once its disks were spun up.
    turns: Vec<Instant>,
    alone_s: Vec<f64>,
    spin_ups: u64,
}

impl LiveRack {
    pub(crate) fn new(folder: PathBuf, stripes: u64, scale: f64) -> Self {
        let shape = presets::shape("pelican").unwrap();
        let assignment = solve(&shape).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { folder, shape, assignment, stripes, scale, clock: clock(), runtime }
    }

    /// Creates the rack with one blob in each group. Its disks take no time meanwhile.
    pub(crate) fn fill(&self) {
        let injected = Injected::default();
        let disks = Simulated::new(self.shape.places(), Times::PELICAN, Ratio::ZERO, Seed::new(0));
        let blob = usize::try_from(self.blob_bytes()).unwrap();
        let mut bytes = vec![0; blob];
        Seed::new(1).stream().fill(&mut bytes);
        let bytes = bytes::Bytes::from(bytes);
        self.runtime.block_on(async {
            let rack = RackStore::init(self.options(disks, &injected)).await.unwrap();
            for group in self.assignment.groups() {
                rack.put(&key(group.get()), bytes.clone().into()).await.unwrap();
                // Makes the group look full, so that the next blob goes to the next group.
                for &place in self.assignment.places(group) {
                    injected.fail(place, Failing::Full { after: 0 });
                }
            }
            rack.stop();
        });
    }

    /// Serves a burst. Returns its means, and the mean time of a read once its disks are spun up,
    /// in seconds as the twin counts them.
    pub(crate) fn serve(&self, burst: &[ReadArrival], seed: u64) -> (Averages, f64) {
        let seed = Seed::new(seed);
        let scale = Ratio::new(self.scale).unwrap();
        let disks = Simulated::new(self.shape.places(), Times::PELICAN_SLOW_MOUNTS, scale, seed)
            .with_pace(self.pace());
        let rack = RackStore::open(self.options(disks, &Injected::default())).unwrap();
        let mut watch = self.runtime.block_on(rack.watch()).unwrap();
        let assignment = self.assignment.clone();
        let log = self.runtime.spawn(async move {
            let mut log = ReadLog::default();
            while let Some(seen) = watch.next().await {
                if let Notification::Step { at, event, commands, .. } = seen.unwrap() {
                    log.record(&assignment, at, &event, &commands);
                }
            }
            log
        });
        let began = self.clock.passed();
        let reads: Vec<[Instant; 3]> = self.runtime.block_on(async {
            let reads = burst.iter().map(|read| {
                let at = began + Duration::from_secs_f64(read.at.as_secs_f64() * self.scale);
                let group = read.group;
                let (rack, clock, bytes) = (rack.clone(), self.clock.clone(), self.blob_bytes());
                tokio::spawn(one(rack, clock, at, group, bytes))
            });
            let ended = futures::future::join_all(reads.collect::<Vec<_>>()).await;
            ended.into_iter().map(Result::unwrap).collect()
        });
        rack.stop();
        let seen = self.runtime.block_on(log).unwrap();
        assert_eq!(seen.turns.len(), burst.len(), "no read was refused or requested again");
        self.averages(&seen, &reads, began)
    }

    fn averages(&self, seen: &ReadLog, reads: &[[Instant; 3]], began: Instant) -> (Averages, f64) {
        let since = |at: &Instant| at.since(began).as_secs_f64() / self.scale;
        let count = reads.len() as f64;
        let sum = |of: usize| reads.iter().map(|read| since(&read[of])).sum::<f64>();
        let turns = seen.turns.iter().map(since).sum::<f64>();
        let last = reads.iter().map(|read| since(&read[2])).fold(0.0, f64::max);
        let means = Averages {
            throughput: count * BLOB_BYTES * 8.0 / 1e9 / last,
            completion: (sum(2) - sum(0)) / count,
            first_byte: (sum(1) - sum(0)) / count,
            service: (sum(2) - turns) / count,
            spin_ups: seen.spin_ups as f64,
        };
        (means, seen.alone_s.iter().sum::<f64>() / count / self.scale)
    }

    fn blob_bytes(&self) -> u64 {
        self.stripes * STACKS * FRAGMENT_BYTES as u64
    }

    /// Scales the rate so that a stack takes as long as a stack of a one-gigabyte blob.
    fn pace(&self) -> Pace {
        let takes_s = BLOB_BYTES / STACKS as f64 / DISK_RATE;
        let rate = (self.stripes * FRAGMENT_BYTES as u64) as f64 / takes_s;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        Pace { bytes_per_second: ByteCount::new(rate as u64), ..Pace::PELICAN }
    }

    fn options(&self, disks: Simulated, injected: &Injected) -> RackOptions {
        let root = |place: PlaceId| self.folder.join(format!("disk-{place}"));
        let reach = ByteCount::new(REACH_READS * self.blob_bytes());
        let mut draws = Seed::new(self.clock.now().as_millis()).stream();
        let draws = Mutex::new(move || {
            let mut bytes = [0; 16];
            draws.fill(&mut bytes);
            bytes
        });
        RackOptions {
            directory: self.folder.join("rack"),
            shape: self.shape.clone(),
            policy: Policy {
                reach_bytes: Some(reach),
                spins_up_in_turn: true,
                ..Policy::pelican()
            },
            roots: self.shape.places().map(|place| (place, root(place))).collect(),
            backend: Arc::new(disks),
            clock: self.clock.clone(),
            entropy: Entropy::new(move || (draws.lock().unwrap())()),
            fail: FailPoints::unarmed(&FAIL_POINTS),
            injected: injected.clone(),
            scrub: ScrubPolicy::default(),
            rated_spin_ups: None,
        }
    }
}

impl ReadLog {
    /// Records an event. As in the twin, a read's turn comes when its class begins to switch to its
    /// group, or else when it runs, but never before it arrives.
    fn record(&mut self, groups: &Assignment, at: Instant, event: &Event, commands: &[Command]) {
        if let Event::Submit { op } = event {
            self.arrived.insert(op.id, (at, groups.class_of(op.group).get()));
        }
        if let Event::Done { op } = event {
            let since = self.run.remove(op).unwrap();
            self.alone_s.push(at.since(since).as_secs_f64());
        }
        for command in commands {
            match *command {
                Command::SpinUp { place, kind, .. } => {
                    assert_eq!(kind, OpKind::Read, "only reads are submitted");
                    self.spin_ups += 1;
                    self.since.entry(class(groups, place)).or_insert(at);
                }
                Command::SpinDown { place } => {
                    self.since.entry(class(groups, place)).or_insert(at);
                }
                Command::Run { op, .. } => {
                    let (arrived, class) = self.arrived.remove(&op).unwrap();
                    self.turns.push(self.since.remove(&class).unwrap_or(at).max(arrived));
                    self.run.insert(op, at);
                }
                Command::Refuse { op, refusal } => unreachable!("{op:?}: {refusal:?}"),
                Command::Alarm { group, .. } => unreachable!("group {group} lost disks"),
                Command::Overdrawn { .. } => unreachable!("no budget is configured"),
            }
        }
    }
}

fn class(groups: &Assignment, place: PlaceId) -> u32 {
    groups.class_of(groups.slot(place).group).get()
}

/// Performs one read. Returns when it arrived, when its first bytes came, and when its last did.
async fn one(rack: RackStore, clock: Clock, at: Instant, group: u32, bytes: u64) -> [Instant; 3] {
    if let Some(left) = clock.sleep_until(at) {
        tokio::time::sleep(left.into()).await;
    }
    let came = clock.passed();
    let mut stream = rack.get(&key(group)).await.unwrap().into_stream();
    let (mut first, mut have) = (None, 0);
    while let Some(piece) = stream.next().await {
        first.get_or_insert_with(|| clock.passed());
        have += piece.unwrap().len() as u64;
    }
    assert_eq!(have, bytes, "the whole blob");
    [came, first.unwrap(), clock.passed()]
}

fn key(group: u32) -> Path {
    Path::from(format!("blob-of-{group}"))
}

/// Returns the machine's clock.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn clock() -> Clock {
    let began = std::time::Instant::now();
    let wall = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        UnixTime::from_millis(u64::try_from(since.as_millis()).unwrap())
    };
    let passed = move || {
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap();
        Instant::from_nanos(ns)
    };
    Clock::new(wall, passed)
}
