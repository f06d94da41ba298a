//! The check of the fuzz target `network` with seeded mutations of the shipped networks, so that
//! every run of the tests covers some.
#![cfg(feature = "learned")]

#[path = "../../../fuzz/network_checks.rs"]
mod network_checks;

use fulgurite_units::{RandomStream, Seed};

const SMALL: &[u8] = include_bytes!("../../../models/nominal-md-int8.onnx");
const TINY: &[u8] = include_bytes!("models/tiny.onnx");

fn below(random: &mut RandomStream, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or_default()
}

/// Returns offsets near lengths and names of a file; the rest is weights.
fn structure(file: &[u8]) -> Vec<usize> {
    let is_text = |window: &[u8]| window.iter().all(|byte| byte.is_ascii_graphic());
    let starts = file.windows(5).enumerate().filter(|(_, window)| is_text(window));
    starts.map(|(at, _)| at).collect()
}

/// Flips, removes, repeats and overwrites some bytes, mostly near the structure.
fn change(file: &mut Vec<u8>, places: &[usize], random: &mut RandomStream) {
    // Half of the mutations keep every length, and so the rest of the file.
    if random.below(2) == 0 {
        let at = places[below(random, places.len())];
        file[at] ^= 1 << random.below(8);
        return;
    }
    for _ in 0..=random.below(3) {
        let near = places[below(random, places.len())];
        let at = (near + below(random, 16)).saturating_sub(8).min(file.len() - 1);
        let length = 1 + below(random, 12);
        let end = (at + length).min(file.len());
        match random.below(5) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.next_u64().to_le_bytes()[0],
            2 => drop(file.drain(at..end)),
            3 => {
                let part = file[at..end].to_vec();
                file.splice(at..at, part);
            }
            _ => {
                const EXTREMES: [&[u8]; 5] = [
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                    &[0x80, 0x80, 0x80, 0x80, 0x10],
                    &[0x00],
                    &[0x00, 0x00, 0xc0, 0x7f],
                ];
                let extreme = EXTREMES[below(random, EXTREMES.len())];
                file.splice(at..end, extreme.iter().copied());
            }
        }
    }
}

#[test]
fn altered_networks_run_or_are_refused() {
    let mut reached = [0; 3];
    for (name, file, count) in [("small", SMALL, 300), ("tiny", TINY, 300)] {
        let places = structure(file);
        for number in 0..count {
            let mut random = Seed::new(number).child(name.as_bytes()).stream();
            let mut file = file.to_vec();
            change(&mut file, &places, &mut random);
            reached[network_checks::network(&file)] += 1;
        }
    }
    // The test is meaningful only if all of these outcomes occur.
    assert!(reached.iter().all(|count| *count > 10), "{reached:?}");
}

#[test]
fn random_bytes_are_refused_as_a_network() {
    for number in 0..300 {
        let mut random = Seed::new(number).stream();
        let mut file = vec![0; below(&mut random, 400)];
        random.fill(&mut file);
        // Half of them are wrapped as a graph, so that there is something to parse: key, and a
        // two-byte length.
        if number % 2 == 0 {
            let [low, high] = u16::try_from(2 * file.len()).unwrap().to_le_bytes();
            file.splice(0..0, [0x3a, low >> 1 | 0x80, high]);
        }
        assert_eq!(network_checks::network(&file), 0, "{number}");
    }
}
