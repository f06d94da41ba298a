//! The loops that move bytes: one body for every vector, and a scalar twin.
//!
//! [`Vector`] is a register of bytes that can be loaded, stored, added and multiplied by a constant
//! of GF(2^8); each level of instructions has one. The loops ([`dense`], [`additive`]) are written
//! once over it and inlined into one function a level that has the level's instructions enabled.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod gfni;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;

pub(super) mod additive;
pub(super) mod dense;

/// A register of bytes.
///
/// # Safety
/// Every method may only be called where the processor has the instructions of the level.
#[expect(unsafe_code, reason = "loads and stores through pointers are what a kernel is")]
pub(super) unsafe trait Vector: Copy {
    /// Bytes in a register.
    const BYTES: usize;
    /// A constant factor in the form that [`Self::multiply`] takes.
    type Factor: Copy + 'static;

    /// Reads [`Self::BYTES`] bytes, at any address.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes [`Self::BYTES`] bytes, at any address.
    unsafe fn store(self, to: *mut u8);
    /// Asks for the bytes at any address, which need not be readable.
    unsafe fn prefetch(_: *const u8) {}
    /// Nothing but zeros.
    unsafe fn zero() -> Self;
    /// The sum of two.
    unsafe fn add(self, other: Self) -> Self;
    /// The sum of three.
    unsafe fn add3(self, b: Self, c: Self) -> Self;
    /// Each byte times a constant, which is read from memory.
    unsafe fn multiply(self, factor: &Self::Factor) -> Self;
}
