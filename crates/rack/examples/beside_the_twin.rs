//! Compares a live rack with its twin, as Pelican's authors compared their simulator with their
//! rack (OSDI 2014, section 4.4): bursts of reads over a minute, the means of both, and how far
//! they differ.
//!
//! `cargo run -p fulgurite-rack --example beside_the_twin -- --folder DIR --reads 15,60,240`
//!
//! The live side runs the real store, its index, its driver with the controller, its threads and
//! every byte: 1,152 directories, one blob for each of the 48 groups, its 15 + 3 stacks on 18 of
//! them. Only the disks are simulated: how long they take to spin up, to be mounted and unmounted
//! (`Simulated`, by the laws of the twin), and to read (`Pace`: a seek if the head is elsewhere,
//! then its rate).
//!
//! `--scale` scales these times and the minute in which reads arrive. Blobs are smaller than the
//! gigabyte they stand for, and disks read proportionally slower, so one read takes as long. Not
//! scaled is the time the machine takes to read, check and pass on bytes, and to run threads.
//! Divided by the scale, it counts as if the rack had taken it, so on a busy machine a smaller
//! scale differs more. Neither side has a network between the rack and its clients.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "its result")]
#![expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]

#[path = "beside_the_twin/live.rs"]
mod live;
#[path = "beside_the_twin/twin.rs"]
mod twin;

use std::path::PathBuf;
use std::process::ExitCode;

use fulgurite_units::{Duration, Seed};

/// Period in which reads arrive.
const OVER_S: f64 = 60.0;
/// Number of groups in Pelican.
const GROUPS: f64 = 48.0;

/// Command-line arguments.
struct Arguments {
    folder: Option<PathBuf>,
    reads: Vec<usize>,
    scale: f64,
    stripes: u64,
    seeds: u64,
    /// How many times each burst is served, each with disks of another seed.
    rounds: u64,
    within: f64,
}

/// A read: its arrival, in the twin's time, and the group of its blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadArrival {
    pub(crate) at: Duration,
    pub(crate) group: u32,
}

/// The figures that are compared. Times are in seconds of the twin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Averages {
    /// Gbit/s, up to the last byte of the last read.
    pub(crate) throughput: f64,
    /// From arrival to last byte.
    pub(crate) completion: f64,
    /// From arrival to first byte.
    pub(crate) first_byte: f64,
    /// From the start of its turn, disks spun up or not, to its last byte.
    pub(crate) service: f64,
    /// Disk spin-ups commanded.
    pub(crate) spin_ups: f64,
}

impl Averages {
    const NAMES: [&str; 5] =
        ["throughput, Gbit/s", "completion, s", "first byte, s", "service, s", "spin-ups"];

    const fn all(&self) -> [f64; 5] {
        [self.throughput, self.completion, self.first_byte, self.service, self.spin_ups]
    }

    /// Returns the mean of several.
    pub(crate) fn over(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            throughput: mean(|run| run.throughput),
            completion: mean(|run| run.completion),
            first_byte: mean(|run| run.first_byte),
            service: mean(|run| run.service),
            spin_ups: mean(|run| run.spin_ups),
        }
    }
}

fn main() -> ExitCode {
    let arguments = arguments();
    let made = arguments.folder.is_none().then(|| tempfile::tempdir().unwrap());
    let folder =
        arguments.folder.clone().or_else(|| Some(made.as_ref()?.path().to_owned())).unwrap();
    let rack = live::LiveRack::new(folder, arguments.stripes, arguments.scale);
    rack.fill();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{processors} processors, load {}; scale {}, {} stripes for 1 GB; {} rounds, {} seeds",
        load.split(' ').next().unwrap_or("unknown"),
        arguments.scale,
        arguments.stripes,
        arguments.rounds,
        arguments.seeds
    );
    println!("{:<8}{:<22}{:>12}{:>12}{:>10}", "reads", "mean", "live", "twin", "differs");
    let mut worst: f64 = 0.0;
    for &reads in &arguments.reads {
        let burst = burst(reads);
        let rounds: Vec<_> = (1..=arguments.rounds).map(|seed| rack.serve(&burst, seed)).collect();
        let live = Averages::over(&rounds.iter().map(|(live, _)| *live).collect::<Vec<_>>());
        let alone_s = rounds.iter().map(|(_, alone)| alone).sum::<f64>() / rounds.len() as f64;
        let twin = twin::averages(&burst, arguments.seeds);
        for ((name, live), twin) in Averages::NAMES.into_iter().zip(live.all()).zip(twin.all()) {
            let differs = (live / twin - 1.0) * 100.0;
            worst = worst.max(differs.abs());
            println!("{reads:<8}{name:<22}{live:>12.3}{twin:>12.3}{differs:>+8.1} %");
        }
        println!("{:<8}a read by itself, live: {alone_s:.3} s", "");
    }
    println!("the most that any differs: {worst:.1} %");
    ExitCode::from(u8::from(worst > arguments.within))
}

/// Draws `reads` reads, uniformly distributed over the period and the groups. The same count always
/// gives the same burst.
fn burst(reads: usize) -> Vec<ReadArrival> {
    let mut stream = Seed::new(reads as u64).child(b"burst").stream();
    let mut burst: Vec<ReadArrival> = (0..reads)
        .map(|_| {
            let at = Duration::from_secs_f64(stream.unit() * OVER_S);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 47")]
            let group = (stream.unit() * GROUPS) as u32;
            ReadArrival { at, group }
        })
        .collect();
    burst.sort_by_key(|read| read.at);
    burst
}

fn arguments() -> Arguments {
    let mut arguments = Arguments {
        folder: None,
        reads: vec![15, 60, 240],
        scale: 0.1,
        stripes: 16,
        seeds: 7,
        rounds: 3,
        within: 5.0,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        match word.as_str() {
            "--folder" => arguments.folder = Some(value.into()),
            "--reads" => {
                arguments.reads = value.split(',').map(|count| count.parse().unwrap()).collect()
            }
            "--scale" => arguments.scale = value.parse().unwrap(),
            "--stripes" => arguments.stripes = value.parse().unwrap(),
            "--seeds" => arguments.seeds = value.parse().unwrap(),
            "--rounds" => arguments.rounds = value.parse().unwrap(),
            "--within" => arguments.within = value.parse().unwrap(),
            other => unreachable!(
                "{other} is none of --folder, --reads, --scale, --stripes, --rounds, --seeds, \
                 --within"
            ),
        }
    }
    arguments
}
