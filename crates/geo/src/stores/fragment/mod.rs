//! Fragments: the part of one chunk of one version of an object that one site stores, as one blob.
//!
//! ```text
//! object    chunk 0 | chunk 1 | ...                          each coded on its own
//! chunk     payload 0 | .. | payload k-1 | k | .. | k+m-1    any k of them decode the chunk
//! fragment  header | block | sum | block | sum | ...         64 KiB of payload each
//! ```
//!
//! The checksum of a block covers its position and its bytes. So a range read verifies what it
//! fetched, and a fragment of another put, chunk or index counts as damaged.
//! docs/formats/fragment.md; Giza, section 4.

mod blocks;
mod chunk;
mod degraded_read;
mod header;

pub use blocks::{BLOCK_BYTES, Place, payload, payload_range, stored_bytes, stored_range};
pub use chunk::{ChunkCode, Piece};
pub use degraded_read::{ChunkSources, ReadError, read_range};
pub use header::{Fault, Header, PutId, VERSION};

/// Encodes a fragment for storage.
///
/// # Errors
/// [`Fault::Unwritable`] if the header and the payload do not fit each other or the format.
pub fn encode(header: &Header, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut fragment = header.encode()?;
    if u64::from(header.payload_bytes) != u64::try_from(bytes.len()).unwrap_or(u64::MAX) {
        let what = format!("{} bytes, but the header states {}", bytes.len(), header.payload_bytes);
        return Err(Fault::Unwritable { what });
    }
    blocks::append(&mut fragment, &header.place(), bytes);
    Ok(fragment)
}

/// Decodes a whole fragment into header and payload, with every block verified.
///
/// # Errors
/// What is wrong with it.
pub fn decode(fragment: &[u8]) -> Result<(Header, Vec<u8>), Fault> {
    let header = Header::parse(fragment)?;
    let blocks = fragment.get(header.bytes()..).unwrap_or_default();
    let need =
        u64::try_from(header.bytes()).unwrap_or(u64::MAX) + stored_bytes(header.payload_bytes);
    let have = u64::try_from(fragment.len()).unwrap_or(u64::MAX);
    if have != need {
        return Err(Fault::WrongLength { have, need });
    }
    let bytes = payload(&header.place(), header.payload_bytes, 0..header.payload_bytes, blocks)?;
    Ok((header, bytes))
}

#[cfg(test)]
mod tests;
