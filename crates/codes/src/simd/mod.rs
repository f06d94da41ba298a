//! Vectors of bytes: what every kernel of the erasure codes and signatures is written with.
//!
//! ```text
//! Vector   a register: load, store, sums, products by a constant of GF(2^8)
//! Work     a kernel, one body for any vector
//! Level    a level of instructions that this processor has; runs a work with its vector
//!
//! level         vector          bytes   a product
//! scalar        scalar::Byte        1   two look-ups of 4 bits
//! neon          neon::Bytes16      16   the same, 16 at a time
//! avx2          avx2::Bytes32      32   the same, 32 at a time
//! avx2-gfni     gfni::Bytes32      32   one 8 x 8 bit matrix
//! avx512-gfni   gfni::Bytes64      64   one 8 x 8 bit matrix
//! ```
//!
//! A work is inlined into one function for each level that has the level's instructions enabled,
//! so it must be `#[inline(always)]` all the way down; a function that is not would be compiled
//! without them. [`scalar::Byte`] is the scalar twin of all other vectors.
//!
//! What is not here: kernels whose lanes exchange bytes, as the last sums of a signature do, and
//! those that are not about GF(2^8).

#![expect(unsafe_code, reason = "vector instructions, behind levels that were asked for")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(test)]
mod tests;

use crate::Isa;
use crate::field::gf8::{AFFINE, NIBBLES};

/// Most sums that [`Vector::COLUMNS`] knows.
pub(crate) const SUMS_MAX: usize = 8;

/// A register of bytes.
///
/// # Safety
/// Every method may only be called where the processor has the instructions of the level. An
/// implementation reads and writes no memory but what its methods say.
pub(crate) unsafe trait Vector: Copy {
    /// Bytes of a register: a power of two, at most [`crate::field::PLANE_BYTES`].
    const BYTES: usize;
    /// How many registers of each of 1, 2 .. [`SUMS_MAX`] running sums stay in the processor
    /// together with what is added to them; one to four.
    const COLUMNS: [usize; SUMS_MAX];
    /// A constant factor as memory has it.
    type Factor: Factor;
    /// A constant factor ready for [`Self::times`]; it may borrow the factor in memory.
    type Constant<'a>: Copy;

    /// Reads [`Self::BYTES`] bytes, at any address.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes [`Self::BYTES`] bytes, at any address.
    unsafe fn store(self, to: *mut u8);
    /// Asks for the line of the cache at any address, which need not be readable.
    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}
    /// Asks for the line in the second cache: what comes in strides of a page would drive itself
    /// out of the first before it is read.
    #[inline(always)]
    unsafe fn prefetch_second(_: *const u8) {}
    /// Nothing but zeros.
    unsafe fn zero() -> Self;
    /// The sum of two.
    unsafe fn add(self, other: Self) -> Self;
    /// The sum of three, the last of which is waited for least.
    #[inline(always)]
    unsafe fn add3(self, b: Self, c: Self) -> Self {
        // SAFETY: handed on to the caller.
        unsafe { self.add(b).add(c) }
    }
    /// Makes a factor ready.
    unsafe fn constant(factor: &Self::Factor) -> Self::Constant<'_>;
    /// Each byte times a constant.
    unsafe fn times(self, constant: Self::Constant<'_>) -> Self;
    /// Each byte times a factor that is read from memory.
    #[inline(always)]
    unsafe fn multiply(self, factor: &Self::Factor) -> Self {
        // SAFETY: handed on to the caller.
        unsafe { self.times(Self::constant(factor)) }
    }
}

/// A constant factor as the instructions of some level want it in memory.
pub(crate) trait Factor: Copy + 'static {
    /// What lists of factors hold: the factor, or where it is if it is long.
    type Held: Copy;
    /// Holds the factor of a constant.
    fn hold(constant: u8) -> Self::Held;
    /// The factor held.
    fn held(held: &Self::Held) -> &Self;
    /// The factor of a constant.
    fn of(constant: u8) -> &'static Self;
    /// Those of a list that was made for this kind of instructions.
    fn slice(factors: &Factors) -> &[Self];
}

/// The matrix of the affine instruction.
impl Factor for u64 {
    type Held = Self;

    #[inline(always)]
    fn hold(constant: u8) -> Self {
        *Self::of(constant)
    }

    #[inline(always)]
    fn held(held: &Self) -> &Self {
        held
    }

    #[inline(always)]
    fn of(constant: u8) -> &'static Self {
        &AFFINE[usize::from(constant)]
    }

    fn slice(factors: &Factors) -> &[Self] {
        match factors {
            Factors::Affine(factors) => factors,
            Factors::Nibbles(_) => unreachable!("these factors are of another level"),
        }
    }
}

/// The products of the low and of the high four bits.
impl Factor for [[u8; 16]; 2] {
    type Held = &'static Self;

    #[inline(always)]
    fn hold(constant: u8) -> &'static Self {
        Self::of(constant)
    }

    #[inline(always)]
    fn held<'a>(held: &'a &'static Self) -> &'a Self {
        held
    }

    #[inline(always)]
    fn of(constant: u8) -> &'static Self {
        &NIBBLES[usize::from(constant)]
    }

    fn slice(factors: &Factors) -> &[Self] {
        match factors {
            Factors::Nibbles(factors) => factors,
            Factors::Affine(_) => unreachable!("these factors are of another level"),
        }
    }
}

/// Constant factors, in the form that the vector of a level takes.
#[derive(Clone, Debug)]
pub(crate) enum Factors {
    /// Tables of the products of 4 bits.
    Nibbles(Vec<[[u8; 16]; 2]>),
    /// Matrices of the affine instruction.
    Affine(Vec<u64>),
}

impl Factors {
    /// The factors of these constants.
    pub(crate) fn new(level: Level, constants: impl Iterator<Item = u8>) -> Self {
        match level.isa() {
            Isa::Scalar | Isa::Neon | Isa::Avx2 => {
                Self::Nibbles(constants.map(|c| *Factor::of(c)).collect())
            }
            Isa::Avx2Gfni | Isa::Avx512Gfni => {
                Self::Affine(constants.map(|c| *Factor::of(c)).collect())
            }
        }
    }
}

/// A kernel: one body for the vectors of all levels.
pub(crate) trait Work {
    /// Does the work, with registers of `V`. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The processor has the level of `V`. What else a work asks, such as memory behind pointers,
    /// it says itself.
    unsafe fn run<V: Vector>(&self);
}

/// A level of instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Isa);

impl Level {
    /// The level, if this processor has it.
    pub(crate) fn new(isa: Isa) -> Option<Self> {
        isa.is_supported().then_some(Self(isa))
    }

    /// Which one it is.
    pub(crate) const fn isa(self) -> Isa {
        self.0
    }

    /// Bytes of its vector.
    pub(crate) const fn vector_bytes(self) -> usize {
        match self.0 {
            Isa::Scalar => 1,
            Isa::Neon => 16,
            Isa::Avx2 | Isa::Avx2Gfni => 32,
            Isa::Avx512Gfni => 64,
        }
    }

    /// Does a work with the vector of this level.
    ///
    /// # Safety
    /// What the work asks for; the level is there.
    #[inline]
    pub(crate) unsafe fn run<W: Work>(self, work: &W) {
        // SAFETY: `new` found that the processor has the level, and each level has the features of
        // its function (see `Isa::is_supported`); the rest is the caller's promise.
        unsafe {
            match self.0 {
                Isa::Scalar => work.run::<scalar::Byte>(),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2::run(work),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Gfni => gfni::run_narrow(work),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512Gfni => gfni::run_wide(work),
                // Every AArch64 that this program runs on has NEON.
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => work.run::<neon::Bytes16>(),
                #[cfg(not(target_arch = "x86_64"))]
                Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => unreachable!("a level of x86-64"),
                #[cfg(not(target_arch = "aarch64"))]
                Isa::Neon => unreachable!("a level of AArch64"),
            }
        }
    }
}
