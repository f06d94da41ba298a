//! Reconstruction directly from k given shards to the wanted ones, without inverting a k x k
//! matrix.
//!
//! ```text
//! e information shards E are lost, and e of the given redundancy shards P are used:
//!     r(p) = sum of a(p, d) d over E  +  sum of a(p, s) s over the given information S
//!     E    = A^-1 ( r + A(P, S) S )                    A = the e x e part a(P, E)
//! ```
//!
//! A is a Cauchy matrix with scaled columns, so A^-1 has a closed form in e^2 steps. A wanted
//! information shard is a row of that; a wanted redundancy shard is its own row with the lost
//! information substituted. Every row has at most k terms.

use std::collections::BTreeMap;

use super::kernel::additive::{POINTS_MAX, TILE_BYTES};
use super::points::{information_point, redundancy_point};
use super::product::Product;
use super::transform::Transform;
use super::{SHARDS_MAX, SmallCode, byte, check_count, check_lengths, coefficient};
use crate::CodeError;
use crate::field::gf8;

/// A plan that computes wanted shards from given ones.
#[derive(Clone, Debug)]
pub struct Reconstruction {
    /// Number of given shards.
    given: usize,
    /// Positions, in the list of given shards, of those that are used.
    used: Vec<usize>,
    product: Product,
    /// The faster method, where it applies.
    residual: Option<Residual>,
}

/// Reconstruction by transforms, for many lost information shards of a code with a [`Transform`].
/// The redundancy of the present shards, subtracted from the given redundancy, is the residual: the
/// redundancy of the lost shards alone. The inverse turns the residual into the lost shards. The
/// sums over all present shards are then done by transforms; the bytes are the same as by the
/// matrix.
#[derive(Clone, Debug)]
struct Residual {
    transform: Transform,
    /// Number of information shards of the code.
    information: usize,
    redundancy: usize,
    helpers: Vec<usize>,
    lost: Vec<usize>,
    /// Rows of the inverse for the wanted shards.
    product: Product,
}

/// Number of wanted shards from which on transforms are faster than the matrix.
const RESIDUAL_WANTED: usize = 5;

impl Residual {
    fn new(
        code: &SmallCode,
        helpers: &[usize],
        lost: &[usize],
        inverse: &[Vec<u8>],
        wanted: &[usize],
    ) -> Option<Self> {
        let transform = code.transform.clone().filter(|_| wanted.len() >= RESIDUAL_WANTED)?;
        let row =
            |index: &usize| lost.iter().position(|l| l == index).map(|at| inverse[at].clone());
        let rows: Vec<Vec<u8>> = wanted.iter().map(row).collect::<Option<_>>()?;
        Some(Self {
            transform,
            information: code.information,
            redundancy: code.redundancy,
            helpers: helpers.to_vec(),
            lost: lost.to_vec(),
            product: Product::new(&rows, code.level),
        })
    }

    /// Computes the bytes that fill whole registers, and returns their number. `sources` are the
    /// present information shards, in order, then the helpers.
    fn run(&self, sources: &[&[u8]], wanted: &mut [&mut [u8]], bytes: usize) -> usize {
        let (present, given) = sources.split_at(sources.len() - self.helpers.len());
        let mut rest = present.iter().copied();
        let information: Vec<Option<&[u8]>> = (0..self.information)
            .map(|index| if self.lost.contains(&index) { None } else { rest.next() })
            .collect();
        let mut memory = vec![0; self.redundancy * TILE_BYTES];
        let (vectorized_bytes, count) = (self.transform.vectorized_bytes(bytes), wanted.len());
        for start in (0..vectorized_bytes).step_by(TILE_BYTES) {
            let range = start..vectorized_bytes.min(start + TILE_BYTES);
            let mut computed: [&mut [u8]; POINTS_MAX] = Default::default();
            for (computed, tile) in computed.iter_mut().zip(memory.chunks_exact_mut(TILE_BYTES)) {
                *computed = &mut tile[..range.len()];
            }
            self.transform.tile(&information, &mut computed[..self.redundancy], range.clone());
            for (&helper, given) in self.helpers.iter().zip(given) {
                let computed = computed[helper].iter_mut();
                computed
                    .zip(&given[range.clone()])
                    .for_each(|(computed, given)| *computed ^= given);
            }
            let mut residuals: [&[u8]; POINTS_MAX] = Default::default();
            for (residual, &helper) in residuals.iter_mut().zip(&self.helpers) {
                *residual = computed[helper];
            }
            let mut outputs: [&mut [u8]; POINTS_MAX] = Default::default();
            for (output, shard) in outputs.iter_mut().zip(wanted.iter_mut()) {
                *output = &mut shard[range.clone()];
            }
            let residuals = &residuals[..self.helpers.len()];
            self.product.run(residuals, &mut outputs[..count], range.len(), false);
        }
        vectorized_bytes
    }
}

impl Reconstruction {
    pub(super) fn new(
        code: &SmallCode,
        given: &[usize],
        wanted: &[usize],
    ) -> Result<Self, CodeError> {
        let (information, shards, level) = (code.information, code.shards(), code.level);
        let positions = positions(given, shards)?;
        let _ = self::positions(wanted, shards)?;
        if given.len() < information {
            return Err(CodeError::TooFewShards { have: given.len(), need: information });
        }
        let is_lost = |index: &usize| positions[*index].is_none();
        // The lost information matters only if a lost shard is wanted; a redundancy shard needs all
        // of it.
        let lost: Vec<usize> = (0..information).filter(is_lost).collect();
        let helpers: Vec<usize> = (information..shards)
            .filter(|index| !is_lost(index))
            .take(lost.len())
            .map(|index| index - information)
            .collect();
        assert_eq!(helpers.len(), lost.len(), "k given shards are k less the lost plus the rest");
        let present: Vec<usize> = (0..information).filter(|index| !is_lost(index)).collect();
        let sources: Vec<usize> =
            present.iter().copied().chain(helpers.iter().map(|p| p + information)).collect();
        let inverse = inverse(&helpers, &lost);
        let present_coefficients: Vec<Vec<u8>> =
            helpers.iter().map(|&p| present.iter().map(|&s| coefficient(p, s)).collect()).collect();
        // A redundancy shard depends on all the information, a lost one only on its own row.
        let needs_all =
            wanted.iter().any(|index| !sources.contains(index) && !lost.contains(index));
        let recovered: BTreeMap<usize, Vec<u8>> = lost
            .iter()
            .zip(&inverse)
            .filter(|(index, _)| needs_all || wanted.contains(index))
            .map(|(&index, inverse)| (index, recovered_row(inverse, &present_coefficients)))
            .collect();
        let rows: Vec<Vec<u8>> = wanted
            .iter()
            .map(|&index| match recovered.get(&index) {
                Some(row) => row.clone(),
                None if sources.contains(&index) => {
                    sources.iter().map(|&source| u8::from(source == index)).collect()
                }
                None => redundancy_row(index - information, &present, &recovered),
            })
            .collect();
        let used = sources.iter().filter_map(|&index| positions[index]).collect();
        let residual = Residual::new(code, &helpers, &lost, &inverse, wanted);
        Ok(Self { given: given.len(), used, product: Product::new(&rows, level), residual })
    }

    /// Computes the wanted shards of one stripe from the given ones, both in the order of the plan.
    ///
    /// # Errors
    /// [`CodeError::ShardCount`] and [`CodeError::UnequalShards`]; nothing was written then.
    pub fn run<D, W>(&self, given: &[D], wanted: &mut [W]) -> Result<(), CodeError>
    where
        D: AsRef<[u8]>,
        W: AsMut<[u8]>,
    {
        check_count(given.len(), self.given)?;
        check_count(wanted.len(), self.product.rows())?;
        let all: Vec<&[u8]> = given.iter().map(AsRef::as_ref).collect();
        let mut outputs: Vec<&mut [u8]> = wanted.iter_mut().map(AsMut::as_mut).collect();
        let bytes = check_lengths(&all, &outputs)?;
        let sources: Vec<&[u8]> = self.used.iter().map(|&position| all[position]).collect();
        let residual = self.residual.as_ref();
        let done = residual.map_or(0, |way| way.run(&sources, &mut outputs, bytes));
        let sources: Vec<&[u8]> = sources.iter().map(|shard| &shard[done..]).collect();
        let mut outputs: Vec<&mut [u8]> =
            outputs.iter_mut().map(|shard| &mut shard[done..]).collect();
        self.product.run(&sources, &mut outputs, bytes - done, false);
        Ok(())
    }

    /// Returns how many shards a run computes.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.product.rows()
    }

    /// Returns how many of the given shards a run reads.
    #[must_use]
    pub const fn reads(&self) -> usize {
        self.used.len()
    }
}

/// Returns the position in `list` of each shard of the code.
fn positions(list: &[usize], shards: usize) -> Result<[Option<usize>; SHARDS_MAX], CodeError> {
    let mut positions = [None; SHARDS_MAX];
    for (position, &index) in list.iter().enumerate() {
        if index >= shards || positions[index].replace(position).is_some() {
            return Err(CodeError::Index { index, shards });
        }
    }
    Ok(positions)
}

/// Inverts the matrix of these redundancy rows and lost columns; each row is for a lost shard.
///
/// With f(d) = prod over q of (y(q) + x(d)) and g(p) = prod over c of (y(p) + x(c)):
///
/// ```text
/// inverse(d, p) = f(d) g(p) / ( (y(p) + x(d)) prod(q != p) (y(p) + y(q))
///                                             prod(c != d) (x(d) + x(c)) ) / x(d)
/// ```
fn inverse(helpers: &[usize], lost: &[usize]) -> Vec<Vec<u8>> {
    let ys: Vec<u8> = helpers.iter().map(|&p| redundancy_point(byte(p))).collect();
    let xs: Vec<u8> = lost.iter().map(|&d| information_point(byte(d))).collect();
    let product = |terms: &mut dyn Iterator<Item = u8>| terms.fold(1, gf8::mul);
    let row_factor = |d: usize, x: u8| {
        let above = product(&mut ys.iter().map(|y| y ^ x));
        let other_points = xs.iter().enumerate().filter(|&(c, _)| c != d);
        let below = product(&mut other_points.map(|(_, c)| c ^ x));
        gf8::mul(above, gf8::inverse(gf8::mul(below, x)))
    };
    let column_factor = |p: usize, y: u8| {
        let above = product(&mut xs.iter().map(|x| x ^ y));
        let other_points = ys.iter().enumerate().filter(|&(q, _)| q != p);
        gf8::mul(above, gf8::inverse(product(&mut other_points.map(|(_, q)| q ^ y))))
    };
    let columns: Vec<u8> = ys.iter().enumerate().map(|(p, &y)| column_factor(p, y)).collect();
    xs.iter()
        .enumerate()
        .map(|(d, &x)| {
            let row = row_factor(d, x);
            let entry =
                |(&column, y): (&u8, &u8)| gf8::mul(gf8::mul(row, column), gf8::inverse(x ^ y));
            columns.iter().zip(&ys).map(entry).collect()
        })
        .collect()
}

/// Returns a lost information shard as a row over the sources: present information, then helpers.
fn recovered_row(inverse: &[u8], present_coefficients: &[Vec<u8>]) -> Vec<u8> {
    let mut row = vec![0; present_coefficients.first().map_or(0, Vec::len)];
    for (&factor, helper) in inverse.iter().zip(present_coefficients) {
        for (sum, &term) in row.iter_mut().zip(helper) {
            *sum ^= gf8::mul(factor, term);
        }
    }
    row.extend_from_slice(inverse);
    row
}

/// Returns a redundancy shard as a row over the sources.
fn redundancy_row(
    redundancy: usize,
    present: &[usize],
    recovered: &BTreeMap<usize, Vec<u8>>,
) -> Vec<u8> {
    let mut row: Vec<u8> = present.iter().map(|&s| coefficient(redundancy, s)).collect();
    row.resize(present.len() + recovered.len(), 0);
    for (&d, terms) in recovered {
        let factor = coefficient(redundancy, d);
        for (sum, &term) in row.iter_mut().zip(terms) {
            *sum ^= gf8::mul(factor, term);
        }
    }
    row
}
