//! Reed-Solomon codes of up to 255 shards over GF(2^8): tracks, platter-sets, disk stripes.
//!
//! ```text
//! shards       0 .. k-1 information, k .. k+m-1 redundancy; all of one length, any length
//! redundancy   r(i) = sum over j of a(i, j) d(j), byte by byte       (points.rs defines a)
//! ```
//!
//! Systematic and MDS: any k of the k + m shards determine all of them. Every operation is a
//! product of a small matrix with wide rows: encoding with the matrix above, reconstruction with
//! the matrix from k given shards directly to the wanted ones. Its cost is k for each wanted shard.
//! Other lost shards cost nothing but the inverse of an e x e matrix for e lost information shards,
//! which has a closed form. Encoding of 5 to 16 redundancy shards uses the additive FFT instead,
//! with fewer products; the bytes are the same.
//!
//! This module corrects erasures, not errors: a shard is either given, and then trusted, or lost.

mod kernel;
mod plan;
pub mod points;
mod product;
mod transform;

pub use plan::Reconstruction;

use crate::simd::Level;
use crate::{CodeError, Isa};
use product::Product;
use transform::Transform;

/// Maximum number of shards of a code.
pub const SHARDS_MAX: usize = 255;

/// A systematic MDS code of `information + redundancy` shards.
#[derive(Clone, Debug)]
pub struct SmallCode {
    information: usize,
    redundancy: usize,
    level: Level,
    encode: Product,
    transform: Option<Transform>,
}

impl SmallCode {
    /// Creates the code with these shard counts, for the best instruction set of this processor.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero or their sum is above [`SHARDS_MAX`].
    pub fn new(information: usize, redundancy: usize) -> Result<Self, CodeError> {
        Self::with_isa(information, redundancy, Isa::current())
    }

    /// Creates the code for a given instruction set, for comparisons.
    ///
    /// # Errors
    /// As [`Self::new`]; [`CodeError::Isa`] when this processor lacks it.
    pub fn with_isa(information: usize, redundancy: usize, isa: Isa) -> Result<Self, CodeError> {
        let fits = information.checked_add(redundancy).is_some_and(|n| n <= SHARDS_MAX);
        if information == 0 || redundancy == 0 || !fits {
            return Err(CodeError::Counts { information, redundancy });
        }
        let lacking = || CodeError::Isa { name: isa.name().to_owned() };
        let level = Level::new(isa).ok_or_else(lacking)?;
        let rows = (0..redundancy).map(|i| row(i, information)).collect::<Vec<_>>();
        let transform = Transform::new(information, redundancy, level);
        Ok(Self { information, redundancy, level, encode: Product::new(&rows, level), transform })
    }

    /// Number of information shards.
    #[must_use]
    pub const fn information(&self) -> usize {
        self.information
    }

    /// Number of redundancy shards: the losses that the code tolerates.
    #[must_use]
    pub const fn redundancy(&self) -> usize {
        self.redundancy
    }

    /// Number of information and redundancy shards.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.information + self.redundancy
    }

    /// Computes all redundancy shards from all information shards.
    ///
    /// # Errors
    /// [`CodeError::ShardCount`] and [`CodeError::UnequalShards`]; nothing was written then.
    pub fn encode<D, R>(&self, information: &[D], redundancy: &mut [R]) -> Result<(), CodeError>
    where
        D: AsRef<[u8]>,
        R: AsMut<[u8]>,
    {
        let sources: Vec<&[u8]> = information.iter().map(AsRef::as_ref).collect();
        let mut outputs: Vec<&mut [u8]> = redundancy.iter_mut().map(AsMut::as_mut).collect();
        check_count(sources.len(), self.information)?;
        check_count(outputs.len(), self.redundancy)?;
        let bytes = check_lengths(&sources, &outputs)?;
        match &self.transform {
            Some(transform) => transform.encode(&sources, &mut outputs, bytes),
            None => self.encode.run(&sources, &mut outputs, bytes, false),
        }
        Ok(())
    }

    /// Updates redundancy shards after a change of information shard `index` (read-modify-write);
    /// `change` is the XOR of its old and new bytes. `redundancy` has the shards to update, by
    /// their index from zero: all, or some.
    ///
    /// # Errors
    /// [`CodeError::Index`] for an index out of range or a redundancy shard named twice, and
    /// [`CodeError::UnequalShards`]; nothing was written then.
    pub fn update(
        &self,
        index: usize,
        change: &[u8],
        redundancy: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        if index >= self.information {
            return Err(CodeError::Index { index, shards: self.information });
        }
        let mut seen = [false; SHARDS_MAX];
        let mut rows = Vec::with_capacity(redundancy.len());
        for &(number, _) in redundancy.iter() {
            if number >= self.redundancy || std::mem::replace(&mut seen[number], true) {
                return Err(CodeError::Index { index: number, shards: self.redundancy });
            }
            rows.push(vec![coefficient(number, index)]);
        }
        let mut outputs: Vec<&mut [u8]> =
            redundancy.iter_mut().map(|(_, shard)| &mut **shard).collect();
        let bytes = check_lengths(&[change], &outputs)?;
        Product::new(&rows, self.level).run(&[change], &mut outputs, bytes, true);
        Ok(())
    }

    /// Plans the reconstruction of `wanted` shards from `given` ones; both are indices, information
    /// first. More may be given than are needed. A plan can be used for any number of stripes.
    ///
    /// # Errors
    /// [`CodeError::Index`] for an index out of range or named twice in a list, and
    /// [`CodeError::TooFewShards`] when fewer than [`Self::information`] are given.
    pub fn plan(&self, given: &[usize], wanted: &[usize]) -> Result<Reconstruction, CodeError> {
        Reconstruction::new(self, given, wanted)
    }

    /// Reconstructs `wanted` shards from `given` ones: [`Self::plan`] for a single stripe.
    ///
    /// # Errors
    /// As [`Self::plan`] and [`Reconstruction::run`].
    pub fn reconstruct(
        &self,
        given: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let indices: Vec<usize> = given.iter().map(|&(index, _)| index).collect();
        let targets: Vec<usize> = wanted.iter().map(|(index, _)| *index).collect();
        let plan = self.plan(&indices, &targets)?;
        let sources: Vec<&[u8]> = given.iter().map(|&(_, shard)| shard).collect();
        let mut outputs: Vec<&mut [u8]> =
            wanted.iter_mut().map(|(_, shard)| &mut **shard).collect();
        plan.run(&sources, &mut outputs)
    }
}

/// Returns [`points::coefficient`] for indices that were checked.
fn coefficient(redundancy: usize, information: usize) -> u8 {
    points::coefficient(byte(redundancy), byte(information))
}

/// Returns row `redundancy` of the matrix.
fn row(redundancy: usize, information: usize) -> Vec<u8> {
    (0..information).map(|j| coefficient(redundancy, j)).collect()
}

/// Converts an index of a code to a byte; codes have at most [`SHARDS_MAX`] shards.
fn byte(index: usize) -> u8 {
    u8::try_from(index).expect("indices of a code fit in a byte")
}

fn check_count(have: usize, need: usize) -> Result<(), CodeError> {
    if have == need { Ok(()) } else { Err(CodeError::ShardCount { have, need }) }
}

/// Checks that all shards, sources and outputs, have one length, and returns it.
fn check_lengths(sources: &[&[u8]], outputs: &[&mut [u8]]) -> Result<usize, CodeError> {
    let mut lengths = sources
        .iter()
        .map(|shard| shard.len())
        .chain(outputs.iter().map(|shard| shard.len()))
        .enumerate();
    let expected = lengths.next().map_or(0, |(_, bytes)| bytes);
    match lengths.find(|&(_, bytes)| bytes != expected) {
        Some((index, bytes)) => Err(CodeError::UnequalShards { index, bytes, expected }),
        None => Ok(expected),
    }
}

#[cfg(test)]
mod tests;
