//! The sums over a signature's lanes with 512-bit vectors.
//!
//! Both components are computed together, each in half of a vector, and lanes move within it. No
//! other kernel needs that, so this one uses the instructions directly.

#![expect(unsafe_code, reason = "loads of vectors, and calls of functions with their features")]

use std::arch::x86_64::{
    __m512i, _mm512_bsrli_epi128, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512,
    _mm512_shuffle_i64x2, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use super::{ALPHA, ALPHA_INVERSE, Lanes, Planes};
use crate::Isa;
use crate::field::{gf8, gf32};
use crate::simd::Level;

/// Truth table of the sum of three.
const SUM3: i32 = 0x96;

/// Computes the sums over lanes of [`super::scalar::reduce`].
pub(super) fn reduce(level: Level, lanes: &Lanes) -> [gf32::Element; 2] {
    assert!(level.isa() == Isa::Avx512Gfni, "the kernel needs 512-bit vectors with GFNI");
    // SAFETY: a level is one that the processor supports, and this one has the features of the
    // kernel.
    unsafe { reduce_avx512(lanes) }
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn load(planes: &Planes) -> [__m512i; 4] {
    // SAFETY: each plane is 64 readable bytes, and the load needs no alignment.
    planes.each_ref().map(|plane| unsafe { _mm512_loadu_si512(plane.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn store(vectors: [__m512i; 4], planes: &mut Planes) {
    for (vector, plane) in vectors.into_iter().zip(planes) {
        // SAFETY: each plane is 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(plane.as_mut_ptr().cast(), vector) };
    }
}

/// Matrices of a product: `[to][from]`, for one element in the low half of the vector and for
/// another in the high half.
type Product = [[[u64; 8]; 4]; 4];

/// Product by y, and by 1 / y.
static Y_PRODUCTS: Product = product(64);
/// Products by alpha and 1 / alpha, to the powers 32, 16, 8, 4, 2, 1.
static ALPHA_PRODUCTS: [Product; 6] =
    [product(32), product(16), product(8), product(4), product(2), product(1)];

const fn product(exponent: u64) -> Product {
    let powers = [gf32::pow(ALPHA, exponent), gf32::pow(ALPHA_INVERSE, exponent)];
    let mut matrices = [[[0; 8]; 4]; 4];
    let mut from = 0;
    while from < 4 {
        let mut unit = [0; 4];
        unit[from] = 1;
        let mut qword = 0;
        while qword < 8 {
            // A product by an element is linear over GF(2^8): the images of 1, u, z and uz are the
            // columns of its matrix.
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

/// Computes the sums of [`super::scalar::reduce`]. It halves the lanes six times: one half is added
/// to the other, times the power of alpha for the distance.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn reduce_avx512(lanes: &Lanes) -> [gf32::Element; 2] {
    let last = load(&lanes.last);
    let previous = load(&lanes.previous);
    // The low half of the vectors is for alpha, the high half for 1 / alpha.
    let low = |v| _mm512_shuffle_i64x2::<0b01_00_01_00>(v, v);
    let high = |v| _mm512_shuffle_i64x2::<0b11_10_11_10>(v, v);
    let mut sum = add_product(last.map(low), previous.map(low), &Y_PRODUCTS);
    let upper = add_product(last.map(high), previous.map(high), &Y_PRODUCTS);
    sum = add_product(sum, upper, &ALPHA_PRODUCTS[0]);
    let next = sum.map(|v| _mm512_shuffle_i64x2::<0b11_11_01_01>(v, v));
    sum = add_product(sum, next, &ALPHA_PRODUCTS[1]);
    sum = add_product(sum, sum.map(|v| _mm512_bsrli_epi128::<8>(v)), &ALPHA_PRODUCTS[2]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<32>(v)), &ALPHA_PRODUCTS[3]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<16>(v)), &ALPHA_PRODUCTS[4]);
    sum = add_product(sum, sum.map(|v| _mm512_srli_epi64::<8>(v)), &ALPHA_PRODUCTS[5]);
    let mut planes = [[0; 64]; 4];
    store(sum, &mut planes);
    [planes.map(|plane| plane[0]), planes.map(|plane| plane[32])]
}

/// Returns the sum, plus the product of the operand with these matrices.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn add_product(mut sum: [__m512i; 4], operand: [__m512i; 4], matrices: &Product) -> [__m512i; 4] {
    for (sum, rows) in sum.iter_mut().zip(matrices) {
        let term = |from: usize| {
            // SAFETY: eight matrices are 64 readable bytes, and the load needs no alignment.
            let matrix = unsafe { _mm512_loadu_si512(rows[from].as_ptr().cast()) };
            _mm512_gf2p8affine_epi64_epi8::<0>(operand[from], matrix)
        };
        let (first, second) =
            (_mm512_xor_si512(term(0), term(1)), _mm512_xor_si512(term(2), term(3)));
        *sum = _mm512_ternarylogic_epi64::<SUM3>(*sum, first, second);
    }
    sum
}
