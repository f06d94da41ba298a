//! Memory that transforms work in: stripes of shards, aligned to cache lines.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of one length that begin at a cache line.
#[derive(Clone)]
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

    /// The first so many bytes.
    pub(super) fn first(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        &self.memory[self.start..][..bytes]
    }

    /// The first so many bytes.
    pub(super) fn first_mut(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        &mut self.memory[self.start..][..bytes]
    }
}
