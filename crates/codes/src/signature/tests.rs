//! Signatures against their definition, and their commutation with every code.

use proptest::collection::vec;
use proptest::prelude::*;

use super::kernel::{ALPHA, ALPHA_INVERSE, ORDER, Y};
use super::{RunningSignature, SIGNATURE_BLOCK, Signature, signature};
use crate::field::{gf8, gf16, gf32};
use crate::{CodeError, Isa};

/// Returns symbol p of the bytes, which are padded with zeros.
fn symbol(bytes: &[u8], p: usize) -> gf32::Element {
    let first = p / 64 * SIGNATURE_BLOCK + p % 64;
    [0, 64, 128, 192].map(|plane| bytes.get(first + plane).copied().unwrap_or(0))
}

fn symbols(bytes: &[u8]) -> usize {
    bytes.len().div_ceil(SIGNATURE_BLOCK) * 64
}

/// Computes the sum of d_p base^p, term by term.
fn component(bytes: &[u8], base: gf32::Element) -> gf32::Element {
    let (mut sum, mut power) = ([0; 4], gf32::ONE);
    for p in 0..symbols(bytes) {
        sum = gf32::add(sum, gf32::mul(symbol(bytes, p), power));
        power = gf32::mul(power, base);
    }
    sum
}

fn textbook(bytes: &[u8]) -> Signature {
    Signature::from_components([component(bytes, ALPHA), component(bytes, ALPHA_INVERSE)])
}

fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    };
    (0..length).map(step).collect()
}

fn with_isa(isa: Isa, bytes: &[u8]) -> Signature {
    let mut signer = RunningSignature::with_isa(isa);
    signer.update(bytes);
    signer.finish()
}

#[test]
fn order_of_alpha_is_a_third_of_the_group() {
    assert_eq!(gf32::pow(ALPHA, 64), Y);
    assert_eq!(gf32::pow(Y, ORDER), gf32::ONE);
    for prime in [5, 17, 257, 65_537] {
        assert_ne!(gf32::pow(Y, ORDER / prime), gf32::ONE, "order / {prime}");
    }
}

/// Computed by another program from the definition alone.
#[test]
fn golden_vectors() {
    let cases: [(&[u8], u64); 5] = [
        (&[1], 0x0100_0000_0100_0000),
        (b"Fulgurite", 0x3222_0d5f_48ff_b274),
        (&pattern(256), 0x8732_42fa_74c4_0865),
        (&pattern(300), 0x0136_72f3_a5c7_016a),
        (&pattern(102_400), 0x9636_d000_0fc1_5d80),
    ];
    for (bytes, expected) in cases {
        for isa in Isa::supported() {
            let text: String = with_isa(isa, bytes).0.map(|byte| format!("{byte:02x}")).concat();
            assert_eq!(text, format!("{expected:016x}"), "{} bytes, {isa:?}", bytes.len());
        }
    }
}

#[test]
fn zeros_do_not_change_a_signature() {
    assert_eq!(signature(&[]), Signature::ZERO);
    assert_eq!(signature(&[0; 1000]), Signature::ZERO);
    let bytes = pattern(1000);
    let padded = [bytes.clone(), vec![0; 5000]].concat();
    assert_eq!(signature(&bytes), signature(&padded));
}

#[test]
fn kernels_agree_at_every_length() {
    let bytes = pattern(6 * SIGNATURE_BLOCK);
    for length in 0..bytes.len() {
        let expected = with_isa(Isa::Scalar, &bytes[..length]);
        for isa in Isa::supported() {
            assert_eq!(with_isa(isa, &bytes[..length]), expected, "{length} bytes, {isa:?}");
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let sign = signature(b"some bytes");
    let misplaced = sign.concatenate(sign, 255);
    assert_eq!(misplaced, Err(CodeError::SignatureBlock { bytes: 255 }));
    let unequal = sign.update(0, b"12", b"1");
    assert_eq!(unequal, Err(CodeError::UnequalShards { index: 1, bytes: 1, expected: 2 }));
}

/// Errors that are all the same difference, at positions where the powers of alpha sum to zero. The
/// component at alpha^2 is then zero too, but the one at 1 / alpha is not.
#[test]
fn equal_differences_are_detected_unlike_at_alpha_squared() {
    // Gaussian elimination over GF(2): 33 powers of 32 bits are linearly dependent.
    let mut rows: Vec<(u32, u64)> = Vec::new();
    let mut dependent = 0u64;
    for p in 0..=32u32 {
        let power = gf32::pow(ALPHA, u64::from(p) * 1000);
        let mut row = (u32::from_le_bytes(power), 1u64 << p);
        for other in &rows {
            if row.0 ^ other.0 < row.0 {
                row = (row.0 ^ other.0, row.1 ^ other.1);
            }
        }
        if row.0 == 0 {
            dependent = row.1;
            break;
        }
        rows.push(row);
        rows.sort_unstable_by(|a, b| b.cmp(a));
    }
    assert!(dependent.count_ones() > 2, "two powers differ");
    let mut bytes = vec![0u8; 33_000 / 64 * SIGNATURE_BLOCK];
    for p in (0..33).filter(|p| dependent >> p & 1 == 1).map(|p| p * 1000) {
        bytes[p / 64 * SIGNATURE_BLOCK + p % 64] = 0x10;
    }
    assert_eq!(component(&bytes, ALPHA), [0; 4]);
    assert_eq!(
        component(&bytes, gf32::mul(ALPHA, ALPHA)),
        [0; 4],
        "the usual pair detects nothing"
    );
    assert_ne!(signature(&bytes), Signature::ZERO);
}

/// A signature over a 32-bit field that is no tower over the code's bytes: it does not commute with
/// their products.
fn binary_basis(bytes: &[u8]) -> u32 {
    bytes.chunks(4).rev().fold(0, |sum, symbol| {
        let doubled = u64::from(sum) << 1;
        let reduced = if doubled >> 32 == 1 { doubled ^ 0x1_0040_0007 } else { doubled };
        let symbol = u32::from_le_bytes(symbol.try_into().expect("four bytes"));
        u32::try_from(reduced).expect("reduced") ^ symbol
    })
}

fn add_scaled(sum: &mut [u8], scale: u8, bytes: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= gf8::mul(scale, *byte);
    }
}

#[test]
fn a_tower_commutes_and_a_binary_basis_does_not() {
    let bytes = pattern(16 * 128);
    let data: Vec<&[u8]> = bytes.chunks(128).collect();
    let mut failures = 0;
    for row in 16..19u8 {
        let (mut parity, mut sum, mut binary) = ([0; 128], Signature::ZERO, [0; 4]);
        for (column, shard) in (0u8..).zip(&data) {
            let scale = gf8::inverse(row ^ column);
            add_scaled(&mut parity, scale, shard);
            sum ^= signature(shard).scale8(scale);
            add_scaled(&mut binary, scale, &binary_basis(shard).to_le_bytes());
        }
        assert_eq!(sum, signature(&parity));
        failures += usize::from(binary != binary_basis(&parity).to_le_bytes());
    }
    assert_eq!(failures, 3, "the control commutes by accident");
    let mut xor = [0; 128];
    data.iter().for_each(|shard| add_scaled(&mut xor, 1, shard));
    let binary = data.iter().fold(0, |sum, shard| sum ^ binary_basis(shard));
    assert_eq!(binary, binary_basis(&xor), "any linear check commutes with a plain sum");
}

/// Returns the bytes as planar elements of GF(2^16), each times `scale`.
fn scaled16(scale: gf16::Element, bytes: &[u8]) -> Vec<u8> {
    let mut product = bytes.to_vec();
    for block in product.chunks_mut(128) {
        for lane in 0..64 {
            [block[lane], block[64 + lane]] = gf16::mul(scale, [block[lane], block[64 + lane]]);
        }
    }
    product
}

proptest! {
    #[test]
    fn kernels_match_the_textbook_formula(bytes in vec(any::<u8>(), 0..6000)) {
        let expected = textbook(&bytes);
        for isa in Isa::supported() {
            prop_assert_eq!(with_isa(isa, &bytes), expected, "{:?}", isa);
        }
    }

    #[test]
    fn pieces_match_the_whole(bytes in vec(any::<u8>(), 0..3000), cuts in vec(0usize..700, 0..9)) {
        let mut signer = RunningSignature::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            signer.update(piece);
            rest = after;
            let so_far = &bytes[..bytes.len() - rest.len()];
            prop_assert_eq!(signer.finish(), signature(so_far));
        }
        signer.update(rest);
        prop_assert_eq!(signer.finish(), signature(&bytes));
    }

    #[test]
    fn signatures_concatenate(blocks in 0usize..8, bytes in vec(any::<u8>(), 2048..4000)) {
        let (first, second) = bytes.split_at(blocks * SIGNATURE_BLOCK);
        let whole = signature(first).concatenate(signature(second), first.len() as u64);
        prop_assert_eq!(whole, Ok(signature(&bytes)));
    }

    #[test]
    fn far_concatenations_associate(a: [u8; 8], b: [u8; 8], c: [u8; 8], blocks: [u32; 2]) {
        let [first, second] = blocks.map(|blocks| u64::from(blocks) * 256);
        let (a, b, c) = (Signature(a), Signature(b), Signature(c));
        let left = a.concatenate(b, first).unwrap().concatenate(c, first + second).unwrap();
        let right = a.concatenate(b.concatenate(c, second).unwrap(), first).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn updates_match_a_recomputed_signature(
        mut bytes in vec(any::<u8>(), 1..3000),
        new in vec(any::<u8>(), 0..600),
        offset: prop::sample::Index,
    ) {
        let before = signature(&bytes);
        let offset = offset.index(bytes.len());
        let length = new.len().min(bytes.len() - offset);
        let place = offset..offset + length;
        let after = before.update(offset as u64, &bytes[place.clone()], &new[..length]);
        bytes[place].copy_from_slice(&new[..length]);
        prop_assert_eq!(after, Ok(signature(&bytes)));
    }

    #[test]
    fn signatures_commute_with_sums_and_products(
        left in vec(any::<u8>(), 1024), right in vec(any::<u8>(), 1024), scale: [u8; 2],
    ) {
        let sum: Vec<u8> = left.iter().zip(&right).map(|(a, b)| a ^ b).collect();
        prop_assert_eq!(signature(&left) ^ signature(&right), signature(&sum));
        let bytewise: Vec<u8> = left.iter().map(|byte| gf8::mul(scale[0], *byte)).collect();
        prop_assert_eq!(signature(&left).scale8(scale[0]), signature(&bytewise));
        prop_assert_eq!(signature(&left).scale16(scale), signature(&scaled16(scale, &left)));
    }

    #[test]
    fn signatures_commute_with_gf16_parity(
        data in vec(vec(any::<u8>(), 512), 1..6), row in 40_000u16..,
    ) {
        let (mut parity, mut sum) = (vec![0; 512], Signature::ZERO);
        for (column, shard) in (0u16..).zip(&data) {
            let scale = gf16::inverse((row ^ column).to_le_bytes());
            add_scaled(&mut parity, 1, &scaled16(scale, shard));
            sum ^= signature(shard).scale16(scale);
        }
        prop_assert_eq!(sum, signature(&parity));
    }

    #[test]
    fn one_or_two_changed_symbols_are_detected(
        places in [0usize..1024, 0usize..1024], differences: [[u8; 4]; 2],
    ) {
        prop_assume!(differences[0] != [0; 4]);
        prop_assume!(places[0] != places[1] || differences[0] != differences[1]);
        let mut bytes = vec![0; 16 * SIGNATURE_BLOCK];
        for (p, difference) in places.into_iter().zip(differences) {
            for (plane, byte) in difference.into_iter().enumerate() {
                bytes[p / 64 * SIGNATURE_BLOCK + plane * 64 + p % 64] ^= byte;
            }
        }
        prop_assert_ne!(signature(&bytes), Signature::ZERO);
    }
}
