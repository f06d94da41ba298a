//! Throughput of the controller of Pelican's rack in events per second, for a day of reads at
//! several rates, with several queue lengths and the orders of both policies (batches with several
//! reordering bounds).
//!
//! ```text
//! cargo run --release -p fulgurite-rack-core --example events [-- --json]
//! ```
//!
//! The simulated disks are trivial: up after 14 s, down after 1 s, a read takes 0.65 s. Their event
//! queue is part of the measured time, so the controller is faster than the figure.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fulgurite_rack_core::{
    Budget, Command, Due, Event, GroupId, Members, Op, OpId, OpKind, Order, PlaceId, Policy, Rack,
    presets, solve,
};
use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox, Seed};

const DAY: Duration = Duration::from_secs(86_400);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledEvent {
    Read,
    Up(PlaceId),
    Down(PlaceId),
    Done(OpId),
}

fn main() {
    let shape = presets::shape("pelican").unwrap_or_else(|error| panic!("{error}"));
    let groups = solve(&shape).unwrap_or_else(|error| panic!("{error}"));
    let is_json = std::env::args().nth(1).as_deref() == Some("--json");
    if !is_json {
        println!("order    reads/s  queue   events  switches  refused  seconds  events/s");
    }
    let batches = |reach: Option<u64>| {
        let reach_bytes = reach.map(|reach| ByteCount::new(reach * 1_000_000_000));
        Policy { reach_bytes, ..Policy::pelican() }
    };
    let patient = Due { patience: Duration::from_secs(120), ..Due::default() };
    let budget = Some(Budget { max_spinups_per_day: 164 });
    let patient = Policy { order: Order::Due(patient), budget, ..Policy::default() };
    for (order, rate, client_queue, policy) in [
        ("500 GB", 0.5, 1_000, batches(Some(500))),
        ("500 GB", 4.0, 1_000, batches(Some(500))),
        ("500 GB", 8.0, 1_000, batches(Some(500))),
        ("50 GB", 8.0, 1_000, batches(Some(50))),
        ("any", 8.0, 1_000, batches(None)),
        ("500 GB", 8.0, 10_000, batches(Some(500))),
        ("due", 0.5, 1_000, Policy::default()),
        ("due", 4.0, 1_000, Policy::default()),
        ("due", 8.0, 1_000, Policy::default()),
        ("patient", 0.5, 1_000, patient),
        ("patient", 8.0, 1_000, patient),
    ] {
        let policy = Policy { client_queue, ..policy };
        let (began, processor) = (std::time::Instant::now(), processor_s());
        let mut rack = Rack::new(&shape, groups.clone(), policy);
        let events = day(&mut rack, rate);
        let (seconds, processor) = (began.elapsed().as_secs_f64(), processor_s() - processor);
        if is_json {
            println!(
                "{{\"rate\":{rate},\"order\":\"{order}\",\"events\":{events},\
                 \"wall_s\":{seconds:.4},\"processor_s\":{processor:.4}}}"
            );
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "it is printed")]
        let speed = events as f64 / seconds;
        let counters = rack.counters();
        println!(
            "{order:7}  {rate:7}  {client_queue:5}  {events:7}  {:8}  {:7}  {seconds:7.3}  {:8.0}",
            counters.switches, counters.busy, speed
        );
    }
}

/// Returns the CPU time of this process in seconds; Linux reports nanoseconds.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let spent = text.split_ascii_whitespace().next().and_then(|spent| spent.parse::<f64>().ok());
    spent.unwrap_or(f64::NAN) / 1e9
}

/// Simulates a day of reads. Returns the number of events.
fn day(rack: &mut Rack, rate: f64) -> u64 {
    let mut random = Seed::new(1).child(b"reads").stream();
    let mut agenda = BinaryHeap::from([Reverse((Instant::ZERO, 0, ScheduledEvent::Read))]);
    let (mut events, mut sequence, mut next_op) = (0, 0, 0);
    let mut out = Outbox::new();
    while let Some(Reverse((now, _, scheduled))) = agenda.pop() {
        if now.since(Instant::ZERO) > DAY {
            break;
        }
        let mut later = |time: Duration, scheduled| {
            sequence += 1;
            agenda.push(Reverse((now + time, sequence, scheduled)));
        };
        let event = match scheduled {
            ScheduledEvent::Read => {
                let gap = -(1.0 - random.unit()).ln() / rate;
                later(Duration::from_secs_f64(gap), ScheduledEvent::Read);
                next_op += 1;
                let group = u32::try_from(random.below(48)).unwrap_or(0);
                Event::Submit { op: read(next_op, group) }
            }
            ScheduledEvent::Up(place) => Event::Up { place },
            ScheduledEvent::Down(place) => Event::Down { place },
            ScheduledEvent::Done(op) => Event::Done { op },
        };
        events += 1;
        rack.step(now, event, &mut out);
        for command in out.drain() {
            match command {
                Command::SpinUp { place, .. } => {
                    later(Duration::from_secs(14), ScheduledEvent::Up(place));
                }
                Command::SpinDown { place } => {
                    later(Duration::from_secs(1), ScheduledEvent::Down(place));
                }
                Command::Run { op, .. } => {
                    later(Duration::from_millis(650), ScheduledEvent::Done(op))
                }
                Command::Refuse { .. } | Command::Alarm { .. } | Command::Overdrawn { .. } => {}
            }
        }
    }
    events
}

const fn read(id: u64, group: u32) -> Op {
    Op {
        id: OpId::new(id),
        group: GroupId::new(group),
        kind: OpKind::Read,
        bytes: ByteCount::new(1_000_000_000),
        members: Members::first(18),
        enough: 15,
        due: None,
    }
}
