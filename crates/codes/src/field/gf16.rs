//! GF(2^16) as a degree-2 extension of GF(2^8): `[a, b]` is `a + b u` with `u^2 = u + 0x22`.

use super::gf8;

/// An element: the coordinates of 1 and of u.
pub type Element = [u8; 2];

/// The constant of the reducing polynomial u^2 + u + [`NORM`], which is the norm of u.
pub const NORM: u8 = 0x22;

/// Returns the sum, which is also the difference.
#[must_use]
pub const fn add(a: Element, b: Element) -> Element {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

/// Returns the product.
#[must_use]
pub const fn mul(a: Element, b: Element) -> Element {
    let high = gf8::mul(a[1], b[1]);
    [
        gf8::mul(a[0], b[0]) ^ gf8::mul(NORM, high),
        gf8::mul(a[0], b[1]) ^ gf8::mul(a[1], b[0]) ^ high,
    ]
}

/// Returns the inverse.
///
/// # Panics
/// When `a` is zero.
#[must_use]
pub const fn inverse(a: Element) -> Element {
    // The conjugate of a + b u is a + b (u + 1); their product a^2 + a b + NORM b^2 is in GF(2^8).
    let conjugate = [a[0] ^ a[1], a[1]];
    let norm = mul(a, conjugate)[0];
    let scale = gf8::inverse(norm);
    [gf8::mul(conjugate[0], scale), gf8::mul(conjugate[1], scale)]
}
