//! Fits the linear decoder to a preset, and writes it as JSON: how `models/*-linear.json` is made.
//!
//! `cargo run --release -p fulgurite-decode --example fit_linear PRESET > models/PRESET-linear.json`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it prints, and stops at nonsense")]

use fulgurite_decode::LinearFit;
use fulgurite_glass::channel::{Channel, Population, SectorShape};

/// Seed of the sectors, their drives and platters.
const SEED: u64 = 7;

/// Sectors to learn from, each of another drive and platter.
const SECTORS: u64 = 60;

/// The last of them: the scatter is learned from these, the taps from the others.
const SCATTER: u64 = 12;

fn main() {
    let preset = std::env::args().nth(1).unwrap();
    let channel = Channel::preset(&preset).unwrap();
    let shape = SectorShape::new(128, 128).unwrap();
    let (medium, pitch) = (channel.medium, usize::from(channel.optics.pixels_per_pitch));
    let mut fit = LinearFit::new(medium, pitch, true, shape);
    let mut scatter = Vec::new();
    let population = Population::new(channel, shape, SEED, SEED, None, None);
    for number in 0..SECTORS {
        let (images, own) = population.sector(number).unwrap();
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
