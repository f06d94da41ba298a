//! Assembles an object read from a disk and verifies it on the way.
//!
//! ```text
//! ExpectedObject    signatures of its blocks in order, its length and digest
//! ObjectAssembler   block 0 | block 1 | ...    each: appended, verified, added to the digest
//! VerifiedObject    complete and verified; nothing else makes one
//! ```
//!
//! Each block is verified while it is in the processor's cache, so its bytes are moved once. A
//! block that does not match ends it: then the tome reads the object block by block and repairs it.
//! Not here: physical blocks.

use fulgurite_codes::{Checksum, RunningChecksum, Signature, signature};

/// The expected content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedObject {
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
pub struct ObjectAssembler {
    expected: ExpectedObject,
    /// Blocks that were read and verified.
    good: usize,
    buffer: Vec<u8>,
    digest: RunningChecksum,
}

/// The bytes of an object, verified against the signatures of its blocks and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedObject(Vec<u8>);

impl ObjectAssembler {
    /// Returns an assembler without any blocks.
    #[must_use]
    pub fn new(expected: ExpectedObject) -> Self {
        let buffer = Vec::with_capacity(expected.signatures.len() * expected.block_bytes);
        Self { expected, good: 0, buffer, digest: RunningChecksum::new() }
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
        let recorded = self.expected.signatures.get(from / self.expected.block_bytes).copied();
        let recorded = recorded.expect("all blocks of the object were already read");
        self.buffer.resize(from + self.expected.block_bytes, 0);
        let block = &mut self.buffer[from..];
        read(block)?;
        let found = signature(block);
        let left = self.expected.bytes.saturating_sub(from as u64);
        let own = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        self.digest.update(&block[..own]);
        if found != recorded {
            return Ok(None);
        }
        self.good += 1;
        Ok(Some(found))
    }

    /// Returns the object, if all blocks are there and they and the digest match.
    #[must_use]
    pub fn finish(self) -> Option<VerifiedObject> {
        let Self { expected, good, mut buffer, digest } = self;
        let bytes = usize::try_from(expected.bytes).ok().filter(|bytes| *bytes <= buffer.len())?;
        buffer.truncate(bytes);
        let is_whole = good == expected.signatures.len() && digest.finish() == expected.digest;
        is_whole.then_some(VerifiedObject(buffer))
    }
}

impl VerifiedObject {
    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
