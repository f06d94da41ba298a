//! The payload of a fragment in blocks, each with a sum behind it that says where it belongs.

use std::ops::Range;

use super::header::{Fault, PutId};
use crate::sum::{SUM_BYTES, sum};

/// Bytes of each block but the last of a fragment.
pub const BLOCK_BYTES: u32 = 64 << 10;
/// Bytes of a sum.
const SUM: u64 = 8;
const _: () = assert!(SUM_BYTES == 8);

/// Where a fragment belongs: what the sums of its blocks have besides their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The put.
    pub put: PutId,
    /// Which chunk of the object.
    pub chunk: u32,
    /// Which fragment of the chunk.
    pub fragment: u8,
}

impl Place {
    fn sum(&self, block: u64, bytes: &[u8]) -> u64 {
        let (put, chunk, block) =
            (self.put.to_bytes(), self.chunk.to_le_bytes(), block.to_le_bytes());
        sum(&[&put, &chunk, &[self.fragment], &block, bytes])
    }
}

/// Bytes of so much payload with the sums of its blocks.
#[must_use]
pub fn stored_bytes(payload_bytes: u32) -> u64 {
    u64::from(payload_bytes) + SUM * u64::from(payload_bytes.div_ceil(BLOCK_BYTES))
}

/// Where in the blob the blocks are that a range of the payload lies in, for a header of so many
/// bytes. It is empty for an empty range.
#[must_use]
pub fn stored_range(header_bytes: usize, payload_bytes: u32, wanted: &Range<u32>) -> Range<u64> {
    let whole = payload_range(payload_bytes, wanted);
    let header = u64::try_from(header_bytes).unwrap_or(u64::MAX);
    let first = u64::from(whole.start / BLOCK_BYTES);
    let begin = header + u64::from(whole.start) + SUM * first;
    let blocks = u64::from((whole.end - whole.start).div_ceil(BLOCK_BYTES));
    begin..begin + u64::from(whole.end - whole.start) + SUM * blocks
}

/// The payload of the whole blocks that a range lies in.
#[must_use]
pub fn payload_range(payload_bytes: u32, wanted: &Range<u32>) -> Range<u32> {
    let end = wanted.end.min(payload_bytes);
    let start = wanted.start.min(end);
    if start == end {
        return start / BLOCK_BYTES * BLOCK_BYTES..start / BLOCK_BYTES * BLOCK_BYTES;
    }
    let last = u64::from(end.div_ceil(BLOCK_BYTES)) * u64::from(BLOCK_BYTES);
    let last = u32::try_from(last).unwrap_or(u32::MAX).min(payload_bytes);
    start / BLOCK_BYTES * BLOCK_BYTES..last
}

/// Puts the blocks of a payload behind a header.
pub(super) fn append(fragment: &mut Vec<u8>, place: &Place, payload: &[u8]) {
    let block = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
    for (number, bytes) in (0..).zip(payload.chunks(block)) {
        fragment.extend(bytes);
        fragment.extend(place.sum(number, bytes).to_le_bytes());
    }
}

/// A range of the payload, out of the bytes that [`stored_range`] says, every block verified.
///
/// # Errors
/// [`Fault::Cut`] when they are not as many, [`Fault::Block`] for the first block that is not what
/// was written for this place.
pub fn payload(
    place: &Place,
    payload_bytes: u32,
    wanted: Range<u32>,
    stored: &[u8],
) -> Result<Vec<u8>, Fault> {
    if wanted.start > wanted.end || wanted.end > payload_bytes {
        let what = format!("{wanted:?} of a payload of {payload_bytes} bytes");
        return Err(Fault::Unwritable { what });
    }
    let need = stored_range(0, payload_bytes, &wanted);
    let have = u64::try_from(stored.len()).unwrap_or(u64::MAX);
    if have != need.end - need.start {
        return Err(Fault::Cut { have, need: need.end - need.start });
    }
    let whole = payload_range(payload_bytes, &wanted);
    let stride = usize::try_from(u64::from(BLOCK_BYTES) + SUM).unwrap_or(usize::MAX);
    let first = u64::from(whole.start / BLOCK_BYTES);
    let mut payload = Vec::with_capacity(stored.len());
    for (block, bytes) in (first..).zip(stored.chunks(stride)) {
        let split = bytes.split_last_chunk::<SUM_BYTES>();
        let is_whole = |(bytes, expected): &(&[u8], &[u8; SUM_BYTES])| {
            place.sum(block, bytes) == u64::from_le_bytes(**expected)
        };
        let (bytes, _) = split.filter(is_whole).ok_or(Fault::Block { block })?;
        payload.extend_from_slice(bytes);
    }
    let skip = usize::try_from(wanted.start - whole.start).unwrap_or(usize::MAX);
    let keep = usize::try_from(wanted.end - wanted.start).unwrap_or(usize::MAX);
    payload.drain(..skip.min(payload.len()));
    payload.truncate(keep);
    Ok(payload)
}
