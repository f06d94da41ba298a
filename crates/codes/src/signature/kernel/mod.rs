//! The kernels of signatures: 64 lanes of Horner's rule, and their sum at the end.
//!
//! ```text
//! absorb:  forward = forward z^-1 + block,  backward = backward z + block     per 256-byte block
//! finish:  z^(n-1) sum_l alpha^l forward_l,  z^-(n-1) sum_l alpha^-l backward_l     after n blocks
//! ```
//!
//! Blocks come in the order of memory, which the prefetcher likes, and Horner's rule gives the
//! first of them the highest power; so the component at alpha is summed with 1 / z, and the product
//! by z^(n-1) at the end turns the exponents round. alpha^64 = z makes a step of one block a
//! product by z, two products by constant bytes and three sums, on planes of 64 bytes.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::Isa;
use crate::field::{PLANE_BYTES, gf8, gf16, gf32};
use crate::signature::SIGNATURE_BLOCK;

/// One plane for each coordinate.
type Planes = [[u8; PLANE_BYTES]; 4];

/// 1 / 0x21 and 1 / (0x21 0x22): the product by 1 / z is with these two bytes, because
/// 1 / z = (z + 1) / (0x21 u) and 1 / u = (u + 1) / 0x22.
const UNTRACE: u8 = gf8::inverse(gf32::TRACE);
const UNWRAP: u8 = gf8::inverse(WRAP);
/// The product by z is with [`gf32::TRACE`] and this byte.
const WRAP: u8 = gf8::mul(gf32::TRACE, gf16::NORM);

/// Order of z.
const ORDER: u64 = (1 << 32) - 1;

/// z^(2^26), which is z^(2^32 / 64): the 64th power is z.
pub(super) const ALPHA: gf32::Element = gf32::pow(gf32::Z, 1 << 26);
/// 1 / alpha.
pub(super) const UNALPHA: gf32::Element = gf32::inverse(ALPHA);

const _: () = {
    let [a, b, c, d] = gf32::pow(ALPHA, 64);
    assert!(a == 0 && b == 0 && c == 1 && d == 0, "alpha^64 is z");
};

/// The sums of Horner's rule after some blocks.
#[derive(Clone)]
pub(super) struct Lanes {
    forward: Planes,
    backward: Planes,
    blocks: u64,
}

impl Lanes {
    /// After no block.
    pub(super) const ZERO: Self =
        Self { forward: [[0; PLANE_BYTES]; 4], backward: [[0; PLANE_BYTES]; 4], blocks: 0 };

    /// Goes on by these blocks. `isa` must be a level of this processor.
    pub(super) fn absorb(&mut self, isa: Isa, blocks: &[[u8; SIGNATURE_BLOCK]]) {
        self.blocks += blocks.len() as u64;
        match isa {
            Isa::Scalar | Isa::Neon => scalar::absorb(self, blocks),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => x86::absorb(isa, self, blocks),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => scalar::absorb(self, blocks),
        }
    }

    /// The components at alpha and 1 / alpha.
    pub(super) fn finish(&self, isa: Isa) -> [gf32::Element; 2] {
        let Some(last) = self.blocks.checked_sub(1) else { return [[0; 4]; 2] };
        let [forward, backward] = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Gfni => x86::reduce(self),
            _ => scalar::reduce(self),
        };
        [gf32::mul(forward, power(false, last)), gf32::mul(backward, power(true, last))]
    }
}

/// z^exponent, or z^-exponent if `inverse`.
pub(super) fn power(inverse: bool, exponent: u64) -> gf32::Element {
    /// `[i][j][byte]` is z or 1 / z to the power byte 256^j.
    static POWERS: [[[gf32::Element; 256]; 4]; 2] =
        [digits(gf32::Z), digits(gf32::inverse(gf32::Z))];
    let [a, b, c, d, ..] = (exponent % ORDER).to_le_bytes().map(usize::from);
    let digits = &POWERS[usize::from(inverse)];
    let mut power = digits[0][a];
    for (digit, powers) in [b, c, d].into_iter().zip(&digits[1..]) {
        if digit > 0 {
            power = gf32::mul(power, powers[digit]);
        }
    }
    power
}

const fn digits(base: gf32::Element) -> [[gf32::Element; 256]; 4] {
    let mut powers = [[gf32::ONE; 256]; 4];
    let (mut step, mut place) = (base, 0);
    while place < 4 {
        let mut digit = 1;
        while digit < 256 {
            powers[place][digit] = gf32::mul(powers[place][digit - 1], step);
            digit += 1;
        }
        step = gf32::mul(powers[place][255], step);
        place += 1;
    }
    powers
}
