//! Benchmarks encoding and decoding of 100 KiB sectors on one thread.
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example bench_sector
//! ```
//!
//! Prints payload bytes per second, the median over rounds, for three bits per voxel, rate 0.90 and
//! codewords of 64k bits.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement reads the clock and prints"
)]

use std::time::Instant;

use fulgurite_codes::ldpc::{Block, Rate};
use fulgurite_codes::sector::{SectorCodec, SectorFormat};
use fulgurite_codes::symbols::{Alphabet, Axis, DemapMethod, Demapper};

const PAYLOAD: usize = 100 << 10;
const ROUNDS: usize = 31;

fn main() {
    let alphabet = Alphabet::new(Axis::Circular { bits: 3 }).unwrap();
    let format = SectorFormat {
        rate: Rate::ALL[2],
        block: Block::Bits64k,
        alphabet: alphabet.clone(),
        payload_bytes: PAYLOAD,
        header_bytes: 64,
        row_voxels: 554,
    };
    let mut codec = SectorCodec::new(format).unwrap();
    println!("{} voxels, {} codewords", codec.voxels(), codec.codewords());
    let payload: Vec<u8> =
        (0..PAYLOAD as u64).map(|i| ((i * i * 40_503) >> 9).to_le_bytes()[0]).collect();
    let header = [7; 64];
    let mut symbols = vec![0; codec.voxels()];
    measure("encode", || {
        codec.encode(&header, &payload, &mut symbols).unwrap();
    });
    // Readings with a symbol error rate of 1e-2: one voxel in 100 looks more like its neighbor, and
    // all have about the same confidence.
    let mut state = 1u64;
    let mut probabilities = Vec::new();
    for symbol in &symbols {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let is_wrong = (state >> 33).is_multiple_of(100);
        let neighbor = (symbol + if state >> 63 == 0 { 1 } else { 7 }) % 8;
        let mut distribution = [1e-5f32; 8];
        distribution[usize::from(*symbol)] = if is_wrong { 0.3 } else { 0.97 };
        distribution[usize::from(neighbor)] = if is_wrong { 0.7 } else { 0.03 };
        probabilities.extend(distribution);
    }
    let mut soft = vec![0; codec.voxels() * 3];
    for (name, method) in
        [("soft bits, max-log", DemapMethod::MaxLog), ("soft bits, exact", DemapMethod::Exact)]
    {
        let demapper = Demapper::new(&alphabet, method, 2.0).unwrap();
        measure(name, || demapper.probabilities(&probabilities, &mut soft).unwrap());
        let logarithms: Vec<f32> = probabilities.iter().map(|p| p.ln()).collect();
        let name = format!("{name}, from logarithms");
        measure(&name, || demapper.logarithms(&logarithms, &mut soft).unwrap());
    }
    let report = codec.decode(&header, &soft).unwrap().report;
    println!("{report:?}");
    measure("decode, 1 % of symbols wrong", || {
        assert!(codec.decode(&header, &soft).unwrap().payload.is_some());
    });
    let clean: Vec<i8> = symbols
        .iter()
        .flat_map(|symbol| {
            let label = alphabet.label(*symbol);
            (0..3).map(move |bit| if label >> bit & 1 == 1 { -20 } else { 20 })
        })
        .collect();
    measure("decode, none wrong", || {
        assert!(codec.decode(&header, &clean).unwrap().payload.is_some());
    });
}

fn measure(name: &str, mut work: impl FnMut()) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    println!("{name:40} {:8.3} ms {:8.1} MB/s", median * 1e3, 0.1024 / median);
}
