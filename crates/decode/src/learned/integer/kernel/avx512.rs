//! 16 pixels per vector and four products per lane (VNNI): 4 channels of 96 pixels at a time, so
//! that a load of pixels serves 4 vector products, and a load of weights 6.

#![expect(unsafe_code, reason = "vector loads and stores at places that are checked before")]

use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_cvtps_epi32, _mm512_dpbusd_epi32,
    _mm512_loadu_si512, _mm512_mask_storeu_epi32, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps,
    _mm512_or_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512,
    _mm512_slli_epi32,
};

use super::super::map::{GROUP, LANES};
use super::{BLOCK, Convolution, Kernel};

/// Vectors of a row that are computed at a time.
const VECTORS: usize = 6;

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512-vnni",
    words: 1,
    pack: |weights| [i32::from_le_bytes(weights.map(i8::cast_unsigned)), 0],
    // SAFETY: this kernel is selected only on processors that have the instructions, and runs only
    // convolutions that were found to be sound.
    run: |convolution| unsafe { run(convolution) },
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn run(mut convolution: Convolution<'_>) {
    let vectors = convolution.columns.div_ceil(LANES);
    for row in 0..convolution.rows {
        for vector in (0..vectors).step_by(VECTORS) {
            for block in 0..convolution.bias.len() / BLOCK {
                let at = BlockPosition { row, column: vector * LANES, block };
                // SAFETY: as promised to this function; the vectors are those of a row.
                unsafe {
                    match vectors - vector {
                        1 => strip::<1>(&mut convolution, at),
                        2 => strip::<2>(&mut convolution, at),
                        3 => strip::<3>(&mut convolution, at),
                        4 => strip::<4>(&mut convolution, at),
                        5 => strip::<5>(&mut convolution, at),
                        _ => strip::<VECTORS>(&mut convolution, at),
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct BlockPosition {
    row: usize,
    column: usize,
    block: usize,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn strip<const COUNT: usize>(convolution: &mut Convolution<'_>, at: BlockPosition) {
    let channels = at.block * BLOCK;
    let bias = &convolution.bias[channels..][..BLOCK];
    let scale = &convolution.scale[channels..][..BLOCK];
    let mut sums = [[_mm512_setzero_si512(); COUNT]; BLOCK];
    for (sums, bias) in sums.iter_mut().zip(bias) {
        sums.fill(_mm512_set1_epi32(*bias));
    }
    let from = at.row * convolution.input_row_stride + at.column * GROUP;
    let pixels = convolution.input.as_ptr().wrapping_add(from);
    let weights = &convolution.weights[channels * convolution.taps.len()..];
    for (tap, weights) in convolution.taps.iter().zip(weights.as_chunks::<BLOCK>().0) {
        let pixels = pixels.wrapping_add(*tap);
        let mut inputs = [_mm512_setzero_si512(); COUNT];
        for (vector, input) in inputs.iter_mut().enumerate() {
            let pixels = pixels.wrapping_add(vector * LANES * GROUP);
            // SAFETY: vectors up to the one with the last column are within the input at each tap.
            *input = unsafe { _mm512_loadu_si512(pixels.cast()) };
        }
        for (sums, weights) in sums.iter_mut().zip(weights) {
            let weights = _mm512_set1_epi32(*weights);
            for (sum, input) in sums.iter_mut().zip(inputs) {
                *sum = _mm512_dpbusd_epi32(*sum, input, weights);
            }
        }
    }
    let zero = _mm512_set1_ps(convolution.zero);
    let at_group = convolution.output_offset
        + at.block * convolution.output_group_stride
        + at.row * convolution.output_row_stride
        + at.column * GROUP;
    for vector in 0..COUNT {
        let mut bytes = _mm512_setzero_si512();
        // Last channel first: each step shifts the earlier ones up.
        for (sums, scale) in sums.iter().zip(scale).rev() {
            let byte = quantized(sums[vector], *scale, zero);
            bytes = _mm512_or_si512(_mm512_slli_epi32::<8>(bytes), byte);
        }
        let left = convolution.columns - at.column - vector * LANES;
        let mask = u16::MAX >> (LANES - left.min(LANES));
        let to = convolution.output.as_mut_ptr().wrapping_add(at_group + vector * LANES * GROUP);
        // SAFETY: the mask ends with the last column, which is within the output.
        unsafe { _mm512_mask_storeu_epi32(to.cast(), mask, bytes) };
    }
}

/// Quantizes one channel of 16 pixels to 0 to 255.
#[inline]
#[target_feature(enable = "avx512f")]
fn quantized(sums: __m512i, scale: f32, zero: __m512) -> __m512i {
    let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(scale));
    let value = _mm512_max_ps(_mm512_add_ps(scaled, zero), _mm512_setzero_ps());
    _mm512_cvtps_epi32(_mm512_min_ps(value, _mm512_set1_ps(255.0)))
}
