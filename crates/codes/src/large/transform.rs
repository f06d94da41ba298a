//! The additive transform of Lin, Chung and Han, in place, in a Cantor basis.
//!
//! A polynomial of degree below 2^k is written in the basis `X_i = product of s_j over the bits j
//! set in i`. Values at the 2^k points of numbers `v ..` (v a multiple of 2^k) and coefficients go
//! over into each other by k levels of butterflies between shards `2^level` apart; the factor of
//! the butterflies in the block that begins with the point of number v is `s_level` of that point,
//! the element of number `v >> level` (see [`super::definition`]). That is in GF(2^8) as soon as
//! `v >> level < 256`, which makes wide levels cheaper, and it is even, so it is never one.
//!
//! ```text
//! inverse(block) = inverse(each eighth), then one pass of three levels across them
//! forward(block) = one pass of three levels, then forward(each eighth)
//! ```
//!
//! Depth first: an eighth that fits the first cache stays there until it is done, whatever the
//! sizes of caches are. What is all zeros going in, or not wanted coming out, is left out.

use super::kernel::{BLOCK, Direction, Factor, Kernel, PASS_SHARDS, Twiddles};
use super::points::element;
use crate::Isa;

/// Stands in for shards that are absent.
static ZEROS: [u8; WIDTH_MAX] = [0; WIDTH_MAX];

/// Bytes of each shard that a transform works on at a time, at most.
pub(super) const WIDTH_MAX: usize = 8 << 10;

/// The same at least: with less of each shard at a time its pages are looked up too often.
const WIDTH_MIN: usize = 1 << 10;

/// Bytes that a chunk's stripe should have at most: with the sum of chunks half of a second-level
/// cache of 2 MiB.
const STRIPE_BYTES: usize = 512 << 10;

const _: () = assert!(WIDTH_MIN.is_multiple_of(BLOCK) && WIDTH_MAX.is_multiple_of(BLOCK));

/// Bytes of each shard to work on at a time, in chunks of `2^levels`.
pub(super) const fn width(levels: u32) -> usize {
    let width = STRIPE_BYTES >> levels;
    if width > WIDTH_MAX {
        WIDTH_MAX
    } else if width < WIDTH_MIN {
        WIDTH_MIN
    } else {
        width
    }
}

/// The points of numbers `number .. number + 2^levels`; `number` is a multiple of that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) number: usize,
    pub(super) levels: u32,
}

impl Span {
    pub(super) const fn new(number: usize, levels: u32) -> Self {
        assert!(number.is_multiple_of(1 << levels), "a span is aligned");
        Self { number, levels }
    }

    pub(super) const fn points(self) -> std::ops::Range<usize> {
        self.number..self.number + (1 << self.levels)
    }

    /// Part `index` of `2^levels` equal ones.
    const fn part(self, levels: u32, index: usize) -> Self {
        let within = self.levels - levels;
        Self { number: self.number + (index << within), levels: within }
    }
}

/// The transforms of one level of instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transform {
    kernel: Kernel,
}

impl Transform {
    pub(super) fn new(isa: Isa) -> Self {
        Self { kernel: Kernel::new(isa) }
    }

    pub(super) const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Values at `span` to coefficients, in place.
    pub(super) fn inverse(&self, span: Span, shards: &mut [u8]) {
        let levels = self.top(span.levels);
        if levels == 0 {
            return;
        }
        if levels < span.levels {
            let bytes = shards.len() >> levels;
            for (index, part) in shards.chunks_exact_mut(bytes).enumerate() {
                self.inverse(span.part(levels, index), part);
            }
        }
        self.kernel.pass(Direction::Inverse, &twiddles(span, levels), shards);
    }

    /// Values at `span`, by number of the point, to coefficients; says whether there was any
    /// value. If there was none `shards` is left as it is.
    pub(super) fn inverse_from<'a>(
        &self,
        span: Span,
        values: &impl Fn(usize) -> Option<&'a [u8]>,
        shards: &mut [u8],
    ) -> bool {
        let levels = self.top(span.levels);
        if levels == span.levels {
            return self.leaf(span, values, shards, false);
        }
        let is_any = self.parts_from(span, levels, values, shards);
        if is_any {
            self.kernel.pass(Direction::Inverse, &twiddles(span, levels), shards);
        }
        is_any
    }

    /// The same, but the coefficients are added to `sum` if `add`, or else written there; `shards`
    /// is room to work in.
    pub(super) fn inverse_into<'a>(
        &self,
        span: Span,
        values: &impl Fn(usize) -> Option<&'a [u8]>,
        shards: &mut [u8],
        sum: &mut [u8],
        add: bool,
    ) -> bool {
        let levels = self.top(span.levels);
        if levels == span.levels {
            return self.leaf(span, values, sum, add);
        }
        let is_any = self.parts_from(span, levels, values, shards);
        if is_any {
            let parts = parts(shards, levels);
            let twiddles = twiddles(span, levels);
            self.kernel.pass_from(Direction::Inverse, &twiddles, parts, sum, add, None);
        }
        is_any
    }

    /// Values at `span` to coefficients, which are added to `sum` if `add`, or else written there;
    /// `shards` is left in a state of no use.
    pub(super) fn inverse_add(&self, span: Span, shards: &mut [u8], sum: &mut [u8], add: bool) {
        let levels = self.top(span.levels);
        if levels == 0 {
            self.kernel.add_or_copy(shards, sum, add);
            return;
        }
        if levels < span.levels {
            let bytes = shards.len() >> levels;
            for (index, part) in shards.chunks_exact_mut(bytes).enumerate() {
                self.inverse(span.part(levels, index), part);
            }
        }
        let (parts, twiddles) = (parts(shards, levels), twiddles(span, levels));
        self.kernel.pass_from(Direction::Inverse, &twiddles, parts, sum, add, None);
    }

    /// Coefficients to the values at `span`, in place; only those at wanted points are right.
    pub(super) fn forward(&self, span: Span, shards: &mut [u8], wanted: &impl Fn(usize) -> bool) {
        let levels = self.top(span.levels);
        if levels == 0 || !span.points().any(wanted) {
            return;
        }
        self.kernel.pass(Direction::Forward, &twiddles(span, levels), shards);
        self.parts_forward(span, levels, shards, wanted);
    }

    /// Coefficients to the values at `span`, elsewhere; only those at wanted points are right.
    pub(super) fn forward_into(
        &self,
        span: Span,
        coefficients: &[u8],
        shards: &mut [u8],
        wanted: &impl Fn(usize) -> bool,
    ) {
        let levels = self.top(span.levels);
        if levels == 0 {
            shards.copy_from_slice(coefficients);
            return;
        }
        let (parts, twiddles) = (parts(coefficients, levels), twiddles(span, levels));
        self.kernel.pass_from(Direction::Forward, &twiddles, parts, shards, false, None);
        self.parts_forward(span, levels, shards, wanted);
    }

    fn parts_forward(
        &self,
        span: Span,
        levels: u32,
        shards: &mut [u8],
        wanted: &impl Fn(usize) -> bool,
    ) {
        if levels == span.levels {
            return;
        }
        let bytes = shards.len() >> levels;
        for (index, part) in shards.chunks_exact_mut(bytes).enumerate() {
            self.forward(span.part(levels, index), part, wanted);
        }
    }

    /// The inverse transforms of all parts of a span, zeros if only some have values.
    fn parts_from<'a>(
        &self,
        span: Span,
        levels: u32,
        values: &impl Fn(usize) -> Option<&'a [u8]>,
        shards: &mut [u8],
    ) -> bool {
        let bytes = shards.len() >> levels;
        let mut has = [false; PASS_SHARDS];
        for ((index, part), has) in shards.chunks_exact_mut(bytes).enumerate().zip(&mut has) {
            *has = self.inverse_from(span.part(levels, index), values, part);
        }
        let is_any = has.contains(&true);
        if is_any {
            for (part, has) in shards.chunks_exact_mut(bytes).zip(has) {
                if !has {
                    part.fill(0);
                }
            }
        }
        is_any
    }

    /// The inverse transform of a span that is one pass, or a single point.
    fn leaf<'a>(
        &self,
        span: Span,
        values: &impl Fn(usize) -> Option<&'a [u8]>,
        to: &mut [u8],
        add: bool,
    ) -> bool {
        let bytes = to.len() >> span.levels;
        let (from, is_any) = sources(span.points(), values, bytes);
        if !is_any {
            return false;
        }
        if span.levels > 0 {
            let twiddles = twiddles(span, span.levels);
            // The next leaf is the next to be loaded, except after the end of the chunk.
            let end = span.points().end;
            let (next, _) = sources(end..end + (1 << span.levels), values, bytes);
            self.kernel.pass_from(Direction::Inverse, &twiddles, from, to, add, Some(next));
        } else {
            self.kernel.add_or_copy(from[0], to, add);
        }
        true
    }

    /// Levels of the widest pass of a transform: three, or what comes out even.
    fn top(&self, levels: u32) -> u32 {
        let most = self.kernel.pass_levels();
        // Four levels are two passes of two, not one of three and one of one.
        if levels == most + 1 { most.min(2) } else { levels.min(most) }
    }
}

/// The factors of the widest `levels` levels of a span.
fn twiddles(span: Span, levels: u32) -> Twiddles {
    let mut factors = [Factor::ZERO; PASS_SHARDS - 1];
    let (mut index, mut full) = (0, 0);
    for step in 0..levels {
        let first = span.number >> (span.levels - levels + step);
        if first >= 256 {
            full = step + 1;
        }
        for group in 0..1 << (levels - 1 - step) {
            factors[index] = Factor::new(element(first + 2 * group));
            index += 1;
        }
    }
    Twiddles { levels, full, factors }
}

/// The values of some points, zeros where there are none, and whether there are any.
fn sources<'a>(
    points: std::ops::Range<usize>,
    values: &impl Fn(usize) -> Option<&'a [u8]>,
    bytes: usize,
) -> ([&'a [u8]; PASS_SHARDS], bool) {
    let mut from = [&ZEROS[..bytes]; PASS_SHARDS];
    let mut is_any = false;
    for (number, from) in points.zip(&mut from) {
        if let Some(value) = values(number) {
            *from = value;
            is_any = true;
        }
    }
    (from, is_any)
}

/// Equal parts of some shards, as sources of a pass.
fn parts(shards: &[u8], levels: u32) -> [&[u8]; PASS_SHARDS] {
    let bytes = shards.len() >> levels;
    let mut parts = [&shards[..0]; PASS_SHARDS];
    for (part, shard) in parts.iter_mut().zip(shards.chunks_exact(bytes)) {
        *part = shard;
    }
    parts
}
