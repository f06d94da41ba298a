//! The fast code is the code of the definition, at every level of instructions; any loss up to the
//! redundancy comes back, and one more is an error.

use proptest::prelude::*;

use super::definition::{self, BASIS, element};
use super::{LargeCode, LargeDecoder, LargeEncoder, LargeStreamEncoder, Method};
use crate::field::gf16;
use crate::{CodeError, ErrorKind, Isa, Shard};

pub(super) fn shards(count: usize, size: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    };
    (0..count).map(|_| (0..size).map(|_| next()).collect()).collect()
}

pub(super) fn encode(
    code: LargeCode,
    isa: Isa,
    size: usize,
    information: &[Option<&[u8]>],
) -> Vec<Vec<u8>> {
    let mut redundancy = vec![vec![0; size]; code.redundancy()];
    LargeEncoder::new(code, size, isa)
        .unwrap()
        .encode(
            |i| information[i],
            |i, offset, piece| redundancy[i][offset..offset + piece.len()].copy_from_slice(piece),
        )
        .unwrap();
    redundancy
}

#[test]
fn the_basis_is_cantors() {
    assert_eq!(BASIS[0], [1, 0]);
    for pair in BASIS.windows(2) {
        assert_eq!(gf16::add(gf16::mul(pair[1], pair[1]), pair[1]), pair[0]);
        assert_eq!(pair[1][0] % 2, 0);
    }
    let elements: std::collections::BTreeSet<_> = (0..1 << 16).map(element).collect();
    assert_eq!(elements.len(), 1 << 16);
    assert!((0..256).all(|number| element(number)[1] == 0));
}

#[test]
fn small_codes_are_the_definition_at_every_level() {
    for information in 1..=20 {
        let given = shards(information, 128, 3);
        let optional: Vec<_> = given.iter().map(|s| Some(&s[..])).collect();
        for redundancy in 1..=17 {
            let defined = definition::encode(&given, redundancy);
            let code = LargeCode::new(information, redundancy).unwrap();
            for isa in Isa::supported() {
                let coded = encode(code, isa, 128, &optional);
                assert_eq!(coded, defined, "{information}+{redundancy} {isa:?}");
            }
        }
    }
}

type Restored = std::collections::BTreeMap<usize, Vec<u8>>;

fn decode(
    code: LargeCode,
    isa: Isa,
    method: Method,
    size: usize,
    shards: &[Shard<'_>],
    wanted: impl Fn(usize) -> bool,
) -> Result<Restored, CodeError> {
    let mut restored = Restored::new();
    LargeDecoder::new(code, size, isa)?.with_method(method).decode_wanted(
        |i| shards[i],
        wanted,
        |i, offset, piece: &[u8]| {
            restored.entry(i).or_insert_with(|| vec![0; size])[offset..offset + piece.len()]
                .copy_from_slice(piece);
        },
    )?;
    Ok(restored)
}

/// Order of `0..n` shuffled by `seed`.
fn order(n: usize, seed: u64) -> Vec<usize> {
    let keys = shards(n, 8, seed);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| &keys[i]);
    order
}

const METHODS: [Method; 3] = [Method::Transform, Method::Narrow, Method::Residual];

/// Loses `lost` and holds every method, at every level, to bring it back.
fn check_losses(code: LargeCode, all: &[Option<Vec<u8>>], lost: &[usize]) {
    let size = all.iter().flatten().next().map_or(128, Vec::len);
    let mut given: Vec<Shard<'_>> =
        all.iter().map(|s| s.as_ref().map_or(Shard::Zero, |s| Shard::Given(s))).collect();
    for &i in lost {
        given[i] = Shard::Lost;
    }
    let zeros = vec![0; size];
    let expected: Restored =
        lost.iter().map(|&i| (i, all[i].as_ref().unwrap_or(&zeros).clone())).collect();
    for isa in Isa::supported() {
        for method in METHODS {
            let restored = decode(code, isa, method, size, &given, |_| true).unwrap();
            assert_eq!(restored, expected, "{code:?} lost {lost:?} {method:?} {isa:?}");
        }
    }
}

fn all_shards(code: LargeCode, size: usize, used: usize, seed: u64) -> Vec<Option<Vec<u8>>> {
    let given = shards(used.min(code.information()), size, seed);
    let mut all: Vec<_> = given.into_iter().map(Some).collect();
    all.resize(code.information(), None);
    let optional: Vec<_> = all.iter().map(Option::as_deref).collect();
    let coded = encode(code, Isa::current(), size, &optional);
    all.extend(coded.into_iter().map(Some));
    all
}

#[test]
fn every_loss_of_small_codes_comes_back() {
    for information in 1..=5 {
        for redundancy in 1..=4 {
            let code = LargeCode::new(information, redundancy).unwrap();
            let all = all_shards(code, 128, information, 5);
            for mask in 0u32..1 << all.len() {
                if mask.count_ones() as usize <= redundancy {
                    let lost: Vec<usize> = (0..all.len()).filter(|i| mask >> i & 1 == 1).collect();
                    check_losses(code, &all, &lost);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_loss_up_to_the_redundancy_comes_back(
        information in 1usize..200, redundancy in 1usize..80, blocks in 1usize..3, seed: u64,
        used in 0usize..200, lost in 0usize..80,
    ) {
        let code = LargeCode::new(information, redundancy).unwrap();
        let all = all_shards(code, 128 * blocks, used, seed);
        let order = order(all.len(), seed ^ 77);
        check_losses(code, &all, &order[..lost.min(redundancy)]);
        check_losses(code, &all, &order[..redundancy]);
    }
}
