//! One row of a window per vector and four products per lane (VNNI): eight windows at a time, so
//! that taps are loaded once for eight.

#![expect(unsafe_code, reason = "vector loads and stores at places that are checked before")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_dpbusd_epi32, _mm512_load_si512, _mm512_loadu_si512,
    _mm512_mask_storeu_epi32, _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::super::bank::Window;
use super::{Kernel, Windows};

/// Windows that are summed at a time.
const BLOCK: usize = 8;

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512-vnni",
    // SAFETY: this kernel is selected only on processors that have the instructions, and its
    // windows were found to be within the images.
    run: |windows, taps, sums| unsafe { run(windows, taps, sums) },
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn run(windows: Windows<'_>, taps: &Window, sums: &mut [[i32; 2]]) {
    for (number, sums) in sums.chunks_mut(BLOCK).enumerate() {
        let first = windows.pixels.as_ptr().wrapping_add(number * BLOCK * windows.step);
        let mut both = [_mm512_setzero_si512(); 2 * BLOCK];
        for (row, [a, b]) in taps.iter().enumerate() {
            // SAFETY: a line is a whole vector, and aligned as one.
            let (a, b) = unsafe {
                (_mm512_load_si512(a.0.as_ptr().cast()), _mm512_load_si512(b.0.as_ptr().cast()))
            };
            for (window, both) in both.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                // Beyond the last window, the last one is repeated.
                let window = window.min(sums.len() - 1);
                let pixels = first.wrapping_add(row * windows.row + window * windows.step);
                // SAFETY: as promised to this function.
                let pixels = unsafe { _mm512_loadu_si512(pixels.cast()) };
                both[0] = _mm512_dpbusd_epi32(both[0], pixels, a);
                both[1] = _mm512_dpbusd_epi32(both[1], pixels, b);
            }
        }
        let mask = u16::MAX >> (2 * (BLOCK - sums.len()));
        // SAFETY: the mask has as many lanes as there are sums.
        unsafe { _mm512_mask_storeu_epi32(sums.as_mut_ptr().cast(), mask, horizontal_sums(both)) };
    }
}

/// The sum of the lanes of each vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn horizontal_sums(vectors: [__m512i; 16]) -> __m512i {
    let pair = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let four = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let quarters = |a, b| {
        _mm512_add_epi32(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
        )
    };
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = vectors;
    let first = quarters(four(pair(a, b), pair(c, d)), four(pair(e, f), pair(g, h)));
    let second = quarters(four(pair(i, j), pair(k, l)), four(pair(m, n), pair(o, p)));
    quarters(first, second)
}
