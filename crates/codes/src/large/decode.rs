//! Decoding: reconstructs lost shards, information or redundancy, from the surviving ones.
//!
//! ```text
//! s = forward(sum of the chunks, lost shards as zeros)          as in encoding
//! r(y) = s(y) + redundancy at y                                 for given redundancy y
//! M(y) = r(y) L(y), zero at lost and unkept y                   L has a root at every loss
//! M    = inverse(M at the points y), a polynomial
//! information at x  =         M(x)  / (g(x) L'(x))
//! redundancy at y   =  s(y) + M'(y) / L'(y)
//! ```
//!
//! # Why
//!
//! By definition, `r(y) = sum over lost information x logarithm g(x) d(x) / (y + x)`. Let E be the
//! polynomial with roots at the lost x, F the one with roots at lost (and unkept) redundancy among
//! the points y used, and L = E F. Then `N = r E` is a polynomial of degree below the number of x,
//! with `N(x) = g(x) d(x) E'(x)`. `M = N F` is known at all points used, because it is zero where r
//! is unknown. Its degree is below the number of losses, so that many points determine it. At x,
//! `L' = E' F`, which gives the line for information. At a lost y, `M' = N F'` and `L' = E F'`, so
//! `M' / L' = N / E`, which is the contribution of the lost information to s(y). A lost redundancy
//! shard outside the points used is no root of L; there M / L replaces M' / L'. No matrix is built,
//! and no linear system is solved.
//!
//! The cost is one encoding, and a transform of size m for each chunk with wanted losses, of which
//! only the parts that lead to wanted shards are computed. See [`DecodeMethod`] for possible
//! savings.

use std::fmt;

use super::encode::accumulate;
use super::kernel::{Factor, Kernel};
use super::locator::Logarithms;
use super::stripe::Stripe;
use super::transform::{Span, Transform};
use super::{LargeCode, check_shard_bytes};
use crate::{CodeError, Isa, Shard};

/// Algorithm that reconstructs losses; all produce the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeMethod {
    /// Transforms over all surviving redundancy.
    #[default]
    Transform,
    /// Transforms over the smallest sufficient block of redundancy shards (aligned, a power of
    /// two): 10 to 20 % faster when few are lost. It selects among the redundancy shards: read the
    /// patent notes in the design note on large groups before using it.
    Narrow,
}

/// Reconstructs lost shards of a large group from the surviving ones.
pub struct LargeDecoder {
    pub(super) code: LargeCode,
    pub(super) shard_bytes: usize,
    method: DecodeMethod,
    pub(super) transform: Transform,
    pub(super) logarithms: Logarithms,
    /// Scratch space for a chunk, then the polynomial M.
    scratch: Stripe,
    /// The sum of the chunks, then s at the points of redundancy.
    sum: Stripe,
    /// M at the points of a span.
    values: Stripe,
    /// Output buffer of one shard, or of all wanted ones.
    out: Vec<u8>,
}

impl LargeDecoder {
    pub(super) fn new(code: LargeCode, shard_bytes: usize, isa: Isa) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let transform = Transform::new(isa);
        let width = transform.width(code.chunk_log()).min(shard_bytes);
        let stripe = Stripe::new(code.chunk() * width);
        Ok(Self {
            code,
            shard_bytes,
            method: DecodeMethod::default(),
            transform,
            logarithms: Logarithms::new(),
            scratch: stripe.clone(),
            sum: stripe.clone(),
            values: stripe,
            out: Vec::new(),
        })
    }

    /// Sets the method.
    #[must_use]
    pub fn with_method(mut self, method: DecodeMethod) -> Self {
        self.method = method;
        self
    }

    /// Decodes all lost information shards; see [`Self::decode_wanted`].
    ///
    /// # Errors
    /// As [`Self::decode_wanted`].
    pub fn decode<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        on_restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let information = self.code.information();
        self.decode_wanted(shards, |index| index < information, on_restored)
    }

    /// Decodes the lost shards that are wanted. Asks for each shard by index (redundancy shards
    /// follow the information shards), and passes each decoded piece on as `(shard, byte offset in
    /// it, bytes)`.
    ///
    /// # Errors
    /// [`CodeError::TooFewShards`] when more shards are lost than the code has redundancy, and
    /// [`CodeError::UnequalShards`] when a shard does not have the declared size; nothing was
    /// passed on then.
    pub fn decode_wanted<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        wanted: impl Fn(usize) -> bool,
        mut on_restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let code = self.code;
        let losses = Losses::new(code, self.shard_bytes, &shards, &wanted)?;
        losses.check(code, 0)?;
        if losses.wanted.is_empty() {
            return Ok(());
        }
        let plan = Plan::new(code, self.method, &losses, &self.logarithms);
        let step = self.transform.width(code.chunk_log());
        for offset in (0..self.shard_bytes).step_by(step) {
            let range = offset..self.shard_bytes.min(offset + step);
            let piece = |number: usize| match shards(code.index(number)) {
                Shard::Given(shard) => Some(&shard[range.clone()]),
                Shard::Zero | Shard::Lost => None,
            };
            let mut stripe_decoder = self.stripe_decoder(range.len());
            stripe_decoder.recompute_redundancy(&piece, |number| plan.is_needed(&losses, number));
            let mut on_restored =
                |number: usize, bytes: &[u8]| on_restored(code.index(number), offset, bytes);
            match &plan {
                Plan::Encode => stripe_decoder.encode(&losses, &mut on_restored),
                Plan::Transform(plan) => {
                    stripe_decoder.transform(&losses, plan, &piece, &mut on_restored)
                }
            }
        }
        Ok(())
    }

    /// Prepares the buffers for a stripe of `length` bytes per shard.
    pub(super) fn stripe_decoder(&mut self, length: usize) -> StripeDecoder<'_> {
        StripeDecoder {
            code: self.code,
            transform: self.transform,
            length,
            scratch: self.scratch.first_mut(self.code.chunk() * length),
            sum: self.sum.first_mut(self.code.chunk() * length),
            values: self.values.first_mut(self.code.chunk() * length),
            out: &mut self.out,
        }
    }
}

/// The lost shards, by the numbers of their points.
pub(super) struct Losses {
    pub(super) information: Vec<usize>,
    pub(super) redundancy: Vec<usize>,
    /// Lost shards that are wanted, ascending: redundancy first.
    pub(super) wanted: Vec<usize>,
    /// By number, whether a lost shard is wanted.
    is_wanted: Vec<bool>,
}

impl Losses {
    pub(super) fn new<'a>(
        code: LargeCode,
        shard_bytes: usize,
        shards: &impl Fn(usize) -> Shard<'a>,
        wanted: &impl Fn(usize) -> bool,
    ) -> Result<Self, CodeError> {
        let total = code.information() + code.redundancy();
        let (mut information, mut redundancy) = (Vec::new(), Vec::new());
        for index in 0..total {
            match shards(index) {
                Shard::Given(shard) if shard.len() != shard_bytes => {
                    let (bytes, expected) = (shard.len(), shard_bytes);
                    return Err(CodeError::UnequalShards { index, bytes, expected });
                }
                Shard::Lost if index < code.information() => information.push(code.number(index)),
                Shard::Lost => redundancy.push(code.number(index)),
                Shard::Given(_) | Shard::Zero => {}
            }
        }
        let all = redundancy.iter().chain(&information).copied();
        let wanted: Vec<usize> = all.filter(|number| wanted(code.index(*number))).collect();
        let mut is_wanted = vec![false; code.chunk() + code.information()];
        wanted.iter().for_each(|number| is_wanted[*number] = true);
        Ok(Self { information, redundancy, wanted, is_wanted })
    }

    /// Returns an error if there are more losses than redundancy shards and relations together.
    pub(super) fn check(&self, code: LargeCode, relations: usize) -> Result<(), CodeError> {
        let lost = self.information.len() + self.redundancy.len();
        let have = code.information() + code.redundancy() - lost + relations;
        if have < code.information() {
            return Err(CodeError::TooFewShards { have, need: code.information() });
        }
        Ok(())
    }

    /// Whether the redundancy shard at a point is given.
    pub(super) fn has_redundancy(&self, code: LargeCode, number: usize) -> bool {
        number < code.redundancy() && self.redundancy.binary_search(&number).is_err()
    }
}

/// How losses are computed; the same for all stripes.
enum Plan {
    /// No information is lost, so encoding is enough.
    Encode,
    Transform(TransformPlan),
}

struct TransformPlan {
    /// The points of redundancy that are used.
    block: Span,
    /// L at those points; `None` where the redundancy is lost or unkept.
    locator: Vec<Option<Factor>>,
    /// Wanted redundancy within the block, with factors 1 / L'.
    in_block: Vec<(usize, Factor)>,
    /// Spans of the block's size with the wanted shards in them, and factors 1 / (g L') or 1 / L.
    spans: Vec<(Span, Vec<(usize, Factor)>)>,
}

impl Plan {
    fn new(code: LargeCode, method: DecodeMethod, losses: &Losses, logs: &Logarithms) -> Self {
        if losses.information.is_empty() {
            return Self::Encode;
        }
        match method {
            DecodeMethod::Transform => {
                let block = Span::new(0, code.chunk_log());
                Self::Transform(TransformPlan::new(code, block, losses, logs))
            }
            DecodeMethod::Narrow => Self::Transform(TransformPlan::new(
                code,
                smallest_block(code, losses),
                losses,
                logs,
            )),
        }
    }

    /// Whether s is needed at a point of redundancy.
    fn is_needed(&self, losses: &Losses, number: usize) -> bool {
        losses.is_wanted[number]
            || match self {
                Self::Encode => false,
                Self::Transform(plan) => {
                    let points = plan.block.points();
                    points.contains(&number) && plan.locator[number - points.start].is_some()
                }
            }
    }
}

/// Returns the smallest block of points with enough redundancy for all lost information.
fn smallest_block(code: LargeCode, losses: &Losses) -> Span {
    let need = losses.information.len();
    let levels_min = need.next_power_of_two().trailing_zeros();
    for levels in levels_min..code.chunk_log() {
        for number in (0..code.redundancy()).step_by(1 << levels) {
            let block = Span::new(number, levels);
            if block.points().filter(|number| losses.has_redundancy(code, *number)).count() >= need
            {
                return block;
            }
        }
    }
    Span::new(0, code.chunk_log())
}

/// Returns the logarithm of g at a point: 0, the logarithm of one, for redundancy.
fn scale(code: LargeCode, logs: &Logarithms, number: usize) -> u32 {
    if number < code.chunk() { 0 } else { logs.logarithm(number >> code.chunk_log()) }
}

impl TransformPlan {
    fn new(code: LargeCode, block: Span, losses: &Losses, logs: &Logarithms) -> Self {
        let missing = block.points().filter(|number| !losses.has_redundancy(code, *number));
        let roots: Vec<usize> = missing.chain(losses.information.iter().copied()).collect();
        let points: Vec<usize> = block.points().collect();
        let values = points.iter().zip(logs.products(&roots, &points));
        let locator = values.map(|(number, log)| {
            losses.has_redundancy(code, *number).then(|| Factor::new(logs.quotient(log, 0)))
        });
        let locator = locator.collect();
        let (mut in_block, mut spans) = (Vec::new(), Vec::<(Span, Vec<(usize, Factor)>)>::new());
        let products = logs.products(&roots, &losses.wanted);
        for (&number, log) in losses.wanted.iter().zip(products) {
            let factor = Factor::new(logs.quotient(0, log + scale(code, logs, number)));
            let first = number >> block.levels << block.levels;
            if first == block.number {
                in_block.push((number, factor));
            } else if let Some((span, wanted)) = spans.last_mut()
                && span.number == first
            {
                wanted.push((number, factor));
            } else {
                spans.push((Span::new(first, block.levels), vec![(number, factor)]));
            }
        }
        Self { block, locator, in_block, spans }
    }
}

/// Decoding of one stripe.
pub(super) struct StripeDecoder<'w> {
    code: LargeCode,
    transform: Transform,
    pub(super) length: usize,
    scratch: &'w mut [u8],
    pub(super) sum: &'w mut [u8],
    values: &'w mut [u8],
    pub(super) out: &'w mut Vec<u8>,
}

impl StripeDecoder<'_> {
    pub(super) fn kernel(&self) -> Kernel {
        self.transform.kernel()
    }

    /// Computes s at all points of redundancy where it is needed.
    pub(super) fn recompute_redundancy<'a>(
        &mut self,
        piece: &impl Fn(usize) -> Option<&'a [u8]>,
        is_needed: impl Fn(usize) -> bool,
    ) {
        let information = |number: usize| {
            (number < self.code.chunk() + self.code.information()).then(|| piece(number)).flatten()
        };
        if accumulate(&self.transform, self.code, &information, self.scratch, self.sum) {
            self.transform.forward(Span::new(0, self.code.chunk_log()), self.sum, &is_needed);
        } else {
            self.sum.fill(0);
        }
    }

    fn encode(&mut self, losses: &Losses, on_restored: &mut impl FnMut(usize, &[u8])) {
        for &number in &losses.wanted {
            on_restored(number, &self.sum[number * self.length..][..self.length]);
        }
    }

    fn transform<'a>(
        &mut self,
        losses: &Losses,
        plan: &TransformPlan,
        piece: &impl Fn(usize) -> Option<&'a [u8]>,
        on_restored: &mut impl FnMut(usize, &[u8]),
    ) {
        let (kernel, length) = (self.kernel(), self.length);
        let is_wanted = |number: usize| losses.is_wanted.get(number) == Some(&true);
        let bytes = plan.locator.len() * length;
        let polynomial = &mut self.scratch[..bytes];
        let shards = polynomial.chunks_exact_mut(length);
        for ((number, locator), to) in plan.block.points().zip(&plan.locator).zip(shards) {
            to.fill(0);
            if let Some(locator) = locator {
                let sum = &self.sum[number * length..][..length];
                match piece(number) {
                    Some(given) => kernel.combine(&[*locator; 2], &[sum, given], to, length),
                    None => kernel.combine(&[*locator], &[sum], to, length),
                }
            }
        }
        self.transform.inverse(plan.block, polynomial);
        let values = &mut self.values[..bytes];
        self.out.resize(length, 0);
        if !plan.in_block.is_empty() {
            derive(kernel, polynomial, values, length);
            self.transform.forward(plan.block, values, &is_wanted);
        }
        let mut put = |values: &[u8], first: usize, (number, factor): (usize, Factor)| {
            match self.sum.get(number * length..(number + 1) * length) {
                Some(sum) => self.out.copy_from_slice(sum),
                None => self.out.fill(0),
            }
            let value = &values[(number - first) * length..][..length];
            kernel.combine(&[factor], &[value], self.out, length);
            on_restored(number, self.out);
        };
        plan.in_block.iter().for_each(|in_block| put(values, plan.block.number, *in_block));
        for (span, wanted) in &plan.spans {
            self.transform.forward_into(*span, polynomial, values, &is_wanted);
            wanted.iter().for_each(|wanted| put(values, span.number, *wanted));
        }
    }
}

/// Computes the derivative of a polynomial. Since `s_j' = 1`, the derivative of X_i is the sum of
/// the `X` with one bit of i cleared, and coefficient i of the derivative is the sum of the
/// coefficients whose index has one more bit set.
fn derive(kernel: Kernel, polynomial: &[u8], derivative: &mut [u8], length: usize) {
    let count = polynomial.len() / length;
    for (index, to) in derivative.chunks_exact_mut(length).enumerate() {
        to.fill(0);
        let mut bit = 1;
        while bit < count {
            if index & bit == 0 {
                kernel.add_or_copy(&polynomial[(index | bit) * length..][..length], to, true);
            }
            bit *= 2;
        }
    }
}

impl fmt::Debug for LargeDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeDecoder")
            .field("code", &self.code)
            .field("shard_bytes", &self.shard_bytes)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
