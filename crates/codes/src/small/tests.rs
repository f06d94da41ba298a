//! The code against its definition, every level against the scalar reference, and every pattern of
//! losses.

use proptest::prelude::*;

use super::points::{BASIS, element, number};
use super::*;
use crate::field::gf8;

/// Returns pseudorandom bytes of a seed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(bytes)
    .collect()
}

fn shards(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0u64..).take(count).map(|seed| noise(seed + 1, bytes)).collect()
}

/// Returns all shards of a codeword.
fn word(code: &SmallCode, bytes: usize) -> Vec<Vec<u8>> {
    let mut all = shards(code.information(), bytes);
    let mut redundancy = vec![vec![0xEE; bytes]; code.redundancy()];
    code.encode(&all, &mut redundancy).unwrap();
    all.append(&mut redundancy);
    all
}

/// Reconstructs `wanted` from all shards but `lost`, and compares them.
fn check(code: &SmallCode, all: &[Vec<u8>], lost: &[usize], wanted: &[usize]) {
    let given: Vec<(usize, &[u8])> = (0..all.len())
        .filter(|index| !lost.contains(index))
        .map(|index| (index, all[index].as_slice()))
        .collect();
    let mut out = vec![vec![0xAA; all[0].len()]; wanted.len()];
    let mut targets: Vec<(usize, &mut [u8])> =
        wanted.iter().copied().zip(out.iter_mut().map(Vec::as_mut_slice)).collect();
    code.reconstruct(&given, &mut targets).unwrap();
    for (index, shard) in wanted.iter().zip(&out) {
        assert!(shard == &all[*index], "shard {index} of {lost:?} lost");
    }
}

const SHAPES: [(usize, usize); 14] = [
    (1, 1),
    (2, 1),
    (6, 1),
    (12, 3),
    (13, 3),
    (15, 3),
    (16, 3),
    (24, 3),
    (62, 2),
    (30, 6),
    (100, 8),
    (200, 16),
    (240, 15),
    (40, 30),
];

#[test]
fn the_basis_is_a_cantor_basis_and_spans_the_field() {
    assert_eq!(BASIS[0], 1);
    for pair in BASIS.windows(2) {
        assert_eq!(gf8::mul(pair[1], pair[1]) ^ pair[1], pair[0]);
    }
    for v in 0..=255 {
        assert_eq!(number(element(v)), v);
    }
}

#[test]
fn every_level_encodes_as_defined() {
    for (information, redundancy) in SHAPES {
        for bytes in [0, 1, 63, 64, 200, 1024 + 65, 4096 + 128 + 3] {
            let data = shards(information, bytes);
            let expected: Vec<Vec<u8>> = (0..redundancy)
                .map(|i| {
                    let term = |at: usize| {
                        (0..information)
                            .fold(0, |sum, j| sum ^ gf8::mul(coefficient(i, j), data[j][at]))
                    };
                    (0..bytes).map(term).collect()
                })
                .collect();
            for isa in Isa::supported() {
                let code = SmallCode::with_isa(information, redundancy, isa).unwrap();
                let mut out = vec![vec![0xEE; bytes]; redundancy];
                code.encode(&data, &mut out).unwrap();
                assert!(out == expected, "{information}+{redundancy} of {bytes} on {isa:?}");
            }
        }
    }
}

#[test]
fn first_redundancy_is_the_xor_and_shapes_nest() {
    for i in 0..255u8 {
        for j in (0..255u8).take(255 - usize::from(i)) {
            let factor = points::coefficient(i, j);
            assert!(factor != 0 && (i > 0 || factor == 1), "a({i}, {j}) = {factor}");
        }
    }
    let (small, large) = (SmallCode::new(5, 2).unwrap(), SmallCode::new(9, 4).unwrap());
    let mut data = shards(5, 100);
    let mut few = vec![vec![0; 100]; 2];
    small.encode(&data, &mut few).unwrap();
    data.resize(9, vec![0; 100]);
    let mut many = vec![vec![0; 100]; 4];
    large.encode(&data, &mut many).unwrap();
    assert_eq!(few, many[..2]);
}

#[test]
fn small_codes_survive_every_loss_up_to_the_redundancy() {
    for (information, redundancy) in [(1, 1), (2, 1), (3, 2), (4, 3), (2, 4), (5, 5)] {
        let code = SmallCode::new(information, redundancy).unwrap();
        let all = word(&code, 70);
        for mask in 0..1u32 << all.len() {
            let lost: Vec<usize> = (0..all.len()).filter(|i| mask >> i & 1 == 1).collect();
            if lost.len() <= redundancy {
                check(&code, &all, &lost, &lost);
                check(&code, &all, &lost, &(0..all.len()).collect::<Vec<_>>());
                for &one in &lost {
                    check(&code, &all, &lost, &[one]);
                }
            } else {
                let given: Vec<usize> = (0..all.len()).filter(|i| !lost.contains(i)).collect();
                let error = code.plan(&given, &lost).unwrap_err();
                let expected =
                    CodeError::TooFewShards { have: given.len(), need: code.information() };
                assert_eq!(error, expected);
            }
        }
    }
}

#[test]
fn shapes_in_use_survive_their_worst_losses_on_every_level() {
    for (information, redundancy) in SHAPES {
        let n = information + redundancy;
        let first: Vec<usize> = (0..redundancy.min(information)).collect();
        let last: Vec<usize> = (n - redundancy..n).collect();
        let mixed: Vec<usize> = (0..redundancy).map(|i| (i * 7 + 3) % n).collect();
        for isa in Isa::supported() {
            let code = SmallCode::with_isa(information, redundancy, isa).unwrap();
            let all = word(&code, 1_333);
            for lost in [&first, &last, &mixed] {
                let lost: std::collections::BTreeSet<usize> = lost.iter().copied().collect();
                let lost: Vec<usize> = lost.into_iter().collect();
                check(&code, &all, &lost, &lost);
            }
        }
    }
}

#[test]
fn plan_reads_k_shards_and_writes_the_wanted() {
    let code = SmallCode::new(16, 3).unwrap();
    let given: Vec<usize> = (2..19).collect();
    let plan = code.plan(&given, &[0]).unwrap();
    assert_eq!((plan.reads(), plan.writes()), (16, 1));
}

#[test]
fn bad_input_is_refused_before_any_work() {
    let counts = |information, redundancy| SmallCode::new(information, redundancy).unwrap_err();
    for (information, redundancy) in [(0, 1), (1, 0), (0, 0), (250, 6), (usize::MAX, 2)] {
        assert_eq!(counts(information, redundancy), CodeError::Counts { information, redundancy });
    }
    let code = SmallCode::new(3, 2).unwrap();
    let mut out = vec![vec![7; 8]; 2];
    let unequal = [vec![0; 8], vec![0; 8], vec![0; 9]];
    assert_eq!(
        code.encode(&unequal, &mut out).unwrap_err(),
        CodeError::UnequalShards { index: 2, bytes: 9, expected: 8 }
    );
    assert_eq!(
        code.encode(&unequal[..2], &mut out).unwrap_err(),
        CodeError::ShardCount { have: 2, need: 3 }
    );
    assert_eq!(
        code.encode(&shards(3, 8), &mut out[..1]).unwrap_err(),
        CodeError::ShardCount { have: 1, need: 2 }
    );
    assert_eq!(out, vec![vec![7; 8]; 2]);
    assert_eq!(code.plan(&[0, 1, 1], &[2]).unwrap_err(), CodeError::Index { index: 1, shards: 5 });
    assert_eq!(code.plan(&[0, 1, 5], &[2]).unwrap_err(), CodeError::Index { index: 5, shards: 5 });
    assert_eq!(
        code.plan(&[0, 1, 2], &[4, 4]).unwrap_err(),
        CodeError::Index { index: 4, shards: 5 }
    );
    let mut shard = vec![0; 8];
    let update =
        |index, number, shard: &mut [u8]| code.update(index, &[0; 8], &mut [(number, shard)]);
    assert!(matches!(update(3, 0, &mut shard), Err(CodeError::Index { index: 3, .. })));
    assert!(matches!(update(0, 2, &mut shard), Err(CodeError::Index { index: 2, .. })));
    assert!(matches!(
        update(0, 0, &mut shard[..5]),
        Err(CodeError::UnequalShards { index: 1, bytes: 5, expected: 8 })
    ));
}

#[test]
fn golden_vectors_do_not_change() {
    let code = SmallCode::new(5, 6).unwrap();
    let data: Vec<[u8; 4]> = (0u8..5).map(|i| [i, 1 << i, 0xF0 | i, i.wrapping_mul(53)]).collect();
    let mut out = [[0u8; 4]; 6];
    code.encode(&data, &mut out).unwrap();
    let text: Vec<String> =
        out.iter().map(|shard| shard.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    // Computed from the definition by a separate program.
    let expected = "041ff414 c5cabce6 7d74f72c 15dbdb20 ff643a62 cd08db0e";
    assert_eq!(text.join(" "), expected);
}

proptest! {
    #[test]
    fn random_losses_of_random_shapes_are_reconstructed(
        information in 1usize..120,
        redundancy in 1usize..40,
        bytes in 1usize..300,
        seed: u64,
    ) {
        let code = SmallCode::new(information, redundancy).unwrap();
        let all = word(&code, bytes);
        let mut order: Vec<usize> = (0..all.len()).collect();
        let picks = noise(seed, 8 * order.len());
        for (at, pick) in picks.chunks_exact(2).take(order.len()).enumerate() {
            let other = usize::from(u16::from_le_bytes([pick[0], pick[1]])) % order.len();
            order.swap(at, other);
        }
        let lost = &order[..redundancy];
        check(&code, &all, lost, &lost[..redundancy.min(3)]);
        check(&code, &all, lost, lost);
    }

    #[test]
    fn updates_match_a_full_encoding(index in 0usize..7, bytes in 0usize..200, seed: u64) {
        let code = SmallCode::new(7, 3).unwrap();
        let mut all = word(&code, bytes);
        let change = noise(seed, bytes);
        all[index].iter_mut().zip(&change).for_each(|(byte, change)| *byte ^= change);
        let mut redundancy = all.split_off(7);
        {
            let mut parts: Vec<(usize, &mut [u8])> =
                redundancy.iter_mut().map(Vec::as_mut_slice).enumerate().collect();
            code.update(index, &change, &mut parts).unwrap();
        }
        let mut expected = vec![vec![0; bytes]; 3];
        code.encode(&all, &mut expected).unwrap();
        prop_assert_eq!(redundancy, expected);
    }
}
