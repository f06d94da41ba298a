//! Vectors of x86-64 with the affine instruction: a product is one 8 x 8 bit matrix.

use std::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm256_gf2p8affine_epi64_epi8,
    _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm256_xor_si256, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::{SUMS_MAX, Vector, VectorKernel};

/// Runs a work with [`Bytes32`].
///
/// # Safety
/// The processor supports the features named; the requirements of the work apply as well.
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn run_narrow<W: VectorKernel>(kernel: &W) {
    // SAFETY: guaranteed by the caller.
    unsafe { kernel.run::<Bytes32>() }
}

/// Runs a work with [`Bytes64`].
///
/// # Safety
/// The processor supports the features named; the requirements of the work apply as well.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) unsafe fn run_wide<W: VectorKernel>(kernel: &W) {
    // SAFETY: guaranteed by the caller.
    unsafe { kernel.run::<Bytes64>() }
}

/// 32 bytes, AVX2 with GFNI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes32(__m256i);

/// 64 bytes, AVX-512 with GFNI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes64(__m512i);

// SAFETY: the methods are instructions of the level, and access only the memory that they document.
unsafe impl Vector for Bytes32 {
    const BYTES: usize = 32;
    const COLUMNS: [usize; SUMS_MAX] = [4, 4, 3, 2, 2, 1, 1, 1];
    type Factor = u64;
    type Constant<'a> = __m256i;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the level and 32 readable bytes.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the level and 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn prefetch_l2(address: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn constant(factor: &u64) -> __m256i {
        // SAFETY: the caller guarantees the level.
        unsafe { _mm256_set1_epi64x(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn times(self, constant: __m256i) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, constant)) }
    }
}

// SAFETY: the methods are instructions of the level, and access only the memory that they document.
unsafe impl Vector for Bytes64 {
    const BYTES: usize = 64;
    const COLUMNS: [usize; SUMS_MAX] = [4, 4, 4, 4, 4, 4, 3, 2];
    type Factor = u64;
    type Constant<'a> = __m512i;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the level and 64 readable bytes.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the level and 64 writable bytes.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn prefetch_l2(address: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, b: Self, c: Self) -> Self {
        // 0x96 is the truth table of the XOR of three bits. SAFETY: the caller guarantees the
        // level.
        unsafe { Self(_mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0)) }
    }

    #[inline(always)]
    unsafe fn constant(factor: &u64) -> __m512i {
        // SAFETY: the caller guarantees the level.
        unsafe { _mm512_set1_epi64(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn times(self, constant: __m512i) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, constant)) }
    }
}
