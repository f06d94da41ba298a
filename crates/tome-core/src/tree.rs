//! The signature tree of a region: one root that stands for all its blocks in order.
//!
//! ```text
//! node = signature of all bytes below it = sig(left) + a^|left| sig(right)
//!
//!              root                 level 2
//!         /          \
//!      node           node          level 1
//!     /    \         /    \
//!   b 0    b 1     b 2    b 3       level 0: signatures of blocks
//! ```
//!
//! (Pergamum (FAST 2008), section 4.2 and figure 4.) A node is the signature of the concatenation
//! of its children, not their sum: two blocks that swapped places have the same sum, and would have
//! the same root. It is still linear, so nodes of a group's members at one position form a
//! codeword, and a change of one block goes up to the root without its neighbors. A node without a
//! right child equals its left one: missing blocks count as zeros.
//!
//! The tree covers what the metadata store records. It detects lost or torn updates without any
//! disk; only reading a block shows that the platter still has it as written.

use fulgurite_codes::{SIGNATURE_BLOCK, Signature};

use crate::{Offset, Result, TomeError};

/// The signatures of blocks, and the nodes above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureTree {
    block_bytes: u64,
    /// Level 0 is the blocks; each level has half of the one below, rounded up.
    levels: Vec<Vec<Signature>>,
}

impl SignatureTree {
    /// Returns the tree of this many blocks of zeros.
    ///
    /// # Errors
    /// [`TomeError::BlockBytes`] when blocks are not a multiple of signature blocks,
    /// [`TomeError::Range`] when there are none.
    pub fn zeros(blocks: u32, block_bytes: u64) -> Result<Self> {
        Self::new(vec![Signature::ZERO; blocks as usize], block_bytes)
    }

    /// Returns the tree over signatures of blocks.
    ///
    /// # Errors
    /// As [`Self::zeros`].
    pub fn new(blocks: Vec<Signature>, block_bytes: u64) -> Result<Self> {
        if block_bytes == 0 || !block_bytes.is_multiple_of(SIGNATURE_BLOCK as u64) {
            return Err(TomeError::BlockBytes { bytes: block_bytes });
        }
        if blocks.is_empty() {
            return Err(TomeError::Range {
                field: "blocks of a tree",
                value: 0,
                min: 1,
                max: 1 << 32,
            });
        }
        let mut tree = Self { block_bytes, levels: vec![blocks] };
        while let Some(below) = tree.levels.last().filter(|level| level.len() > 1) {
            let left_bytes = tree.bytes_below(tree.levels.len() - 1);
            let pairs = below.chunks(2);
            let nodes = pairs.map(|pair| joined(pair[0], pair.get(1).copied(), left_bytes));
            let mut level = nodes.collect::<Result<Vec<_>>>()?;
            level.shrink_to_fit();
            tree.levels.push(level);
        }
        Ok(tree)
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.levels[0].len()
    }

    /// Number of levels below the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// The signature of all blocks.
    #[must_use]
    pub fn root(&self) -> Signature {
        self.levels[self.depth()][0]
    }

    /// Returns the signature of one block.
    ///
    /// # Panics
    /// When there is no such block.
    #[must_use]
    pub fn block(&self, offset: Offset) -> Signature {
        self.levels[0][offset.as_usize()]
    }

    /// Returns a node; `None` where the tree has none.
    #[must_use]
    pub fn node(&self, level: usize, index: usize) -> Option<Signature> {
        self.levels.get(level)?.get(index).copied()
    }

    /// Updates a block's signature and all nodes above it. `change` is the signature of the change:
    /// that of the old bytes plus that of the new ones.
    ///
    /// # Errors
    /// [`TomeError::OffsetOutOfRange`] when there is no such block.
    pub fn update(&mut self, offset: Offset, change: Signature) -> Result<()> {
        let blocks = self.blocks();
        if offset.as_usize() >= blocks {
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            return Err(TomeError::OffsetOutOfRange { offset, blocks });
        }
        let (mut index, mut change) = (offset.as_usize(), change);
        for level in 0..self.levels.len() {
            self.levels[level][index] ^= change;
            if index % 2 == 1 {
                change = shifted(change, self.bytes_below(level))?;
            }
            index /= 2;
        }
        Ok(())
    }

    /// Bytes that all nodes take.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<Signature>()).sum()
    }

    /// Returns the bytes of blocks below a full node of a level.
    fn bytes_below(&self, level: usize) -> u64 {
        self.block_bytes << level
    }
}

/// Returns the signature of bytes that follow `bytes` of zeros.
///
/// # Errors
/// [`TomeError::Code`] when those are not a multiple of signature blocks.
pub fn shifted(signature: Signature, bytes: u64) -> Result<Signature> {
    Ok(Signature::ZERO.concatenate(signature, bytes)?)
}

fn joined(left: Signature, right: Option<Signature>, left_bytes: u64) -> Result<Signature> {
    Ok(left.concatenate(right.unwrap_or(Signature::ZERO), left_bytes)?)
}
