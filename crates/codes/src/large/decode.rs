//! Decoding: lost shards, information or redundancy, from those that are left.
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
//! By the definition `r(y) = sum over lost information x of g(x) d(x) / (y + x)`. Let E be the
//! polynomial with the roots x, F that with roots at lost (and unkept) redundancy among the points
//! y used, and L = E F. Then `N = r E` is a polynomial of degree below the number of x, with
//! `N(x) = g(x) d(x) E'(x)`. `M = N F` is known at all points used, because it is zero where r is
//! not known; its degree is below the number of losses, so as many points as that determine it.
//! At x, `L' = E' F`, which gives the line for information. At a lost y, `M' = N F'` and
//! `L' = E F'`, so `M' / L' = N / E`, which is what the lost information adds to s(y). A redundancy
//! shard that was lost outside the points used is no root of L, and M / L takes the place of
//! M' / L' there. No matrix is made, and no system of equations solved.
//!
//! The cost is one encoding, and a transform of m for each chunk with wanted losses, of which only
//! the parts that lead to wanted shards are done. See [`Method`] for what may be spared.

use std::fmt;

use super::encode::fold;
use super::kernel::{Factor, Kernel};
use super::locator::Logarithms;
use super::points::element;
use super::stripe::Stripe;
use super::transform::{Span, Transform, width};
use super::{LargeCode, check_shard_bytes};
use crate::{CodeError, Isa, Shard};

/// How losses are computed; all give the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Transforms over all redundancy.
    #[default]
    Transform,
    /// Transforms over the smallest aligned power of two of redundancy shards that is enough:
    /// faster for few losses.
    Narrow,
    /// As many redundancy shards as there are lost information shards, by the closed form of the
    /// inverse of a Cauchy matrix. Not the default: see the design note on large groups for the
    /// patent whose wording it comes close to.
    Residual,
}

/// Brings lost shards of a large group back from those that are left.
pub struct LargeDecoder {
    code: LargeCode,
    shard_bytes: usize,
    method: Method,
    transform: Transform,
    logarithms: Logarithms,
    /// The chunk summed up, then the polynomial M.
    room: Stripe,
    /// The sum of chunks, then s at the points of redundancy.
    sum: Stripe,
    /// M at the points of a span.
    values: Stripe,
    /// A shard, or all wanted ones, to hand out.
    out: Vec<u8>,
}

impl LargeDecoder {
    pub(super) fn new(code: LargeCode, shard_bytes: usize, isa: Isa) -> Result<Self, CodeError> {
        check_shard_bytes(shard_bytes)?;
        let stripe = Stripe::new(code.chunk() * width(code.chunk_log()).min(shard_bytes));
        Ok(Self {
            code,
            shard_bytes,
            method: Method::default(),
            transform: Transform::new(isa),
            logarithms: Logarithms::new(),
            room: stripe.clone(),
            sum: stripe.clone(),
            values: stripe,
            out: Vec::new(),
        })
    }

    /// The same decoder with another method.
    #[must_use]
    pub fn with_method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Decodes all lost information shards, see [`Self::decode_wanted`].
    ///
    /// # Errors
    /// As [`Self::decode_wanted`].
    pub fn decode<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let information = self.code.information();
        self.decode_wanted(shards, |index| index < information, restored)
    }

    /// Decodes: asks for each shard by index (redundancy shards follow the information shards) and
    /// hands out each piece of a lost shard that is wanted as `(shard, byte offset in it, bytes)`.
    ///
    /// # Errors
    /// [`CodeError::TooFewShards`] when more shards are lost than the code has redundancy, and
    /// [`CodeError::UnequalShards`] when one has not the declared size; nothing was handed out
    /// then.
    pub fn decode_wanted<'a>(
        &mut self,
        shards: impl Fn(usize) -> Shard<'a>,
        wanted: impl Fn(usize) -> bool,
        mut restored: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), CodeError> {
        let losses = Losses::new(self.code, self.shard_bytes, &shards, &wanted)?;
        if losses.wanted.is_empty() {
            return Ok(());
        }
        let plan = Plan::new(self.code, self.method, &losses, &self.logarithms);
        let step = width(self.code.chunk_log());
        for offset in (0..self.shard_bytes).step_by(step) {
            let range = offset..self.shard_bytes.min(offset + step);
            let piece = |number: usize| match shards(self.code.index(number)) {
                Shard::Given(shard) => Some(&shard[range.clone()]),
                Shard::Zero | Shard::Lost => None,
            };
            let mut work = Work {
                code: self.code,
                transform: self.transform,
                length: range.len(),
                room: self.room.first_mut(self.code.chunk() * range.len()),
                sum: self.sum.first_mut(self.code.chunk() * range.len()),
                values: self.values.first_mut(self.code.chunk() * range.len()),
                out: &mut self.out,
            };
            work.sum_up(&losses, &plan, &piece);
            let mut restored =
                |number: usize, bytes: &[u8]| restored(self.code.index(number), offset, bytes);
            match &plan {
                Plan::Encode => work.encode(&losses, &mut restored),
                Plan::Transform(plan) => work.transform(&losses, plan, &piece, &mut restored),
                Plan::Residual(plan) => work.residual(plan, &piece, &mut restored),
            }
        }
        Ok(())
    }
}

/// What is lost, by numbers of points.
struct Losses {
    information: Vec<usize>,
    redundancy: Vec<usize>,
    /// Those that are wanted, ascending: redundancy first.
    wanted: Vec<usize>,
    /// By number, whether it is among them.
    is_wanted: Vec<bool>,
}

impl Losses {
    fn new<'a>(
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
        let lost = information.len() + redundancy.len();
        if lost > code.redundancy() {
            return Err(CodeError::TooFewShards { have: total - lost, need: code.information() });
        }
        let all = redundancy.iter().chain(&information).copied();
        let wanted: Vec<usize> = all.filter(|number| wanted(code.index(*number))).collect();
        let mut is_wanted = vec![false; code.chunk() + code.information()];
        wanted.iter().for_each(|number| is_wanted[*number] = true);
        Ok(Self { information, redundancy, wanted, is_wanted })
    }

    /// Whether redundancy at a point is given.
    fn has(&self, code: LargeCode, number: usize) -> bool {
        number < code.redundancy() && self.redundancy.binary_search(&number).is_err()
    }
}

/// How a loss is computed, found once for all stripes.
enum Plan {
    /// No information is lost.
    Encode,
    Transform(TransformPlan),
    Residual(ResidualPlan),
}

struct TransformPlan {
    /// The points of redundancy that are used.
    block: Span,
    /// L at those points, none where the redundancy is lost or not kept.
    locator: Vec<Option<Factor>>,
    /// Wanted redundancy of the block, with 1 / L'.
    own: Vec<(usize, Factor)>,
    /// Spans as large as the block with what is wanted of them, and 1 / (g L') or 1 / L.
    spans: Vec<(Span, Vec<(usize, Factor)>)>,
}

struct ResidualPlan {
    /// The points of redundancy that are used.
    rows: Vec<usize>,
    wanted: Vec<usize>,
    /// A row of factors for each wanted point.
    factors: Vec<Factor>,
}

impl Plan {
    fn new(code: LargeCode, method: Method, losses: &Losses, logs: &Logarithms) -> Self {
        if losses.information.is_empty() {
            return Self::Encode;
        }
        match method {
            Method::Transform => {
                let block = Span::new(0, code.chunk_log());
                Self::Transform(TransformPlan::new(code, block, losses, logs))
            }
            Method::Narrow => {
                Self::Transform(TransformPlan::new(code, narrow(code, losses), losses, logs))
            }
            Method::Residual => Self::Residual(ResidualPlan::new(code, losses, logs)),
        }
    }

    /// Whether s is needed at a point of redundancy.
    fn needs(&self, losses: &Losses, number: usize) -> bool {
        losses.is_wanted[number]
            || match self {
                Self::Encode => false,
                Self::Transform(plan) => {
                    let points = plan.block.points();
                    points.contains(&number) && plan.locator[number - points.start].is_some()
                }
                Self::Residual(plan) => plan.rows.binary_search(&number).is_ok(),
            }
    }
}

/// The smallest block of points with redundancy for all lost information.
fn narrow(code: LargeCode, losses: &Losses) -> Span {
    let need = losses.information.len();
    let least = need.next_power_of_two().trailing_zeros();
    for levels in least..code.chunk_log() {
        for number in (0..code.redundancy()).step_by(1 << levels) {
            let block = Span::new(number, levels);
            if block.points().filter(|number| losses.has(code, *number)).count() >= need {
                return block;
            }
        }
    }
    Span::new(0, code.chunk_log())
}

/// The logarithm of g at a point: none, which is that of one, if it is redundancy.
fn scale(code: LargeCode, logs: &Logarithms, number: usize) -> u32 {
    if number < code.chunk() { 0 } else { logs.of(number >> code.chunk_log()) }
}

impl TransformPlan {
    fn new(code: LargeCode, block: Span, losses: &Losses, logs: &Logarithms) -> Self {
        let missing = block.points().filter(|number| !losses.has(code, *number));
        let roots: Vec<usize> = missing.chain(losses.information.iter().copied()).collect();
        let points: Vec<usize> = block.points().collect();
        let values = points.iter().zip(logs.products(&roots, &points));
        let locator = values.map(|(number, log)| {
            losses.has(code, *number).then(|| Factor::new(logs.quotient(log, 0)))
        });
        let locator = locator.collect();
        let (mut own, mut spans) = (Vec::new(), Vec::<(Span, Vec<(usize, Factor)>)>::new());
        let products = logs.products(&roots, &losses.wanted);
        for (&number, log) in losses.wanted.iter().zip(products) {
            let factor = Factor::new(logs.quotient(0, log + scale(code, logs, number)));
            let first = number >> block.levels << block.levels;
            if first == block.number {
                own.push((number, factor));
            } else if let Some((span, wanted)) = spans.last_mut()
                && span.number == first
            {
                wanted.push((number, factor));
            } else {
                spans.push((Span::new(first, block.levels), vec![(number, factor)]));
            }
        }
        Self { block, locator, own, spans }
    }
}

impl ResidualPlan {
    /// With Y the polynomial whose roots are the rows y, and N and E as above, Lagrange gives
    /// `N(t) = sum over y of r(y) E(y) Y(t) / (Y'(y) (t + y))`.
    fn new(code: LargeCode, losses: &Losses, logs: &Logarithms) -> Self {
        let given = (0..code.redundancy()).filter(|number| losses.has(code, *number));
        let rows: Vec<usize> = given.take(losses.information.len()).collect();
        let wanted = losses.wanted.clone();
        let row_plus = logs.products(&losses.information, &rows);
        let row_minus = logs.products(&rows, &rows);
        let plus = logs.products(&rows, &wanted);
        let minus = logs.products(&losses.information, &wanted);
        let mut factors = Vec::with_capacity(wanted.len() * rows.len());
        for ((&number, plus), minus) in wanted.iter().zip(plus).zip(minus) {
            let minus = minus + scale(code, logs, number);
            for ((row, row_plus), row_minus) in rows.iter().zip(&row_plus).zip(&row_minus) {
                let minus = minus + row_minus + logs.of(row ^ number);
                factors.push(Factor::new(logs.quotient(plus + row_plus, minus)));
            }
        }
        Self { rows, wanted, factors }
    }
}

/// The work on one stripe.
struct Work<'w> {
    code: LargeCode,
    transform: Transform,
    length: usize,
    room: &'w mut [u8],
    sum: &'w mut [u8],
    values: &'w mut [u8],
    out: &'w mut Vec<u8>,
}

impl Work<'_> {
    fn kernel(&self) -> Kernel {
        self.transform.kernel()
    }

    /// Makes s at all points of redundancy where it is needed.
    fn sum_up<'a>(
        &mut self,
        losses: &Losses,
        plan: &Plan,
        piece: &impl Fn(usize) -> Option<&'a [u8]>,
    ) {
        let information = |number: usize| {
            (number < self.code.chunk() + self.code.information()).then(|| piece(number)).flatten()
        };
        if fold(&self.transform, self.code, &information, self.room, self.sum) {
            let needs = |number| plan.needs(losses, number);
            self.transform.forward(Span::new(0, self.code.chunk_log()), self.sum, &needs);
        } else {
            self.sum.fill(0);
        }
    }

    fn encode(&mut self, losses: &Losses, restored: &mut impl FnMut(usize, &[u8])) {
        for &number in &losses.wanted {
            restored(number, &self.sum[number * self.length..][..self.length]);
        }
    }

    fn transform<'a>(
        &mut self,
        losses: &Losses,
        plan: &TransformPlan,
        piece: &impl Fn(usize) -> Option<&'a [u8]>,
        restored: &mut impl FnMut(usize, &[u8]),
    ) {
        let (kernel, length) = (self.kernel(), self.length);
        let is_wanted = |number: usize| losses.is_wanted.get(number) == Some(&true);
        let bytes = plan.locator.len() * length;
        let polynomial = &mut self.room[..bytes];
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
        if !plan.own.is_empty() {
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
            restored(number, self.out);
        };
        plan.own.iter().for_each(|own| put(values, plan.block.number, *own));
        for (span, wanted) in &plan.spans {
            self.transform.forward_into(*span, polynomial, values, &is_wanted);
            wanted.iter().for_each(|wanted| put(values, span.number, *wanted));
        }
    }

    fn residual<'a>(
        &mut self,
        plan: &ResidualPlan,
        piece: &impl Fn(usize) -> Option<&'a [u8]>,
        restored: &mut impl FnMut(usize, &[u8]),
    ) {
        let (kernel, length) = (self.kernel(), self.length);
        self.out.resize(plan.wanted.len() * length, 0);
        for (&number, to) in plan.wanted.iter().zip(self.out.chunks_exact_mut(length)) {
            match self.sum.get(number * length..(number + 1) * length) {
                Some(sum) => to.copy_from_slice(sum),
                None => to.fill(0),
            }
        }
        for &row in &plan.rows {
            if let Some(given) = piece(row) {
                kernel.add_or_copy(given, &mut self.sum[row * length..][..length], true);
            }
        }
        let rows = plan.rows.iter().map(|row| &self.sum[row * length..][..length]);
        let rows: Vec<&[u8]> = rows.collect();
        kernel.combine(&plan.factors, &rows, self.out, length);
        for (&number, shard) in plan.wanted.iter().zip(self.out.chunks_exact(length)) {
            restored(number, shard);
        }
    }
}

/// The derivative of a polynomial: `s_j' = 1`, so that of X_i is the sum of the `X` with one bit of
/// i cleared, and coefficient i of the derivative is the sum of those with one bit more.
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
