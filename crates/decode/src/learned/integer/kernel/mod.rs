//! Sums of products of a convolution, made 8 bits again: where the time goes.
//!
//! Exact in integers; scaled and rounded to even in single precision, product and sum apart. So
//! every level makes the same bytes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use fulgurite_codes::Isa;

use super::map::{GROUP, LANES};

/// Output channels that are made at once: a group, so that none is made for nothing.
pub(super) const BLOCK: usize = GROUP;

/// A convolution of one map to another, in places of memory.
#[derive(Debug)]
pub(super) struct Convolution<'a> {
    pub(super) input: &'a [u8],
    /// From a row of output to the next in the input.
    pub(super) input_row: usize,
    /// Where a pixel's inputs are, from its own place on: four channels each.
    pub(super) taps: &'a [usize],
    /// Packed: `[block][tap][channel of the block]`.
    pub(super) weights: &'a [i32],
    /// Before scaling, by output channel.
    pub(super) bias: &'a [i32],
    pub(super) scale: &'a [f32],
    pub(super) zero: f32,
    pub(super) output: &'a mut [u8],
    /// The first pixel, and from there to the next row and the next group.
    pub(super) output_at: usize,
    pub(super) output_row: usize,
    pub(super) output_plane: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Convolution<'_> {
    /// Whether all that a kernel reads and writes is there: whole vectors are read, even behind the
    /// last column.
    fn is_sound(&self, words: usize) -> bool {
        let last = self.columns.next_multiple_of(LANES) * GROUP + (self.rows - 1) * self.input_row;
        let blocks = self.bias.len() / BLOCK;
        let written = (blocks - 1) * self.output_plane
            + (self.rows - 1) * self.output_row
            + self.columns * GROUP;
        self.taps.iter().all(|tap| tap + last <= self.input.len())
            && self.bias.len() == blocks * BLOCK
            && self.scale.len() == self.bias.len()
            && self.weights.len() == self.bias.len() * self.taps.len() * words
            && self.output_at + written <= self.output.len()
    }
}

/// Code for a level of instructions.
#[derive(Debug)]
pub(super) struct Kernel {
    #[cfg_attr(not(test), expect(dead_code, reason = "what a test says that fails"))]
    pub(super) name: &'static str,
    /// How four weights are written, in words.
    words: usize,
    pack: fn([i8; GROUP]) -> [i32; 2],
    run: fn(Convolution<'_>),
}

impl Kernel {
    /// The best of this processor.
    pub(super) fn current() -> &'static Self {
        Self::of(Isa::current())
    }

    /// The best up to a level that this processor has.
    pub(super) fn of(isa: Isa) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        {
            if isa >= Isa::Avx512Gfni && is_x86_feature_detected!("avx512vnni") {
                return &avx512::KERNEL;
            }
            if isa >= Isa::Avx2 {
                return &avx2::KERNEL;
            }
        }
        let _ = isa;
        &scalar::KERNEL
    }

    /// Weights as this kernel reads them, from those of one output channel after the other: blocks
    /// of channels, and of each tap all its channels side by side.
    pub(super) fn pack(&self, channels: &[Vec<[i8; GROUP]>]) -> Vec<i32> {
        let mut packed = Vec::new();
        for block in channels.chunks_exact(BLOCK) {
            for tap in 0..block[0].len() {
                for channel in block {
                    packed.extend(&(self.pack)(channel[tap])[..self.words]);
                }
            }
        }
        packed
    }

    /// Runs it.
    ///
    /// # Panics
    /// When it would read or write what is not there.
    pub(super) fn run(&self, convolution: Convolution<'_>) {
        assert!(convolution.is_sound(self.words), "a convolution within its maps");
        (self.run)(convolution);
    }
}

#[cfg(test)]
mod tests {
    //! Every level against sums that are written down.

    use fulgurite_codes::Isa;

    use super::{BLOCK, Convolution, Kernel};
    use crate::learned::integer::map::Map;

    /// Numbers that are as good as any.
    fn noise(state: &mut u64) -> u8 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 56) as u8
    }

    /// A convolution of three by three in every number of vectors, with all the rest of their last
    /// one kept as it was, the greatest weights and inputs among them.
    #[test]
    fn levels_make_the_same_bytes() {
        let kernels: Vec<&Kernel> = Isa::supported().map(Kernel::of).collect();
        for (columns, groups, blocks) in
            [(1, 1, 1), (16, 3, 2), (37, 6, 3), (48, 2, 1), (81, 1, 2), (96, 2, 3), (177, 1, 1)]
        {
            let seed = &mut 1;
            let size = [3, columns];
            let mut input = Map::new(groups, size, 1, 0, &mut { usize::MAX }).unwrap();
            input.bytes.iter_mut().for_each(|byte| *byte = noise(seed));
            input.bytes[..40].fill(255);
            let row = input.stride * 4;
            let taps: Vec<usize> = (0..groups * 9)
                .map(|tap| tap / 9 * input.plane() + tap / 3 % 3 * row + tap % 3 * 4)
                .collect();
            let mut channels: Vec<Vec<[i8; 4]>> = (0..blocks * BLOCK)
                .map(|_| taps.iter().map(|_| [(); 4].map(|()| noise(seed).cast_signed())).collect())
                .collect();
            channels[0].fill([127; 4]);
            channels[1].fill([-128; 4]);
            let bias: Vec<i32> = (0..channels.len()).map(|_| i32::from(noise(seed)) * 99).collect();
            let mut scale: Vec<f32> =
                (0..channels.len()).map(|_| f32::from(noise(seed)) / 2e5).collect();
            scale[..3].copy_from_slice(&[1.0, 1.0, 0.0]);

            let output = Map::new(blocks, size, 1, 77, &mut { usize::MAX }).unwrap();
            let mut expected = output.bytes.clone();
            for (channel, weights) in channels.iter().enumerate() {
                for row in 0..3 {
                    for column in 0..columns {
                        let at = (row * input.stride + column) * 4;
                        let mut sum = bias[channel];
                        for (weights, tap) in weights.iter().zip(&taps) {
                            for (lane, weight) in weights.iter().enumerate() {
                                sum += i32::from(input.bytes[at + tap + lane]) * i32::from(*weight);
                            }
                        }
                        let value = (sum as f32 * scale[channel] + 13.0).clamp(0.0, 255.0);
                        let at = output.row(channel / 4, row) + 4 * column + channel % 4;
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "a whole number from 0 to 255"
                        )]
                        let byte = value.round_ties_even() as u8;
                        expected[at] = byte;
                    }
                }
            }
            assert!([0, 13, 255].iter().all(|value| expected.contains(value)));
            for kernel in &kernels {
                let mut found = output.bytes.clone();
                kernel.run(Convolution {
                    input: &input.bytes,
                    input_row: row,
                    taps: &taps,
                    weights: &kernel.pack(&channels),
                    bias: &bias,
                    scale: &scale,
                    zero: 13.0,
                    output: &mut found,
                    output_at: output.row(0, 0),
                    output_row: output.stride * 4,
                    output_plane: output.plane(),
                    rows: 3,
                    columns,
                });
                assert!(found == expected, "{} {columns} {groups} {blocks}", kernel.name);
            }
        }
    }
}
