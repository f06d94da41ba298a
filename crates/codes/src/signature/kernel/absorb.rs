//! The recurrence, vectorized.
//!
//! Per block, the widest vector needs two products and seven sums, some of them of three operands:
//! nine instructions for 256 bytes.

#![expect(unsafe_code, reason = "loads and stores through pointers are what a kernel is")]

use super::{Lanes, Planes, WRAP};
use crate::field::{PLANE_BYTES, gf32};
use crate::signature::SIGNATURE_BLOCK;
use crate::simd::{Factor, Level, Vector, VectorKernel};

/// Blocks per pass over a part of the lanes, before the next part takes the same blocks: the 4 KiB
/// stay in the cache, and the eight sums of the part in registers. The sums of all lanes would not
/// fit.
const PASS_BLOCKS: usize = 16;
/// Blocks per iteration of the loop: unrolled so that sums need not move between registers.
const UNROLL_BLOCKS: usize = 4;

/// Absorbs these blocks.
pub(super) fn absorb(level: Level, lanes: &mut Lanes, blocks: &[[u8; SIGNATURE_BLOCK]]) {
    let (last, previous) = (lanes.last.as_mut_ptr(), lanes.previous.as_mut_ptr());
    let absorb = Absorb { last: last.cast(), previous: previous.cast(), blocks };
    // SAFETY: both pointers are to planes, and nothing else uses these meanwhile.
    unsafe { level.run(&absorb) }
}

/// Blocks to absorb, and the planes of the sums.
struct Absorb<'a> {
    last: *mut u8,
    previous: *mut u8,
    blocks: &'a [[u8; SIGNATURE_BLOCK]],
}

const _: () = assert!(size_of::<Planes>() == SIGNATURE_BLOCK, "sums have the layout of a block");

impl VectorKernel for Absorb<'_> {
    /// `last` and `previous` point to [`Planes`] that nothing else uses.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        let pass_blocks =
            if V::BYTES == PLANE_BYTES { self.blocks.len().max(1) } else { PASS_BLOCKS };
        for pass in self.blocks.chunks(pass_blocks) {
            let mut at = 0;
            while at < PLANE_BYTES {
                // SAFETY: the register size divides the plane size, so a register at `at` is within
                // one plane.
                unsafe { part::<V>(self.last.add(at), self.previous.add(at), pass, at) };
                at += V::BYTES;
            }
        }
    }
}

/// A register of each plane.
type Registers<V> = [V; 4];

/// Absorbs these blocks in the lanes of one register, which begin at `at`.
///
/// # Safety
/// The processor supports the level of `V`; `last` and `previous` point to lane `at` of their
/// planes, with at least a register of lanes left.
#[inline(always)]
unsafe fn part<V: Vector>(
    last: *mut u8,
    previous: *mut u8,
    blocks: &[[u8; SIGNATURE_BLOCK]],
    at: usize,
) {
    // SAFETY: guaranteed by the caller, and blocks have the layout of the planes.
    unsafe {
        let factors = [
            V::constant(V::Factor::for_constant(WRAP)),
            V::constant(V::Factor::for_constant(gf32::TRACE)),
        ];
        let (mut sum, mut before) = (load::<V>(last), load::<V>(previous));
        let (groups, rest) = blocks.as_chunks::<UNROLL_BLOCKS>();
        for group in groups {
            for block in group {
                (sum, before) = (step(sum, before, block.as_ptr().add(at), factors), sum);
            }
        }
        for block in rest {
            (sum, before) = (step(sum, before, block.as_ptr().add(at), factors), sum);
        }
        store(sum, last);
        store(before, previous);
    }
}

/// Returns block + z last + previous. Terms of `last` are added at the end, because they arrive
/// last.
#[inline(always)]
unsafe fn step<V: Vector>(
    [a, b, c, d]: Registers<V>,
    previous: Registers<V>,
    block: *const u8,
    [wrap, trace]: [V::Constant<'static>; 2],
) -> Registers<V> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let data = load::<V>(block);
        [
            data[0].add3(previous[0], d.times(wrap)),
            data[1].add3(previous[1], c.add(d).times(trace)),
            data[2].add(previous[2]).add3(a, c),
            data[3].add(previous[3]).add3(b, d),
        ]
    }
}

#[inline(always)]
unsafe fn load<V: Vector>(from: *const u8) -> Registers<V> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        [
            V::load(from),
            V::load(from.add(PLANE_BYTES)),
            V::load(from.add(2 * PLANE_BYTES)),
            V::load(from.add(3 * PLANE_BYTES)),
        ]
    }
}

#[inline(always)]
unsafe fn store<V: Vector>([a, b, c, d]: Registers<V>, to: *mut u8) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        a.store(to);
        b.store(to.add(PLANE_BYTES));
        c.store(to.add(2 * PLANE_BYTES));
        d.store(to.add(3 * PLANE_BYTES));
    }
}
