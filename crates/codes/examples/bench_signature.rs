//! Benchmarks signatures against the fastest 64-bit CRC, alternately, on one thread.
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example bench_signature [-- --json]
//! ```
//!
//! Prints GB/s (1e9 bytes), the median over rounds, for sectors of 100 KiB: the same one
//! repeatedly, and one after the other through 256 MiB.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant;

use fulgurite_codes::{Isa, RunningSignature};

const SECTOR: usize = 100 << 10;
/// A name, and the function that computes a checksum of a sector.
type Peer = (String, Box<dyn Fn(&[u8]) -> u64>);

const ROUNDS: usize = 101;
/// Sectors per timed slice: 1.6 MB, some tens of microseconds.
const SLICE: usize = 16;

fn main() {
    let is_json = std::env::args().any(|argument| argument == "--json");
    let bytes = (0..256u32 << 20).map(|i| (i.wrapping_mul(i) >> 11).to_le_bytes()[0]);
    let memory: Vec<u8> = bytes.collect();
    // Sectors are aligned to cache lines, as in the archive.
    let memory = &memory[memory.as_ptr().align_offset(64)..];
    let signer = |isa: Isa| {
        move |bytes: &[u8]| {
            let mut signer = RunningSignature::with_isa(isa);
            signer.update(bytes);
            u64::from_le_bytes(signer.finish().0)
        }
    };
    let mut peers: Vec<Peer> = vec![(
        "CRC-64/NVMe".to_owned(),
        Box::new(|bytes| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)),
    )];
    for isa in Isa::supported() {
        peers.push((format!("signature, {}", isa.name()), Box::new(signer(isa))));
    }
    for (place, sectors) in [("in cache", 1), ("from memory", memory.len() / SECTOR)] {
        let mut rates = vec![Vec::new(); peers.len()];
        let mut next = 0;
        for _ in 0..ROUNDS {
            for ((_, sum), rates) in peers.iter().zip(&mut rates) {
                // One unmeasured sector warms up the caches for code and tables.
                black_box(sum(&memory[next * SECTOR..][..SECTOR]));
                let start = Instant::now();
                for _ in 0..SLICE {
                    next = (next + 1) % sectors;
                    black_box(sum(black_box(&memory[next * SECTOR..][..SECTOR])));
                }
                let bytes = f64::from(u32::try_from(SLICE * SECTOR).expect("1.6 MB"));
                rates.push(bytes / start.elapsed().as_secs_f64() / 1e9);
            }
        }
        for rates in &mut rates {
            rates.sort_by(f64::total_cmp);
        }
        let crc = rates[0][ROUNDS / 2];
        if is_json {
            let signature_rate = rates[rates.len() - 1][ROUNDS / 2];
            println!("{{\"place\":\"{place}\",\"ours\":{signature_rate:.2},\"crc\":{crc:.2}}}");
            continue;
        }
        for ((name, _), rates) in peers.iter().zip(&rates) {
            let median = rates[ROUNDS / 2];
            println!("{place:12} {name:24} {median:7.1} GB/s  {:5.2} x CRC", median / crc);
        }
    }
}
