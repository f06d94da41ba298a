//! A live rack beside its twin, as Pelican's makers held their simulator beside their rack (OSDI
//! 2014, section 4.4): bursts of reads over a minute, the means of both, and by how much they
//! differ.
//!
//! `cargo run -p fulgurite-stacks --example beside_the_twin -- --folder DIR --reads 15,60,240`
//!
//! Live are the store, its index, its driver with the controller, its threads and every byte: 1,152
//! directories, a blob for each of the 48 groups, 15 + 3 stacks of it on 18 of them. Simulated are
//! the disks: how long they take to turn, to be mounted and put away (`Simulated`, the laws of the
//! twin) and to read (`Pace`: a seek where the head is elsewhere, then its rate).
//!
//! What is scaled: these times, by `--scale`, and the minute in which reads come. Blobs have fewer
//! bytes than the gigabyte they stand for, and disks read so much slower that one takes as long.
//! What is not scaled: what the machine takes to read, check and pass bytes on, and to run threads.
//! It counts, divided by the scale, as if the rack took it: on a machine that is busy with other
//! things a smaller scale differs more. No network is between the rack and its clients, in neither.

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

/// Reads come in this time.
const OVER_S: f64 = 60.0;
/// Groups of Pelican.
const GROUPS: f64 = 48.0;

/// What is asked for.
struct Asked {
    folder: Option<PathBuf>,
    reads: Vec<usize>,
    scale: f64,
    stripes: u64,
    seeds: u64,
    /// Times that each burst is served, with disks of another seed.
    rounds: u64,
    within: f64,
}

/// A read: when it comes, as the twin counts time, and the group of its blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Come {
    pub(crate) at: Duration,
    pub(crate) group: u32,
}

/// What is compared. Times in seconds, as the twin counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Means {
    /// Gbit/s, until the last read had its last byte.
    pub(crate) throughput: f64,
    /// From its arrival to its last byte.
    pub(crate) completion: f64,
    /// From its arrival to its first byte.
    pub(crate) first_byte: f64,
    /// From when its turn came, disks asleep or not, to its last byte.
    pub(crate) service: f64,
    /// Disks that were told to turn.
    pub(crate) spin_ups: f64,
}

impl Means {
    const NAMES: [&str; 5] =
        ["throughput, Gbit/s", "completion, s", "first byte, s", "service, s", "spin-ups"];

    const fn all(&self) -> [f64; 5] {
        [self.throughput, self.completion, self.first_byte, self.service, self.spin_ups]
    }

    /// The means of several.
    pub(crate) fn of(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            throughput: mean(|of| of.throughput),
            completion: mean(|of| of.completion),
            first_byte: mean(|of| of.first_byte),
            service: mean(|of| of.service),
            spin_ups: mean(|of| of.spin_ups),
        }
    }
}

fn main() -> ExitCode {
    let asked = asked();
    let made = asked.folder.is_none().then(|| tempfile::tempdir().unwrap());
    let folder = asked.folder.clone().or_else(|| Some(made.as_ref()?.path().to_owned())).unwrap();
    let rack = live::LiveRack::new(folder, asked.stripes, asked.scale);
    rack.fill();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{processors} processors, load {}; scale {}, {} stripes for 1 GB; {} rounds, {} seeds",
        load.split(' ').next().unwrap_or("unknown"),
        asked.scale,
        asked.stripes,
        asked.rounds,
        asked.seeds
    );
    println!("{:<8}{:<22}{:>12}{:>12}{:>10}", "reads", "mean", "live", "twin", "differs");
    let mut worst: f64 = 0.0;
    for &reads in &asked.reads {
        let burst = burst(reads);
        let rounds: Vec<_> = (1..=asked.rounds).map(|seed| rack.serve(&burst, seed)).collect();
        let live = Means::of(&rounds.iter().map(|(live, _)| *live).collect::<Vec<_>>());
        let alone_s = rounds.iter().map(|(_, alone)| alone).sum::<f64>() / rounds.len() as f64;
        let twin = twin::means(&burst, asked.seeds);
        for ((name, live), twin) in Means::NAMES.into_iter().zip(live.all()).zip(twin.all()) {
            let differs = (live / twin - 1.0) * 100.0;
            worst = worst.max(differs.abs());
            println!("{reads:<8}{name:<22}{live:>12.3}{twin:>12.3}{differs:>+8.1} %");
        }
        println!("{:<8}a read by itself, live: {alone_s:.3} s", "");
    }
    println!("the most that any differs: {worst:.1} %");
    ExitCode::from(u8::from(worst > asked.within))
}

/// So many reads, uniformly distributed over the time and the groups: the same for the same count.
fn burst(reads: usize) -> Vec<Come> {
    let mut stream = Seed::new(reads as u64).child(b"burst").stream();
    let mut burst: Vec<Come> = (0..reads)
        .map(|_| {
            let at = Duration::from_secs_f64(stream.unit() * OVER_S);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 47")]
            let group = (stream.unit() * GROUPS) as u32;
            Come { at, group }
        })
        .collect();
    burst.sort_by_key(|read| read.at);
    burst
}

fn asked() -> Asked {
    let mut asked = Asked {
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
            "--folder" => asked.folder = Some(value.into()),
            "--reads" => asked.reads = value.split(',').map(|of| of.parse().unwrap()).collect(),
            "--scale" => asked.scale = value.parse().unwrap(),
            "--stripes" => asked.stripes = value.parse().unwrap(),
            "--seeds" => asked.seeds = value.parse().unwrap(),
            "--rounds" => asked.rounds = value.parse().unwrap(),
            "--within" => asked.within = value.parse().unwrap(),
            other => unreachable!(
                "{other} is none of --folder, --reads, --scale, --stripes, --rounds, --seeds, \
                 --within"
            ),
        }
    }
    asked
}
