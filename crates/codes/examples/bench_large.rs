//! Benchmarks the large code on one thread: encoding, streaming and decoding.
//!
//! ```text
//! bench_large [ROUNDS]                        default 5; FULGURITE_ISA forces a level
//! ```
//!
//! Prints GB/s, 1e9 bytes of information per second (parity is not counted), as the median of the
//! rounds, in CPU time of the thread. Shards are 4 KiB, a group is larger than the caches; buffers
//! are filled beforehand. To compare with another program, run the two alternately and take the
//! median of each.

use fulgurite_codes::{DecodeMethod, Isa, LargeCode, Shard};

const SHARD_BYTES: usize = 4096;

/// Repetitions per measurement: Linux counts time in ticks of some milliseconds.
const REPEATS: u32 = 10;

/// Returns the CPU time in seconds that `work` takes this thread, as Linux counts it.
fn seconds(work: &mut dyn FnMut()) -> f64 {
    let spent = || {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        times.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN) / 1e9
    };
    let start = spent();
    (0..REPEATS).for_each(|_| work());
    (spent() - start) / f64::from(REPEATS)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn report(name: &str, shape: (usize, usize), rounds: usize, mut work: impl FnMut()) {
    work();
    let mut times: Vec<f64> = (0..rounds).map(|_| seconds(&mut work)).collect();
    times.sort_by(f64::total_cmp);
    let bytes = u32::try_from(shape.0 * SHARD_BYTES).map_or(f64::NAN, f64::from);
    let rate = bytes / times[times.len() / 2] / 1e9;
    println!("{:>5}+{:<5} {name:<28} {rate:7.2} GB/s", shape.0, shape.1);
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5).max(1);
    for shape in [(20_000, 400), (32_768, 1024)] {
        let code = LargeCode::new(shape.0, shape.1).expect("the field has the points");
        let mut state = 1u64;
        let information: Vec<u8> = (0..shape.0 * SHARD_BYTES / 8)
            .flat_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state ^ state >> 29).to_le_bytes()
            })
            .collect();
        let shard = |i: usize| Some(&information[i * SHARD_BYTES..][..SHARD_BYTES]);
        let mut redundancy = vec![0; shape.1 * SHARD_BYTES];
        let mut encoder = code.encoder(SHARD_BYTES).expect("whole blocks");
        report(&format!("encode {}", Isa::current().name()), shape, rounds, || {
            let put = |i: usize, offset: usize, piece: &[u8]| {
                redundancy[i * SHARD_BYTES + offset..][..piece.len()].copy_from_slice(piece);
            };
            encoder.encode(shard, put).expect("shards of one length");
        });
        let mut stream = code.stream_encoder(SHARD_BYTES).expect("whole blocks");
        report("stream", shape, rounds, || {
            (0..shape.0).for_each(|i| stream.push(shard(i)).expect("a shard of the code"));
            stream.finish();
        });
        for lost in [1, 50, shape.1] {
            // Spread over the group: a step coprime to the count reaches each shard once.
            let mut is_lost = vec![false; shape.0];
            (0..lost).for_each(|i| is_lost[i * 7919 % shape.0] = true);
            let given = |i: usize| {
                if i >= shape.0 {
                    Shard::Given(&redundancy[(i - shape.0) * SHARD_BYTES..][..SHARD_BYTES])
                } else if is_lost[i] {
                    Shard::Lost
                } else {
                    Shard::Given(&information[i * SHARD_BYTES..][..SHARD_BYTES])
                }
            };
            for method in [DecodeMethod::Transform, DecodeMethod::Narrow] {
                let decoder = code.decoder(SHARD_BYTES).expect("whole blocks");
                let mut decoder = decoder.with_method(method);
                report(&format!("decode {lost} {method:?}"), shape, rounds, || {
                    let check = |i: usize, offset: usize, piece: &[u8]| {
                        let from = i * SHARD_BYTES + offset;
                        assert!(information[from..].starts_with(piece), "shard {i}");
                    };
                    decoder.decode(given, check).expect("few enough losses");
                });
            }
        }
    }
}
