//! Joint decoding: with more losses than the group has redundancy, it also uses the redundancy
//! within tracks.
//!
//! A track that its own code could not decode still has redundancy sectors that can be read. Each
//! of them is an equation between the sectors of its track: a [`Relation`]. With R redundancy
//! shards of the group and q relations, up to R + q shards may be lost. (Silica section 5 decodes
//! the levels one after the other; used together they decode more. At a sector failure rate of
//! 5e-2, a group of 100 tracks of 200+16 has 81 expected unknowns one after the other, 9.3
//! together.)
//!
//! ```text
//! of the group   sum over lost information x of  G(y, x) d(x)  =  s(y) + redundancy at y
//! of a relation  sum over lost information x of  c(x) d(x)
//!                  + sum over lost redundancy y of  c(y) (s(y) + sum over x of G(y, x) d(x))
//!                                                =  value + sum over given shards of  c d
//! ```
//!
//! There is no fast transform for a mixture, so the equations are solved by Gaussian elimination:
//! once for all stripes, in e^3 operations for e lost information shards, which then cost e
//! operations per byte. Nothing guarantees that the equations are independent (the two codes
//! together are not MDS); if they are not, that is an error of its own. [`LargeDecoder::decode`] is
//! still used as long as the group's redundancy is enough.

use std::ops::Range;

use super::decode::{LargeDecoder, Losses};
use super::definition::symbol;
use super::kernel::{BLOCK, Factor, Kernel};
use super::locator::Logarithms;
use super::{LargeCode, check_length};
use crate::field::PLANE_BYTES;
use crate::field::gf16::{self, Element};
use crate::{CodeError, Shard};

/// A known linear combination of shards, with coefficients in GF(2^8), the same for all bytes.
#[derive(Clone, Copy, Debug)]
pub struct Relation<'a> {
    /// Shards of the group by index, each at most once, with their coefficients.
    pub terms: &'a [(usize, u8)],
    /// The sum; `None` is zeros.
    pub value: Option<&'a [u8]>,
}

impl LargeDecoder {
    /// Decodes as [`Self::decode_wanted`], and also uses relations if the group's redundancy alone
    /// is not enough. That selects equations and inverts their matrix: read the patent notes in the
    /// design note on large groups before using it.
    ///
    /// # Errors
    /// As [`Self::decode_wanted`], where each relation counts as a given shard;
    /// [`CodeError::LinearlyDependent`] when there are enough equations but they are not
    /// independent; [`CodeError::Index`] when a relation names a shard twice, or one that the code
    /// does not have. Nothing was passed on then.
    pub fn decode_joint<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        relations: &[Relation<'_>],
        wanted: impl Fn(usize) -> bool,
        mut on_restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let code = self.code;
        for relation in relations {
            check_relation(code, self.shard_bytes, relation)?;
        }
        let losses = Losses::new(code, self.shard_bytes, &shards, &wanted)?;
        if losses.check(code, 0).is_ok() {
            return self.decode_wanted(shards, wanted, on_restored);
        }
        losses.check(code, relations.len())?;
        let plan = Plan::new(code, &losses, relations, &self.logarithms, self.transform.kernel())?;
        let step = self.transform.width(code.chunk_log());
        for offset in (0..self.shard_bytes).step_by(step) {
            let range = offset..self.shard_bytes.min(offset + step);
            let piece = |number: usize| match shards(code.index(number)) {
                Shard::Given(shard) => Some(&shard[range.clone()]),
                Shard::Zero | Shard::Lost => None,
            };
            let mut stripe_decoder = self.stripe_decoder(range.len());
            let (kernel, length) = (stripe_decoder.kernel(), stripe_decoder.length);
            stripe_decoder.recompute_redundancy(&piece, |_| true);
            // For lost redundancy s is known, for lost information nothing.
            let part = |shard: usize| {
                let number = code.number(shard);
                let is_lost = losses.redundancy.binary_search(&number).is_ok();
                let sum = || is_lost.then(|| &stripe_decoder.sum[number * length..][..length]);
                piece(number).or_else(sum)
            };
            let known = plan.known(kernel, relations, &range, &part);
            for &number in &plan.redundancy {
                if let Some(given) = piece(number) {
                    kernel.add_or_copy(
                        given,
                        &mut stripe_decoder.sum[number * length..][..length],
                        true,
                    );
                }
            }
            let own = plan
                .redundancy
                .iter()
                .map(|number| &stripe_decoder.sum[number * length..][..length]);
            let sides: Vec<&[u8]> = known.chunks_exact(length).chain(own).collect();
            stripe_decoder.out.resize(losses.wanted.len() * length, 0);
            for (&number, to) in
                losses.wanted.iter().zip(stripe_decoder.out.chunks_exact_mut(length))
            {
                match stripe_decoder.sum.get(number * length..(number + 1) * length) {
                    Some(sum) => to.copy_from_slice(sum),
                    None => to.fill(0),
                }
            }
            kernel.combine(&plan.factors, &sides, stripe_decoder.out, length);
            for (&number, shard) in
                losses.wanted.iter().zip(stripe_decoder.out.chunks_exact(length))
            {
                on_restored(code.index(number), offset, shard);
            }
        }
        Ok(())
    }
}

fn check_relation(
    code: LargeCode,
    shard_bytes: usize,
    relation: &Relation<'_>,
) -> Result<(), CodeError> {
    let shards = code.information() + code.redundancy();
    check_length(shards, relation.value, shard_bytes)?;
    let mut indices: Vec<usize> = relation.terms.iter().map(|(index, _)| *index).collect();
    indices.sort_unstable();
    let twice = indices.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let beyond = indices.last().copied().filter(|last| *last >= shards);
    match twice.or(beyond) {
        Some(index) => Err(CodeError::Index { index, shards }),
        None => Ok(()),
    }
}

/// How losses are computed; the same for all stripes.
struct Plan {
    /// Relations used, by index.
    relations: Vec<usize>,
    /// Redundancy shards used, by number.
    redundancy: Vec<usize>,
    /// One row per wanted shard: the factors of the relations used, then of the redundancy used.
    factors: Vec<Factor>,
}

impl Plan {
    fn new(
        code: LargeCode,
        losses: &Losses,
        relations: &[Relation<'_>],
        logs: &Logarithms,
        kernel: Kernel,
    ) -> Result<Self, CodeError> {
        let unknowns = &losses.information;
        let mut system = System::new(kernel, unknowns.len());
        let (mut used, mut redundancy) = (Vec::new(), Vec::new());
        for (index, relation) in relations.iter().enumerate() {
            if !system.is_solved() && system.add(&relation_row(code, losses, relation, logs)) {
                used.push(index);
            }
        }
        for number in (0..code.redundancy()).filter(|number| losses.has_redundancy(code, *number)) {
            if !system.is_solved() && system.add(&row(code, losses, number, logs)) {
                redundancy.push(number);
            }
        }
        if !system.is_solved() {
            let (lost, found) = (unknowns.len(), system.pivots.len());
            return Err(CodeError::LinearlyDependent { lost, found });
        }
        let mut factors = Vec::new();
        for &number in &losses.wanted {
            let target = match unknowns.binary_search(&number) {
                Ok(place) => (0..unknowns.len()).map(|i| [u8::from(i == place), 0]).collect(),
                Err(_) => row(code, losses, number, logs),
            };
            factors.extend(system.solution(&target));
        }
        Ok(Self { relations: used, redundancy, factors })
    }

    /// Returns the right-hand sides of the relations used; `part` returns the known part of a
    /// shard.
    fn known<'a>(
        &self,
        kernel: Kernel,
        relations: &[Relation<'_>],
        range: &Range<usize>,
        part: &impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Vec<u8> {
        let length = range.len();
        let mut known = vec![0; self.relations.len() * length];
        for (&index, to) in self.relations.iter().zip(known.chunks_exact_mut(length)) {
            if let Some(value) = relations[index].value {
                kernel.add_or_copy(&value[range.clone()], to, true);
            }
            for &(shard, c) in relations[index].terms {
                if let Some(part) = part(shard) {
                    kernel.combine(&[Factor::new([c, 0])], &[part], to, length);
                }
            }
        }
        known
    }
}

/// Returns the coefficients of the lost information shards in a redundancy shard.
fn row(code: LargeCode, losses: &Losses, redundancy: usize, logs: &Logarithms) -> Vec<Element> {
    let coefficient = |information: &usize| {
        let plus = logs.logarithm(information >> code.chunk_log());
        logs.quotient(plus, logs.logarithm(redundancy ^ information))
    };
    losses.information.iter().map(coefficient).collect()
}

/// Returns the coefficients of the lost information shards in a relation.
fn relation_row(
    code: LargeCode,
    losses: &Losses,
    relation: &Relation<'_>,
    logs: &Logarithms,
) -> Vec<Element> {
    let mut sum = vec![[0; 2]; losses.information.len()];
    for &(shard, c) in relation.terms {
        let number = code.number(shard);
        if let Ok(place) = losses.information.binary_search(&number) {
            sum[place] = gf16::add(sum[place], [c, 0]);
        } else if losses.redundancy.binary_search(&number).is_ok() {
            for (sum, element) in sum.iter_mut().zip(row(code, losses, number, logs)) {
                *sum = gf16::add(*sum, gf16::mul([c, 0], element));
            }
        }
    }
    sum
}

/// A system of linear equations, solved incrementally (Gauss-Jordan elimination).
///
/// ```text
/// row    coefficients of the unknowns | combination of the added equations that gives the row
/// ```
///
/// Rows are planar like shards, so that the kernels can process them. Each has a one at its own
/// pivot, where all others have zero.
struct System {
    kernel: Kernel,
    unknowns: usize,
    row_bytes: usize,
    rows: Vec<u8>,
    /// The unknown that a row is solved for.
    pivots: Vec<usize>,
}

impl System {
    fn new(kernel: Kernel, unknowns: usize) -> Self {
        let row_bytes = (2 * unknowns).div_ceil(PLANE_BYTES) * BLOCK;
        Self { kernel, unknowns, row_bytes, rows: Vec::new(), pivots: Vec::new() }
    }

    fn is_solved(&self) -> bool {
        self.pivots.len() == self.unknowns
    }

    /// Adds an equation by its coefficients. Returns whether it is independent of the previous
    /// ones.
    fn add(&mut self, coefficients: &[Element]) -> bool {
        let mut row = vec![0; self.row_bytes];
        for (index, element) in coefficients.iter().enumerate() {
            set(&mut row, index, *element);
        }
        set(&mut row, self.unknowns + self.pivots.len(), [1, 0]);
        let factors = self.pivots.iter().map(|pivot| Factor::new(symbol(&row, *pivot)));
        let factors: Vec<Factor> = factors.collect();
        let rows: Vec<&[u8]> = self.rows.chunks_exact(self.row_bytes).collect();
        self.kernel.combine(&factors, &rows, &mut row, self.row_bytes);
        let Some(pivot) = (0..self.unknowns).find(|index| symbol(&row, *index) != [0, 0]) else {
            return false;
        };
        let scale = Factor::new(gf16::inverse(symbol(&row, pivot)));
        let mut scaled = vec![0; self.row_bytes];
        self.kernel.combine(&[scale], &[&row], &mut scaled, self.row_bytes);
        let rows = self.rows.chunks_exact(self.row_bytes);
        let factors: Vec<Factor> = rows.map(|row| Factor::new(symbol(row, pivot))).collect();
        self.kernel.combine(&factors, &[&scaled], &mut self.rows, self.row_bytes);
        self.rows.extend(scaled);
        self.pivots.push(pivot);
        true
    }

    /// Expresses a sum of unknowns, given by their coefficients, as a sum of right-hand sides.
    fn solution(&self, coefficients: &[Element]) -> Vec<Factor> {
        assert!(self.is_solved(), "all unknowns are known");
        let factors = self.pivots.iter().map(|pivot| Factor::new(coefficients[*pivot]));
        let factors: Vec<Factor> = factors.collect();
        let rows: Vec<&[u8]> = self.rows.chunks_exact(self.row_bytes).collect();
        let mut sum = vec![0; self.row_bytes];
        self.kernel.combine(&factors, &rows, &mut sum, self.row_bytes);
        let used = self.unknowns..2 * self.unknowns;
        used.map(|index| Factor::new(symbol(&sum, index))).collect()
    }
}

/// Writes an element into a planar row.
fn set(row: &mut [u8], index: usize, element: Element) {
    let place = index / PLANE_BYTES * BLOCK + index % PLANE_BYTES;
    row[place] = element[0];
    row[place + PLANE_BYTES] = element[1];
}
