//! Vectors of x86-64 without the affine instruction: a product is two 4-bit table lookups.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::{SUMS_MAX, Vector, VectorKernel};

/// Runs a work with [`Bytes32`].
///
/// # Safety
/// The processor supports AVX2; the requirements of the work apply as well.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run<W: VectorKernel>(kernel: &W) {
    // SAFETY: guaranteed by the caller.
    unsafe { kernel.run::<Bytes32>() }
}

/// 32 bytes, AVX2 alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes32(__m256i);

// SAFETY: the methods are instructions of the level, and access only the memory that they document.
unsafe impl Vector for Bytes32 {
    const BYTES: usize = 32;
    const COLUMNS: [usize; SUMS_MAX] = [4, 4, 2, 2, 1, 1, 1, 1];
    type Factor = [[u8; 16]; 2];
    /// Sixteen registers hold few tables: they are loaded, and broadcast, where they are used.
    type Constant<'a> = &'a [[u8; 16]; 2];

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
    unsafe fn constant(factor: &Self::Factor) -> Self::Constant<'_> {
        factor
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: Self::Constant<'_>) -> Self {
        // SAFETY: the caller guarantees the level; the tables are 16 readable bytes each.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(low.as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(high.as_ptr().cast()));
            let mask = _mm256_set1_epi8(15);
            let nibbles = _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), mask);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            Self(_mm256_xor_si256(of_low, _mm256_shuffle_epi8(high, nibbles)))
        }
    }
}
