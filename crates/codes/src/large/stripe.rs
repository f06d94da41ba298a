//! Buffers for transforms: stripes of shards, aligned to cache lines.

/// Bytes of a cache line.
const LINE: usize = 64;

/// A fixed-size buffer that begins at a cache line.
pub(super) struct Stripe {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Stripe {
    pub(super) fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + LINE];
        let start = memory.as_ptr().align_offset(LINE).min(LINE);
        Self { memory, start, bytes }
    }

    /// Returns the first `bytes` bytes.
    pub(super) fn first(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        &self.memory[self.start..][..bytes]
    }

    /// Returns the first `bytes` bytes.
    pub(super) fn first_mut(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        &mut self.memory[self.start..][..bytes]
    }
}

/// Realigns each copy: the allocator may return any address, and in a misaligned stripe every
/// vector would straddle two cache lines.
impl Clone for Stripe {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.bytes);
        copy.first_mut(self.bytes).copy_from_slice(self.first(self.bytes));
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_aligned_and_equal() {
        let mut stripe = Stripe::new(3 * LINE);
        stripe.first_mut(3 * LINE).copy_from_slice(&[7; 3 * LINE]);
        // Allocations of odd sizes in between vary the addresses of the copies.
        let copies: Vec<_> = (0..64).map(|i| (stripe.clone(), vec![0u8; 8 * i + 24])).collect();
        for (copy, _) in &copies {
            let bytes = copy.first(3 * LINE);
            assert_eq!(bytes.as_ptr().align_offset(LINE), 0);
            assert_eq!(bytes, [7; 3 * LINE]);
        }
    }
}
