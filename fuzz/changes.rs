//! Seeded changes of good bytes, for the tests that call the checks of the fuzz targets.
//!
//! It is no fuzzer: it knows nothing of what the changed bytes reach. `FULGURITE_TEST_SEED` sets
//! the seed, which `cargo xtask fuzz` raises from run to run where there is no cargo-fuzz.

use fulgurite_units::{RandomStream, Seed};

/// Changed inputs of each sample in a run of the tests.
const ROUNDS: usize = 400;

fn seed() -> Seed {
    #[allow(clippy::disallowed_methods, reason = "a test's seed comes from its environment")]
    let text = std::env::var("FULGURITE_TEST_SEED");
    Seed::new(text.ok().and_then(|text| text.parse().ok()).unwrap_or_default())
}

fn below(random: &mut RandomStream, bound: usize) -> usize {
    usize::try_from(random.below(bound.max(1) as u64)).expect("it is below a usize")
}

/// Calls `check` with each sample as it is, and with changes of it.
pub(crate) fn each(samples: &[&[u8]], mut check: impl FnMut(&[u8])) {
    let mut random = seed().stream();
    for sample in samples {
        check(sample);
        for _ in 0..ROUNDS {
            let mut bytes = sample.to_vec();
            for _ in 0..=random.below(4) {
                change(&mut bytes, &mut random);
            }
            check(&bytes);
        }
    }
}

/// Changes, cuts out, repeats, inserts or cuts off some bytes.
fn change(bytes: &mut Vec<u8>, random: &mut RandomStream) {
    let at = below(random, bytes.len());
    let end = (at + 1 + below(random, 16)).min(bytes.len());
    let any = random.next_u64().to_le_bytes();
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => drop(bytes.splice(at..at, any)),
        3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
        4 if at < bytes.len() => bytes[at] = any[0],
        5 if at < bytes.len() => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][below(random, 5)],
        _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        _ => bytes.push(any[0]),
    }
}
