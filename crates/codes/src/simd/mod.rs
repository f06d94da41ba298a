//! Vectors of bytes: the abstraction over instruction sets in which all kernels of the erasure
//! codes and signatures are written.
//!
//! ```text
//! Vector   a register: load, store, sums, products by a constant of GF(2^8)
//! Work     a kernel, one body for any vector
//! Level    an instruction-set level that this processor has; runs a work with its vector
//!
//! level         vector          bytes   a product
//! scalar        scalar::Byte        1   two 4-bit lookups
//! neon          neon::Bytes16      16   the same, 16 at a time
//! avx2          avx2::Bytes32      32   the same, 32 at a time
//! avx2-gfni     gfni::Bytes32      32   one 8 x 8 bit matrix
//! avx512-gfni   gfni::Bytes64      64   one 8 x 8 bit matrix
//! ```
//!
//! A work is inlined into one function for each level that has the level's instructions enabled, so
//! it must be `#[inline(always)]` all the way down; any function that is not would be compiled
//! without them. [`scalar::Byte`] is the scalar reference for all other vectors.
//!
//! What is not here: kernels whose lanes exchange bytes, such as the final sums of a signature, and
//! kernels outside GF(2^8).

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

/// Maximum number of running sums that [`Vector::COLUMNS`] covers.
pub(crate) const SUMS_MAX: usize = 8;

/// A register of bytes.
///
/// # Safety
/// Every method may only be called where the processor supports the level. Implementations access
/// only the memory that their methods document.
pub(crate) unsafe trait Vector: Copy {
    /// Bytes per register: a power of two, at most [`crate::field::PLANE_BYTES`].
    const BYTES: usize;
    /// For 1, 2 .. [`SUMS_MAX`] running sums: how many registers of each fit the processor's
    /// registers together with the operands; one to four.
    const COLUMNS: [usize; SUMS_MAX];
    /// A constant factor as stored in memory.
    type Factor: Factor;
    /// A constant factor prepared for [`Self::times`]; it may borrow the factor in memory.
    type Constant<'a>: Copy;

    /// Loads [`Self::BYTES`] bytes from any address.
    unsafe fn load(from: *const u8) -> Self;
    /// Stores [`Self::BYTES`] bytes at any address.
    unsafe fn store(self, to: *mut u8);
    /// Prefetches the cache line at any address, which need not be readable.
    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}
    /// Prefetches the cache line into L2: accesses in strides of a page would evict each other from
    /// L1 before they are read.
    #[inline(always)]
    unsafe fn prefetch_l2(_: *const u8) {}
    /// Returns zeros.
    unsafe fn zero() -> Self;
    /// Returns the sum of two.
    unsafe fn add(self, other: Self) -> Self;
    /// Returns the sum of three; pass the operand that arrives last as `c`.
    #[inline(always)]
    unsafe fn add3(self, b: Self, c: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { self.add(b).add(c) }
    }
    /// Prepares a factor.
    unsafe fn constant(factor: &Self::Factor) -> Self::Constant<'_>;
    /// Multiplies each byte by a constant.
    unsafe fn times(self, constant: Self::Constant<'_>) -> Self;
    /// Multiplies each byte by a factor that is read from memory.
    #[inline(always)]
    unsafe fn multiply(self, factor: &Self::Factor) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { self.times(Self::constant(factor)) }
    }
}

/// A constant factor in the memory format that the instructions of some level need.
pub(crate) trait Factor: Copy + 'static {
    /// Element type of lists of factors: the factor, or a reference to it if it is long.
    type Element: Copy;
    /// Returns the list element for the factor of a constant.
    fn element(constant: u8) -> Self::Element;
    /// Returns the factor of a list element.
    fn from_element(element: &Self::Element) -> &Self;
    /// Returns the factor of a constant.
    fn for_constant(constant: u8) -> &'static Self;
    /// Returns the factors of a list that was created for this type.
    fn slice(factors: &Factors) -> &[Self];
}

/// A matrix for the affine instruction.
impl Factor for u64 {
    type Element = Self;

    #[inline(always)]
    fn element(constant: u8) -> Self {
        *Self::for_constant(constant)
    }

    #[inline(always)]
    fn from_element(element: &Self) -> &Self {
        element
    }

    #[inline(always)]
    fn for_constant(constant: u8) -> &'static Self {
        &AFFINE[usize::from(constant)]
    }

    fn slice(factors: &Factors) -> &[Self] {
        match factors {
            Factors::Affine(factors) => factors,
            Factors::Nibbles(_) => unreachable!("these factors are of another level"),
        }
    }
}

/// Products of the low and of the high four bits.
impl Factor for [[u8; 16]; 2] {
    type Element = &'static Self;

    #[inline(always)]
    fn element(constant: u8) -> &'static Self {
        Self::for_constant(constant)
    }

    #[inline(always)]
    fn from_element<'a>(element: &'a &'static Self) -> &'a Self {
        element
    }

    #[inline(always)]
    fn for_constant(constant: u8) -> &'static Self {
        &NIBBLES[usize::from(constant)]
    }

    fn slice(factors: &Factors) -> &[Self] {
        match factors {
            Factors::Nibbles(factors) => factors,
            Factors::Affine(_) => unreachable!("these factors are of another level"),
        }
    }
}

/// A list of constant factors, in the form for the vector of a level.
#[derive(Clone, Debug)]
pub(crate) enum Factors {
    /// Tables of 4-bit products.
    Nibbles(Vec<[[u8; 16]; 2]>),
    /// Matrices for the affine instruction.
    Affine(Vec<u64>),
}

impl Factors {
    /// Creates the factors of these constants.
    pub(crate) fn new(level: Level, constants: impl Iterator<Item = u8>) -> Self {
        match level.isa() {
            Isa::Scalar | Isa::Neon | Isa::Avx2 => {
                Self::Nibbles(constants.map(|c| *Factor::for_constant(c)).collect())
            }
            Isa::Avx2Gfni | Isa::Avx512Gfni => {
                Self::Affine(constants.map(|c| *Factor::for_constant(c)).collect())
            }
        }
    }
}

/// A kernel: one body for the vectors of all levels.
pub(crate) trait VectorKernel {
    /// Runs the work, with registers of `V`. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The processor supports the level of `V`. Each work documents its other requirements, such as
    /// valid memory behind pointers.
    unsafe fn run<V: Vector>(&self);
}

/// An instruction-set level that this processor supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Isa);

impl Level {
    /// Returns the level, if this processor supports it.
    pub(crate) fn new(isa: Isa) -> Option<Self> {
        isa.is_supported().then_some(Self(isa))
    }

    /// The instruction set.
    pub(crate) const fn isa(self) -> Isa {
        self.0
    }

    /// Bytes of the level's vector.
    pub(crate) const fn vector_bytes(self) -> usize {
        match self.0 {
            Isa::Scalar => 1,
            Isa::Neon => 16,
            Isa::Avx2 | Isa::Avx2Gfni => 32,
            Isa::Avx512Gfni => 64,
        }
    }

    /// Runs a work with the vector of this level.
    ///
    /// # Safety
    /// The requirements of the work; the level itself is supported.
    #[inline]
    pub(crate) unsafe fn run<W: VectorKernel>(self, kernel: &W) {
        // SAFETY: `new` checked that the processor supports the level, and each level has the
        // features of its function (see `Isa::is_supported`); the caller guarantees the rest.
        unsafe {
            match self.0 {
                Isa::Scalar => kernel.run::<scalar::Byte>(),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2::run(kernel),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Gfni => gfni::run_narrow(kernel),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512Gfni => gfni::run_wide(kernel),
                // Every AArch64 that this program runs on has NEON.
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => kernel.run::<neon::Bytes16>(),
                #[cfg(not(target_arch = "x86_64"))]
                Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => unreachable!("a level of x86-64"),
                #[cfg(not(target_arch = "aarch64"))]
                Isa::Neon => unreachable!("a level of AArch64"),
            }
        }
    }
}
