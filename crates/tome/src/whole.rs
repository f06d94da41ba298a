//! An object on its way from a disk into the bytes that are handed out.
//!
//! ```text
//! Wanted      signatures of its blocks in order, its bytes and their digest
//! Gathering   block 0 | block 1 | ...     each: read behind the others, compared, digested
//! Whole       all of it, and all of it right; nothing else makes one
//! ```
//!
//! Each block is looked at while it is in the processor's cache, so its bytes are moved once. A
//! block that is another than was noted ends it: then its tome reads the object block by block, and
//! heals it. Not here: where blocks lie.

use fulgurite_codes::{Checksum, RunningChecksum, Signature, signature};

/// What an object has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The signature of each block, in order.
    pub signatures: Vec<Signature>,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Bytes of the object; zeros behind them fill the last block.
    pub bytes: u64,
    /// Their digest.
    pub digest: Checksum,
}

/// An object of which some blocks are there.
#[derive(Debug)]
pub struct Gathering {
    wanted: Wanted,
    /// Blocks that came, all of them right.
    good: usize,
    buffer: Vec<u8>,
    digest: RunningChecksum,
}

/// The bytes of an object, compared with the signatures of its blocks and with its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole(Vec<u8>);

impl Gathering {
    /// Nothing is there yet.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        let buffer = Vec::with_capacity(wanted.signatures.len() * wanted.block_bytes);
        Self { wanted, good: 0, buffer, digest: RunningChecksum::new() }
    }

    /// Has the next block filled in, behind the others, and says its signature if it is the one
    /// that is wanted. After one that is not, nothing comes of it any more.
    ///
    /// # Errors
    /// What `read` says.
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

    /// The object, if all blocks are there, each is the one that was wanted, and so are all bytes.
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
