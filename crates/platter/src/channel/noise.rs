//! Noise of voxels and pixels: fast streams of uniform and normal numbers.
//!
//! `ChaCha8` of [`Seed`] seeds the streams. The bulk numbers come from 16 parallel xoshiro128++
//! generators (Blackman and Vigna, ACM TOMS 47, 2021), each with 128 seed bits of its own, and the
//! Box-Muller transform. An image takes 36 normal numbers per voxel, so these are most of its cost.

use fulgurite_units::Seed;

use crate::numeric::{LANES, dispatch_simd, ln, sincos_turns};

/// Numbers generated at once.
const BLOCK: usize = 2 * LANES;

/// A stream of random numbers for one sector, the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    state: [[u32; LANES]; 4],
}

impl Noise {
    /// Creates the stream of this seed.
    pub(super) fn new(seed: &Seed) -> Self {
        let mut stream = seed.stream();
        let mut state = [[0; LANES]; 4];
        for word in state.iter_mut().flatten() {
            #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
            let bits = stream.next_u64() as u32;
            *word = bits;
        }
        // An all-zero state would stay zero.
        state[0] = state[0].map(|word| word | 1);
        Self { state }
    }

    /// Fills the buffer with numbers uniform in (0, 1].
    pub(super) fn uniforms(&mut self, out: &mut [f32]) {
        dispatch_simd(
            #[inline(always)]
            || {
                for block in out.chunks_mut(LANES) {
                    let values = unit(self.next());
                    block.copy_from_slice(&values[..block.len()]);
                }
            },
        );
    }

    /// Fills the buffer with normal numbers of mean 0 and variance 1, clipped at 5.77.
    pub(super) fn normals(&mut self, out: &mut [f32]) {
        dispatch_simd(
            #[inline(always)]
            || {
                for block in out.chunks_mut(BLOCK) {
                    let (radius, angle) = (unit(self.next()), unit(self.next()));
                    let mut values = [0.0; BLOCK];
                    let (first, second) = values.split_at_mut(LANES);
                    for lane in 0..LANES {
                        let r = (-2.0 * ln(radius[lane])).max(0.0).sqrt();
                        let (sin, cos) = sincos_turns(angle[lane]);
                        first[lane] = r * cos;
                        second[lane] = r * sin;
                    }
                    block.copy_from_slice(&values[..block.len()]);
                }
            },
        );
    }

    #[inline(always)]
    fn next(&mut self) -> [u32; LANES] {
        let [s0, s1, s2, s3] = &mut self.state;
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = s0[i].wrapping_add(s3[i]).rotate_left(7).wrapping_add(s0[i]);
            let shifted = s1[i] << 9;
            s2[i] ^= s0[i];
            s3[i] ^= s1[i];
            s1[i] ^= s2[i];
            s0[i] ^= s3[i];
            s2[i] ^= shifted;
            s3[i] = s3[i].rotate_left(11);
        }
        out
    }
}

/// Converts bits to numbers in (0, 1], in steps of 2^-24.
#[inline(always)]
fn unit(bits: [u32; LANES]) -> [f32; LANES] {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "24 bits")]
    bits.map(|bits| (bits >> 8).wrapping_add(1) as i32 as f32 * (1.0 / 16_777_216.0))
}
