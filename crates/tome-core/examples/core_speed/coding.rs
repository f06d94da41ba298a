//! CPU cost per block: in cache, where the same blocks are used again and again, and from memory,
//! where 256 MiB of distinct blocks are cycled through. Time is the thread's CPU time, so other
//! work on the machine matters little.

use std::hint::black_box;
use std::time::Duration;

use fulgurite_codes::signature;
use fulgurite_codes::small::SmallCode;
use fulgurite_tome_core::segment::SegmentCode;
use fulgurite_units::Seed;
use rustix::time::{ClockId, clock_gettime};

/// A block of a tome.
const BLOCK: usize = 128 << 10;
/// More bytes than any cache holds.
const COLD_BYTES: usize = 256 << 20;
/// Time spent on each figure.
const SPENT: Duration = Duration::from_millis(300);

/// Prints GB/s of input: blocks signed, deltas applied, data given parity.
pub(crate) fn print() {
    let mut bytes = vec![0; COLD_BYTES];
    Seed::new(1).stream().fill(&mut bytes);
    let all = bytes.len() / BLOCK;
    let mut figures = Vec::new();
    for (place, blocks) in [("hot", 2), ("cold", all)] {
        let bytes = &mut bytes[..blocks * BLOCK];
        let signed = speed(|call| {
            black_box(signature(black_box(&bytes[call % blocks * BLOCK..][..BLOCK])));
        });
        let xor = apply(bytes, 0);
        let product = apply(bytes, 1);
        figures.push(format!("\"signature_{place}\":{signed:.3}"));
        figures.push(format!("\"xor_{place}\":{xor:.3},\"product_{place}\":{product:.3}"));
    }
    let (hot, cold) = (put(&bytes, 1), put(&bytes, all));
    figures.push(format!("\"put_hot\":{hot:.3},\"put_cold\":{cold:.3}"));
    println!("{{{}}}", figures.join(","));
}

/// Applies deltas to blocks of parity number `row`. Parity 0 is a plain XOR, all others multiply.
fn apply(bytes: &mut [u8], row: usize) -> f64 {
    let code = SmallCode::new(13, 3).unwrap();
    let (deltas, sums) = bytes.split_at_mut(bytes.len() / 2);
    let blocks = deltas.len() / BLOCK;
    speed(|call| {
        let at = call % blocks * BLOCK..call % blocks * BLOCK + BLOCK;
        let (delta, sum) = (&deltas[at.clone()], &mut sums[at]);
        code.update(1, delta, &mut [(row, sum)]).unwrap();
    })
}

/// Updates the parity of a segment with one block after the other, as a put does.
fn put(bytes: &[u8], blocks: usize) -> f64 {
    let code = SegmentCode::new("62+2".parse().unwrap()).unwrap();
    let data = code.split().data() as usize;
    let mut parity = vec![vec![0; BLOCK]; code.split().parity() as usize];
    speed(|call| {
        let change = &bytes[call % blocks * BLOCK..][..BLOCK];
        code.delta(call % data, change, &mut parity).unwrap();
    })
}

/// Returns GB/s when each call processes one block.
fn speed(mut work: impl FnMut(usize)) -> f64 {
    work(0);
    let (begin, mut calls) = (now(), 0);
    while now() - begin < SPENT {
        work(calls);
        calls += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    let gigabytes = (calls * BLOCK) as f64 / 1e9;
    gigabytes / (now() - begin).as_secs_f64()
}

fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}
