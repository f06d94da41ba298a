//! Bytes side by side, of one plane.

use crate::field::gf8::NIBBLES;

/// A register of bytes of one plane. [`Byte`] is the scalar twin of all others.
///
/// # Safety
/// Every function needs the instructions of its level; loads and stores need [`Self::BYTES`] bytes
/// at the pointer, of any alignment.
pub(super) trait Lanes: Copy {
    /// Bytes of a register; divides [`crate::field::PLANE_BYTES`].
    const BYTES: usize;
    /// A constant of GF(2^8) to multiply by, as the instructions want it.
    type Constant: Copy;

    /// The constant.
    unsafe fn constant(c: u8) -> Self::Constant;
    /// Loads a register.
    unsafe fn load(from: *const u8) -> Self;
    /// Asks for the cache line at the pointer, which may be any.
    unsafe fn prefetch(from: *const u8);
    /// Stores a register.
    unsafe fn store(self, to: *mut u8);
    /// The sum.
    unsafe fn add(self, other: Self) -> Self;
    /// The sum of three.
    unsafe fn add3(self, other: Self, third: Self) -> Self;
    /// The product by a constant.
    unsafe fn times(self, constant: Self::Constant) -> Self;
}

/// One byte in plain Rust.
#[derive(Clone, Copy)]
pub(super) struct Byte(u8);

impl Lanes for Byte {
    const BYTES: usize = 1;
    type Constant = &'static [[u8; 16]; 2];

    #[inline(always)]
    unsafe fn constant(c: u8) -> Self::Constant {
        &NIBBLES[usize::from(c)]
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: a byte can be read there, says the trait.
        Self(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: a byte can be written there, says the trait.
        unsafe { *to = self.0 }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline(always)]
    unsafe fn add3(self, other: Self, third: Self) -> Self {
        Self(self.0 ^ other.0 ^ third.0)
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: Self::Constant) -> Self {
        Self(low[usize::from(self.0 & 15)] ^ high[usize::from(self.0 >> 4)])
    }
}
