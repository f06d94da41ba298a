//! The kernels of x86-64.

use std::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_shuffle_epi8, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_xor_si256, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::Kernel;
use super::butterfly::{self, Pass};
use super::combine::{self, Combination};
use super::lanes::Lanes;
use crate::Isa;
use crate::field::gf8::{AFFINE, NIBBLES};

/// The kernels of a level, which the processor must have.
pub(super) fn kernel(isa: Isa) -> Kernel {
    assert!(isa.is_supported(), "{isa:?} on a processor without it");
    match isa {
        Isa::Avx512Gfni => Kernel { isa, pass: pass_zmm, combine: combine_zmm },
        Isa::Avx2Gfni => Kernel { isa, pass: pass_ymm, combine: combine_ymm },
        Isa::Avx2 => Kernel { isa, pass: pass_shuffle, combine: combine_shuffle },
        Isa::Scalar | Isa::Neon => unreachable!("not a level of x86-64 with vectors"),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn pass_zmm(pass: &Pass<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { butterfly::run::<Zmm>(pass) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn combine_zmm(combination: &Combination<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { combine::run::<Zmm>(combination) }
}

#[target_feature(enable = "avx2,gfni")]
unsafe fn pass_ymm(pass: &Pass<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { butterfly::run::<Ymm>(pass) }
}

#[target_feature(enable = "avx2,gfni")]
unsafe fn combine_ymm(combination: &Combination<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { combine::run::<Ymm>(combination) }
}

#[target_feature(enable = "avx2")]
unsafe fn pass_shuffle(pass: &Pass<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { butterfly::run::<Shuffle>(pass) }
}

#[target_feature(enable = "avx2")]
unsafe fn combine_shuffle(combination: &Combination<'_>) {
    // SAFETY: handed on to the caller.
    unsafe { combine::run::<Shuffle>(combination) }
}

/// 64 bytes, products by the affine instruction.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

// SAFETY of all functions below: the trait hands on to the caller that the processor has the
// instructions and that pointers have the bytes.
impl Lanes for Zmm {
    const BYTES: usize = 64;
    type Constant = __m512i;

    #[inline(always)]
    unsafe fn constant(c: u8) -> Self::Constant {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi64(AFFINE[usize::from(c)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: see above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, other: Self, third: Self) -> Self {
        // 0x96 is the truth table of the sum of three bits. SAFETY: see above.
        unsafe { Self(_mm512_ternarylogic_epi64::<0x96>(self.0, other.0, third.0)) }
    }

    #[inline(always)]
    unsafe fn times(self, constant: Self::Constant) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, constant)) }
    }
}

/// 32 bytes, products by the affine instruction.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Lanes for Ymm {
    const BYTES: usize = 32;
    type Constant = __m256i;

    #[inline(always)]
    unsafe fn constant(c: u8) -> Self::Constant {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi64x(AFFINE[usize::from(c)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: see above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, other: Self, third: Self) -> Self {
        // SAFETY: see above.
        unsafe { self.add(other).add(third) }
    }

    #[inline(always)]
    unsafe fn times(self, constant: Self::Constant) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, constant)) }
    }
}

/// 32 bytes, products by two lookups of four bits.
#[derive(Clone, Copy)]
struct Shuffle(__m256i);

impl Lanes for Shuffle {
    const BYTES: usize = 32;
    type Constant = &'static [[u8; 16]; 2];

    #[inline(always)]
    unsafe fn constant(c: u8) -> Self::Constant {
        &NIBBLES[usize::from(c)]
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: see above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add3(self, other: Self, third: Self) -> Self {
        // SAFETY: see above.
        unsafe { self.add(other).add(third) }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: Self::Constant) -> Self {
        // SAFETY: see above; the tables have 16 bytes each.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(low.as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(high.as_ptr().cast()));
            let mask = _mm256_set1_epi8(15);
            let nibbles = _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), mask);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            Self(_mm256_xor_si256(low, _mm256_shuffle_epi8(high, nibbles)))
        }
    }
}
