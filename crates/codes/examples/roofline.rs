//! Measures the peak rates of this processor, for the rooflines of docs/codes: prints one line of
//! JSON per peak.
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example roofline
//! ```
//!
//! Reports GB/s (1e9 bytes) of one thread, the best of several tries, in CPU time of the thread.
//! Reading and copying (bytes copied, counted once) are measured from memory and in the L2 cache,
//! with pages as the system allocates them. Products are bytes multiplied by a constant of GF(2^8)
//! and accumulated, for shards in the L1 cache; they are what our kernel reaches, not the figure of
//! the data sheet.

#![expect(clippy::print_stdout, reason = "the output of a program")]

use std::hint::black_box;
use std::time::Duration;

use fulgurite_codes::small::SmallCode;
use fulgurite_codes::{Isa, l2_cache_bytes};

const TRIES: usize = 7;
/// More bytes than any cache holds.
const MEMORY: usize = 256 << 20;

/// Returns the CPU time of this thread.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("the clock does not go backwards")
}

/// Returns the best GB/s of work on `bytes`, with `calls` calls per try.
fn best(bytes: usize, calls: usize, mut work: impl FnMut()) -> f64 {
    let mut best: f64 = 0.0;
    for _ in 0..TRIES {
        let begin = now();
        (0..calls).for_each(|_| work());
        #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
        let rate = (bytes * calls) as f64 / (now() - begin).as_secs_f64() / 1e9;
        best = best.max(rate);
    }
    best
}

fn report(operation: &str, place: &str, rate: f64) {
    println!("{{\"what\":\"{operation}\",\"place\":\"{place}\",\"rate\":{rate:.1}}}");
}

/// XORs all words, with enough independent accumulators to hide the latency of an operation.
fn read(memory: &[[u64; 8]]) -> u64 {
    let mut sums = [[0; 8]; 2];
    for pair in memory.as_chunks::<2>().0 {
        for (sums, line) in sums.iter_mut().zip(pair) {
            for (sum, word) in sums.iter_mut().zip(line) {
                *sum ^= word;
            }
        }
    }
    sums.as_flattened().iter().fold(0, |sum, word| sum ^ word)
}

fn main() {
    println!(
        "{{\"isa\":\"{}\",\"second_cache_kib\":{}}}",
        Isa::current().name(),
        l2_cache_bytes() >> 10
    );
    let from: Vec<[u64; 8]> = (0..MEMORY as u64 / 64).map(|n| [n; 8]).collect();
    let mut to = from.clone();
    let half = l2_cache_bytes() / 2;
    for (place, bytes) in [("memory", MEMORY), ("second cache", half)] {
        let lines = bytes / 64;
        let calls = MEMORY / bytes;
        let rate = best(bytes, calls, || {
            black_box(read(black_box(&from[..lines])));
        });
        report("read", place, rate);
        // Source and copy together occupy `bytes`.
        let rate = best(bytes / 2, calls, || {
            to[..lines / 2].copy_from_slice(black_box(&from[..lines / 2]));
            black_box(&to);
        });
        report("copy", place, rate);
    }
    // Four of eight lost: 32 products, none of them by one, of shards in the L1 cache.
    let code = SmallCode::new(8, 4).expect("a small code");
    let plan = code.plan(&[4, 5, 6, 7, 8, 9, 10, 11], &[0, 1, 2, 3]).expect("enough are given");
    let given = vec![vec![0x5A; 2048]; 8];
    let mut wanted = vec![vec![0; 2048]; 4];
    let rate = best(32 * 2048, 20_000, || {
        plan.run(black_box(&given), &mut wanted).expect("shards of one length");
    });
    report("products", "first cache", rate);
}
