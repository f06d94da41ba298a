//! The scalar reference for the other kernels.

use super::super::map::{GROUP, LANES};
use super::{BLOCK, Convolution, Kernel};
use crate::resample::nearest_byte;

pub(super) static KERNEL: Kernel = Kernel {
    name: "scalar",
    words: 1,
    pack: |weights| [i32::from_le_bytes(weights.map(i8::cast_unsigned)), 0],
    run,
};

fn run(convolution: Convolution<'_>) {
    let blocks = convolution.weights.chunks_exact(convolution.taps.len() * BLOCK);
    let channels = convolution.bias.as_chunks::<BLOCK>().0.iter();
    let channels = channels.zip(convolution.scale.as_chunks::<BLOCK>().0);
    for (block, (weights, (bias, scale))) in blocks.zip(channels).enumerate() {
        for row in 0..convolution.rows {
            for column in (0..convolution.columns).step_by(LANES) {
                let from = row * convolution.input_row_stride + column * GROUP;
                let mut sums = bias.map(|bias| [bias; LANES]);
                let weights = weights.as_chunks::<BLOCK>().0;
                for (tap, weights) in convolution.taps.iter().zip(weights) {
                    let pixels = &convolution.input[from + tap..][..LANES * GROUP];
                    add(&mut sums, pixels, weights);
                }
                let count = LANES.min(convolution.columns - column);
                let at = convolution.output_offset
                    + row * convolution.output_row_stride
                    + column * GROUP;
                for (channel, sums) in sums.iter().enumerate() {
                    let at = at + block * convolution.output_group_stride + channel;
                    for (lane, sum) in sums[..count].iter().enumerate() {
                        let value = *sum as f32 * scale[channel] + convolution.zero;
                        convolution.output[at + lane * GROUP] = nearest_byte(value);
                    }
                }
            }
        }
    }
}

fn add(sums: &mut [[i32; LANES]; BLOCK], pixels: &[u8], weights: &[i32; BLOCK]) {
    for (sums, weight) in sums.iter_mut().zip(weights) {
        let weights = weight.to_le_bytes().map(|weight| i32::from(weight.cast_signed()));
        for (sum, pixel) in sums.iter_mut().zip(pixels.as_chunks::<GROUP>().0) {
            for (input, weight) in pixel.iter().zip(weights) {
                *sum += i32::from(*input) * weight;
            }
        }
    }
}
