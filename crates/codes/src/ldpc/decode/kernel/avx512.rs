//! 64 checks to a vector. Arithmetic that saturates is not needed, so additions go to either port
//! that takes 512 bits; what is left to one port alone are the absolute value and three minima.

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi8, _mm512_add_epi8, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epi8_mask,
    _mm512_loadu_si512, _mm512_mask_blend_epi8, _mm512_mask_sub_epi8, _mm512_max_epu8,
    _mm512_min_epu8, _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_sub_epi8, _mm512_subs_epu8, _mm512_xor_si512,
};

use super::{
    CHUNK, Check, Kernel, Layer, MAGNITUDE_MAX, OFFSET, Plan, State, compare_any, harden_any,
    load_any,
};

// SAFETY of each call: the table is handed out on processors that have the level alone.
pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512",
    // SAFETY: see above.
    load: |plan, state, soft| unsafe { load(plan, state, soft) },
    // SAFETY: see above.
    first: |layer| unsafe { pass::<true>(layer) },
    // SAFETY: see above.
    next: |layer| unsafe { pass::<false>(layer) },
    // SAFETY: see above.
    parity: |layer| unsafe { parity(layer) },
    // SAFETY: see above.
    harden: |plan, state, word| unsafe { harden(plan, state, word) },
    // SAFETY: see above.
    compare: |soft, word| unsafe { compare(soft, word) },
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    load_any(plan, state, soft);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn harden(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    harden_any(plan, state, word, |values| signs(values))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1")]
fn compare(soft: &[i8], word: &[u8]) -> [usize; 3] {
    compare_any(soft, word, |values| signs(values))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn signs(values: &[i8; CHUNK]) -> u64 {
    // SAFETY: the array has the bytes of a vector.
    _mm512_movepi8_mask(unsafe { _mm512_loadu_si512(values.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn parity(layer: Layer<'_>) -> bool {
    let sums = layer.sums.as_ptr();
    layer.sources.chunks_exact(layer.targets.len()).all(|sources| {
        let mut parity = _mm512_setzero_si512();
        for &source in sources {
            // SAFETY: each source leaves a chunk of the sums behind it.
            let sum = unsafe { _mm512_loadu_si512(sums.add(source as usize).cast()) };
            parity = _mm512_xor_si512(parity, sum);
        }
        _mm512_movepi8_mask(parity) == 0
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pass<const FIRST: bool>(layer: Layer<'_>) {
    let Layer { sources, targets, sums, messages, held, checks } = layer;
    let weight = targets.len();
    let z = checks.len() * CHUNK;
    for (chunk, check) in checks.iter_mut().enumerate() {
        let start = chunk * weight;
        let values = start * CHUNK..(start + weight) * CHUNK;
        let (messages, held) = (&messages[values.clone()], &mut held[values]);
        gather::<FIRST>(&sources[start..start + weight], sums, messages, held, check);
    }
    for (chunk, check) in checks.iter().enumerate() {
        let values = chunk * weight * CHUNK..(chunk + 1) * weight * CHUNK;
        let (messages, held) = (&mut messages[values.clone()], &held[values]);
        if chunk == 0 {
            scatter::<true>(targets, 0, z, sums, messages, held, check);
        } else {
            scatter::<false>(targets, chunk * CHUNK, z, sums, messages, held, check);
        }
    }
}

/// Reads a chunk of checks and finds their minima.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn gather<const FIRST: bool>(
    sources: &[u32],
    sums: &[i8],
    messages: &[i8],
    held: &mut [i8],
    check: &mut Check,
) {
    let sums = sums.as_ptr();
    let edges = sources.iter().zip(messages.as_chunks::<CHUNK>().0);
    let mut smallest = _mm512_set1_epi8(MAGNITUDE_MAX);
    let (mut second, mut parity) = (smallest, _mm512_setzero_si512());
    for ((&source, message), held) in edges.zip(held.as_chunks_mut::<CHUNK>().0) {
        // SAFETY: each source leaves a chunk of the sums behind it; the others are chunks.
        let rest = unsafe {
            let sum = _mm512_loadu_si512(sums.add(source as usize).cast());
            let rest = if FIRST {
                sum
            } else {
                _mm512_sub_epi8(sum, _mm512_loadu_si512(message.as_ptr().cast()))
            };
            _mm512_storeu_si512(held.as_mut_ptr().cast(), rest);
            rest
        };
        let magnitude = _mm512_abs_epi8(rest);
        second = _mm512_min_epu8(second, _mm512_max_epu8(smallest, magnitude));
        smallest = _mm512_min_epu8(smallest, magnitude);
        parity = _mm512_xor_si512(parity, rest);
    }
    let offset = _mm512_set1_epi8(OFFSET.cast_signed());
    let (zero, negative) = (_mm512_setzero_si512(), _mm512_movepi8_mask(parity));
    let message = |magnitude: __m512i| {
        let message = _mm512_subs_epu8(magnitude, offset);
        _mm512_mask_sub_epi8(message, negative, zero, message)
    };
    // SAFETY: each array of a check has the bytes of a vector.
    unsafe {
        _mm512_storeu_si512(check.smallest.as_mut_ptr().cast(), smallest);
        _mm512_storeu_si512(check.first.as_mut_ptr().cast(), message(smallest));
        _mm512_storeu_si512(check.second.as_mut_ptr().cast(), message(second));
    }
}

/// Writes a chunk's new messages and sums; the first chunk again behind the column's end.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn scatter<const REPEAT: bool>(
    targets: &[u32],
    offset: usize,
    z: usize,
    sums: &mut [i8],
    messages: &mut [i8],
    held: &[i8],
    check: &Check,
) {
    // SAFETY: each array of a check has the bytes of a vector.
    let (smallest, first, second) = unsafe {
        (
            _mm512_loadu_si512(check.smallest.as_ptr().cast()),
            _mm512_loadu_si512(check.first.as_ptr().cast()),
            _mm512_loadu_si512(check.second.as_ptr().cast()),
        )
    };
    let zero = _mm512_setzero_si512();
    // SAFETY: each target leaves a column and a chunk of the sums behind it, and the offset is
    // within the column.
    let (here, again) = unsafe { (sums.as_mut_ptr().add(offset), sums.as_mut_ptr().add(z)) };
    let edges = targets.iter().zip(messages.as_chunks_mut::<CHUNK>().0);
    for ((&target, to), held) in edges.zip(held.as_chunks::<CHUNK>().0) {
        // SAFETY: see above; the others are chunks.
        unsafe {
            let rest = _mm512_loadu_si512(held.as_ptr().cast());
            let is_smallest = _mm512_cmpeq_epi8_mask(_mm512_abs_epi8(rest), smallest);
            let message = _mm512_mask_blend_epi8(is_smallest, first, second);
            let negative = _mm512_cmplt_epi8_mask(rest, zero);
            let message = _mm512_mask_sub_epi8(message, negative, zero, message);
            let sum = _mm512_add_epi8(rest, message);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), message);
            _mm512_storeu_si512(here.add(target as usize).cast(), sum);
            if REPEAT {
                _mm512_storeu_si512(again.add(target as usize).cast(), sum);
            }
        }
    }
}
