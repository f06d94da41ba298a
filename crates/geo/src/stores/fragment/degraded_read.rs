//! Reads a range of a chunk from fragments at several sites: from the data fragments that contain
//! it or, if one of them is unavailable, from enough others (degraded read).

use std::collections::BTreeMap;
use std::ops::Range;

use futures::future::join_all;

use super::blocks::{payload, stored_range};
use super::chunk::{ChunkCode, Piece};
use super::header::{Fault, Header};
use crate::stores::{Blob, BlobError, Key};

/// Places of the fragments of one chunk, in order.
pub struct ChunkSources<'a> {
    /// The header that they share, except for the fragment index.
    pub header: &'a Header,
    /// The blobs, one per fragment.
    pub blobs: Vec<(&'a dyn Blob, Key)>,
}

impl std::fmt::Debug for ChunkSources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<&Key> = self.blobs.iter().map(|(_, key)| key).collect();
        f.debug_struct("ChunkSources").field("header", self.header).field("keys", &keys).finish()
    }
}

/// A range of a chunk could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The range is invalid, or the number of blobs differs from that of fragments.
    #[error("{reason}")]
    Invalid {
        /// The reason.
        reason: String,
    },
    /// Too few fragments could be read.
    #[error(
        "{have} of {need} required fragments of chunk {chunk} could be read: {absent} are missing, \
         {damaged} are damaged, {unknown} are unavailable"
    )]
    TooFew {
        /// The chunk.
        chunk: u32,
        /// Fragments that were read.
        have: usize,
        /// Fragments that are needed.
        need: usize,
        /// Fragments that do not exist, according to their stores.
        absent: usize,
        /// Fragments that exist but are damaged.
        damaged: usize,
        /// Fragments in an unknown state.
        unknown: usize,
    },
}

/// Why a fragment could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentError {
    Absent,
    Damaged,
    Unknown,
}

/// Reads the bytes `wanted` of a chunk.
///
/// # Errors
/// [`ReadError`].
pub async fn read_range(
    sources: &ChunkSources<'_>,
    wanted: Range<u32>,
) -> Result<Vec<u8>, ReadError> {
    let header = sources.header;
    let code = ChunkCode::new(header.data, header.parity);
    let code = code.map_err(|error| ReadError::Invalid { reason: error.to_string() })?;
    let is_inside = wanted.start <= wanted.end && wanted.end <= header.chunk_bytes;
    if !is_inside || sources.blobs.len() != code.fragments() {
        let (blobs, bytes) = (sources.blobs.len(), header.chunk_bytes);
        let reason = format!("{wanted:?} of a chunk of {bytes} bytes in {blobs} fragments");
        return Err(ReadError::Invalid { reason });
    }
    let pieces = code.pieces(header.chunk_bytes, &wanted);
    let reads = pieces.iter().map(|piece| fetch(sources, piece.fragment.into(), &piece.range));
    let mut errors = BTreeMap::new();
    let mut parts: Vec<Option<Vec<u8>>> = Vec::with_capacity(pieces.len());
    for (piece, found) in pieces.iter().zip(join_all(reads).await) {
        if let Err(error) = &found {
            errors.insert(usize::from(piece.fragment), *error);
        }
        parts.push(found.ok());
    }
    let mut bytes = Vec::new();
    for (piece, part) in pieces.iter().zip(parts) {
        bytes.extend(match part {
            Some(part) => part,
            None => reconstruct(sources, &code, piece, &mut errors).await?,
        });
    }
    Ok(bytes)
}

/// Reconstructs a piece from the same part of other fragments.
async fn reconstruct(
    sources: &ChunkSources<'_>,
    code: &ChunkCode,
    piece: &Piece,
    errors: &mut BTreeMap<usize, FragmentError>,
) -> Result<Vec<u8>, ReadError> {
    let mut available: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut left: Vec<usize> =
        (0..code.fragments()).filter(|index| !errors.contains_key(index)).collect();
    // Request only as many as are still needed; to request more at once, use hedged reads.
    while available.len() < code.data() && !left.is_empty() {
        let rest = left.split_off(left.len().min(code.data() - available.len()));
        let reads = left.iter().map(|&index| fetch(sources, index, &piece.range));
        let found = join_all(reads).await;
        for (&index, found) in left.iter().zip(found) {
            match found {
                Ok(part) => available.push((index, part)),
                Err(error) => {
                    errors.insert(index, error);
                }
            }
        }
        left = rest;
    }
    let parts: Vec<(usize, &[u8])> =
        available.iter().map(|(index, part)| (*index, &**part)).collect();
    if parts.len() < code.data() {
        let count = |kind| errors.values().filter(|error| **error == kind).count();
        return Err(ReadError::TooFew {
            chunk: sources.header.chunk,
            have: parts.len(),
            need: code.data(),
            absent: count(FragmentError::Absent),
            damaged: count(FragmentError::Damaged),
            unknown: count(FragmentError::Unknown),
        });
    }
    let length = usize::try_from(piece.range.end - piece.range.start).unwrap_or(usize::MAX);
    let part = code.part(piece.fragment.into(), length, &parts);
    part.map_err(|error| ReadError::Invalid { reason: error.to_string() })
}

/// Reads part of the payload of one fragment and verifies it.
async fn fetch(
    sources: &ChunkSources<'_>,
    index: usize,
    range: &Range<u32>,
) -> Result<Vec<u8>, FragmentError> {
    let header = sources.header;
    let (blob, key) = &sources.blobs[index];
    let stored = stored_range(header.bytes(), header.payload_bytes, range);
    let stored = match blob.get(key, Some(stored)).await {
        Ok(stored) => stored,
        Err(BlobError::NotFound) => return Err(FragmentError::Absent),
        Err(BlobError::Corrupt(_)) => return Err(FragmentError::Damaged),
        Err(_) => return Err(FragmentError::Unknown),
    };
    let mut place = header.place();
    place.fragment = u8::try_from(index).unwrap_or(u8::MAX);
    let part: Result<Vec<u8>, Fault> =
        payload(&place, header.payload_bytes, range.clone(), &stored);
    part.map_err(|_| FragmentError::Damaged)
}
