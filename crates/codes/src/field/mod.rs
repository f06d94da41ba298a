//! The fields: one tower, so that erasure codes and signatures commute.
//!
//! ```text
//! GF(2^8)  = GF(2)[x] / (x^8 + x^4 + x^3 + x^2 + 1)        0x11d, the byte
//! GF(2^16) = GF(2^8)[u] / (u^2 + u + 0x22)                 bytes: 1, u
//! GF(2^32) = GF(2^16)[z] / (z^2 + z + 0x21 u)              bytes: 1, u, z, uz
//! ```
//!
//! `x`, `u` and `z` are all primitive. Each field is a vector space over the one below, in the
//! basis given above. A product with an element of a lower field therefore acts on each coordinate
//! separately: a signature over GF(2^32) passes through a product with a byte, or with a 16-bit
//! element, as if the signature were data.
//!
//! In memory, elements are planar, in blocks of [`PLANE_BYTES`] bytes per coordinate: 128-byte
//! blocks hold 64 elements of GF(2^16), the coordinates of 1 first; 256-byte blocks hold 64 of
//! GF(2^32). A 256-byte block is two 128-byte blocks.
//!
//! The functions here are scalar. Bulk data is processed by the kernels, which are tested against
//! these functions.

pub mod gf16;
pub mod gf32;
pub mod gf8;

/// Bytes of one coordinate's plane in a planar block.
pub const PLANE_BYTES: usize = 64;

#[cfg(test)]
mod tests;
