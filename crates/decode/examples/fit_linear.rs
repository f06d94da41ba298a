//! Fits the linear decoder to a preset, and writes it as JSON: this makes `models/*-linear.json`.
//!
//! `cargo run --release -p fulgurite-decode --example fit_linear NAME > models/NAME-linear.json`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it prints, and stops at nonsense")]

use fulgurite_decode::LinearFit;
use fulgurite_platter::channel::{
    Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorShape, WriteFaults,
};
use fulgurite_units::Seed;

/// Training sectors, each of a different drive and platter.
const SECTORS: u64 = 60;

/// The last of them: the scatter is fitted to these, the taps to the others.
const SCATTER: u64 = 12;

fn main() {
    let preset = std::env::args().nth(1).unwrap();
    let channel = Channel::preset(&preset).unwrap();
    let shape = SectorShape::new(128, 128).unwrap();
    let (medium, pitch) = (channel.medium, usize::from(channel.optics.pixels_per_pitch));
    let mut fit = LinearFit::new(medium, pitch, true, shape);
    let mut scatter = Vec::new();
    for number in 0..SECTORS {
        let seed = Seed::new(7).child(preset.as_bytes()).child(&number.to_le_bytes());
        let mut stream = seed.child(b"symbols").stream();
        let mut symbols = || -> Vec<u8> {
            let symbol_count = u64::from(medium.symbols());
            (0..shape.voxels()).map(|_| u8::try_from(stream.below(symbol_count)).unwrap()).collect()
        };
        let own = symbols();
        let layers: Vec<Vec<u8>> = (0..2 * channel.optics.layers).map(|_| symbols()).collect();
        let distances = (1..=channel.optics.layers).flat_map(|distance| [distance, distance]);
        let neighbors: Vec<Neighbor<'_>> = distances
            .zip(&layers)
            .map(|(distance, symbols)| Neighbor { distance, symbols })
            .collect();
        let written = channel.write(shape, &own, &seed, &WriteFaults::default()).unwrap();
        let mut head = ReadHead::new(&channel, shape, seed.child(b"drive")).unwrap();
        let seeds = ReadSeeds {
            platter: seed.child(b"platter"),
            track: seed.child(b"track"),
            read: seed.child(b"read"),
        };
        let images = head.read(&written, &neighbors, &seeds, &ReadFaults::default());
        if number < SECTORS - SCATTER {
            fit.add(&images, &own).unwrap();
        } else {
            scatter.push((images, own));
        }
    }
    let known = scatter.iter().map(|(images, symbols)| (images, &symbols[..]));
    let (linear, _) = fit.finish(known).unwrap();
    println!("{}", serde_json::to_string(&linear).unwrap());
}
