//! Sixteen numbers as one vector of AVX-512, or as two of AVX2.
//!
//! The transposition from voxel order to symbol order: the index of a value among those of 16
//! voxels is, in bits, `v3 v2 v1 v0 s2 s1 s0` (here for 8 symbols). A vector of 16 numbers has the
//! last four bits as the lane, and the others as its number. Take two vectors whose numbers differ
//! in one bit, and make one of their even lanes and one of their odd lanes: this exchanges that bit
//! with the lowest bit of the lane. After as many such steps as a symbol has bits, from the lowest
//! bit of the number on, the number is the symbol.
//!
//! SAFETY of each call of an instruction: only functions that have the level use the types, and
//! everything here is inlined into them; loads and stores are of whole arrays.

#![expect(unsafe_code, reason = "vector instructions, and loads and stores of whole arrays")]

use std::arch::x86_64::{
    __m128i, __m256, __m512, __mmask16, _CMP_GE_OQ, _CMP_GT_OQ, _mm_set_epi8, _mm_shuffle_epi8,
    _mm_storeu_si128, _mm_unpacklo_epi32, _mm_unpacklo_epi64, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_ps, _mm256_and_si256, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_div_ps,
    _mm256_extracti128_si256, _mm256_loadu_ps, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps,
    _mm256_permute4x64_pd, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_shuffle_ps,
    _mm256_slli_epi32, _mm256_srai_epi32, _mm256_storeu_ps, _mm256_sub_epi32, _mm256_sub_ps,
    _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512, _mm512_castsi512_ps,
    _mm512_cmp_ps_mask, _mm512_cvtepi32_ps, _mm512_div_ps, _mm512_loadu_ps,
    _mm512_maskz_cvtepi32_epi8, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps,
    _mm512_permutex2var_ps, _mm512_set_epi32, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_slli_epi32, _mm512_srai_epi32, _mm512_storeu_ps, _mm512_sub_epi32, _mm512_sub_ps,
};

use super::{LANES, MANTISSA, MANTISSA_BITS, ROOT, Vector};

/// Numbers per AVX2 vector.
const HALF: usize = LANES / 2;

/// One vector of 16 numbers: AVX-512 (F, BW, VL).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx512Vector(__m512);

impl Vector for Avx512Vector {
    type Mask = __mmask16;

    #[inline(always)]
    fn transpose(values: &[f32], lanes: &mut [[f32; LANES]]) {
        // SAFETY: see the module.
        unsafe { transpose_avx512(values, lanes) }
    }

    #[inline(always)]
    fn load(lanes: &[f32; LANES]) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_loadu_ps(lanes.as_ptr())) }
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_set1_ps(value)) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_sub_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_mul_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_div_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_max_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_min_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn ge(self, other: Self) -> Self::Mask {
        // SAFETY: see the module.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        // SAFETY: see the module.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        a & b
    }

    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        // SAFETY: see the module.
        unsafe {
            let root = _mm512_set1_epi32(ROOT.cast_signed());
            let offset = _mm512_sub_epi32(_mm512_castps_si512(self.0), root);
            let exponent = _mm512_cvtepi32_ps(_mm512_srai_epi32::<MANTISSA_BITS>(offset));
            let m = _mm512_and_si512(offset, _mm512_set1_epi32(MANTISSA.cast_signed()));
            (Self(exponent), Self(_mm512_castsi512_ps(_mm512_add_epi32(m, root))))
        }
    }

    #[inline(always)]
    fn ldexp(self, shifted: Self) -> Self {
        // SAFETY: see the module.
        unsafe {
            let n = _mm512_slli_epi32::<MANTISSA_BITS>(_mm512_castps_si512(shifted.0));
            Self(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(self.0), n)))
        }
    }

    #[inline(always)]
    fn low_bytes(self, mask: Self::Mask) -> [i8; LANES] {
        let mut bytes = [0; LANES];
        // SAFETY: see the module.
        unsafe {
            let low = _mm512_maskz_cvtepi32_epi8(mask, _mm512_castps_si512(self.0));
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), low);
        }
        bytes
    }
}

/// Two vectors of 8 numbers: AVX2.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx2Vector(__m256, __m256);

impl Vector for Avx2Vector {
    /// All ones or all zeros, for each number.
    type Mask = (__m256, __m256);

    #[inline(always)]
    fn transpose(values: &[f32], lanes: &mut [[f32; LANES]]) {
        // SAFETY: see the module.
        unsafe { transpose_avx2(values, lanes) }
    }

    #[inline(always)]
    fn load(lanes: &[f32; LANES]) -> Self {
        let (low, high) = lanes.split_at(HALF);
        // SAFETY: see the module.
        unsafe { Self(_mm256_loadu_ps(low.as_ptr()), _mm256_loadu_ps(high.as_ptr())) }
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_add_ps(self.0, other.0), _mm256_add_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_sub_ps(self.0, other.0), _mm256_sub_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_mul_ps(self.0, other.0), _mm256_mul_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_div_ps(self.0, other.0), _mm256_div_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_max_ps(self.0, other.0), _mm256_max_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm256_min_ps(self.0, other.0), _mm256_min_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn ge(self, other: Self) -> Self::Mask {
        // SAFETY: see the module.
        unsafe {
            (
                _mm256_cmp_ps::<_CMP_GE_OQ>(self.0, other.0),
                _mm256_cmp_ps::<_CMP_GE_OQ>(self.1, other.1),
            )
        }
    }

    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        // SAFETY: see the module.
        unsafe {
            (
                _mm256_cmp_ps::<_CMP_GT_OQ>(self.0, other.0),
                _mm256_cmp_ps::<_CMP_GT_OQ>(self.1, other.1),
            )
        }
    }

    #[inline(always)]
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        // SAFETY: see the module.
        unsafe { (_mm256_and_ps(a.0, b.0), _mm256_and_ps(a.1, b.1)) }
    }

    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        // SAFETY: see the module.
        let [low, high] = unsafe { [frexp_avx2(self.0), frexp_avx2(self.1)] };
        (Self(low.0, high.0), Self(low.1, high.1))
    }

    #[inline(always)]
    fn ldexp(self, shifted: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(ldexp_avx2(self.0, shifted.0), ldexp_avx2(self.1, shifted.1)) }
    }

    #[inline(always)]
    fn low_bytes(self, mask: Self::Mask) -> [i8; LANES] {
        let mut bytes = [0; LANES];
        // SAFETY: see the module.
        unsafe {
            let low = [low_bytes_avx2(self.0, mask.0), low_bytes_avx2(self.1, mask.1)];
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm_unpacklo_epi64(low[0], low[1]));
        }
        bytes
    }
}

/// As [`Vector::frexp`].
#[target_feature(enable = "avx2")]
fn frexp_avx2(x: __m256) -> (__m256, __m256) {
    let root = _mm256_set1_epi32(ROOT.cast_signed());
    let offset = _mm256_sub_epi32(_mm256_castps_si256(x), root);
    let exponent = _mm256_cvtepi32_ps(_mm256_srai_epi32::<{ MANTISSA_BITS.cast_signed() }>(offset));
    let m = _mm256_and_si256(offset, _mm256_set1_epi32(MANTISSA.cast_signed()));
    (exponent, _mm256_castsi256_ps(_mm256_add_epi32(m, root)))
}

/// As [`Vector::ldexp`].
#[target_feature(enable = "avx2")]
fn ldexp_avx2(x: __m256, shifted: __m256) -> __m256 {
    let n = _mm256_slli_epi32::<{ MANTISSA_BITS.cast_signed() }>(_mm256_castps_si256(shifted));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), n))
}

/// As [`Vector::low_bytes`], for 8 numbers, in the low half.
#[target_feature(enable = "avx2")]
fn low_bytes_avx2(x: __m256, mask: __m256) -> __m128i {
    let masked = _mm256_castps_si256(_mm256_and_ps(x, mask));
    // Moves the lowest byte of each number to the front of both halves and clears the others.
    let front = _mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);
    let low = _mm_shuffle_epi8(_mm256_castsi256_si128(masked), front);
    let high = _mm_shuffle_epi8(_mm256_extracti128_si256::<1>(masked), front);
    _mm_unpacklo_epi32(low, high)
}

/// Transposes as [`super::ScalarVector`] does, 16 voxels per vector.
#[target_feature(enable = "avx512f")]
fn transpose_avx512(values: &[f32], lanes: &mut [[f32; LANES]]) {
    match lanes.len() {
        2 => piece_avx512::<2>(values, LANES, lanes),
        4 => piece_avx512::<4>(values, LANES, lanes),
        8 => piece_avx512::<8>(values, LANES, lanes),
        size => {
            for (piece, lanes) in lanes.chunks_exact_mut(LANES).enumerate() {
                piece_avx512::<LANES>(&values[piece * LANES..], size, lanes);
            }
        }
    }
}

/// Transposes `COUNT` symbols, whose vectors are `step` values apart.
#[target_feature(enable = "avx512f")]
fn piece_avx512<const COUNT: usize>(values: &[f32], step: usize, lanes: &mut [[f32; LANES]]) {
    let mut vectors: [__m512; COUNT] = [_mm512_setzero_ps(); COUNT];
    for (index, vector) in vectors.iter_mut().enumerate() {
        let values: &[f32; LANES] = values[index * step..].first_chunk().expect("16 voxels");
        // SAFETY: the array has the size of a vector.
        *vector = unsafe { _mm512_loadu_ps(values.as_ptr()) };
    }
    exchange_avx512::<1, COUNT>(&mut vectors);
    exchange_avx512::<2, COUNT>(&mut vectors);
    exchange_avx512::<4, COUNT>(&mut vectors);
    exchange_avx512::<8, COUNT>(&mut vectors);
    for (lanes, vector) in lanes.iter_mut().zip(vectors) {
        // SAFETY: the array has the size of a vector.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), vector) };
    }
}

/// Moves even lanes of vectors that are `BIT` apart to the first of them, odd ones to the second.
/// With a constant `BIT` the loop is unrolled, and the vectors stay in registers.
#[inline]
#[target_feature(enable = "avx512f")]
fn exchange_avx512<const BIT: usize, const COUNT: usize>(vectors: &mut [__m512; COUNT]) {
    let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    let odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    for index in 0..COUNT.saturating_sub(BIT) {
        if index & BIT == 0 {
            let (low, high) = (vectors[index], vectors[index + BIT]);
            vectors[index] = _mm512_permutex2var_ps(low, even, high);
            vectors[index + BIT] = _mm512_permutex2var_ps(low, odd, high);
        }
    }
}

/// Transposes as [`super::ScalarVector`] does, 8 voxels per vector.
#[target_feature(enable = "avx2")]
fn transpose_avx2(values: &[f32], lanes: &mut [[f32; LANES]]) {
    let size = lanes.len();
    for (half, values) in values.chunks_exact(HALF * size).enumerate() {
        match size {
            2 => piece_avx2::<2>(values, HALF, (half, lanes)),
            4 => piece_avx2::<4>(values, HALF, (half, lanes)),
            _ => {
                for (piece, lanes) in lanes.chunks_exact_mut(HALF).enumerate() {
                    piece_avx2::<HALF>(&values[piece * HALF..], size, (half, lanes));
                }
            }
        }
    }
}

/// As [`exchange_avx512`].
#[inline]
#[target_feature(enable = "avx2")]
fn exchange_avx2<const BIT: usize, const COUNT: usize>(vectors: &mut [__m256; COUNT]) {
    // The shuffle works within each half of the vectors; this restores the order of the quarters.
    let order = |vector: __m256| {
        _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(vector)))
    };
    for index in 0..COUNT.saturating_sub(BIT) {
        if index & BIT == 0 {
            let (low, high) = (vectors[index], vectors[index + BIT]);
            vectors[index] = order(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
            vectors[index + BIT] = order(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
        }
    }
}

/// Transposes `COUNT` symbols, whose vectors are `step` values apart.
#[target_feature(enable = "avx2")]
fn piece_avx2<const COUNT: usize>(
    values: &[f32],
    step: usize,
    (half, lanes): (usize, &mut [[f32; LANES]]),
) {
    let mut vectors: [__m256; COUNT] = [_mm256_setzero_ps(); COUNT];
    for (index, vector) in vectors.iter_mut().enumerate() {
        let values: &[f32; HALF] = values[index * step..].first_chunk().expect("8 voxels");
        // SAFETY: the array has the size of a vector.
        *vector = unsafe { _mm256_loadu_ps(values.as_ptr()) };
    }
    exchange_avx2::<1, COUNT>(&mut vectors);
    exchange_avx2::<2, COUNT>(&mut vectors);
    exchange_avx2::<4, COUNT>(&mut vectors);
    for (lanes, vector) in lanes.iter_mut().zip(vectors) {
        let lanes: &mut [f32; HALF] = lanes[half * HALF..].first_chunk_mut().expect("half of 16");
        // SAFETY: the array has the size of a vector.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), vector) };
    }
}
