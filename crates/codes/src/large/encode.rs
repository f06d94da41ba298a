//! Encoding: computes redundancy shards from information shards.
//!
//! ```text
//! redundancy = forward( inverse(chunk 0) + inverse(chunk 1) + ... )    chunks of m shards
//! ```
//!
//! (m is the redundancy count rounded up to a power of two; `inverse` and `forward` are the
//! transforms of [`super::transform`], see [`super::definition`].) Chunks are added up one after
//! the other, so information shards need not be in memory together: [`LargeStreamEncoder`] takes
//! them as they arrive. Shards are processed in stripes, narrow enough that a chunk's stripe and
//! the sum stay in the L2 cache. Information shards of zeros contribute nothing; zero parts of a
//! chunk are skipped.

use std::fmt;

use super::stripe::Stripe;
use super::transform::{Span, Transform, Values};
use super::{LargeCode, check_length, check_shard_bytes};
use crate::{CodeError, Isa};

/// Computes redundancy shards from information shards that are all in memory.
pub struct LargeEncoder {
    code: LargeCode,
    shard_bytes: usize,
    transform: Transform,
    chunk: Stripe,
    sum: Stripe,
}

impl LargeEncoder {
    pub(super) fn new(code: LargeCode, shard_bytes: usize, isa: Isa) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let transform = Transform::new(isa);
        let width = transform.width(code.chunk_log()).min(shard_bytes);
        let stripe = Stripe::new(code.chunk() * width);
        Ok(Self { code, shard_bytes, transform, chunk: stripe.clone(), sum: stripe })
    }

    /// Encodes. Asks for each information shard by index (`None` counts as zeros and costs
    /// nothing), and passes each piece of redundancy on as `(shard, byte offset in it, bytes)`.
    ///
    /// # Errors
    /// [`CodeError::UnequalShards`] when a shard does not have the declared size; nothing was
    /// passed on then.
    pub fn encode<'a>(
        &mut self,
        information: impl Fn(usize) -> Option<&'a [u8]>,
        mut redundancy: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        for index in 0..self.code.information() {
            check_length(index, information(index), self.shard_bytes)?;
        }
        let chunk = self.code.chunk();
        let step = self.transform.width(self.code.chunk_log());
        for offset in (0..self.shard_bytes).step_by(step) {
            let length = step.min(self.shard_bytes - offset);
            let piece = |number: usize| {
                (number - chunk < self.code.information())
                    .then(|| information(number - chunk))
                    .flatten()
                    .map(|shard| &shard[offset..offset + length])
            };
            let sum = self.sum.first_mut(chunk * length);
            let scratch = self.chunk.first_mut(chunk * length);
            if !accumulate(&self.transform, self.code, &piece, scratch, sum) {
                sum.fill(0);
            }
            let wanted = |number| number < self.code.redundancy();
            self.transform.forward(Span::new(0, self.code.chunk_log()), sum, &wanted);
            let shards = sum.chunks_exact(length).take(self.code.redundancy());
            for (index, shard) in shards.enumerate() {
                redundancy(index, offset, shard);
            }
        }
        Ok(())
    }
}

/// Adds up the inverse transforms of all chunks of information, which `piece` returns by number of
/// the point. Returns whether there was any information. If not, `sum` is left unchanged.
pub(super) fn accumulate<'a>(
    transform: &Transform,
    code: LargeCode,
    piece: &impl Fn(usize) -> Option<&'a [u8]>,
    scratch: &mut [u8],
    sum: &mut [u8],
) -> bool {
    let mut is_summed = false;
    let mut values = Values::new(piece, scratch.len() / code.chunk());
    for first in (code.chunk()..code.chunk() + code.information()).step_by(code.chunk()) {
        let span = Span::new(first, code.chunk_log());
        is_summed |= transform.inverse_into(span, &mut values, scratch, sum, is_summed);
    }
    is_summed
}

/// Computes redundancy shards from information shards that arrive one after the other.
///
/// ```text
/// push, push, ... (at most all information shards) --> finish --> redundancy(0), redundancy(1) ..
/// ```
///
/// A shard here may be a column slice: the same byte range of each real shard. Memory is 2 m
/// slices. The redundancy of the slices, concatenated, is the redundancy of the whole.
pub struct LargeStreamEncoder {
    code: LargeCode,
    shard_bytes: usize,
    transform: Transform,
    columns: Vec<Column>,
    pushed: usize,
}

/// A few KiB of each shard: those of the chunk being filled, and the sum of the chunks before it.
struct Column {
    length: usize,
    chunk: Stripe,
    sum: Stripe,
    is_summed: bool,
}

impl LargeStreamEncoder {
    pub(super) fn new(code: LargeCode, shard_bytes: usize, isa: Isa) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let transform = Transform::new(isa);
        let step = transform.width(code.chunk_log());
        let columns = (0..shard_bytes).step_by(step).map(|offset| {
            let length = step.min(shard_bytes - offset);
            let chunk = Stripe::new(code.chunk() * length);
            Column { length, sum: chunk.clone(), chunk, is_summed: false }
        });
        let columns = columns.collect();
        Ok(Self { code, shard_bytes, transform, columns, pushed: 0 })
    }

    /// Adds the next information shard. The first one after [`Self::finish`] starts a new group.
    /// `None` counts as zeros.
    ///
    /// # Errors
    /// [`CodeError::UnequalShards`] when the shard does not have the declared size, and
    /// [`CodeError::ShardCount`] when all shards were added already.
    pub fn push(&mut self, shard: Option<&[u8]>) -> Result<(), CodeError> {
        check_length(self.pushed, shard, self.shard_bytes)?;
        let need = self.code.information();
        if self.pushed == need {
            return Err(CodeError::ShardCount { have: need + 1, need });
        }
        if self.pushed == 0 {
            self.restart();
        }
        let place = self.pushed % self.code.chunk();
        let mut offset = 0;
        for column in &mut self.columns {
            let length = column.length;
            let to = &mut column.chunk.first_mut((place + 1) * length)[place * length..];
            match shard {
                Some(shard) => to.copy_from_slice(&shard[offset..offset + length]),
                None => to.fill(0),
            }
            offset += length;
        }
        self.pushed += 1;
        if place + 1 == self.code.chunk() {
            self.accumulate(self.pushed - place - 1, place + 1);
        }
        Ok(())
    }

    /// Computes the redundancy; information shards that were not pushed count as zeros.
    pub fn finish(&mut self) {
        if self.pushed == 0 {
            self.restart();
        }
        let count = self.pushed % self.code.chunk();
        if count > 0 {
            self.accumulate(self.pushed - count, count);
        }
        let (span, redundancy) = (Span::new(0, self.code.chunk_log()), self.code.redundancy());
        for column in &mut self.columns {
            let sum = column.sum.first_mut(self.code.chunk() * column.length);
            if column.is_summed {
                self.transform.forward(span, sum, &|number| number < redundancy);
            } else {
                sum.fill(0);
            }
        }
        self.pushed = 0;
    }

    /// Returns redundancy shard `index`, in pieces, after [`Self::finish`].
    ///
    /// # Panics
    /// When the code has no such shard.
    pub fn redundancy(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        assert!(index < self.code.redundancy(), "redundancy shard {index}");
        self.columns.iter().map(move |column| {
            let end = (index + 1) * column.length;
            &column.sum.first(end)[index * column.length..]
        })
    }

    fn restart(&mut self) {
        self.columns.iter_mut().for_each(|column| column.is_summed = false);
    }

    /// Adds to the sum the chunk that begins at information shard `first` and has `count` shards.
    fn accumulate(&mut self, first: usize, count: usize) {
        let chunk = self.code.chunk();
        let span = Span::new(chunk + first, self.code.chunk_log());
        for column in &mut self.columns {
            let bytes = chunk * column.length;
            let shards = column.chunk.first_mut(bytes);
            shards[count * column.length..].fill(0);
            let sum = column.sum.first_mut(bytes);
            self.transform.inverse_add(span, shards, sum, column.is_summed);
            column.is_summed = true;
        }
    }
}

impl fmt::Debug for LargeEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeEncoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LargeStreamEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeStreamEncoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .field("pushed", &self.pushed)
            .finish_non_exhaustive()
    }
}
