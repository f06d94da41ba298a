//! Kernels with 256-bit and 512-bit vectors.
//!
//! Products by a constant byte are one affine instruction (GFNI), or two table look-ups of 16.
//! Per block the widest kernel has two products and seven sums, three operands each where that
//! saves one: nine instructions for 256 bytes.

#![expect(unsafe_code, reason = "loads of vectors, and calls of functions with their features")]

use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
    _mm512_bsrli_epi128, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64,
    _mm512_shuffle_i64x2, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use super::{ALPHA, Lanes, Planes, UNALPHA, WRAP};
use crate::Isa;
use crate::field::{gf8, gf32};
use crate::signature::SIGNATURE_BLOCK;

/// The constants as matrices of the affine instruction.
const BY_WRAP: u64 = gf8::affine(WRAP);
const BY_TRACE: u64 = gf8::affine(gf32::TRACE);

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

/// Blocks of one turn of the widest kernel: so many that sums need not move between registers.
const TURN_BLOCKS: usize = 4;

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn absorb_avx512(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    let mut last = load_avx512(&lanes.last);
    let mut previous = load_avx512(&lanes.previous);
    let (turns, rest) = blocks.as_chunks::<TURN_BLOCKS>();
    for turn in turns {
        for block in turn {
            (last, previous) = (step_avx512(last, previous, block), last);
        }
    }
    for block in rest {
        (last, previous) = (step_avx512(last, previous, block), last);
    }
    store_avx512(last, &mut lanes.last);
    store_avx512(previous, &mut lanes.previous);
}

/// block + z last + previous.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline]
fn step_avx512(
    [a, b, c, d]: [__m512i; 4],
    previous: [__m512i; 4],
    block: &[u8; SIGNATURE_BLOCK],
) -> [__m512i; 4] {
    let by = |operand, matrix: u64| {
        _mm512_gf2p8affine_epi64_epi8::<0>(operand, _mm512_set1_epi64(matrix.cast_signed()))
    };
    let sum3 = |a, b, c| _mm512_ternarylogic_epi64::<SUM3>(a, b, c);
    let data = load_avx512(planes(block));
    [
        sum3(by(d, BY_WRAP), data[0], previous[0]),
        sum3(by(_mm512_xor_si512(c, d), BY_TRACE), data[1], previous[1]),
        sum3(_mm512_xor_si512(data[2], previous[2]), a, c),
        sum3(_mm512_xor_si512(data[3], previous[3]), b, d),
    ]
}

/// The four planes of a block.
fn planes(block: &[u8; SIGNATURE_BLOCK]) -> &Planes {
    let (planes, rest) = block.as_chunks();
    assert!(rest.is_empty(), "planes make the block");
    planes.first_chunk().unwrap_or_else(|| unreachable!("four planes make the block"))
}

/// The matrices of a product: `[to][from]`, by one element in the low half of the vector and by
/// another in the high half.
type Product = [[[u64; 8]; 4]; 4];

/// By y, and by 1 / y.
static BY_Y: Product = product(64);
/// By alpha and 1 / alpha, to the powers 32, 16, 8, 4, 2, 1.
static BY_ALPHA: [Product; 6] =
    [product(32), product(16), product(8), product(4), product(2), product(1)];

const fn product(exponent: u64) -> Product {
    let powers = [gf32::pow(ALPHA, exponent), gf32::pow(UNALPHA, exponent)];
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

/// The sums of [`super::scalar::reduce`]: halves the lanes six times; what is in one half moves
/// onto the other, times the power of alpha that it moves by.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn reduce_avx512(lanes: &Lanes) -> [gf32::Element; 2] {
    let last = load_avx512(&lanes.last);
    let previous = load_avx512(&lanes.previous);
    // The low half of the vectors goes with alpha, the high half with 1 / alpha.
    let low = |v| _mm512_shuffle_i64x2::<0b01_00_01_00>(v, v);
    let high = |v| _mm512_shuffle_i64x2::<0b11_10_11_10>(v, v);
    let mut sum = add_product(last.map(low), previous.map(low), &BY_Y);
    let upper = add_product(last.map(high), previous.map(high), &BY_Y);
    sum = add_product(sum, upper, &BY_ALPHA[0]);
    let next = sum.map(|v| _mm512_shuffle_i64x2::<0b11_11_01_01>(v, v));
    sum = add_product(sum, next, &BY_ALPHA[1]);
    sum = add_product(sum, sum.map(|v| _mm512_bsrli_epi128::<8>(v)), &BY_ALPHA[2]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<32>(v)), &BY_ALPHA[3]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<16>(v)), &BY_ALPHA[4]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<8>(v)), &BY_ALPHA[5]);
    let mut planes = [[0; 64]; 4];
    store_avx512(sum, &mut planes);
    [planes.map(|plane| plane[0]), planes.map(|plane| plane[32])]
}

/// The sum, plus the product of the operand with these matrices.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn add_product(mut sum: [__m512i; 4], operand: [__m512i; 4], matrices: &Product) -> [__m512i; 4] {
    for (sum, rows) in sum.iter_mut().zip(matrices) {
        let by = |from: usize| {
            // SAFETY: eight matrices are 64 readable bytes, and the load needs no alignment.
            let matrix = unsafe { _mm512_loadu_si512(rows[from].as_ptr().cast()) };
            _mm512_gf2p8affine_epi64_epi8::<0>(operand[from], matrix)
        };
        let (first, second) = (_mm512_xor_si512(by(0), by(1)), _mm512_xor_si512(by(2), by(3)));
        *sum = _mm512_ternarylogic_epi64::<SUM3>(*sum, first, second);
    }
    sum
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

/// A kernel of 256-bit vectors, with its two constants and its way to multiply by them.
macro_rules! absorb_256 {
    ($name:ident, $features:literal, $constant:ident, $constants:expr, $product:ident) => {
        #[target_feature(enable = $features)]
        fn $name(lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
            let [wrap, trace] = $constants.map(|constant| $constant(constant));
            for (pass, half) in blocks.chunks(PASS_BLOCKS).flat_map(|pass| [(pass, 0), (pass, 1)]) {
                let mut last = load_avx2(&lanes.last, half);
                let mut previous = load_avx2(&lanes.previous, half);
                // block + z last + previous.
                let step = |[a, b, c, d]: [__m256i; 4], previous: [__m256i; 4], block| {
                    let mut sum = load_avx2(planes(block), half);
                    for (sum, previous) in sum.iter_mut().zip(previous) {
                        *sum = _mm256_xor_si256(*sum, previous);
                    }
                    [
                        _mm256_xor_si256(sum[0], $product(d, wrap)),
                        _mm256_xor_si256(sum[1], $product(_mm256_xor_si256(c, d), trace)),
                        _mm256_xor_si256(sum[2], _mm256_xor_si256(a, c)),
                        _mm256_xor_si256(sum[3], _mm256_xor_si256(b, d)),
                    ]
                };
                let (turns, rest) = pass.as_chunks::<TURN_BLOCKS>();
                for turn in turns {
                    for block in turn {
                        (last, previous) = (step(last, previous, block), last);
                    }
                }
                for block in rest {
                    (last, previous) = (step(last, previous, block), last);
                }
                store_avx2(last, &mut lanes.last, half);
                store_avx2(previous, &mut lanes.previous, half);
            }
        }
    };
}

absorb_256!(absorb_avx2_gfni, "avx2,gfni", matrix, [BY_WRAP, BY_TRACE], affine);
absorb_256!(
    absorb_avx2,
    "avx2",
    tables,
    const { [gf8::nibbles(WRAP), gf8::nibbles(gf32::TRACE)] },
    look_up
);

#[target_feature(enable = "avx2,gfni")]
fn matrix(matrix: u64) -> __m256i {
    _mm256_set1_epi64x(matrix.cast_signed())
}

#[target_feature(enable = "avx2,gfni")]
fn affine(operand: __m256i, matrix: __m256i) -> __m256i {
    _mm256_gf2p8affine_epi64_epi8::<0>(operand, matrix)
}

#[target_feature(enable = "avx2")]
fn tables(tables: [[u8; 16]; 2]) -> [__m256i; 2] {
    tables.map(|table| {
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
