//! A range of a chunk out of fragments at several sites: of the data fragments that it lies in, or,
//! where one of them cannot be had, of as many others as the code takes.

use std::collections::BTreeMap;
use std::ops::Range;

use futures::future::join_all;

use super::blocks::{payload, stored_range};
use super::chunk::{ChunkCode, Piece};
use super::header::{Fault, Header};
use crate::{Blob, BlobError, Key};

/// Where the fragments of one chunk are, in their order.
pub struct ChunkSources<'a> {
    /// What the header of each says, but for its own number.
    pub header: &'a Header,
    /// The blobs, as many as there are fragments.
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
    /// There is no such range, or not as many blobs as fragments.
    #[error("{what}")]
    Invalid {
        /// Why.
        what: String,
    },
    /// Too few fragments could be had.
    #[error(
        "{have} fragments of chunk {chunk} could be had, and {need} are needed: {absent} are not \
         there, {damaged} are damaged, {away} cannot be asked now"
    )]
    TooFew {
        /// The chunk.
        chunk: u32,
        /// Fragments that were had.
        have: usize,
        /// Fragments that are needed.
        need: usize,
        /// Fragments that are not there, as their stores say.
        absent: usize,
        /// Fragments that are there and not what was written.
        damaged: usize,
        /// Fragments of which nothing is known.
        away: usize,
    },
}

/// Why a fragment could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Absent,
    Damaged,
    Away,
}

/// Bytes `wanted` of a chunk.
///
/// # Errors
/// [`ReadError`].
pub async fn read_range(
    sources: &ChunkSources<'_>,
    wanted: Range<u32>,
) -> Result<Vec<u8>, ReadError> {
    let header = sources.header;
    let code = ChunkCode::new(header.data, header.parity);
    let code = code.map_err(|error| ReadError::Invalid { what: error.to_string() })?;
    let is_inside = wanted.start <= wanted.end && wanted.end <= header.chunk_bytes;
    if !is_inside || sources.blobs.len() != code.fragments() {
        let (blobs, bytes) = (sources.blobs.len(), header.chunk_bytes);
        let what = format!("{wanted:?} of a chunk of {bytes} bytes in {blobs} fragments");
        return Err(ReadError::Invalid { what });
    }
    let pieces = code.pieces(header.chunk_bytes, &wanted);
    let asked = pieces.iter().map(|piece| fetch(sources, piece.fragment.into(), &piece.range));
    let mut lacks = BTreeMap::new();
    let mut parts: Vec<Option<Vec<u8>>> = Vec::with_capacity(pieces.len());
    for (piece, found) in pieces.iter().zip(join_all(asked).await) {
        if let Err(lack) = &found {
            lacks.insert(usize::from(piece.fragment), *lack);
        }
        parts.push(found.ok());
    }
    let mut bytes = Vec::new();
    for (piece, part) in pieces.iter().zip(parts) {
        bytes.extend(match part {
            Some(part) => part,
            None => rebuilt(sources, &code, piece, &mut lacks).await?,
        });
    }
    Ok(bytes)
}

/// A piece out of the same part of others.
async fn rebuilt(
    sources: &ChunkSources<'_>,
    code: &ChunkCode,
    piece: &Piece,
    lacks: &mut BTreeMap<usize, Lack>,
) -> Result<Vec<u8>, ReadError> {
    let mut given: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut left: Vec<usize> =
        (0..code.fragments()).filter(|index| !lacks.contains_key(index)).collect();
    // As many at a time as are needed still; whoever wants more at once hedges.
    while given.len() < code.data() && !left.is_empty() {
        let rest = left.split_off(left.len().min(code.data() - given.len()));
        let asked = left.iter().map(|&index| fetch(sources, index, &piece.range));
        let found = join_all(asked).await;
        for (&index, found) in left.iter().zip(found) {
            match found {
                Ok(part) => given.push((index, part)),
                Err(lack) => {
                    lacks.insert(index, lack);
                }
            }
        }
        left = rest;
    }
    let parts: Vec<(usize, &[u8])> = given.iter().map(|(index, part)| (*index, &**part)).collect();
    if parts.len() < code.data() {
        let count = |kind| lacks.values().filter(|lack| **lack == kind).count();
        return Err(ReadError::TooFew {
            chunk: sources.header.chunk,
            have: parts.len(),
            need: code.data(),
            absent: count(Lack::Absent),
            damaged: count(Lack::Damaged),
            away: count(Lack::Away),
        });
    }
    let length = usize::try_from(piece.range.end - piece.range.start).unwrap_or(usize::MAX);
    let part = code.part(piece.fragment.into(), length, &parts);
    part.map_err(|error| ReadError::Invalid { what: error.to_string() })
}

/// A part of the payload of one fragment, verified.
async fn fetch(
    sources: &ChunkSources<'_>,
    index: usize,
    range: &Range<u32>,
) -> Result<Vec<u8>, Lack> {
    let header = sources.header;
    let (blob, key) = &sources.blobs[index];
    let stored = stored_range(header.bytes(), header.payload_bytes, range);
    let stored = match blob.get(key, Some(stored)).await {
        Ok(stored) => stored,
        Err(BlobError::NotFound) => return Err(Lack::Absent),
        Err(BlobError::Corrupt(_)) => return Err(Lack::Damaged),
        Err(_) => return Err(Lack::Away),
    };
    let mut place = header.place();
    place.fragment = u8::try_from(index).unwrap_or(u8::MAX);
    let part: Result<Vec<u8>, Fault> =
        payload(&place, header.payload_bytes, range.clone(), &stored);
    part.map_err(|_| Lack::Damaged)
}
