//! GF(2^32) as a degree-2 extension of GF(2^16): `[a, b, c, d]` is `(a + b u) + (c + d u) z` with
//! `z^2 = z + 0x21 u`.

use super::gf8;
use super::gf16::{self, NORM};

/// An element: the coordinates of 1, u, z and uz.
pub type Element = [u8; 4];

/// The coordinate of u in the constant of the reducing polynomial z^2 + z + [`TRACE`] u.
pub const TRACE: u8 = 0x21;

/// One.
pub const ONE: Element = [1, 0, 0, 0];
/// The generator z.
pub const Z: Element = [0, 0, 1, 0];

/// Returns the sum, which is also the difference.
#[must_use]
pub const fn add(a: Element, b: Element) -> Element {
    [a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]]
}

/// Returns the product by z, in two products of bytes.
#[must_use]
pub const fn mul_z(a: Element) -> Element {
    const WRAP: u8 = gf8::mul(TRACE, NORM);
    [gf8::mul(WRAP, a[3]), gf8::mul(TRACE, a[2] ^ a[3]), a[0] ^ a[2], a[1] ^ a[3]]
}

/// Returns the product.
#[must_use]
pub const fn mul(a: Element, b: Element) -> Element {
    let (a0, a1, b0, b1) = ([a[0], a[1]], [a[2], a[3]], [b[0], b[1]], [b[2], b[3]]);
    let high = gf16::mul(a1, b1);
    let low = gf16::add(gf16::mul(a0, b0), gf16::mul([0, TRACE], high));
    let high = gf16::add(gf16::add(gf16::mul(a0, b1), gf16::mul(a1, b0)), high);
    [low[0], low[1], high[0], high[1]]
}

/// Returns the power `base ^ exponent`.
#[must_use]
pub const fn pow(base: Element, exponent: u64) -> Element {
    let (mut power, mut square, mut left) = (ONE, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            power = mul(power, square);
        }
        square = mul(square, square);
        left >>= 1;
    }
    power
}

/// Returns the inverse.
///
/// # Panics
/// When `a` is zero.
#[must_use]
pub const fn inverse(a: Element) -> Element {
    assert!(a[0] | a[1] | a[2] | a[3] != 0, "zero has no inverse");
    pow(a, (1 << 32) - 2)
}
