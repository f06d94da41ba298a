//! Convolution kernels, requantized to 8 bits: this is where the time goes.
//!
//! Sums are exact integers; they are scaled and rounded to even in single precision, without fused
//! multiply-add. So every instruction set gives the same bytes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use fulgurite_codes::Isa;

use super::map::{GROUP, LANES};

/// Output channels that are computed at a time: a group, so that no work is wasted.
pub(super) const BLOCK: usize = GROUP;

/// A convolution of one map to another, with memory offsets.
#[derive(Debug)]
pub(super) struct Convolution<'a> {
    pub(super) input: &'a [u8],
    /// Offset in the input from one output row to the next.
    pub(super) input_row_stride: usize,
    /// Offsets of a pixel's inputs, of four channels each, from the pixel's own.
    pub(super) taps: &'a [usize],
    /// Packed: `[block][tap][channel of the block]`.
    pub(super) weights: &'a [i32],
    /// Before scaling, by output channel.
    pub(super) bias: &'a [i32],
    pub(super) scale: &'a [f32],
    pub(super) zero: f32,
    pub(super) output: &'a mut [u8],
    /// Offset of the first pixel, and strides to the next row and the next group.
    pub(super) output_offset: usize,
    pub(super) output_row_stride: usize,
    pub(super) output_group_stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Convolution<'_> {
    /// Returns whether all reads and writes of a kernel are in bounds: whole vectors are read, even
    /// beyond the last column.
    fn is_in_bounds(&self, words: usize) -> bool {
        let last =
            self.columns.next_multiple_of(LANES) * GROUP + (self.rows - 1) * self.input_row_stride;
        let blocks = self.bias.len() / BLOCK;
        let written = (blocks - 1) * self.output_group_stride
            + (self.rows - 1) * self.output_row_stride
            + self.columns * GROUP;
        self.taps.iter().all(|tap| tap + last <= self.input.len())
            && self.bias.len() == blocks * BLOCK
            && self.scale.len() == self.bias.len()
            && self.weights.len() == self.bias.len() * self.taps.len() * words
            && self.output_offset + written <= self.output.len()
    }
}

/// A kernel for one instruction set.
#[derive(Debug)]
pub(super) struct Kernel {
    #[cfg_attr(not(test), expect(dead_code, reason = "printed by failing tests"))]
    pub(super) name: &'static str,
    /// Words per four packed weights.
    words: usize,
    pack: fn([i8; GROUP]) -> [i32; 2],
    run: fn(Convolution<'_>),
}

impl Kernel {
    /// Returns the best kernel for this processor.
    pub(super) fn current() -> &'static Self {
        Self::for_isa(Isa::current())
    }

    /// Returns the best kernel up to an instruction set that this processor has.
    pub(super) fn for_isa(isa: Isa) -> &'static Self {
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

    /// Packs weights for this kernel: blocks of output channels, and within those the channels of
    /// each tap side by side.
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

    /// Runs a convolution.
    ///
    /// # Panics
    /// When it would access memory out of bounds.
    pub(super) fn run(&self, convolution: Convolution<'_>) {
        assert!(convolution.is_in_bounds(self.words), "a convolution within its maps");
        (self.run)(convolution);
    }
}

#[cfg(test)]
mod tests {
    //! Every instruction set against sums that are computed naively.

    use fulgurite_codes::Isa;

    use super::{BLOCK, Convolution, Kernel};
    use crate::learned::integer::map::Map;

    /// Returns pseudorandom bytes.
    fn noise(state: &mut u64) -> u8 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 56) as u8
    }

    /// 3 x 3 convolutions of different widths, including the largest weights and inputs. Bytes
    /// beyond the last column stay unchanged.
    #[test]
    fn isa_levels_give_the_same_bytes() {
        let kernels: Vec<&Kernel> = Isa::supported().map(Kernel::for_isa).collect();
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
                    input_row_stride: row,
                    taps: &taps,
                    weights: &kernel.pack(&channels),
                    bias: &bias,
                    scale: &scale,
                    zero: 13.0,
                    output: &mut found,
                    output_offset: output.row(0, 0),
                    output_row_stride: output.stride * 4,
                    output_group_stride: output.plane(),
                    rows: 3,
                    columns,
                });
                assert!(found == expected, "{} {columns} {groups} {blocks}", kernel.name);
            }
        }
    }
}
