//! One byte in plain Rust: the scalar reference for all other vectors.

use super::{SUMS_MAX, Vector};

/// One byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Byte(u8);

// SAFETY: loads and stores access one byte.
unsafe impl Vector for Byte {
    const BYTES: usize = 1;
    const COLUMNS: [usize; SUMS_MAX] = [1; SUMS_MAX];
    type Factor = [[u8; 16]; 2];
    type Constant<'a> = &'a [[u8; 16]; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees a readable byte.
        Self(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees a writable byte.
        unsafe { *to = self.0 }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(0)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline(always)]
    unsafe fn constant(factor: &Self::Factor) -> Self::Constant<'_> {
        factor
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: Self::Constant<'_>) -> Self {
        Self(low[usize::from(self.0 & 15)] ^ high[usize::from(self.0 >> 4)])
    }
}
