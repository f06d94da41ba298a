//! Encoding: redundancy shards from information shards.
//!
//! ```text
//! redundancy = FFT( IFFT(chunk 0) ^ IFFT(chunk 1) ^ ... )      chunks of m information shards
//! ```
//!
//! (m is the redundancy count rounded up to a power of two; the transforms are those of Lin, Al-
//! Naffouri, Han and Chung over the field of [`crate::definition`].) Chunks are summed up one after
//! the other, so information shards need not be in memory together: [`StreamEncoder`] takes them
//! as they come. Work goes in stripes of a few KiB of each shard, because the code treats each
//! 64-byte block alike and a chunk's stripe stays in the cache.
//! Information shards that are all zeros add nothing; chunks of such are left out.

use std::fmt;

use reed_solomon_simd::engine::{DefaultEngine, Engine, ShardsRefMut, utils};

use crate::CodeError;
use crate::erasure::{ErasureCode, SHARD_ALIGN, check_shard_bytes};

/// Bytes of each shard that are worked on at a time.
const STRIPE: usize = 4 << 10;

const _: () = assert!(STRIPE.is_multiple_of(SHARD_ALIGN));

/// Computes redundancy shards from information shards that are at hand together.
pub struct Encoder {
    code: ErasureCode,
    shard_bytes: usize,
    transform: Transform,
    stripe: Stripe,
}

impl Encoder {
    pub(crate) fn new(code: ErasureCode, shard_bytes: usize) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let transform = Transform::new(code);
        let stripe = Stripe::new(transform.chunk, STRIPE.min(shard_bytes));
        Ok(Self { code, shard_bytes, transform, stripe })
    }

    /// Encodes: asks for each information shard by index (`None` counts as zeros and costs
    /// nothing) and hands out each piece of redundancy as `(shard, byte offset in it, bytes)`.
    /// A redundancy shard that was lost comes back by encoding again.
    ///
    /// # Panics
    /// When a shard has not the declared size.
    pub fn encode<'a>(
        &mut self,
        information: impl Fn(usize) -> Option<&'a [u8]>,
        mut redundancy: impl FnMut(usize, usize, &[u8]),
    ) {
        for offset in (0..self.shard_bytes).step_by(STRIPE) {
            let length = STRIPE.min(self.shard_bytes - offset);
            self.stripe.begin(length);
            for start in (0..self.code.information()).step_by(self.transform.chunk) {
                let count = self.transform.chunk.min(self.code.information() - start);
                for place in 0..count {
                    let shard = information(start + place);
                    if let Some(shard) = shard {
                        assert_eq!(shard.len(), self.shard_bytes, "shard {}", start + place);
                    }
                    self.stripe.put(place, shard.map(|shard| &shard[offset..offset + length]));
                }
                self.stripe.fold(&self.transform, start, count);
            }
            self.stripe.finish(&self.transform);
            for index in 0..self.code.redundancy() {
                redundancy(index, offset, self.stripe.redundancy(index));
            }
        }
    }
}

/// Computes redundancy shards from information shards that come one after the other.
///
/// ```text
/// push, push, ... (at most all information shards) --> finish --> redundancy(0), redundancy(1) ..
/// ```
pub struct StreamEncoder {
    code: ErasureCode,
    shard_bytes: usize,
    transform: Transform,
    stripes: Vec<Stripe>,
    pushed: usize,
}

impl StreamEncoder {
    pub(crate) fn new(code: ErasureCode, shard_bytes: usize) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let transform = Transform::new(code);
        let stripes = (0..shard_bytes)
            .step_by(STRIPE)
            .map(|offset| {
                let length = STRIPE.min(shard_bytes - offset);
                let mut stripe = Stripe::new(transform.chunk, length);
                stripe.begin(length);
                stripe
            })
            .collect();
        Ok(Self { code, shard_bytes, transform, stripes, pushed: 0 })
    }

    /// Adds the next information shard; the first one after [`Self::finish`] begins anew.
    ///
    /// # Panics
    /// When the shard has not the declared size, or all shards were added already.
    pub fn push(&mut self, shard: &[u8]) {
        assert_eq!(shard.len(), self.shard_bytes, "shard {}", self.pushed);
        assert!(self.pushed < self.code.information(), "more shards than the code has");
        let place = self.pushed % self.transform.chunk;
        if self.pushed == 0 {
            self.stripes.iter_mut().for_each(Stripe::restart);
        }
        for (stripe, piece) in self.stripes.iter_mut().zip(shard.chunks(STRIPE)) {
            stripe.put(place, Some(piece));
        }
        self.pushed += 1;
        if place + 1 == self.transform.chunk {
            self.fold(self.pushed - self.transform.chunk, self.transform.chunk);
        }
    }

    /// Computes the redundancy; information shards that were not pushed count as zeros.
    pub fn finish(&mut self) {
        if self.pushed == 0 {
            self.stripes.iter_mut().for_each(Stripe::restart);
        }
        let count = self.pushed % self.transform.chunk;
        if count > 0 {
            self.fold(self.pushed - count, count);
        }
        self.stripes.iter_mut().for_each(|stripe| stripe.finish(&self.transform));
        self.pushed = 0;
    }

    /// Redundancy shard `index`, in pieces, after [`Self::finish`].
    ///
    /// # Panics
    /// When the code has no such shard.
    pub fn redundancy(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        assert!(index < self.code.redundancy(), "redundancy shard {index}");
        self.stripes.iter().map(move |stripe| stripe.redundancy(index))
    }

    fn fold(&mut self, start: usize, count: usize) {
        self.stripes.iter_mut().for_each(|stripe| stripe.fold(&self.transform, start, count));
    }
}

/// The transforms of a code.
struct Transform {
    engine: DefaultEngine,
    /// Shards of a chunk: m.
    chunk: usize,
    redundancy: usize,
}

impl Transform {
    fn new(code: ErasureCode) -> Self {
        Self {
            engine: DefaultEngine::new(),
            chunk: code.redundancy().next_power_of_two(),
            redundancy: code.redundancy(),
        }
    }
}

/// A stripe of one chunk of shards, and the sum of those before it.
struct Stripe {
    /// 64-byte blocks of each shard.
    blocks: usize,
    chunk: Vec<[u8; SHARD_ALIGN]>,
    sum: Vec<[u8; SHARD_ALIGN]>,
    /// Whether anything was put into the chunk.
    is_used: bool,
    /// Whether anything was added to the sum.
    is_summed: bool,
}

impl Stripe {
    fn new(chunk: usize, length: usize) -> Self {
        let blocks = length / SHARD_ALIGN;
        let zeros = vec![[0; SHARD_ALIGN]; chunk * blocks];
        Self { blocks, chunk: zeros.clone(), sum: zeros, is_used: false, is_summed: false }
    }

    /// Begins a new sum over stripes of `length` bytes.
    fn begin(&mut self, length: usize) {
        self.blocks = length / SHARD_ALIGN;
        self.restart();
    }

    fn restart(&mut self) {
        self.is_used = false;
        self.is_summed = false;
    }

    /// Puts a shard's piece in its place of the chunk.
    fn put(&mut self, place: usize, piece: Option<&[u8]>) {
        let blocks = &mut self.chunk[place * self.blocks..][..self.blocks];
        match piece {
            Some(piece) => {
                blocks.as_flattened_mut().copy_from_slice(piece);
                self.is_used = true;
            }
            None => blocks.fill([0; SHARD_ALIGN]),
        }
    }

    /// Adds the chunk, whose first `count` places are filled, to the sum.
    fn fold(&mut self, transform: &Transform, start: usize, count: usize) {
        if !std::mem::take(&mut self.is_used) {
            return;
        }
        let end = transform.chunk * self.blocks;
        self.chunk[count * self.blocks..end].fill([0; SHARD_ALIGN]);
        let mut shards = ShardsRefMut::new(transform.chunk, self.blocks, &mut self.chunk);
        transform.engine.ifft(&mut shards, 0, transform.chunk, count, start + transform.chunk);
        if std::mem::replace(&mut self.is_summed, true) {
            utils::xor(&mut self.sum[..end], &self.chunk[..end]);
        } else {
            std::mem::swap(&mut self.sum, &mut self.chunk);
        }
    }

    /// Turns the sum into the redundancy.
    fn finish(&mut self, transform: &Transform) {
        let end = transform.chunk * self.blocks;
        if self.is_summed {
            let mut shards = ShardsRefMut::new(transform.chunk, self.blocks, &mut self.sum);
            transform.engine.fft(&mut shards, 0, transform.chunk, transform.redundancy, 0);
        } else {
            self.sum[..end].fill([0; SHARD_ALIGN]);
        }
    }

    fn redundancy(&self, index: usize) -> &[u8] {
        self.sum[index * self.blocks..][..self.blocks].as_flattened()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEncoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .field("pushed", &self.pushed)
            .finish_non_exhaustive()
    }
}
