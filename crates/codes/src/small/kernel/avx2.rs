//! Vectors without the affine instruction: a product by a constant is two look-ups of 4 bits.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::Vector;

/// 32 bytes, AVX2 alone.
#[derive(Clone, Copy, Debug)]
pub(in crate::small) struct Bytes32(__m256i);

// SAFETY: the methods are the instructions of the level, nothing else.
#[expect(unsafe_code, reason = "vector instructions behind a level that was asked for")]
unsafe impl Vector for Bytes32 {
    const BYTES: usize = 32;
    type Factor = [[u8; 16]; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has the level and 32 readable bytes.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has the level and 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the level.
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the level.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller has the level.
        unsafe { self.add(b).add(c) }
    }

    #[inline(always)]
    unsafe fn multiply(self, factor: &[[u8; 16]; 2]) -> Self {
        // SAFETY: the caller has the level; the tables are 16 bytes each.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(factor[0].as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(factor[1].as_ptr().cast()));
            let mask = _mm256_set1_epi8(15);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            let shifted = _mm256_srli_epi64::<4>(self.0);
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(shifted, mask));
            Self(_mm256_xor_si256(of_low, of_high))
        }
    }
}
