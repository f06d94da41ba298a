//! Benchmarks the erasure codes for `cargo xtask bench codes`: prints one line of JSON per
//! argument.
//!
//! ```text
//! bench_erasure SHAPE:BYTES:LOST:hot|cold ...      as 16+3:131072:3:hot, 20000+400:4096:50:hot
//! ```
//!
//! Reports GB/s (1e9 bytes) of information. For decoding, the first LOST information shards of the
//! small code, or LOST shards spread over the large one, are missing; the matrix or plan is rebuilt
//! for each call. `hot` codes one stripe repeatedly, `cold` goes over 256 MiB of stripes. Time is
//! the CPU time of the thread, so that other load on the machine matters little. The programs it is
//! compared with take the same arguments and print the same lines; this program makes no
//! comparison.

use std::hint::black_box;
use std::time::Duration;

use fulgurite_codes::small::{SHARDS_MAX, SmallCode};
use fulgurite_codes::{DecodeMethod, LargeCode, Shard};

/// CPU time spent on one figure; the best of [`TRIES`] counts.
const MEASURE_TIME: Duration = Duration::from_millis(150);
const TRIES: usize = 3;
/// Bytes of stripes, more than any cache holds.
const COLD_BYTES: usize = 256 << 20;

/// One benchmark, parsed from an argument.
struct Task {
    shape: String,
    information: usize,
    redundancy: usize,
    bytes: usize,
    lost: usize,
    is_cold: bool,
}

fn parse(argument: &str) -> Option<Task> {
    let mut parts = argument.split(':');
    let shape = parts.next()?;
    let (information, redundancy) = shape.split_once('+')?;
    Some(Task {
        shape: shape.to_owned(),
        information: information.parse().ok()?,
        redundancy: redundancy.parse().ok()?,
        bytes: parts.next()?.parse().ok()?,
        lost: parts.next()?.parse().ok()?,
        is_cold: parts.next()? == "cold",
    })
}

/// Returns the CPU time of this thread.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("the clock does not go backwards")
}

/// Returns GB/s of work on `bytes` per call.
fn speed(bytes: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut best: f64 = 0.0;
    for _ in 0..TRIES {
        let (begin, mut calls) = (now(), 0);
        while now() - begin < MEASURE_TIME {
            work(calls);
            calls += 1;
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
        let rate = (bytes * calls) as f64 / (now() - begin).as_secs_f64() / 1e9;
        best = best.max(rate);
    }
    best
}

/// Contiguous stripes of information and redundancy, aligned to a cache line.
struct Stripes {
    memory: Vec<u8>,
    skew: usize,
    count: usize,
    bytes: usize,
}

impl Stripes {
    fn new(task: &Task) -> Self {
        let bytes = (task.information + task.redundancy) * task.bytes;
        let count = if task.is_cold { COLD_BYTES.div_ceil(bytes) } else { 1 };
        let words = (0u32..).flat_map(|n| n.wrapping_mul(0x9E37_79B9).to_le_bytes());
        let memory: Vec<u8> = words.take(count * bytes + 64).collect();
        let skew = memory.as_ptr().align_offset(64);
        Self { memory, skew, count, bytes }
    }

    fn stripe(&mut self, call: usize) -> &mut [u8] {
        let from = self.skew + call % self.count * self.bytes;
        &mut self.memory[from..from + self.bytes]
    }
}

#[expect(clippy::print_stdout, reason = "the output of a program")]
fn report(mode: &str, task: &Task, encode: f64, decode: f64) {
    let place = if task.is_cold { "cold" } else { "hot" };
    println!(
        "{{\"mode\":\"{mode}\",\"shape\":\"{}\",\"place\":\"{place}\",\"lost\":{},\
         \"encode\":{encode:.3},\"decode\":{decode:.3}}}",
        task.shape, task.lost
    );
}

fn small(task: &Task) {
    let code = SmallCode::new(task.information, task.redundancy).expect("a small code");
    let mut stripes = Stripes::new(task);
    let (k, bytes, lost) = (task.information, task.bytes, task.lost);
    let encode = speed(k * bytes, |call| {
        let (data, redundancy) = stripes.stripe(call).split_at_mut(k * bytes);
        let data: Vec<&[u8]> = data.chunks(bytes).collect();
        let mut redundancy: Vec<&mut [u8]> = redundancy.chunks_mut(bytes).collect();
        code.encode(&data, &mut redundancy).expect("shards of one length");
        black_box(&redundancy);
    });
    let given: Vec<usize> = (lost..k + lost).collect();
    let wanted: Vec<usize> = (0..lost).collect();
    let decode = speed(k * bytes, |call| {
        let (out, rest) = stripes.stripe(call).split_at_mut(lost * bytes);
        let plan = code.plan(&given, &wanted).expect("enough are given");
        let data: Vec<&[u8]> = rest.chunks(bytes).take(k).collect();
        let mut out: Vec<&mut [u8]> = out.chunks_mut(bytes).collect();
        plan.run(&data, &mut out).expect("shards of one length");
        black_box(&out);
    });
    report("ours", task, encode, decode);
}

fn large(task: &Task) {
    let code = LargeCode::new(task.information, task.redundancy).expect("a large code");
    let mut stripes = Stripes::new(task);
    let (k, bytes) = (task.information, task.bytes);
    let mut encoder = code.encoder(bytes).expect("whole blocks");
    let encode = speed(k * bytes, |call| {
        let (data, redundancy) = stripes.stripe(call).split_at_mut(k * bytes);
        encoder
            .encode(
                |index| Some(&data[index * bytes..][..bytes]),
                |index, offset, piece| {
                    redundancy[index * bytes + offset..][..piece.len()].copy_from_slice(piece);
                },
            )
            .expect("shards of one length");
    });
    // A step coprime to k reaches each shard once.
    let mut is_lost = vec![false; k];
    (0..task.lost).for_each(|n| is_lost[n * 7919 % k] = true);
    let mut out = vec![0; bytes];
    for method in [DecodeMethod::Transform, DecodeMethod::Narrow] {
        let mut decoder = code.decoder(bytes).expect("whole blocks").with_method(method);
        let decode = speed(k * bytes, |call| {
            let stripe = stripes.stripe(call);
            let shard = |index: usize| {
                if index < k && is_lost[index] {
                    Shard::Lost
                } else {
                    Shard::Given(&stripe[index * bytes..][..bytes])
                }
            };
            decoder
                .decode(shard, |_, offset, piece| {
                    out[offset..offset + piece.len()].copy_from_slice(piece);
                })
                .expect("few enough are lost");
            black_box(&out);
        });
        report(&format!("ours, {method:?}"), task, encode, decode);
    }
}

fn main() {
    for argument in std::env::args().skip(1) {
        let task = parse(&argument).expect("SHAPE:BYTES:LOST:hot|cold");
        if task.information + task.redundancy <= SHARDS_MAX { small(&task) } else { large(&task) }
    }
}
