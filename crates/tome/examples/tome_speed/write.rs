//! Puts objects into a set and has them protected, and writes as many bytes as that wrote to plain
//! files, alternating.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use super::clock_advancer::ClockAdvancer;
use super::measure::{Cost, measure_cost};
use super::plain;
use super::shelf::{OBJECT, Shelf};

/// Write amplification assumed for the plain files until that of the set is known.
const FIRST_GUESS: u64 = 8;

/// Prints a line per round: seconds until all objects were acknowledged and protected, bytes
/// written, and seconds for plain files with as many. The order alternates from round to round.
pub(crate) fn print(folder: &Path, mib: usize, rounds: usize) {
    let shelf = Shelf::new(folder);
    let mut written = FIRST_GUESS * (mib << 20) as u64;
    for round in 0..rounds {
        let write = |bytes: u64| {
            rustix::fs::sync();
            let took = measure_cost(|| plain::write(folder, shelf.noise(), bytes));
            plain::paths(folder).for_each(|path| std::fs::remove_file(path).unwrap());
            (bytes, took)
        };
        let put = || {
            // Leftover dirty pages must not delay the measurement.
            rustix::fs::sync();
            let _advancer = ClockAdvancer::start(&shelf.clock);
            put(&shelf, round, mib)
        };
        let (local, ours, (plain_bytes, plain)) = if round % 2 == 0 {
            let (local, ours) = put();
            (local, ours, write(ours.written))
        } else {
            let plain = write(written);
            let (local, ours) = put();
            (local, ours, plain)
        };
        written = ours.written;
        println!(
            "{{\"round\":{round},\"mib\":{mib},{},\"plain_bytes\":{plain_bytes},\
             \"plain_s\":{:.4},\"plain_processor_s\":{:.4}}}",
            line(local, ours),
            plain.wall,
            plain.processor
        );
    }
}

/// Prints one round on the real clock.
pub(crate) fn print_real_clock(folder: &Path, mib: usize) {
    let shelf = Shelf::with_real_clock(folder);
    rustix::fs::sync();
    let (local, ours) = put(&shelf, 0, mib);
    println!("{{\"mib\":{mib},{}}}", line(local, ours));
}

fn line(local: f64, ours: Cost) -> String {
    let Cost { wall, processor, written, read } = ours;
    format!(
        "\"local_s\":{local:.4},\"protected_s\":{wall:.4},\"processor_s\":{processor:.4},\
         \"written\":{written},\"read\":{read}"
    )
}

/// Returns seconds until the last object was acknowledged, and the cost until all were protected.
fn put(shelf: &Shelf, round: usize, mib: usize) -> (f64, Cost) {
    let count = (mib << 20) / OBJECT;
    let object = |number| {
        (format!("round {round} object {number}"), shelf.object(round * count + number, OBJECT))
    };
    let objects: Vec<_> = (0..count).map(object).collect();
    let (local, begin) = (Cell::new(0.0), Instant::now());
    let took =
        measure_cost(|| shelf.put_all(&objects, || local.set(begin.elapsed().as_secs_f64())));
    (local.get(), took)
}
