//! Measures the LDPC encoder and decoder on one thread: medians of many runs.
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example ldpc_speed [RATE [BLOCK]]
//! ```
#![expect(clippy::print_stdout, reason = "an example's output is its use")]

use fulgurite_codes::Isa;
use fulgurite_codes::ldpc::calibrate::UNITS_PER_LLR;
use fulgurite_codes::ldpc::decode::Effort;
use fulgurite_codes::ldpc::simulate::sample;
use fulgurite_codes::ldpc::{Block, Code, Decoder, Encoder, Rate, VoxelChannel};

/// Number of runs per measurement.
const RUNS: usize = 41;

/// Returns the CPU time of this thread in seconds, so that other load matters less.
fn seconds() -> f64 {
    // The kernel updates the count when the thread yields.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ran = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    ran.expect("nanoseconds come first") / 1e9
}

/// Returns the median time of one call in seconds.
fn median(calls: usize, mut call: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = seconds();
            (0..calls).for_each(&mut call);
            (seconds() - start) / calls as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[RUNS / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |place: usize, name: &str| arguments.get(place).is_none_or(|text| text == name);
    println!("code isa encode-GB/s fixed10-Mbit/s Gedge/s early-stop-Mbit/s iterations");
    for block in Block::ALL.into_iter().filter(|block| wanted(1, block.name())) {
        for rate in Rate::ALL.into_iter().filter(|rate| wanted(0, rate.name())) {
            let code = Code::standard(rate, block);
            for isa in Isa::supported().filter(|isa| *isa != Isa::Avx2Gfni) {
                row(&code, &format!("{}-{}", block.name(), rate.name()), isa);
            }
        }
    }
}

fn row(code: &Code, name: &str, isa: Isa) {
    let mut encoder = Encoder::with_isa(code, isa);
    let information = vec![0x5A; code.information_bits() / 8];
    let mut parity = vec![0; code.parity_bits() / 8];
    let encode = median(20, |_| encoder.encode(&information, &mut parity).expect("sizes fit"));

    let mut decoder = Decoder::with_isa(code, isa);
    let mut word = vec![0; code.bits() / 8];
    // Raw symbol error rate 1e-2 at 3 bits a voxel.
    let frames = sample(code, &VoxelChannel::new(3, 1e-2, UNITS_PER_LLR), 1, 8);
    let fixed = Effort { iterations: 10, early_stop: false };
    let calls = if isa == Isa::Scalar { 2 } else { 8 };
    let ten = median(calls, |i| {
        decoder.decode(&frames[i % 8], fixed, &mut word).expect("sizes fit");
    });
    let mut iterations = 0;
    let mut decodings = 0usize;
    let stop = median(calls, |i| {
        let effort = Effort::default();
        let outcome = decoder.decode(&frames[i % 8], effort, &mut word).expect("sizes fit");
        iterations += outcome.iterations;
        decodings += 1;
    });
    let bits = code.information_bits() as f64;
    println!(
        "{name} {} {:.2} {:.0} {:.1} {:.0} {:.2}",
        isa.name(),
        bits / 8.0 / encode / 1e9,
        bits / ten / 1e6,
        10.0 * code.matrix().edges() as f64 / ten / 1e9,
        bits / stop / 1e6,
        iterations as f64 / decodings as f64,
    );
}
