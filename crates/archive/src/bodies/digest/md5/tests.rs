//! MD5s alone and in parallel, compared with the crate's and the values of RFC 1321.

use fulgurite_units::{RandomStream, Seed};
use md5::Digest as _;

use super::*;

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Seed::new(seed).stream().fill(&mut noise);
    noise
}

fn digest(bytes: &[u8]) -> [u8; 16] {
    md5::Md5::digest(bytes).into()
}

fn below(random: &mut RandomStream, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

#[test]
fn md5_matches_the_values_of_rfc_1321() {
    let published = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    ];
    for (text, value) in published {
        let mut md5 = Md5::new();
        md5.update(text.as_bytes());
        assert_eq!(hex::encode(md5.finish()), value, "{text:?}");
    }
}

#[test]
fn md5_matches_the_crate_for_any_length_and_chunking() {
    let noise = noise(1, 4 * BLOCK_BYTES);
    for bytes in 0..=noise.len() {
        for cut in 0..=bytes {
            let mut md5 = Md5::new();
            md5.update(&noise[..cut]);
            md5.update(&noise[cut..bytes]);
            assert_eq!(md5.finish(), digest(&noise[..bytes]), "{bytes} bytes, cut at {cut}");
        }
    }
}

#[test]
fn parallel_md5_matches_single_md5() {
    let mut random = Seed::new(2).stream();
    for round in 0..300 {
        // Some rounds have more bodies than lanes; some bodies end early, some begin within a
        // block.
        let bodies: Vec<Vec<u8>> = (0..random.below(2 * LANES as u64 + 2))
            .map(|body| noise(100 * round + body, below(&mut random, 1500)))
            .collect();
        let mut md5s = vec![Md5::new(); bodies.len()];
        let mut rest: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        while rest.iter().any(|rest| !rest.is_empty()) {
            let mut all: Vec<(&mut Md5, &[u8])> = Vec::new();
            for (md5, rest) in md5s.iter_mut().zip(&mut rest) {
                let take = below(&mut random, rest.len() + 1);
                let (now, later) = rest.split_at(take);
                *rest = later;
                all.push((md5, now));
            }
            Md5::update_all(&mut all);
        }
        for (body, md5) in bodies.iter().zip(md5s) {
            assert_eq!(md5.finish(), digest(body), "round {round}, {} bytes", body.len());
        }
    }
}
