//! Kernels with 256-bit and 512-bit vectors.
//!
//! Products by a constant byte are one affine instruction (GFNI), or two table look-ups of 16.
//! Per block and 64 lanes the widest kernel has 4 products and 10 sums, three operands each where
//! that saves one: 14 instructions for 256 bytes, and sums stay in registers throughout.

#![expect(unsafe_code, reason = "loads of vectors, and calls of functions with their features")]

use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
    _mm512_bsrli_epi128, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64,
    _mm512_shuffle_i64x2, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use super::{ALPHA, Lanes, Planes, UNALPHA, UNTRACE, UNWRAP, WRAP};
use crate::Isa;
use crate::field::{gf8, gf32};
use crate::signature::SIGNATURE_BLOCK;

/// Truth table of the sum of three.
const SUM3: i32 = 0x96;

/// Goes on by these blocks, at a level of this processor that is not the scalar one.
pub(super) fn absorb(isa: Isa, lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    match isa {
        // SAFETY: the caller names a level that this processor has, and each level implies the
        // features of its kernel (see Isa::is_supported).
        Isa::Avx512Gfni => unsafe { absorb_avx512(lanes, blocks) },
        // SAFETY: as above.
        Isa::Avx2Gfni => unsafe { absorb_avx2_gfni(lanes, blocks) },
        // SAFETY: as above.
        Isa::Avx2 => unsafe { absorb_avx2(lanes, blocks) },
        Isa::Scalar | Isa::Neon => unreachable!("{isa:?} has no kernel here"),
    }
}

/// The sums over lanes of [`super::scalar::reduce`].
pub(super) fn reduce(lanes: &Lanes) -> [gf32::Element; 2] {
    // SAFETY: the caller has found Isa::Avx512Gfni supported.
    unsafe { reduce_avx512(lanes) }
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn load_avx512(planes: &[[u8; 64]; 4]) -> [__m512i; 4] {
    // SAFETY: each plane is 64 readable bytes, and the load needs no alignment.
    planes.each_ref().map(|plane| unsafe { _mm512_loadu_si512(plane.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn store_avx512(vectors: [__m512i; 4], planes: &mut Planes) {
    for (vector, plane) in vectors.into_iter().zip(planes) {
        // SAFETY: each plane is 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(plane.as_mut_ptr().cast(), vector) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn absorb_avx512(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    let matrix = |c| _mm512_set1_epi64(gf8::affine(c).cast_signed());
    let (wrap, trace) = (matrix(WRAP), matrix(gf32::TRACE));
    let (unwrap, untrace) = (matrix(UNWRAP), matrix(UNTRACE));
    let mut forward = load_avx512(&lanes.forward);
    let mut backward = load_avx512(&lanes.backward);
    for block in blocks {
        let (planes, []) = block.as_chunks() else { unreachable!("four planes") };
        let Some(planes) = planes.first_chunk() else { unreachable!("four planes") };
        let data = load_avx512(planes);
        let [a, b, c, d] = forward;
        let high = _mm512_gf2p8affine_epi64_epi8::<0>(a, unwrap);
        let low = _mm512_xor_si512(_mm512_gf2p8affine_epi64_epi8::<0>(b, untrace), high);
        forward = [
            _mm512_ternarylogic_epi64::<SUM3>(c, low, data[0]),
            _mm512_ternarylogic_epi64::<SUM3>(d, high, data[1]),
            _mm512_xor_si512(low, data[2]),
            _mm512_xor_si512(high, data[3]),
        ];
        let [a, b, c, d] = backward;
        let sum = _mm512_xor_si512(c, d);
        backward = [
            _mm512_xor_si512(_mm512_gf2p8affine_epi64_epi8::<0>(d, wrap), data[0]),
            _mm512_xor_si512(_mm512_gf2p8affine_epi64_epi8::<0>(sum, trace), data[1]),
            _mm512_ternarylogic_epi64::<SUM3>(a, c, data[2]),
            _mm512_ternarylogic_epi64::<SUM3>(b, d, data[3]),
        ];
    }
    store_avx512(forward, &mut lanes.forward);
    store_avx512(backward, &mut lanes.backward);
}

/// The matrices of one halving: `[to][from]`, for lanes of the forward sum in the low half of the
/// vector and of the backward sum in the high half.
type Halving = [[[u64; 8]; 4]; 4];

/// By how many lanes each halving moves: 32, 16, 8, 4, 2, 1.
static HALVINGS: [Halving; 6] =
    [halving(32), halving(16), halving(8), halving(4), halving(2), halving(1)];

const fn halving(moved: u64) -> Halving {
    let powers = [gf32::pow(ALPHA, moved), gf32::pow(UNALPHA, moved)];
    let mut matrices = [[[0; 8]; 4]; 4];
    let mut from = 0;
    while from < 4 {
        let mut unit = [0; 4];
        unit[from] = 1;
        let mut qword = 0;
        while qword < 8 {
            // A product by an element is linear over GF(2^8): where it takes 1, u, z and uz
            // are the columns of its matrix.
            let column = gf32::mul(powers[qword / 4], unit);
            let mut to = 0;
            while to < 4 {
                matrices[to][from][qword] = gf8::affine(column[to]);
                to += 1;
            }
            qword += 1;
        }
        from += 1;
    }
    matrices
}

/// Halves the lanes six times: what is left of each half moves onto the other, times the power of
/// alpha that it moved by.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn reduce_avx512(lanes: &Lanes) -> [gf32::Element; 2] {
    let forward = load_avx512(&lanes.forward);
    let backward = load_avx512(&lanes.backward);
    let mut kept = [forward[0]; 4];
    let mut moved = kept;
    for plane in 0..4 {
        kept[plane] = _mm512_shuffle_i64x2::<0x44>(forward[plane], backward[plane]);
        moved[plane] = _mm512_shuffle_i64x2::<0xee>(forward[plane], backward[plane]);
    }
    kept = halve(kept, moved, &HALVINGS[0]);
    kept = halve(kept, kept.map(|v| _mm512_shuffle_i64x2::<0b11_11_01_01>(v, v)), &HALVINGS[1]);
    kept = halve(kept, kept.map(|v| _mm512_bsrli_epi128::<8>(v)), &HALVINGS[2]);
    kept = halve(kept, kept.map(|v| _mm512_srli_epi64::<32>(v)), &HALVINGS[3]);
    kept = halve(kept, kept.map(|v| _mm512_srli_epi64::<16>(v)), &HALVINGS[4]);
    kept = halve(kept, kept.map(|v| _mm512_srli_epi64::<8>(v)), &HALVINGS[5]);
    let mut planes = [[0; 64]; 4];
    store_avx512(kept, &mut planes);
    [planes.map(|plane| plane[0]), planes.map(|plane| plane[32])]
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn halve(kept: [__m512i; 4], moved: [__m512i; 4], matrices: &Halving) -> [__m512i; 4] {
    let mut sums = kept;
    for (sum, rows) in sums.iter_mut().zip(matrices) {
        // SAFETY: eight matrices are 64 readable bytes.
        let [a, b, c, d] =
            rows.each_ref().map(|row| unsafe { _mm512_loadu_si512(row.as_ptr().cast()) });
        let first = _mm512_xor_si512(
            _mm512_gf2p8affine_epi64_epi8::<0>(moved[0], a),
            _mm512_gf2p8affine_epi64_epi8::<0>(moved[1], b),
        );
        let second = _mm512_xor_si512(
            _mm512_gf2p8affine_epi64_epi8::<0>(moved[2], c),
            _mm512_gf2p8affine_epi64_epi8::<0>(moved[3], d),
        );
        *sum = _mm512_ternarylogic_epi64::<SUM3>(*sum, first, second);
    }
    sums
}

/// Blocks that a pass of 32 lanes takes before the other 32 lanes take them: 4 KiB stay in the
/// cache, and the eight sums of 32 lanes in registers, which those of 64 would not.
const PASS_BLOCKS: usize = 16;

#[target_feature(enable = "avx2")]
fn load_avx2(planes: &[[u8; 64]; 4], half: usize) -> [__m256i; 4] {
    assert!(half < 2, "64 lanes are two halves");
    // SAFETY: 32 bytes from half * 32 on are within the plane's 64.
    planes
        .each_ref()
        .map(|plane| unsafe { _mm256_loadu_si256(plane.as_ptr().add(half * 32).cast()) })
}

#[target_feature(enable = "avx2")]
fn store_avx2(vectors: [__m256i; 4], planes: &mut Planes, half: usize) {
    assert!(half < 2, "64 lanes are two halves");
    for (vector, plane) in vectors.into_iter().zip(planes) {
        // SAFETY: 32 bytes from half * 32 on are within the plane's 64.
        unsafe { _mm256_storeu_si256(plane.as_mut_ptr().add(half * 32).cast(), vector) };
    }
}

/// A kernel of 256-bit vectors, with its way to multiply by a constant.
macro_rules! absorb_256 {
    ($name:ident, $features:literal, $constant:ident, $product:ident) => {
        #[target_feature(enable = $features)]
        fn $name(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
            let (wrap, trace) = ($constant(WRAP), $constant(gf32::TRACE));
            let (unwrap, untrace) = ($constant(UNWRAP), $constant(UNTRACE));
            for (pass, half) in blocks.chunks(PASS_BLOCKS).flat_map(|pass| [(pass, 0), (pass, 1)]) {
                let mut forward = load_avx2(&lanes.forward, half);
                let mut backward = load_avx2(&lanes.backward, half);
                for block in pass {
                    let (planes, []) = block.as_chunks() else { unreachable!("four planes") };
                    let Some(planes) = planes.first_chunk() else { unreachable!("four planes") };
                    let data = load_avx2(planes, half);
                    let [a, b, c, d] = forward;
                    let high = $product(a, unwrap);
                    let low = _mm256_xor_si256($product(b, untrace), high);
                    forward = [_mm256_xor_si256(c, low), _mm256_xor_si256(d, high), low, high];
                    let [a, b, c, d] = backward;
                    backward = [
                        $product(d, wrap),
                        $product(_mm256_xor_si256(c, d), trace),
                        _mm256_xor_si256(a, c),
                        _mm256_xor_si256(b, d),
                    ];
                    for plane in 0..4 {
                        forward[plane] = _mm256_xor_si256(forward[plane], data[plane]);
                        backward[plane] = _mm256_xor_si256(backward[plane], data[plane]);
                    }
                }
                store_avx2(forward, &mut lanes.forward, half);
                store_avx2(backward, &mut lanes.backward, half);
            }
        }
    };
}

absorb_256!(absorb_avx2_gfni, "avx2,gfni", matrix, affine);
absorb_256!(absorb_avx2, "avx2", nibbles, look_up);

#[target_feature(enable = "avx2,gfni")]
fn matrix(c: u8) -> __m256i {
    _mm256_set1_epi64x(gf8::affine(c).cast_signed())
}

#[target_feature(enable = "avx2,gfni")]
fn affine(operand: __m256i, matrix: __m256i) -> __m256i {
    _mm256_gf2p8affine_epi64_epi8::<0>(operand, matrix)
}

#[target_feature(enable = "avx2")]
fn nibbles(c: u8) -> [__m256i; 2] {
    gf8::nibbles(c).map(|table| {
        // SAFETY: the table is 16 readable bytes.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
    })
}

#[target_feature(enable = "avx2")]
fn look_up(operand: __m256i, [low, high]: [__m256i; 2]) -> __m256i {
    let mask = _mm256_set1_epi8(15);
    let nibble = _mm256_and_si256(_mm256_srli_epi16::<4>(operand), mask);
    _mm256_xor_si256(
        _mm256_shuffle_epi8(low, _mm256_and_si256(operand, mask)),
        _mm256_shuffle_epi8(high, nibble),
    )
}
