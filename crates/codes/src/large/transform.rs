//! The additive FFT of Lin, Chung and Han, in place, in a Cantor basis.
//!
//! A polynomial of degree below 2^k is written in the basis `X_i = product of s_j over the bits j
//! set in i`. The transform converts between the values at the 2^k points of numbers `v ..` (v
//! a multiple of 2^k) and the coefficients by k levels of butterflies between shards `2^level`
//! apart. The factor of the butterflies in the block that begins with the point of number v is
//! `s_level` of that point, the element of number `v >> level` (see [`super::definition`]). That is
//! in GF(2^8) if `v >> level < 256`, which makes wide levels cheaper, and it is even, so it is
//! never one.
//!
//! ```text
//! inverse(block) = inverse(each eighth), then one pass of three levels across them; from memory
//!                  64 shards at a time are one leaf, where registers allow
//! forward(block) = one pass of three levels, then forward(each eighth)
//! ```
//!
//! The recursion is depth first, and so cache-oblivious: an eighth that fits the L1 cache stays
//! there until it is done, whatever the cache sizes. Inputs that are all zeros and outputs that are
//! not wanted are skipped.

use std::ops::Range;

use super::definition;
use super::kernel::{
    BLOCK, Direction, Factor, Kernel, LEAF_SHARDS, LeafTwiddles, PASS_SHARDS, Sources, Twiddles,
    WIDTH_MAX, zeros,
};
use super::points::element;
use crate::{Isa, l2_cache_bytes};

/// Minimum width: with fewer bytes of each shard at a time there are too many TLB misses.
const WIDTH_MIN: usize = 1 << 10;

/// Minimum width where wide leaves prefetch by themselves.
const WIDTH_MIN_LEAF: usize = 512;

const _: () = assert!(WIDTH_MIN_LEAF.is_multiple_of(BLOCK) && WIDTH_MIN.is_multiple_of(BLOCK));
const _: () = assert!(WIDTH_MIN <= WIDTH_MAX && WIDTH_MAX.is_multiple_of(BLOCK));

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

    pub(super) const fn points(self) -> Range<usize> {
        self.number..self.number + (1 << self.levels)
    }

    /// Returns part `index` of `2^levels` equal parts.
    const fn part(self, levels: u32, index: usize) -> Self {
        let within = self.levels - levels;
        Self { number: self.number + (index << within), levels: within }
    }
}

/// Transforms for one instruction-set level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transform {
    kernel: Kernel,
}

impl Transform {
    pub(super) fn new(isa: Isa) -> Self {
        Self { kernel: Kernel::new(isa) }
    }

    /// Returns how many bytes of each shard to process at a time, in chunks of `2^levels` shards: a
    /// chunk's stripe and the sum of chunks take half of the L2 cache, so that prefetched input
    /// fits too.
    pub(super) fn width(&self, levels: u32) -> usize {
        let width_min =
            if self.kernel.leaf_levels().is_some() { WIDTH_MIN_LEAF } else { WIDTH_MIN };
        let width = (l2_cache_bytes() / 4) >> levels;
        (width - width % BLOCK).clamp(width_min, WIDTH_MAX)
    }

    pub(super) const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Transforms values at `span` to coefficients, in place.
    pub(super) fn inverse(&self, span: Span, shards: &mut [u8]) {
        let levels = self.top_levels(span.levels);
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

    /// Transforms values at `span`, looked up by number of the point, to coefficients. Returns
    /// whether there was any value; if not, `shards` is left unchanged.
    pub(super) fn inverse_from<'a>(
        &self,
        span: Span,
        values: &mut Values<'a, impl Fn(usize) -> Option<&'a [u8]>>,
        shards: &mut [u8],
    ) -> bool {
        if self.is_leaf(span) {
            return self.leaf(span, values, shards, false);
        }
        let levels = self.top_levels(span.levels);
        let has_any = self.parts_from(span, levels, values, shards);
        if has_any {
            self.kernel.pass(Direction::Inverse, &twiddles(span, levels), shards);
        }
        has_any
    }

    /// Like `inverse_from`, but adds the coefficients to `sum` if `add`, or else writes them there;
    /// `shards` is scratch space.
    pub(super) fn inverse_into<'a>(
        &self,
        span: Span,
        values: &mut Values<'a, impl Fn(usize) -> Option<&'a [u8]>>,
        shards: &mut [u8],
        sum: &mut [u8],
        add: bool,
    ) -> bool {
        if self.is_leaf(span) {
            return self.leaf(span, values, sum, add);
        }
        let levels = self.top_levels(span.levels);
        let has_any = self.parts_from(span, levels, values, shards);
        if has_any {
            let parts = parts(shards, levels);
            let twiddles = twiddles(span, levels);
            self.kernel.pass_from(Direction::Inverse, &twiddles, parts, sum, add, None);
        }
        has_any
    }

    /// Transforms values at `span` to coefficients, and adds them to `sum` if `add`, or else writes
    /// them there. The content of `shards` is undefined afterwards.
    pub(super) fn inverse_add(&self, span: Span, shards: &mut [u8], sum: &mut [u8], add: bool) {
        let levels = self.top_levels(span.levels);
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

    /// Transforms coefficients to the values at `span`, in place; only those at wanted points are
    /// correct.
    pub(super) fn forward(&self, span: Span, shards: &mut [u8], wanted: &impl Fn(usize) -> bool) {
        let levels = self.top_levels(span.levels);
        if levels == 0 || !span.points().any(wanted) {
            return;
        }
        self.kernel.pass(Direction::Forward, &twiddles(span, levels), shards);
        self.parts_forward(span, levels, shards, wanted);
    }

    /// Transforms coefficients to the values at `span`, out of place; only those at wanted points
    /// are correct.
    pub(super) fn forward_into(
        &self,
        span: Span,
        coefficients: &[u8],
        shards: &mut [u8],
        wanted: &impl Fn(usize) -> bool,
    ) {
        let levels = self.top_levels(span.levels);
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

    /// Computes the inverse transforms of all parts of a span; parts without values become zeros if
    /// any part has values.
    fn parts_from<'a>(
        &self,
        span: Span,
        levels: u32,
        values: &mut Values<'a, impl Fn(usize) -> Option<&'a [u8]>>,
        shards: &mut [u8],
    ) -> bool {
        let bytes = shards.len() >> levels;
        let mut has_values = [false; PASS_SHARDS];
        for ((index, part), has_values) in
            shards.chunks_exact_mut(bytes).enumerate().zip(&mut has_values)
        {
            *has_values = self.inverse_from(span.part(levels, index), values, part);
        }
        let has_any = has_values.contains(&true);
        if has_any {
            for (part, has_values) in shards.chunks_exact_mut(bytes).zip(has_values) {
                if !has_values {
                    part.fill(0);
                }
            }
        }
        has_any
    }

    /// Whether the values of a span are loaded and transformed in one step.
    fn is_leaf(&self, span: Span) -> bool {
        self.top_levels(span.levels) == span.levels || self.is_wide_leaf(span)
    }

    fn is_wide_leaf(&self, span: Span) -> bool {
        self.kernel.leaf_levels().is_some_and(|levels| levels.contains(&span.levels))
    }

    /// Computes the inverse transform of a leaf, or of a single point.
    fn leaf<'a>(
        &self,
        span: Span,
        values: &mut Values<'a, impl Fn(usize) -> Option<&'a [u8]>>,
        to: &mut [u8],
        add: bool,
    ) -> bool {
        if self.is_wide_leaf(span) {
            let from = values.leaf(span);
            if from.has_any() {
                self.kernel.leaf(&leaf_twiddles(span), &from, to, add, &values.next);
            }
            return from.has_any();
        }
        let (from, has_any) = values.pass(span.points());
        if !has_any {
            return false;
        }
        if span.levels > 0 {
            let twiddles = twiddles(span, span.levels);
            // The next leaf is the next to be loaded, except at the end of the chunk.
            let end = span.points().end;
            let (next, _) = values.pass(end..end + (1 << span.levels));
            self.kernel.pass_from(Direction::Inverse, &twiddles, from, to, add, Some(next));
        } else {
            self.kernel.add_or_copy(from[0], to, add);
        }
        true
    }

    /// Returns the levels of the widest pass of a transform: usually the most that fit one pass.
    fn top_levels(&self, levels: u32) -> u32 {
        let pass_levels = self.kernel.pass_levels();
        let leaf = self.kernel.leaf_levels().map_or(0, |levels| *levels.end());
        // The levels above the widest leaf are divided evenly: four levels are two passes of two,
        // not one of three and one of one.
        match levels.checked_sub(leaf) {
            Some(above @ 1..) if leaf > 0 && above <= pass_levels => above,
            Some(above) if leaf > 0 && above == pass_levels + 1 => 2,
            _ if levels == pass_levels + 1 => pass_levels.min(2),
            _ => levels.min(pass_levels),
        }
    }
}

/// Returns the factors of the widest `levels` levels of a span.
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

/// Factors of the elements of even numbers, from 0 on.
const EVEN_FACTORS: [Factor; LEAF_SHARDS / 2] = {
    let mut factors = [Factor::ZERO; LEAF_SHARDS / 2];
    let mut half = 0;
    while half < factors.len() {
        factors[half] = Factor::new(definition::element(2 * half));
        half += 1;
    }
    factors
};

/// Returns the factors of a leaf.
fn leaf_twiddles(span: Span) -> LeafTwiddles {
    let mut factors = [Factor::ZERO; LEAF_SHARDS - 1];
    let (mut rest, mut full) = (&mut factors[..], 0);
    for level in 0..span.levels {
        let first = span.number >> level;
        if first >= 256 {
            full = level + 1;
        }
        // The first number has zero bits where the numbers of a level differ, so the elements add.
        let first = Factor::new(element(first));
        let (now, later) = rest.split_at_mut(1 << (span.levels - 1 - level));
        for (factor, even) in now.iter_mut().zip(EVEN_FACTORS) {
            *factor = first.add(even);
        }
        rest = later;
    }
    LeafTwiddles { levels: span.levels, full, factors }
}

/// Values of one length, looked up by the number of their point.
pub(super) struct Values<'a, F> {
    lookup: F,
    /// Values of the next leaf, looked up ahead of time.
    next: Sources<'a>,
    /// First number of the next leaf, if one was looked up.
    number: Option<usize>,
}

impl<'a, F: Fn(usize) -> Option<&'a [u8]>> Values<'a, F> {
    pub(super) fn new(lookup: F, bytes: usize) -> Self {
        Self { lookup, next: Sources::zeros(bytes), number: None }
    }

    /// Returns the values of a wide leaf, and looks up those of the following leaf into `next`.
    fn leaf(&mut self, span: Span) -> Sources<'a> {
        let now = match self.number {
            Some(number) if number == span.number => self.next.clone(),
            Some(_) | None => self.sources(span.points()),
        };
        let end = span.points().end;
        self.next = self.sources(end..end + (1 << span.levels));
        self.number = Some(end);
        now
    }

    fn sources(&self, points: Range<usize>) -> Sources<'a> {
        let mut sources = Sources::zeros(self.next.bytes());
        for (place, number) in points.enumerate() {
            if let Some(value) = (self.lookup)(number) {
                sources.put(place, value);
            }
        }
        sources
    }

    /// Returns the values of a pass, with zeros where there are none, and whether there are any.
    fn pass(&self, points: Range<usize>) -> ([&'a [u8]; PASS_SHARDS], bool) {
        let mut from = [zeros(self.next.bytes()); PASS_SHARDS];
        let mut has_any = false;
        for (number, from) in points.zip(&mut from) {
            if let Some(value) = (self.lookup)(number) {
                *from = value;
                has_any = true;
            }
        }
        (from, has_any)
    }
}

/// Divides shards into equal parts, as sources of a pass.
fn parts(shards: &[u8], levels: u32) -> [&[u8]; PASS_SHARDS] {
    let bytes = shards.len() >> levels;
    let mut parts = [&shards[..0]; PASS_SHARDS];
    for (part, shard) in parts.iter_mut().zip(shards.chunks_exact(bytes)) {
        *part = shard;
    }
    parts
}
