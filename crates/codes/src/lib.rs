//! Codes: everything that protects bytes against loss and errors.
//!
//! ```text
//! field        GF(2^8) < GF(2^16) < GF(2^32), one tower for all below
//! small        Reed-Solomon of up to 255 shards: tracks, platter-sets, disk stripes
//! large        Reed-Solomon of up to 65,535 shards: the large groups of a platter
//! ldpc         quasi-cyclic LDPC codes of a sector's bits, with soft decoding
//! symbols      bits to voxels and back: Gray labels, log-likelihood ratios, interleaving
//! signature    64-bit algebraic signatures, which commute with both erasure codes
//! checksum     BLAKE3 of a sector, CRC32C of a record
//! simd         the vectors that the kernels of small, large and signature are written with
//! ```
//!
//! Pure functions on bytes: no I/O, clock or thread, and no global but the choice of instruction
//! set ([`Isa`]). The erasure codes detect no errors: a shard is either given, and then trusted, or
//! lost. Callers that read a medium verify the checksum first.

mod cache;
mod checksum;
pub mod durability;
mod error;
pub mod field;
mod isa;
mod large;
pub mod ldpc;
pub mod sector;
mod shard;
mod signature;
mod simd;
pub mod small;
pub mod symbols;

pub use cache::{L2_CACHE_VARIABLE, l2_cache_bytes, l2_cache_bytes_from_env};
pub use checksum::{
    CHECKSUM_BYTES, Checksum, RunningChecksum, crc32c, crc32c_append, sector_checksum,
};
pub use error::{CodeError, ErrorKind};
pub use isa::{ISA_VARIABLE, Isa};
pub use large::definition as large_definition;
pub use large::{
    DecodeMethod, LARGE_SHARD_ALIGN, LargeCode, LargeDecoder, LargeEncoder, LargeStreamEncoder,
    Relation,
};
pub use shard::Shard;
pub use signature::{RunningSignature, SIGNATURE_BLOCK, SIGNATURE_BYTES, Signature, signature};
