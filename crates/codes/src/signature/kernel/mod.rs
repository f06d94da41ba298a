//! The kernels of signatures: 64 lanes of one recurrence for both components, and their sums.
//!
//! ```text
//! absorb:  s_b = block_b + z s_(b-1) + s_(b-2)                      per 256-byte block
//! finish:  y^(n-1) sum_l alpha^l (s_(n-1) + y s_(n-2))_l            after n blocks
//!          y^-(n-1) sum_l alpha^-l (s_(n-1) + s_(n-2) / y)_l
//! ```
//!
//! This is Goertzel's algorithm over the field: with y + 1/y = z, the sum s_b + y s_(b-1) is
//! block_b + (s_(b-1) + y s_(b-2)) / y, which is Horner's rule for 1 / y, and vice versa. Blocks
//! are read in memory order, which suits the prefetcher. Horner's rule gives the first of them the
//! highest power; the power of y at the end reverses the exponents. A product by z is two products
//! by constant bytes and sums, so both components together cost nine vector instructions per block,
//! where Horner's rule for each would cost 14. And a product depends on another only two steps
//! later: products have a high latency on some processors.

mod absorb;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use crate::Isa;
use crate::field::{PLANE_BYTES, gf8, gf16, gf32};
use crate::signature::SIGNATURE_BLOCK;
use crate::simd::Level;

/// One plane for each coordinate.
type Planes = [[u8; PLANE_BYTES]; 4];

/// A product by z is a product by this byte and one by [`gf32::TRACE`].
const WRAP: u8 = gf8::mul(gf32::TRACE, gf16::NORM);

/// A root of y^2 + z y + 1; one block is one power of y.
pub(super) const Y: gf32::Element = [231, 75, 3, 54];
/// The other root, 1 / y.
pub(super) const Y_INVERSE: gf32::Element = gf32::inverse(Y);
/// Multiplicative order of y (see the tests).
pub(super) const ORDER: u64 = ((1 << 32) - 1) / 3;

/// y^(2^26), which is y^(2^32 / 64): the 64th power is y.
pub(super) const ALPHA: gf32::Element = gf32::pow(Y, 1 << 26);
/// 1 / alpha.
pub(super) const ALPHA_INVERSE: gf32::Element = gf32::inverse(ALPHA);

const _: () = {
    let [a, b, c, d] = gf32::add(Y, Y_INVERSE);
    assert!(a == 0 && b == 0 && c == 1 && d == 0, "y + 1 / y is z");
};

/// State of the recurrence after some blocks.
#[derive(Clone)]
pub(super) struct Lanes {
    /// s of the last block, and of the previous one.
    last: Planes,
    previous: Planes,
    blocks: u64,
}

impl Lanes {
    /// State before the first block.
    pub(super) const ZERO: Self =
        Self { last: [[0; PLANE_BYTES]; 4], previous: [[0; PLANE_BYTES]; 4], blocks: 0 };

    /// Absorbs these blocks.
    pub(super) fn absorb(&mut self, level: Level, blocks: &[[u8; SIGNATURE_BLOCK]]) {
        self.blocks += blocks.len() as u64;
        match level.isa() {
            Isa::Scalar => scalar::absorb(self, blocks),
            Isa::Neon | Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => {
                absorb::absorb(level, self, blocks);
            }
        }
    }

    /// Returns the components at alpha and 1 / alpha.
    pub(super) fn finish(&self, level: Level) -> [gf32::Element; 2] {
        let Some(last) = self.blocks.checked_sub(1) else { return [[0; 4]; 2] };
        let [forward, backward] = match level.isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Gfni => avx512::reduce(level, self),
            _ => scalar::reduce(self),
        };
        [gf32::mul(forward, power(false, last)), gf32::mul(backward, power(true, last))]
    }
}

/// Bits of a digit of exponents: one digit is enough for sectors up to 256 KiB.
const DIGIT_BITS: u32 = 10;
const DIGITS: usize = 1 << DIGIT_BITS;

/// `[i][j][digit]` is y (i = 0) or 1 / y (i = 1) to the power digit 2^(10 j).
type Powers = [[[gf32::Element; DIGITS]; 4]; 2];

/// Returns y^exponent, or y^-exponent if `inverse`.
pub(super) fn power(inverse: bool, exponent: u64) -> gf32::Element {
    static POWERS: Powers = [powers(Y), powers(Y_INVERSE)];
    let mut left = exponent % ORDER;
    let mut power = gf32::ONE;
    for powers in &POWERS[usize::from(inverse)] {
        let digit = usize::try_from(left % DIGITS as u64).unwrap_or_default();
        power = if power == gf32::ONE { powers[digit] } else { gf32::mul(power, powers[digit]) };
        left >>= DIGIT_BITS;
        if left == 0 {
            break;
        }
    }
    power
}

const fn powers(base: gf32::Element) -> [[gf32::Element; DIGITS]; 4] {
    let mut powers = [[gf32::ONE; DIGITS]; 4];
    let (mut step, mut place) = (base, 0);
    while place < 4 {
        let mut digit = 1;
        while digit < DIGITS {
            powers[place][digit] = gf32::mul(powers[place][digit - 1], step);
            digit += 1;
        }
        step = gf32::mul(powers[place][DIGITS - 1], step);
        place += 1;
    }
    powers
}
