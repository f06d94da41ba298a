//! Any loss up to the redundancy is reconstructed, one more is an error, and the fast code equals
//! the definition.

use proptest::prelude::*;
use reed_solomon_simd::rate::{HighRateEncoder, RateEncoder};

use super::definition::{element, multiply, to_polynomial};
use super::{Decoder, ErasureCode};
use crate::{CodeError, ErrorKind, Shard};

fn bytes(count: usize, size: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    };
    (0..count).map(|_| (0..size).map(|_| next()).collect()).collect()
}

/// Computes redundancy by the fast code; `None` counts as zeros.
fn encode(code: ErasureCode, size: usize, information: &[Option<&[u8]>]) -> Vec<Vec<u8>> {
    let engine = reed_solomon_simd::engine::DefaultEngine::new();
    let counts = (code.information(), code.redundancy());
    let mut encoder = HighRateEncoder::new(counts.0, counts.1, size, engine, None).unwrap();
    let zeros = vec![0; size];
    for shard in information {
        encoder.add_original_shard(shard.unwrap_or(&zeros)).unwrap();
    }
    encoder.encode().unwrap().recovery_iter().map(<[u8]>::to_vec).collect()
}

fn decode(
    code: ErasureCode,
    size: usize,
    shards: &[Shard<'_>],
) -> Result<Vec<(usize, Vec<u8>)>, CodeError> {
    let mut restored = std::collections::BTreeMap::new();
    code.decoder(size)?.decode(
        |i| shards[i],
        |i, offset, piece: &[u8]| {
            restored.entry(i).or_insert_with(|| vec![0; size])[offset..offset + piece.len()]
                .copy_from_slice(piece);
        },
    )?;
    Ok(restored.into_iter().collect())
}

/// Returns `0..n` shuffled by `seed`.
fn order(n: usize, seed: u64) -> Vec<usize> {
    let keys = bytes(n, 8, seed);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| &keys[i]);
    order
}

proptest! {
    #[test]
    fn any_loss_up_to_the_redundancy_is_reconstructed(
        information in 1usize..80, redundancy in 1usize..40, blocks in 1usize..12, seed: u64,
        used in 0usize..80,
    ) {
        let (code, size) = (ErasureCode::new(information, redundancy).unwrap(), blocks * 64);
        let given = bytes(information, size, seed);
        // Shards at or after `used` were never written.
        let optional: Vec<Option<&[u8]>> =
            given.iter().enumerate().map(|(i, s)| (i < used).then_some(&s[..])).collect();
        let coded = encode(code, size, &optional);
        let mut shards: Vec<Shard<'_>> =
            optional.iter().map(|s| s.map_or(Shard::Zero, Shard::Given)).collect();
        shards.extend(coded.iter().map(|s| Shard::Given(s)));
        let order = order(shards.len(), seed ^ 77);
        for &i in &order[..redundancy] {
            shards[i] = Shard::Lost;
        }
        for (i, restored) in decode(code, size, &shards).unwrap() {
            prop_assert!(shards[i] == Shard::Lost);
            let zeros = vec![0; size];
            prop_assert_eq!(&restored[..], optional[i].unwrap_or(&zeros));
            shards[i] = Shard::Zero;
        }
        prop_assert!(!shards[..information].contains(&Shard::Lost));

        for &i in &order[..=redundancy] {
            shards[i] = Shard::Lost;
        }
        prop_assert_eq!(
            decode(code, size, &shards),
            Err(CodeError::TooFewShards { have: information - 1, need: information })
        );
    }

    #[test]
    fn stripes_do_not_change_the_result(seed: u64) {
        // A shard longer than one stripe is coded like its parts separately.
        let code = ErasureCode::new(5, 3).unwrap();
        let size = 20 * 1024 + 64;
        let given = bytes(5, size, seed);
        let whole = encode(code, size, &given.iter().map(|s| Some(&s[..])).collect::<Vec<_>>());
        let tails: Vec<_> = given.iter().map(|s| Some(&s[size - 64..])).collect();
        let tail = encode(code, 64, &tails);
        for (whole, tail) in whole.iter().zip(&tail) {
            prop_assert_eq!(&whole[size - 64..], &tail[..]);
        }
        let mut shards: Vec<Shard<'_>> = given.iter().map(|s| Shard::Given(s)).collect();
        shards.extend(whole.iter().map(|s| Shard::Given(s)));
        shards[0] = Shard::Lost;
        shards[4] = Shard::Lost;
        prop_assert_eq!(
            decode(code, size, &shards).unwrap(),
            vec![(0, given[0].clone()), (4, given[4].clone())]
        );
    }

    #[test]
    fn the_definition_describes_the_code(
        information in 1usize..40, log in 0u32..5, seed: u64,
    ) {
        let m = 1usize << log;
        let code = ErasureCode::new(information, m).unwrap();
        let given = bytes(information, 64, seed);
        let optional: Vec<Option<&[u8]>> = given.iter().map(|s| Some(&s[..])).collect();
        let coded = encode(code, 64, &optional);
        for index in [0, 13, 31] {
            let mut sums = vec![0u16; m];
            for (place, shard) in coded.iter().chain(&given).enumerate() {
                let x = to_polynomial(u16::try_from(place).unwrap());
                let mut term = element(shard, index);
                for sum in &mut sums {
                    *sum ^= term;
                    term = multiply(term, x);
                }
            }
            prop_assert!(sums.iter().all(|&sum| sum == 0), "{:?}", sums);
        }
        // A redundancy count between powers of two keeps the first shards of the next power.
        if m > 2 {
            let fewer = ErasureCode::new(information, m - 1).unwrap();
            prop_assert_eq!(&encode(fewer, 64, &optional)[..], &coded[..m - 1]);
        }
    }
}

#[test]
fn decoders_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Decoder>();
}

#[test]
fn sizes_that_no_code_has_are_refused() {
    for (information, redundancy) in [(0, 1), (1, 0), (65_535, 2), (1, usize::MAX), (usize::MAX, 1)]
    {
        let error = ErasureCode::new(information, redundancy).unwrap_err();
        assert_eq!(error, CodeError::Counts { information, redundancy });
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let code = ErasureCode::new(300, 6).unwrap();
    for bytes in [0, 1, 63, 65] {
        assert_eq!(code.decoder(bytes).unwrap_err(), CodeError::ShardBytes { bytes });
    }
}
