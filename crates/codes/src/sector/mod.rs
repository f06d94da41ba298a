//! Sectors: from payload and header to the symbols of voxels, and back from soft bits.
//!
//! ```text
//! frame      payload | header | signature | zeros           as many bytes for each codeword
//! codeword   share of the frame | (zeros, not written) | parity
//! voxel      bits of one codeword, by the interleaver; bits of the label, by the alphabet
//! ```
//!
//! A sector is what fails or comes back as a whole (Silica section 5): its codewords correct what
//! they can, and then signature and header decide. A decoder of such codes can converge to a wrong
//! word, and a reader can be on a wrong sector; so bytes leave this module only if the signature
//! fits them and the header is the expected one. What went wrong is a report, not an error: to the
//! erasure codes above a failed sector is a lost shard.
//!
//! The frame is shared out evenly, and each codeword is shortened by the same count of information
//! bits: these are known zeros that are neither written nor read, so shortening makes all codewords
//! a little stronger, and there is no weakest last one.
//!
//! The signature is the one of [`crate::Signature`], of the payload followed by zeros up to a whole
//! block and then the header; so the payload's own signature can be computed from it, and goes
//! through the erasure codes. It is stored under a mask, because the zeros of a sector
//! that was never written are codewords and have the signature zero. What this module does not do
//! is encrypt, or scramble data that is all alike.

mod codec;

pub use codec::{Decoded, Failure, Report, SectorCodec, SectorFormat};

#[cfg(test)]
mod tests;
