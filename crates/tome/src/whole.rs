//! Assembles an object read from a disk and verifies it on the way.
//!
//! ```text
//! Wanted      signatures of its blocks in order, its length and digest
//! Gathering   block 0 | block 1 | ...     each: appended, verified, added to the digest
//! Whole       complete and verified; nothing else makes one
//! ```
//!
//! Each block is verified while it is in the processor's cache, so its bytes are moved once. A
//! block that does not match ends it: then the tome reads the object block by block and repairs it.
//! Not here: physical blocks.

use fulgurite_codes::{Checksum, RunningChecksum, Signature, signature};

/// The expected content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The signature of each block, in order.
    pub signatures: Vec<Signature>,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Bytes of the object; zeros pad the last block.
    pub bytes: u64,
    /// The digest of those bytes.
    pub digest: Checksum,
}

/// An object that is partly read.
#[derive(Debug)]
pub struct Gathering {
    wanted: Wanted,
    /// Blocks that were read and verified.
    good: usize,
    buffer: Vec<u8>,
    digest: RunningChecksum,
}

/// The bytes of an object, verified against the signatures of its blocks and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole(Vec<u8>);

impl Gathering {
    /// Returns an assembler without any blocks.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        let buffer = Vec::with_capacity(wanted.signatures.len() * wanted.block_bytes);
        Self { wanted, good: 0, buffer, digest: RunningChecksum::new() }
    }

    /// Reads the next block and returns its signature if it is the expected one. After a wrong
    /// block the assembly can no longer succeed.
    ///
    /// # Errors
    /// Errors of `read`.
    ///
    /// # Panics
    /// When all blocks are there.
    pub fn next<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Signature>, E> {
        let from = self.buffer.len();
        let noted = self.wanted.signatures.get(from / self.wanted.block_bytes).copied();
        let noted = noted.expect("no more blocks are read than are wanted");
        self.buffer.resize(from + self.wanted.block_bytes, 0);
        let block = &mut self.buffer[from..];
        read(block)?;
        let found = signature(block);
        let left = self.wanted.bytes.saturating_sub(from as u64);
        let own = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        self.digest.update(&block[..own]);
        if found != noted {
            return Ok(None);
        }
        self.good += 1;
        Ok(Some(found))
    }

    /// Returns the object, if all blocks are there and they and the digest match.
    #[must_use]
    pub fn finish(self) -> Option<Whole> {
        let Self { wanted, good, mut buffer, digest } = self;
        let bytes = usize::try_from(wanted.bytes).ok().filter(|bytes| *bytes <= buffer.len())?;
        buffer.truncate(bytes);
        let is_whole = good == wanted.signatures.len() && digest.finish() == wanted.digest;
        is_whole.then_some(Whole(buffer))
    }
}

impl Whole {
    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
