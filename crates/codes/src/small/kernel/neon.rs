//! Vectors of AArch64: a product by a constant is two look-ups of 4 bits.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::Vector;

/// 16 bytes, NEON.
#[derive(Clone, Copy, Debug)]
pub(in crate::small) struct Bytes16(uint8x16_t);

// SAFETY: the methods are the instructions of the level, nothing else.
#[expect(unsafe_code, reason = "vector instructions behind a level that was asked for")]
unsafe impl Vector for Bytes16 {
    const BYTES: usize = 16;
    type Factor = [[u8; 16]; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has 16 readable bytes.
        unsafe { Self(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has 16 writable bytes.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: NEON is part of every AArch64 that this program runs on.
        unsafe { Self(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(veorq_u8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, b: Self, c: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.add(b).add(c) }
    }

    #[inline(always)]
    unsafe fn multiply(self, factor: &[[u8; 16]; 2]) -> Self {
        // SAFETY: as above; the tables are 16 bytes each.
        unsafe {
            let (low, high) = (vld1q_u8(factor[0].as_ptr()), vld1q_u8(factor[1].as_ptr()));
            let of_low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(15)));
            Self(veorq_u8(of_low, vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0))))
        }
    }
}
