//! Encodes a chunk into payloads and decodes it, in whole or in part, with the small Reed-Solomon
//! code.
//!
//! The code works on each byte position independently, so a part of a missing payload is
//! reconstructed from the same part of any k others.

use std::ops::Range;

use fulgurite_codes::CodeError;
use fulgurite_codes::small::SmallCode;

/// Code of chunks: `data` payloads with their bytes, plus `parity` payloads.
#[derive(Clone, Debug)]
pub struct ChunkCode {
    code: SmallCode,
}

/// The part of a chunk that is in one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the payload: a data payload.
    pub fragment: u8,
    /// Range in the payload.
    pub range: Range<u32>,
}

impl ChunkCode {
    /// Creates the code with these counts.
    ///
    /// # Errors
    /// [`CodeError::Counts`] if one is zero, or their sum is more than 255.
    pub fn new(data: u8, parity: u8) -> Result<Self, CodeError> {
        Ok(Self { code: SmallCode::new(data.into(), parity.into())? })
    }

    /// Number of payloads needed to decode a chunk.
    #[must_use]
    pub const fn data(&self) -> usize {
        self.code.information()
    }

    /// Number of all payloads.
    #[must_use]
    pub const fn fragments(&self) -> usize {
        self.code.shards()
    }

    /// Returns the size of each payload of a chunk of this size. The last data payload is padded
    /// with zeros.
    #[must_use]
    pub fn payload_bytes(&self, chunk_bytes: u32) -> u32 {
        chunk_bytes.div_ceil(u32::try_from(self.data()).unwrap_or(u32::MAX))
    }

    /// Encodes a chunk. Returns its payloads, data first.
    ///
    /// # Panics
    /// If the chunk is empty.
    #[must_use]
    pub fn encode(&self, chunk: &[u8]) -> Vec<Vec<u8>> {
        assert!(!chunk.is_empty(), "a chunk has bytes");
        let length = chunk.len().div_ceil(self.data());
        let mut payloads: Vec<Vec<u8>> = chunk.chunks(length).map(<[u8]>::to_vec).collect();
        payloads.resize(self.data(), Vec::new());
        payloads.iter_mut().for_each(|payload| payload.resize(length, 0));
        let mut parity = vec![vec![0; length]; self.code.redundancy()];
        self.code.encode(&payloads, &mut parity).expect("payloads have one length");
        payloads.extend(parity);
        payloads
    }

    /// Decodes the chunk from any [`Self::data`] of its payloads.
    ///
    /// # Errors
    /// [`CodeError`] if they are too few, of different lengths, or of an invalid index.
    pub fn decode(
        &self,
        chunk_bytes: u32,
        available: &[(usize, &[u8])],
    ) -> Result<Vec<u8>, CodeError> {
        let length = usize::try_from(self.payload_bytes(chunk_bytes)).unwrap_or(usize::MAX);
        let mismatched = available.iter().find(|(_, payload)| payload.len() != length);
        if let Some(&(index, payload)) = mismatched {
            let bytes = payload.len();
            return Err(CodeError::UnequalShards { index, bytes, expected: length });
        }
        let mut chunk = vec![0; length * self.data()];
        let mut lost = Vec::new();
        for (index, part) in chunk.chunks_mut(length).enumerate() {
            match available.iter().find(|(other, _)| *other == index) {
                Some((_, payload)) => part.copy_from_slice(payload),
                None => lost.push((index, part)),
            }
        }
        // Even if none is lost: it validates the payloads.
        self.code.reconstruct(available, &mut lost)?;
        chunk.truncate(usize::try_from(chunk_bytes).unwrap_or(usize::MAX));
        Ok(chunk)
    }

    /// Reconstructs a part of one payload from the same part of [`Self::data`] others.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn part(
        &self,
        fragment: usize,
        length: usize,
        available: &[(usize, &[u8])],
    ) -> Result<Vec<u8>, CodeError> {
        let mut part = vec![0; length];
        self.code.reconstruct(available, &mut [(fragment, &mut part)])?;
        Ok(part)
    }

    /// Returns the consecutive pieces that a range of a chunk of this size consists of.
    #[must_use]
    pub fn pieces(&self, chunk_bytes: u32, wanted: &Range<u32>) -> Vec<Piece> {
        let length = self.payload_bytes(chunk_bytes);
        let end = wanted.end.min(chunk_bytes);
        let mut pieces = Vec::new();
        let mut position = wanted.start;
        while position < end {
            let fragment = position / length;
            let until = fragment.saturating_add(1).saturating_mul(length).min(end);
            let range = position - fragment * length..until - fragment * length;
            pieces.push(Piece { fragment: u8::try_from(fragment).unwrap_or(u8::MAX), range });
            position = until;
        }
        pieces
    }
}
