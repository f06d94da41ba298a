//! The payload of a fragment in blocks, each followed by a checksum that includes its position.

use std::ops::Range;

use super::header::{Fault, PutId};
use crate::stores::checksum::{SUM_BYTES, sum};

/// Bytes of each block but the last of a fragment.
pub const BLOCK_BYTES: u32 = 64 << 10;
/// Bytes of a checksum.
const SUM: u64 = 8;
const _: () = assert!(SUM_BYTES == 8);

/// Position of a fragment: what the checksums of its blocks cover besides their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The put.
    pub put: PutId,
    /// Number of the chunk in the object.
    pub chunk: u32,
    /// Index of the fragment in the chunk.
    pub fragment: u8,
}

impl Place {
    fn sum(&self, block: u64, bytes: &[u8]) -> u64 {
        let (put, chunk, block) =
            (self.put.to_bytes(), self.chunk.to_le_bytes(), block.to_le_bytes());
        sum(&[&put, &chunk, &[self.fragment], &block, bytes])
    }
}

/// Returns the stored size of a payload, with the checksums of its blocks.
#[must_use]
pub fn stored_bytes(payload_bytes: u32) -> u64 {
    u64::from(payload_bytes) + SUM * u64::from(payload_bytes.div_ceil(BLOCK_BYTES))
}

/// Returns the range of the blob with the blocks that a range of the payload touches, after a
/// header of this many bytes. It is empty for an empty range.
#[must_use]
pub fn stored_range(header_bytes: usize, payload_bytes: u32, wanted: &Range<u32>) -> Range<u64> {
    let whole = payload_range(payload_bytes, wanted);
    let header = u64::try_from(header_bytes).unwrap_or(u64::MAX);
    let first = u64::from(whole.start / BLOCK_BYTES);
    let begin = header + u64::from(whole.start) + SUM * first;
    let blocks = u64::from((whole.end - whole.start).div_ceil(BLOCK_BYTES));
    begin..begin + u64::from(whole.end - whole.start) + SUM * blocks
}

/// Returns the payload range of the whole blocks that a range touches.
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

/// Appends the blocks of a payload to a header.
pub(super) fn append(fragment: &mut Vec<u8>, place: &Place, payload: &[u8]) {
    let block = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
    for (number, bytes) in (0..).zip(payload.chunks(block)) {
        fragment.extend(bytes);
        fragment.extend(place.sum(number, bytes).to_le_bytes());
    }
}

/// Returns a range of the payload from the bytes of [`stored_range`], with every block verified.
///
/// # Errors
/// [`Fault::WrongLength`] if their number is wrong, [`Fault::Block`] for the first block that is
/// not what was written for this position.
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
        return Err(Fault::WrongLength { have, need: need.end - need.start });
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
