//! Vectors of AArch64: a product is two 4-bit table lookups.
//!
//! There is no prefetch: the intrinsic is not in stable Rust yet.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::{SUMS_MAX, Vector};

/// 16 bytes, NEON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes16(uint8x16_t);

// SAFETY: the methods are instructions of the level, and access only the memory that they document.
unsafe impl Vector for Bytes16 {
    const BYTES: usize = 16;
    const COLUMNS: [usize; SUMS_MAX] = [4, 4, 4, 4, 4, 2, 2, 2];
    type Factor = [[u8; 16]; 2];
    type Constant<'a> = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees 16 readable bytes.
        unsafe { Self(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees 16 writable bytes.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe { Self(veorq_u8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn constant([low, high]: &Self::Factor) -> Self::Constant<'_> {
        // SAFETY: the caller guarantees the level; the tables are 16 readable bytes each.
        unsafe { [vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: Self::Constant<'_>) -> Self {
        // SAFETY: the caller guarantees the level.
        unsafe {
            let of_low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(15)));
            Self(veorq_u8(of_low, vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0))))
        }
    }
}
