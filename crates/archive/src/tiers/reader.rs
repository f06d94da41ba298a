//! Reads a body of a tier range by range.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_units::ObjectId;

use super::ObjectTier;
use super::objects::Pin;
use crate::Result;
use crate::limits::TIER_WINDOW_BYTES;

/// A body of a tier opened for reading; it stays in the tier until this is dropped.
#[derive(Debug)]
pub(crate) struct TierReader {
    tier: Arc<ObjectTier>,
    body: ObjectId,
    /// Length of the whole ciphertext.
    bytes: u64,
    /// The last range fetched, with its offset.
    window: (u64, Bytes),
    _pin: Pin,
}

impl TierReader {
    pub(crate) fn new(tier: &Arc<ObjectTier>, body: ObjectId, bytes: u64) -> Self {
        let (tier, pin) = (Arc::clone(tier), tier.pin(body));
        Self { tier, body, bytes, window: (0, Bytes::new()), _pin: pin }
    }

    /// Fills `buffer` from byte `offset`. Blocks on the store: not for threads that run async
    /// tasks.
    pub(crate) fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let end = offset + buffer.len() as u64;
        let (start, window) = &self.window;
        if offset < *start || start + (window.len() as u64) < end {
            let until = end.max(offset + TIER_WINDOW_BYTES).min(self.bytes.max(end));
            let fetched = self.tier.wait(self.tier.read(self.body, offset..until))?;
            self.window = (offset, fetched);
        }
        let (start, window) = &self.window;
        let from = usize::try_from(offset - start).unwrap_or(usize::MAX);
        buffer.copy_from_slice(&window[from..from + buffer.len()]);
        Ok(())
    }
}
