//! 8 pixels per vector, two vectors at a time with four channels, which is what 16 registers hold:
//! bytes are widened to 16-bit words, even and odd channels separately, and their products are
//! added in pairs. (Byte products added in pairs saturate, so those instructions do not work here.)

#![expect(unsafe_code, reason = "vector loads at places that are checked before")]

use std::arch::x86_64::{
    __m256, __m256i, _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_cvtepi32_ps,
    _mm256_cvtps_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_max_ps, _mm256_min_ps,
    _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi16,
    _mm256_storeu_si256,
};

use super::super::map::{GROUP, LANES};
use super::{BLOCK, Convolution, Kernel};

/// Bytes of a vector.
const VECTOR: usize = 32;

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    words: 2,
    pack: |[a, b, c, d]| {
        let pair = |a: i8, b: i8| i32::from(a) & 0xffff | i32::from(b) << 16;
        [pair(a, c), pair(b, d)]
    },
    // SAFETY: this kernel is selected only on processors that have the instructions, and runs only
    // convolutions that were found to be sound.
    run: |convolution| unsafe { run(convolution) },
};

#[target_feature(enable = "avx2")]
unsafe fn run(convolution: Convolution<'_>) {
    for row in 0..convolution.rows {
        for column in (0..convolution.columns).step_by(LANES) {
            let from = row * convolution.input_row_stride + column * GROUP;
            let count = (convolution.columns - column).min(LANES) * GROUP;
            for group in 0..convolution.bias.len() / GROUP {
                // SAFETY: the 16 pixels starting at a column are within the input at each tap.
                let bytes = unsafe { strip(&convolution, from, group) };
                let at = convolution.output_offset
                    + group * convolution.output_group_stride
                    + row * convolution.output_row_stride
                    + column * GROUP;
                convolution.output[at..at + count].copy_from_slice(&bytes[..count]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn strip(convolution: &Convolution<'_>, from: usize, group: usize) -> [u8; 2 * VECTOR] {
    let bias = &convolution.bias[group * GROUP..][..BLOCK];
    let scale = &convolution.scale[group * GROUP..][..BLOCK];
    let mut sums = [[_mm256_setzero_si256(); 2]; BLOCK];
    for (sums, bias) in sums.iter_mut().zip(bias) {
        sums.fill(_mm256_set1_epi32(*bias));
    }
    // Two words of each channel.
    let weights = &convolution.weights[group * convolution.taps.len() * 2 * BLOCK..];
    let weights = weights.as_chunks::<{ 2 * BLOCK }>().0;
    let even = _mm256_set1_epi16(0xff);
    for (tap, weights) in convolution.taps.iter().zip(weights) {
        let pixels = convolution.input.as_ptr().wrapping_add(from + tap);
        let mut inputs = [[_mm256_setzero_si256(); 2]; 2];
        for (vector, input) in inputs.iter_mut().enumerate() {
            let pixels = pixels.wrapping_add(vector * VECTOR);
            // SAFETY: both vectors are within the input, as promised to this function.
            let bytes = unsafe { _mm256_loadu_si256(pixels.cast()) };
            *input = [_mm256_and_si256(bytes, even), _mm256_srli_epi16::<8>(bytes)];
        }
        for (sums, weights) in sums.iter_mut().zip(weights.as_chunks::<2>().0) {
            let weights = weights.map(|pair| _mm256_set1_epi32(pair));
            for (sum, input) in sums.iter_mut().zip(inputs) {
                for (input, weights) in input.into_iter().zip(weights) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(input, weights));
                }
            }
        }
    }
    let zero = _mm256_set1_ps(convolution.zero);
    let mut out = [0; 2 * VECTOR];
    for (vector, out) in out.as_chunks_mut::<VECTOR>().0.iter_mut().enumerate() {
        let mut bytes = _mm256_setzero_si256();
        // Last channel first: each step shifts the earlier ones up.
        for channel in (0..BLOCK).rev() {
            let byte = quantized(sums[channel][vector], scale[channel], zero);
            bytes = _mm256_or_si256(_mm256_slli_epi32::<8>(bytes), byte);
        }
        // SAFETY: the array is one vector long.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) };
    }
    out
}

/// Quantizes one channel of 8 pixels to 0 to 255.
#[inline]
#[target_feature(enable = "avx2")]
fn quantized(sums: __m256i, scale: f32, zero: __m256) -> __m256i {
    let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(scale));
    let value = _mm256_max_ps(_mm256_add_ps(scaled, zero), _mm256_setzero_ps());
    _mm256_cvtps_epi32(_mm256_min_ps(value, _mm256_set1_ps(255.0)))
}
