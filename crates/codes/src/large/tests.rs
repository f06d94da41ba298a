//! The fast code is the code of the definition, at every level of instructions; any loss up to the
//! redundancy comes back, and one more is an error.

use proptest::prelude::*;

use super::definition::{self, BASIS, element};
use super::{LargeCode, LargeEncoder, LargeStreamEncoder};
use crate::field::gf16;
use crate::{CodeError, ErrorKind, Isa};

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
