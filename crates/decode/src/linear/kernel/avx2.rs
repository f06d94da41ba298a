//! Widens 16 bytes to 16 bits and multiplies them in pairs, for four windows at a time.

#![expect(unsafe_code, reason = "vector loads at places that are checked before")]

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32,
    _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16,
    _mm256_extracti128_si256, _mm256_madd_epi16, _mm256_setzero_si256,
};

use super::super::bank::Window;
use super::{Kernel, Windows};

/// Windows that are summed at a time.
const BLOCK: usize = 4;

/// Bytes that are multiplied at a time.
const BYTES: usize = 16;

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    // SAFETY: this kernel is selected only on processors that have the instructions, and its
    // windows were found to be within the images.
    run: |windows, taps, sums| unsafe { run(windows, taps, sums) },
};

#[target_feature(enable = "avx2")]
unsafe fn run(windows: Windows<'_>, taps: &Window, sums: &mut [[i32; 2]]) {
    for (number, sums) in sums.chunks_mut(BLOCK).enumerate() {
        let first = windows.pixels.as_ptr().wrapping_add(number * BLOCK * windows.step);
        let mut both = [[_mm256_setzero_si256(); 2]; BLOCK];
        for (row, [a, b]) in taps.iter().enumerate() {
            let parts = a.0.as_chunks::<BYTES>().0.iter().zip(b.0.as_chunks::<BYTES>().0);
            for (part, (a, b)) in parts.enumerate() {
                // SAFETY: both are whole vectors.
                let [a, b] = [a, b].map(|taps| unsafe {
                    _mm256_cvtepi8_epi16(_mm_loadu_si128(taps.as_ptr().cast()))
                });
                for (window, both) in both.iter_mut().enumerate() {
                    // Beyond the last window, the last one is repeated.
                    let window = window.min(sums.len() - 1);
                    let pixels = first.wrapping_add(row * windows.row + window * windows.step);
                    let pixels = pixels.cast::<u8>().wrapping_add(part * BYTES);
                    // SAFETY: as promised to this function.
                    let pixels = unsafe { _mm_loadu_si128(pixels.cast()) };
                    let pixels = _mm256_cvtepu8_epi16(pixels);
                    both[0] = _mm256_add_epi32(both[0], _mm256_madd_epi16(pixels, a));
                    both[1] = _mm256_add_epi32(both[1], _mm256_madd_epi16(pixels, b));
                }
            }
        }
        for (sums, both) in sums.iter_mut().zip(both) {
            *sums = both.map(|lanes| horizontal_sum(lanes));
        }
    }
}

/// The sum of the lanes of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn horizontal_sum(lanes: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}
