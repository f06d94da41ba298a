//! A chunk into payloads and back, whole or in part, by the small Reed-Solomon code.
//!
//! The code works on each byte of all payloads alone, so a part of a chunk whose fragment is missing
//! is made of the same part of any k others.

use std::ops::Range;

use fulgurite_codes::CodeError;
use fulgurite_codes::small::SmallCode;

/// How chunks are coded: into `data` payloads that are their bytes, and `parity` more.
#[derive(Clone, Debug)]
pub struct ChunkCode {
    code: SmallCode,
}

/// What of a chunk lies in one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which payload: one of the data.
    pub fragment: u8,
    /// Where in it.
    pub range: Range<u32>,
}

impl ChunkCode {
    /// The code with these counts.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when one is zero, or both are more than 255.
    pub fn new(data: u8, parity: u8) -> Result<Self, CodeError> {
        Ok(Self { code: SmallCode::new(data.into(), parity.into())? })
    }

    /// How many payloads give a chunk back.
    #[must_use]
    pub const fn data(&self) -> usize {
        self.code.information()
    }

    /// All payloads.
    #[must_use]
    pub const fn fragments(&self) -> usize {
        self.code.shards()
    }

    /// Bytes of each payload of a chunk of so many bytes. The last of the data is filled with zeros.
    #[must_use]
    pub fn payload_bytes(&self, chunk_bytes: u32) -> u32 {
        chunk_bytes.div_ceil(u32::try_from(self.data()).unwrap_or(u32::MAX))
    }

    /// The payloads of a chunk, data first.
    ///
    /// # Panics
    /// When the chunk is empty.
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

    /// The chunk, out of any [`Self::data`] of its payloads.
    ///
    /// # Errors
    /// [`CodeError`] when they are too few, of several lengths, or of no fragment.
    pub fn decode(
        &self,
        chunk_bytes: u32,
        given: &[(usize, &[u8])],
    ) -> Result<Vec<u8>, CodeError> {
        let length = usize::try_from(self.payload_bytes(chunk_bytes)).unwrap_or(usize::MAX);
        let given_one = given.iter().find(|(_, payload)| payload.len() != length);
        if let Some(&(index, payload)) = given_one {
            let bytes = payload.len();
            return Err(CodeError::UnequalShards { index, bytes, expected: length });
        }
        let mut chunk = vec![0; length * self.data()];
        let mut lost = Vec::new();
        for (index, part) in chunk.chunks_mut(length).enumerate() {
            match given.iter().find(|(other, _)| *other == index) {
                Some((_, payload)) => part.copy_from_slice(payload),
                None => lost.push((index, part)),
            }
        }
        // Also when none is lost: it says what is wrong with what is given.
        self.code.reconstruct(given, &mut lost)?;
        chunk.truncate(usize::try_from(chunk_bytes).unwrap_or(usize::MAX));
        Ok(chunk)
    }

    /// A part of one payload, out of the same part of [`Self::data`] others.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn part(
        &self,
        fragment: usize,
        length: usize,
        given: &[(usize, &[u8])],
    ) -> Result<Vec<u8>, CodeError> {
        let mut part = vec![0; length];
        self.code.reconstruct(given, &mut [(fragment, &mut part)])?;
        Ok(part)
    }

    /// Where a range of a chunk of so many bytes lies, one piece behind the other.
    #[must_use]
    pub fn pieces(&self, chunk_bytes: u32, wanted: &Range<u32>) -> Vec<Piece> {
        let length = self.payload_bytes(chunk_bytes);
        let end = wanted.end.min(chunk_bytes);
        let mut pieces = Vec::new();
        let mut at = wanted.start;
        while at < end {
            let fragment = at / length;
            let until = fragment.saturating_add(1).saturating_mul(length).min(end);
            let range = at - fragment * length..until - fragment * length;
            pieces.push(Piece { fragment: u8::try_from(fragment).unwrap_or(u8::MAX), range });
            at = until;
        }
        pieces
    }
}
