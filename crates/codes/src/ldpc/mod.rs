//! Low-density parity-check codes: what turns the noisy voxels of a sector into bits again.
//!
//! ```text
//! construct -> BaseMatrix (text) -> Code -> Encoder      information bits -> parity bits
//!                                       \-> Decoder      one i8 a bit     -> bits + Outcome
//! density    thresholds                  \-> simulate    frame errors against symbol errors
//! ```
//!
//! The codes are quasi-cyclic: parity checks in circulants of 64 rows or a multiple, so that the
//! decoder works on whole vectors of checks and the encoder on whole words of bits. Ten are
//! standard, five rates at two lengths. The decoder is layered offset min-sum on 8-bit integers
//! (Silica section 5 names LDPC for the errors within a sector and leaves the code open).
//!
//! Bits: bit `i` of a word is bit `i % 8` of byte `i / 8`, the information first and then the
//! parity. Soft bits: `ln P(0) - ln P(1)`, scaled (see [`calibrate`]) and cut to -31 ..= 31;
//! positive means 0, and 0 means that the bit was not read.
//!
//! An LDPC decoder can converge to a wrong codeword. That is rare, not impossible: whoever stores
//! data checks the sector's signature after it.

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
mod symbol;

pub use base::{BaseMatrix, Entry};
pub use code::{Block, Code, Rate};
pub use construct::Design;
pub use decode::{Decoder, Outcome};
pub use encode::Encoder;
pub use girth::Girth;
pub use symbol::VoxelChannel;

#[cfg(test)]
mod tests;
