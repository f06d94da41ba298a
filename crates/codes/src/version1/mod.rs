//! The code of platter format version 1, which is read and no longer written.
//!
//! That format used one wide Reed-Solomon code at all levels: [`definition`] defines it, and the
//! crate reed-solomon-simd computes it. The code treats each 64-byte block alike, so shards are
//! processed in stripes: memory stays bounded for any shard size. Zeros at the end of the
//! information shards contribute nothing and are left out (a shortened code). New platters use
//! [`crate::small`] and [`crate::LargeCode`].

pub mod definition;

use std::fmt;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRate, HighRateDecoder, Rate, RateDecoder};

use crate::{CodeError, Shard};

/// The shard size is a multiple of this many bytes.
pub const SHARD_ALIGN: usize = 64;

/// Bytes of each shard decoded at a time. Not fewer, because computing the erasure locator costs
/// the same for each stripe.
const DECODE_STRIPE: usize = 16 << 10;

/// Zeros in place of absent shards.
static ZEROS: [u8; DECODE_STRIPE] = [0; DECODE_STRIPE];

const _: () = assert!(DECODE_STRIPE.is_multiple_of(SHARD_ALIGN));

/// A systematic Reed-Solomon code over GF(2^16), defined in [`definition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureCode {
    information: usize,
    redundancy: usize,
}

impl ErasureCode {
    /// Creates the code with these shard counts.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero or the field is too small for both.
    pub fn new(information: usize, redundancy: usize) -> Result<Self, CodeError> {
        let fits = information > 0
            && redundancy > 0
            && HighRate::<DefaultEngine>::supports(information, redundancy);
        if fits {
            Ok(Self { information, redundancy })
        } else {
            Err(CodeError::Counts { information, redundancy })
        }
    }

    /// Number of information shards.
    #[must_use]
    pub const fn information(self) -> usize {
        self.information
    }

    /// Number of redundancy shards: the losses that the code tolerates.
    #[must_use]
    pub const fn redundancy(self) -> usize {
        self.redundancy
    }

    /// Creates a decoder for shards of `shard_bytes`. Reuse it: it keeps its buffers.
    ///
    /// # Errors
    /// [`CodeError::ShardBytes`] unless the size is a positive multiple of 64.
    pub fn decoder(self, shard_bytes: usize) -> Result<Decoder, CodeError> {
        check_shard_bytes(shard_bytes)?;
        Ok(Decoder { code: self, shard_bytes, inner: None, states: Vec::new() })
    }

    fn inner_error(self) -> CodeError {
        CodeError::Counts { information: self.information, redundancy: self.redundancy }
    }
}

/// Reconstructs lost information shards from the surviving ones.
pub struct Decoder {
    code: ErasureCode,
    shard_bytes: usize,
    inner: Option<HighRateDecoder<DefaultEngine>>,
    states: Vec<bool>,
}

impl Decoder {
    /// Decodes. Asks for each shard by index (redundancy shards follow the information shards), and
    /// passes each piece of a lost information shard on as `(shard, byte offset in it, bytes)`.
    ///
    /// # Errors
    /// [`CodeError::TooFewShards`] when more shards are lost than the code has redundancy; nothing
    /// was passed on then.
    ///
    /// # Panics
    /// When a shard does not have the declared size.
    pub fn decode<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        mut on_restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let total = self.code.information + self.code.redundancy;
        self.states.clear();
        self.states.extend((0..total).map(|index| shards(index) != Shard::Lost));
        let have = self.states.iter().filter(|&&given| given).count();
        if have < self.code.information {
            return Err(CodeError::TooFewShards { have, need: self.code.information });
        }
        if self.states[..self.code.information].iter().all(|&given| given) {
            return Ok(());
        }
        let last = (0..self.code.information).rev().find(|&i| shards(i) != Shard::Zero);
        let count = last.map_or(1, |last| last + 1);
        let mut offset = 0;
        while offset < self.shard_bytes {
            let stripe = DECODE_STRIPE.min(self.shard_bytes - offset);
            self.decode_stripe(count, offset, stripe, &shards, &mut on_restored)
                .map_err(|_| self.code.inner_error())?;
            offset += stripe;
        }
        Ok(())
    }

    fn decode_stripe<'a>(
        &mut self,
        count: usize,
        offset: usize,
        stripe: usize,
        shards: &impl Fn(usize) -> Shard<'a>,
        on_restored: &mut impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), reed_solomon_simd::Error> {
        let inner = match &mut self.inner {
            Some(inner) => {
                inner.reset(count, self.code.redundancy, stripe)?;
                inner
            }
            none @ None => none.insert(HighRateDecoder::new(
                count,
                self.code.redundancy,
                stripe,
                DefaultEngine::new(),
                None,
            )?),
        };
        let piece = |shard: Shard<'a>, index: usize| match shard {
            Shard::Given(bytes) => {
                assert_eq!(bytes.len(), self.shard_bytes, "shard {index}");
                Some(&bytes[offset..offset + stripe])
            }
            Shard::Zero => Some(&ZEROS[..stripe]),
            Shard::Lost => None,
        };
        for index in 0..count {
            if let Some(bytes) = piece(shards(index), index) {
                inner.add_original_shard(index, bytes)?;
            }
        }
        for index in 0..self.code.redundancy {
            let place = self.code.information + index;
            if let Some(bytes) = piece(shards(place), place) {
                inner.add_recovery_shard(index, bytes)?;
            }
        }
        let result = inner.decode()?;
        for (index, shard) in result.restored_original_iter() {
            on_restored(index, offset, shard);
        }
        Ok(())
    }
}

fn check_shard_bytes(bytes: usize) -> Result<(), CodeError> {
    if bytes > 0 && bytes.is_multiple_of(SHARD_ALIGN) {
        Ok(())
    } else {
        Err(CodeError::ShardBytes { bytes })
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
