//! Symbols: what a voxel stores, and how its reading becomes soft bits.
//!
//! ```text
//! codeword bits -- Interleaver --> labels -- Alphabet --> symbols of voxels        writing
//! probabilities of symbols -- Demapper --> soft bits -- Interleaver --> codewords  reading
//! ```
//!
//! A voxel stores one of 2 to 256 symbols, which are levels, angles, or pairs of them (Silica
//! section 3: azimuth and retardance). The label of a symbol is the bits that it stands for. With
//! Gray labels the likely confusion, with a neighbor, costs one bit, so a binary code over the bits
//! does as well as a code over the symbols could.
//!
//! Soft bits are those of [`crate::ldpc`]: `ln P(0) - ln P(1)`, scaled and clipped to -31 ..= 31;
//! positive means 0, and 0 means that the bit was not read. This module knows no physics: it does
//! not care where probabilities come from.

mod alphabet;
mod demap;
mod interleave;
mod vector;

pub use alphabet::{Alphabet, Axis, SYMBOL_BITS_MAX};
pub use demap::{DemapMethod, Demapper};
pub use interleave::Interleaver;

#[cfg(test)]
mod tests;
