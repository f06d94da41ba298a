//! Mathematical definition of the erasure code: all that an independent implementation of a reader
//! needs.
//!
//! ```text
//! field      GF(2)[x] / (x^16 + x^5 + x^3 + x^2 + 1), polynomial 0x1002D
//! element    the 16-bit number v stands for the XOR of BASIS[b] over the bits b set in v,
//!            each BASIS[b] read as a polynomial (bit i is the coefficient of x^i)
//! m          the redundancy count R, rounded up to a power of two
//! points     redundancy shard j is at the element of number j, j < R;
//!            information shard i is at the element of number m + i
//! code       for each power k = 0 .. m-1 the sum over all points x of c(x) * x^k is zero,
//!            where c(x) is the shard at x; points R .. m-1 carry values that are not kept
//!            (solve for them too), all other points carry zero
//! shards     each block of 64 bytes holds 32 elements: byte i is the low byte of element i,
//!            byte 32 + i its high byte; all elements of a shard are coded alike
//! ```
//!
//! With `e` shards lost, the equations of powers `0 .. m` are `m` linear equations in `e + (m - R)`
//! unknowns whose matrix is a Vandermonde matrix: they have exactly one solution if `e <= R`. The
//! functions here are the slow, scalar reference of [`super::ErasureCode`], for tests and for
//! writers of another reader. Bulk data does not go through them.

/// The reducing polynomial of the field.
pub const POLYNOMIAL: u32 = 0x1_002D;

/// The basis in which elements are numbered (a Cantor basis).
pub const BASIS: [u16; 16] = [
    0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012, 0x6C98, 0x10D8, 0x6A72, 0xB900,
    0xFDB8, 0xFB34, 0xFF38, 0x991E,
];

/// Returns the polynomial that the number `v` stands for.
#[must_use]
pub fn to_polynomial(v: u16) -> u16 {
    (0..16).filter(|bit| v >> bit & 1 == 1).fold(0, |sum, bit| sum ^ BASIS[bit])
}

/// Returns the product of two polynomials in the field.
#[must_use]
pub fn multiply(a: u16, b: u16) -> u16 {
    let mut product = 0u32;
    for bit in (0..16).rev() {
        product <<= 1;
        if product >> 16 == 1 {
            product ^= POLYNOMIAL;
        }
        if b >> bit & 1 == 1 {
            product ^= u32::from(a);
        }
    }
    u16::try_from(product).unwrap_or_else(|_| unreachable!("reduced below x^16"))
}

/// Returns element `index` of a shard, as a polynomial.
#[must_use]
pub fn element(shard: &[u8], index: usize) -> u16 {
    let block = &shard[index / 32 * 64..];
    to_polynomial(u16::from_le_bytes([block[index % 32], block[32 + index % 32]]))
}
