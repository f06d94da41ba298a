//! Codes: sector checksums and the erasure code of all three redundancy levels.
//!
//! Pure functions on bytes, without I/O, clock or thread. The erasure code is systematic
//! Reed-Solomon over GF(2^16), computed by the crate reed-solomon-simd; the definition that a
//! reader needs is [`definition`], so the crate can be replaced without a change of format.
//! This crate finds no errors: a shard is either given, and then trusted, or lost. Whoever reads
//! a medium checks the checksum first.

mod checksum;
pub mod definition;
mod encode;
mod erasure;
mod error;
pub mod field;
mod isa;
pub mod ldpc;
mod large;
pub mod small;
mod signature;
pub mod symbols;

pub use checksum::{
    CHECKSUM_BYTES, Checksum, RunningChecksum, crc32c, crc32c_append, sector_checksum,
};
pub use encode::{Encoder, StreamEncoder};
pub use erasure::{Decoder, ErasureCode, SHARD_ALIGN, Shard};
pub use error::{CodeError, ErrorKind};
pub use isa::{ISA_VARIABLE, Isa};
pub use large::definition as large_definition;
pub use large::{
    LARGE_SHARD_ALIGN, LargeCode, LargeDecoder, LargeEncoder, LargeStreamEncoder, Method,
};
pub use signature::{SIGNATURE_BLOCK, SIGNATURE_BYTES, Signature, Signer, signature};

#[cfg(test)]
mod tests;
