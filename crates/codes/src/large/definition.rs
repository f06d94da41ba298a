//! Mathematical definition of the large code: all that an independent implementation of a reader
//! needs.
//!
//! ```text
//! field      GF(2^16) = GF(2^8)[u] / (u^2 + u + 0x22), GF(2^8) modulo 0x11d; see [`crate::field`]
//! element    the number v stands for the sum of BASIS[b] over the bits b set in v
//! m          the redundancy count R, rounded up to a power of two
//! points     redundancy shard j is at w(j), the element of number j, j < R;
//!            information shard i is at x(i), the element of number m + i
//! code       redundancy_j = sum over i of  g(i) / (w(j) + x(i))  information_i
//!            where g(i) is the element of number floor((m + i) / m)
//! shards     each block of 128 bytes holds 64 elements: byte i has the coordinate of 1 of
//!            element i, byte 64 + i its coordinate of u; all elements of a shard are coded alike
//! ```
//!
//! # Where the coefficients come from
//!
//! The basis is Cantor's: `BASIS[0] = 1` and `BASIS[i]^2 + BASIS[i] = BASIS[i - 1]`. With `s(x) =
//! x^2 + x` and `s_k` for s applied k times, `s_k` vanishes on exactly the elements of numbers
//! below 2^k, it maps the element of number v to that of number `v >> k`, and its derivative is 1.
//! Information shards are divided into chunks of m = 2^k. By Lagrange, exactly one polynomial of
//! degree below m interpolates the values of a chunk c:
//!
//! ```text
//! f_c(y) = sum over i in c of  information_i  s_k(y + x(i)) / (s_k' (y + x(i)))
//! ```
//!
//! A redundancy shard is the sum of all `f_c` at its point. There `s_k(w(j)) = 0`, so the numerator
//! is `s_k(x(i)) = g(i)`, one value for the whole chunk: G is a Cauchy matrix with scaled columns,
//! so every square submatrix is invertible and any R losses can be reconstructed (the code is MDS).
//!
//! The same code as equations: for each power k = 0 .. m-1 the sum over all points x of `c(x) x^k`
//! is zero, where points of numbers R .. m-1 carry values that are not kept.
//!
//! The functions here are the slow, scalar reference of [`crate::LargeCode`], for tests and for
//! writers of another reader. Bulk data does not go through them.

use crate::field::gf16::{self, Element};

/// The Cantor basis in which points are numbered: of the two solutions for each element, the one
/// whose first byte is even.
///
/// The first eight span GF(2^8), because s applied eight times is `x^256 + x`.
pub const BASIS: [Element; 16] = [
    [0x01, 0x00],
    [0xd6, 0x00],
    [0x98, 0x00],
    [0x92, 0x00],
    [0x56, 0x00],
    [0xc8, 0x00],
    [0x58, 0x00],
    [0xe6, 0x00],
    [0x9e, 0x01],
    [0x72, 0xd6],
    [0x88, 0x98],
    [0xa2, 0x92],
    [0x56, 0x56],
    [0xda, 0xc8],
    [0xee, 0x58],
    [0x4c, 0xe6],
];

/// Returns the element of a number.
///
/// # Panics
/// When the number is not below 65,536.
#[must_use]
pub const fn element(number: usize) -> Element {
    assert!(number < 1 << BASIS.len(), "the field has 65,536 elements");
    let (mut sum, mut bit) = ([0, 0], 0);
    while bit < BASIS.len() {
        if number >> bit & 1 == 1 {
            sum = gf16::add(sum, BASIS[bit]);
        }
        bit += 1;
    }
    sum
}

/// Returns the coefficient of information shard `information` in redundancy shard `redundancy`, for
/// the code whose `m` is 2 to the `chunk_log`.
///
/// # Panics
/// When the field has no such points.
#[must_use]
pub const fn coefficient(chunk_log: u32, redundancy: usize, information: usize) -> Element {
    let chunk = 1 << chunk_log;
    assert!(redundancy < chunk, "redundancy points are in the first chunk");
    let number = chunk + information;
    let distance = gf16::add(element(redundancy), element(number));
    gf16::mul(element(number >> chunk_log), gf16::inverse(distance))
}

/// Returns element `index` of a shard.
#[must_use]
pub fn symbol(shard: &[u8], index: usize) -> Element {
    let block = &shard[index / 64 * 128..];
    [block[index % 64], block[64 + index % 64]]
}

/// Computes redundancy shards of equally long information shards, directly by the definition.
#[must_use]
pub fn encode(information: &[Vec<u8>], redundancy: usize) -> Vec<Vec<u8>> {
    let chunk_log = redundancy.next_power_of_two().trailing_zeros();
    let bytes = information.first().map_or(0, Vec::len);
    let mut coded = vec![vec![0; bytes]; redundancy];
    for (row, coded) in coded.iter_mut().enumerate() {
        for (column, shard) in information.iter().enumerate() {
            let factor = coefficient(chunk_log, row, column);
            for index in 0..bytes / 2 {
                let product = gf16::mul(factor, symbol(shard, index));
                let place = index / 64 * 128 + index % 64;
                coded[place] ^= product[0];
                coded[place + 64] ^= product[1];
            }
        }
    }
    coded
}
