//! Redundancy inside a disk: the parity of one segment, so that a few bad blocks spin up no other
//! disk.
//!
//! ```text
//! fill      data blocks --> parity blocks
//! delta     one data block changes --> change of each parity block
//! bad       which blocks do not match their recorded signature
//! rebuild   up to m bad blocks from the others
//! ```
//!
//! (Pergamum (FAST 2008), section 4.1.) A disk occasionally returns wrong bytes without an error.
//! Signatures detect those; parity only recovers what is known to be bad. Not here: physical
//! blocks, and what to do when more blocks are bad than there is parity.

use fulgurite_codes::small::SmallCode;
use fulgurite_codes::{Signature, signature};

use crate::{CodeParams, Offset, Result, TomeError};

/// The code of a segment's blocks.
#[derive(Clone, Debug)]
pub struct SegmentCode {
    split: CodeParams,
    code: SmallCode,
}

impl SegmentCode {
    /// Returns the code of segments with this many data and parity blocks.
    ///
    /// # Errors
    /// None for a checked [`CodeParams`]; errors of the code are passed on.
    pub fn new(split: CodeParams) -> Result<Self> {
        let code = SmallCode::new(split.data() as usize, split.parity() as usize)?;
        Ok(Self { split, code })
    }

    /// Data and parity.
    #[must_use]
    pub const fn split(&self) -> CodeParams {
        self.split
    }

    /// Computes the parity of all data blocks.
    ///
    /// # Errors
    /// [`TomeError::Code`] when their number or lengths are wrong.
    pub fn fill<D: AsRef<[u8]>>(&self, data: &[D]) -> Result<Vec<Vec<u8>>> {
        let bytes = data.first().map_or(0, |block| block.as_ref().len());
        let mut parity = vec![vec![0; bytes]; self.split.parity() as usize];
        self.code.encode(data, &mut parity)?;
        Ok(parity)
    }

    /// Updates each parity block for a change of the data block at `position`: the XOR of its old
    /// and new bytes. `parity` is all parity blocks, in order.
    ///
    /// # Errors
    /// [`TomeError::Code`] for a position beyond the data, or lengths that differ.
    pub fn delta(&self, position: usize, change: &[u8], parity: &mut [Vec<u8>]) -> Result<()> {
        let mut outputs: Vec<(usize, &mut [u8])> =
            parity.iter_mut().map(Vec::as_mut_slice).enumerate().collect();
        Ok(self.code.update(position, change, &mut outputs)?)
    }

    /// Returns the change of one parity when the data at `position` changes.
    ///
    /// # Errors
    /// [`TomeError::Code`] for data or parity beyond the code.
    pub fn scaled(&self, parity: usize, position: usize, change: &[u8]) -> Result<Vec<u8>> {
        let mut product = vec![0; change.len()];
        self.add(parity, position, change, &mut product)?;
        Ok(product)
    }

    /// Adds the change of one parity when the data at `position` changes.
    ///
    /// # Errors
    /// As [`Self::scaled`]; also for a sum of another length.
    pub fn add(&self, parity: usize, position: usize, change: &[u8], sum: &mut [u8]) -> Result<()> {
        Ok(self.code.update(position, change, &mut [(parity, sum)])?)
    }

    /// Returns which blocks could not be read or do not match their signature.
    #[must_use]
    pub fn bad(blocks: &[Option<Vec<u8>>], signatures: &[Signature]) -> Vec<usize> {
        let is_bad = |(block, recorded): (&Option<Vec<u8>>, &Signature)| {
            block.as_ref().is_none_or(|bytes| signature(bytes) != *recorded)
        };
        let all = blocks.iter().zip(signatures).enumerate();
        all.filter(|(_, pair)| is_bad(*pair)).map(|(position, _)| position).collect()
    }

    /// Rebuilds bad blocks from the others, and returns which those were. Each is checked against
    /// its signature first.
    ///
    /// # Errors
    /// [`TomeError::SegmentLost`] when more are bad than there is parity,
    /// [`TomeError::SignatureMismatch`] when the recorded signatures do not form a codeword,
    /// [`TomeError::Count`] when blocks are missing from the call. Then nothing is changed.
    pub fn rebuild(
        &self,
        blocks: &mut [Option<Vec<u8>>],
        signatures: &[Signature],
    ) -> Result<Vec<usize>> {
        let need = self.split.total() as usize;
        for (what, have) in [("blocks", blocks.len()), ("signatures", signatures.len())] {
            if have != need {
                return Err(TomeError::Count { what, have, need });
            }
        }
        let bad = Self::bad(blocks, signatures);
        if bad.len() > self.split.parity() as usize {
            return Err(TomeError::SegmentLost { bad: bad.len(), parity: self.split.parity() });
        }
        let rebuilt = self.rebuilt_blocks(blocks, &bad)?;
        for (&position, bytes) in bad.iter().zip(&rebuilt) {
            if signature(bytes) != signatures[position] {
                return Err(TomeError::SignatureMismatch { offset: Offset::at(position) });
            }
        }
        for (&position, bytes) in bad.iter().zip(rebuilt) {
            blocks[position] = Some(bytes);
        }
        Ok(bad)
    }

    fn rebuilt_blocks(&self, blocks: &[Option<Vec<u8>>], bad: &[usize]) -> Result<Vec<Vec<u8>>> {
        let good: Vec<(usize, &[u8])> = blocks
            .iter()
            .enumerate()
            .filter(|(position, _)| !bad.contains(position))
            .filter_map(|(position, block)| Some((position, block.as_deref()?)))
            .collect();
        let bytes = good.first().map_or(0, |(_, block)| block.len());
        let mut rebuilt = vec![vec![0; bytes]; bad.len()];
        let mut wanted: Vec<(usize, &mut [u8])> =
            bad.iter().copied().zip(rebuilt.iter_mut().map(Vec::as_mut_slice)).collect();
        self.code.reconstruct(&good, &mut wanted)?;
        Ok(rebuilt)
    }
}
