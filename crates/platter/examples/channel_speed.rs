//! Benchmarks writing and imaging of sectors: voxels per second, on one core.
//!
//! `cargo run --release -p fulgurite-platter --example channel_speed [PRESET [SIDE [SECTORS]]]`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

use std::time::Instant;

use fulgurite_platter::channel::{
    Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorShape, WriteFaults,
};
use fulgurite_units::Seed;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let preset = args.first().map_or("nominal", String::as_str);
    let side = args.get(1).map_or(320, |side| side.parse().unwrap());
    let sectors: u64 = args.get(2).map_or(10, |count| count.parse().unwrap());
    let channel = Channel::preset(preset).unwrap();
    let shape = SectorShape::new(side, side).unwrap();
    let seed = Seed::new(1);
    let mut stream = seed.child(b"symbols").stream();
    let symbol_count = u64::from(channel.medium.symbols());
    let mut symbols = || -> Vec<u8> {
        (0..shape.voxels()).map(|_| u8::try_from(stream.below(symbol_count)).unwrap()).collect()
    };
    let own = symbols();
    let layers: Vec<Vec<u8>> = (0..6).map(|_| symbols()).collect();
    let neighbors: Vec<Neighbor<'_>> = (1..=3)
        .flat_map(|distance| [distance, distance])
        .zip(&layers)
        .map(|(distance, symbols)| Neighbor { distance, symbols })
        .collect();
    let mut head = ReadHead::new(&channel, shape, seed.child(b"drive")).unwrap();
    let (mut write, mut read, mut sum) = (0.0, 0.0, 0u64);
    for sector in 0..sectors {
        let seed = seed.child(&sector.to_le_bytes());
        let start = Instant::now();
        let written = channel.write(shape, &own, &seed, &WriteFaults::default()).unwrap();
        write += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let seeds = ReadSeeds { platter: seed, track: seed, read: seed };
        let images = head.read(&written, &neighbors, &seeds, &ReadFaults::default());
        read += start.elapsed().as_secs_f64();
        sum += images.pixels.iter().map(|pixel| u64::from(*pixel)).sum::<u64>();
    }
    let voxels = shape.voxels() as f64 * sectors as f64;
    println!(
        "{preset}, {side} x {side} voxels: write {:.2} M voxels/s, image {:.2}, both {:.2}; \
         sum {sum}",
        voxels / write / 1e6,
        voxels / read / 1e6,
        voxels / (write + read) / 1e6,
    );
}
