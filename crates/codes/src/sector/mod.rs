//! Sectors: encodes payload and header to the symbols of voxels, and decodes soft bits.
//!
//! ```text
//! frame      payload | header | signature | zeros           as many bytes for each codeword
//! codeword   share of the frame | (zeros, not written) | parity
//! voxel      bits of one codeword, by the interleaver; bits of the label, by the alphabet
//! ```
//!
//! A sector is read or lost as a whole (Silica section 5): its codewords correct what they can, and
//! then signature and header decide. An LDPC decoder can converge to a wrong word, and a reader can
//! be on a wrong sector, so bytes leave this module only if the signature matches and the header is
//! the expected one. A failure is part of the report, not an error: to the erasure codes above, a
//! failed sector is a lost shard.
//!
//! The frame is divided evenly, and each codeword is shortened by the same number of information
//! bits. These are known zeros that are neither written nor read, so shortening makes all codewords
//! a little stronger, and the last one is not weaker than the others.
//!
//! The signature is [`crate::Signature`] of the payload, followed by zeros up to a whole block, and
//! then the header. So the payload's own signature can be computed from it, and commutes with the
//! erasure codes. It is stored under a mask, because the zeros of a sector that was never written
//! are codewords and have the signature zero. This module does not encrypt, and it does not
//! scramble uniform data.

mod codec;

pub use codec::{Decoded, Failure, Report, SectorCodec, SectorFormat};

#[cfg(test)]
mod tests;
