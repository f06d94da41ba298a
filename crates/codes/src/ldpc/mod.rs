//! Low-density parity-check codes: recover the bits of a sector from its noisy voxels.
//!
//! ```text
//! construct -> BaseMatrix (text) -> Code -> Encoder      information bits -> parity bits
//!                                       \-> Decoder      one i8 a bit     -> bits + Outcome
//! density    thresholds                  \-> simulate    frame errors against symbol errors
//! ```
//!
//! The codes are quasi-cyclic: the size of a circulant is a multiple of 64, so that the decoder
//! works on whole vectors of checks and the encoder on whole words of bits. There are ten standard
//! codes, five rates at two lengths. The decoder is layered offset min-sum on 8-bit integers
//! (Silica section 5 names LDPC for the errors within a sector and does not specify the code).
//!
//! Bits: bit `i` of a word is bit `i % 8` of byte `i / 8`, the information first and then the
//! parity. Soft bits are log-likelihood ratios `ln P(0) - ln P(1)`, scaled (see [`calibrate`]) and
//! clipped to -31 ..= 31; positive means 0, and 0 means that the bit was not read (an erasure).
//!
//! An LDPC decoder can converge to a wrong codeword. That is rare, not impossible: callers that
//! store data must check the sector's signature afterwards.

mod base;
mod bits;
pub mod calibrate;
mod code;
pub mod construct;
pub mod decode;
pub mod density;
mod encode;
mod girth;
mod random;
pub mod reference;
pub mod simulate;
mod voxel_channel;

pub use base::{BaseMatrix, Entry};
pub use code::{Block, Code, Rate};
pub use construct::Design;
pub use decode::{Decoder, Outcome};
pub use encode::Encoder;
pub use girth::Girth;
pub use voxel_channel::VoxelChannel;

#[cfg(test)]
mod tests;
