//! Speed of the small codes: `cargo run --release -p fulgurite-codes --example bench_small`.
//!
//! One line of JSON a shape: bytes of data shards a second for encoding and for decoding with as
//! many data shards lost as the code has redundancy, from one stripe (in the cache) and from
//! stripes over 256 MiB. Time is that of the thread on its processor, so that other work on the
//! machine counts little.
//!
//! Not a comparison: that is `cargo xtask bench codes`.

use std::hint::black_box;
use std::time::Duration;

use fulgurite_codes::small::SmallCode;

/// Information and redundancy shards, and bytes of a shard.
const SHAPES: [(usize, usize, usize); 9] = [
    (16, 3, 128 << 10),
    (15, 3, 128 << 10),
    (12, 3, 128 << 10),
    (24, 3, 128 << 10),
    (62, 2, 128 << 10),
    (100, 8, 100 << 10),
    (200, 16, 100 << 10),
    (13, 3, 1 << 20),
    (6, 1, 4 << 20),
];
/// Time spent on one figure.
const SPENT: Duration = Duration::from_millis(150);
/// Bytes of stripes that no cache holds.
const COLD_BYTES: usize = 256 << 20;

/// Time that this thread has had a processor.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("the clock does not go backwards")
}

/// GB/s of `bytes` a call, the best of three.
fn speed(bytes: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        let begin = now();
        let mut calls = 0;
        while now() - begin < SPENT {
            work(calls);
            calls += 1;
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
        let rate = (bytes * calls) as f64 / (now() - begin).as_secs_f64() / 1e9;
        best = best.max(rate);
    }
    best
}

#[expect(clippy::print_stdout, reason = "the output of a program")]
fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    for (information, redundancy, bytes) in SHAPES {
        let name = format!("{information}+{redundancy}");
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        for is_hot in [true, false] {
            let stripe = (information + redundancy) * bytes;
            let stripes = if is_hot { 1 } else { COLD_BYTES.div_ceil(stripe) };
            let mut memory = vec![0u8; stripes * stripe + 64];
            memory.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at >> 3).to_le_bytes()[0]);
            let skew = memory.as_ptr().align_offset(64);
            let code = SmallCode::new(information, redundancy).expect("a shape of the table");
            let encode = speed(information * bytes, |call| {
                let start = skew + call % stripes * stripe;
                let shards = &mut memory[start..start + stripe];
                let (data, parity) = shards.split_at_mut(information * bytes);
                let data: Vec<&[u8]> = data.chunks(bytes).collect();
                let mut parity: Vec<&mut [u8]> = parity.chunks_mut(bytes).collect();
                code.encode(&data, &mut parity).expect("shards of one length");
                black_box(&parity);
            });
            let lost = redundancy.min(information);
            let given: Vec<usize> = (lost..information + lost).collect();
            let wanted: Vec<usize> = (0..lost).collect();
            let decode = speed(information * bytes, |call| {
                let start = skew + call % stripes * stripe;
                let shards = &mut memory[start..start + stripe];
                let (out, rest) = shards.split_at_mut(lost * bytes);
                let plan = code.plan(&given, &wanted).expect("enough are given");
                let data: Vec<&[u8]> = rest.chunks(bytes).take(information).collect();
                let mut out: Vec<&mut [u8]> = out.chunks_mut(bytes).collect();
                plan.run(&data, &mut out).expect("shards of one length");
                black_box(&out);
            });
            let place = if is_hot { "hot" } else { "cold" };
            println!(
                "{{\"shape\":\"{name}\",\"place\":\"{place}\",\"bytes\":{bytes},\
                 \"encode\":{encode:.2},\"decode\":{decode:.2}}}"
            );
        }
    }
}
