//! 64 checks to a vector. Arithmetic that saturates is not needed, so additions go to either port
//! that takes 512 bits; what is left to one port alone are the absolute value and three minima.
//!
//! A check's messages are kept negated: taking one out of a sum is then an addition, and the
//! negation by the choice's mask one instruction. (Where they are negated on the way, the compiler
//! moves that behind the choice, to every edge.)

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi8, _mm512_add_epi8, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512,
    _mm512_mask_blend_epi8, _mm512_mask_loadu_epi8, _mm512_mask_sub_epi8, _mm512_maskz_loadu_epi8,
    _mm512_max_epi8, _mm512_max_epu8, _mm512_min_epi8, _mm512_min_epu8, _mm512_movepi8_mask,
    _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_subs_epu8,
    _mm512_ternarylogic_epi64, _mm512_testn_epi8_mask, _mm512_xor_si512,
};

use super::{
    CHANNEL_MAX, CHUNK, Check, Choice, Kernel, Lanes, Layer, MAGNITUDE_MAX, OFFSET, Plan, State,
    harden_any,
};

// SAFETY of each call: the table is handed out on processors that have the level alone.
pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512",
    choices: true,
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

/// As [`super::load_any`]: where a chunk runs over the column's end, the rest comes from its front,
/// by masks in place of branches that could not be foretold.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    let z = plan.words * CHUNK;
    let most = _mm512_set1_epi8(CHANNEL_MAX);
    let least = _mm512_set1_epi8(-CHANNEL_MAX);
    let columns = state.sums.values().chunks_exact_mut(z + CHUNK);
    for ((column, soft), &shift) in columns.zip(soft.chunks_exact(z)).zip(&plan.last_shifts) {
        let chunks = column.as_chunks_mut::<CHUNK>().0;
        for (index, chunk) in chunks.iter_mut().enumerate() {
            // The size of a circulant is a power of two.
            let start = (index * CHUNK + shift) & (z - 1);
            let here = u64::MAX >> (CHUNK - (z - start).min(CHUNK));
            let values = soft.as_ptr().wrapping_add(start);
            // SAFETY: the masks take z - start values from the start on, at most, and the others
            // from the column's front on, which z values before the end of the vector begins.
            let values = unsafe {
                let ahead = _mm512_maskz_loadu_epi8(here, values);
                _mm512_mask_loadu_epi8(ahead, !here, values.wrapping_sub(z))
            };
            store_lanes(chunk, _mm512_max_epi8(_mm512_min_epi8(values, most), least));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn harden(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    harden_any(plan, state, word, |values| signs(values))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1")]
fn compare(soft: &[i8], word: &[u8]) -> [usize; 2] {
    let (mut corrected, mut erased) = (0, 0);
    for (soft, word) in soft.as_chunks::<CHUNK>().0.iter().zip(word.as_chunks().0) {
        let soft = load_lanes(soft);
        let zeros = _mm512_testn_epi8_mask(soft, soft);
        let wrong = (_mm512_movepi8_mask(soft) ^ u64::from_le_bytes(*word)) & !zeros;
        erased += zeros.count_ones() as usize;
        corrected += wrong.count_ones() as usize;
    }
    [corrected, erased]
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn signs(values: &[i8; CHUNK]) -> u64 {
    _mm512_movepi8_mask(load_lanes(values))
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

/// Updates a layer, two chunks at a time where it has them: their chains of minima are independent.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pass<const FIRST: bool>(layer: Layer<'_>) {
    if layer.checks.len().is_multiple_of(2) {
        pass_by::<FIRST, 2>(layer);
    } else {
        pass_by::<FIRST, 1>(layer);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pass_by<const FIRST: bool, const N: usize>(layer: Layer<'_>) {
    let Layer { sources, targets, sums, choices, held, smallest, checks, .. } = layer;
    let weight = targets.len();
    let held = held.as_chunks_mut::<CHUNK>().0;
    let z = checks.len() * CHUNK;
    let step = weight * N;
    let checks = checks.as_chunks_mut::<N>().0;
    let smallest = smallest.as_chunks_mut::<N>().0;
    for group in 0..checks.len() {
        let edges = group * step..(group + 1) * step;
        let found = (&mut checks[group], &mut smallest[group]);
        let (choices, held) = (&choices[edges.clone()], &mut held[edges.clone()]);
        gather::<FIRST, N>(sums, weight, (&sources[edges], choices), held, found);
    }
    for group in 0..checks.len() {
        let edges = group * step..(group + 1) * step;
        let found = (&checks[group], &smallest[group]);
        let (choices, held) = (&mut choices[edges.clone()], &held[edges]);
        if group == 0 {
            scatter::<true, N>(sums, (0, z), targets, choices, held, found);
        } else {
            scatter::<false, N>(sums, (group * N * CHUNK, z), targets, choices, held, found);
        }
    }
}

/// Reads `N` chunks of checks and finds their minima.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn gather<const FIRST: bool, const N: usize>(
    sums: &[i8],
    weight: usize,
    (sources, choices): (&[u32], &[Choice]),
    held: &mut [[i8; CHUNK]],
    (checks, found): (&mut [Check; N], &mut [Lanes; N]),
) {
    let zero = _mm512_setzero_si512();
    let mut old = [(zero, zero); N];
    for (old, check) in old.iter_mut().zip(&*checks) {
        *old = (load_lanes(&check.first), load_lanes(&check.second));
    }
    let length = N * weight;
    assert_eq!([sources.len(), choices.len(), held.len()], [length; 3]);
    let (sources, choices, held) = (sources.as_ptr(), choices.as_ptr(), held.as_mut_ptr());
    let sums = sums.as_ptr();
    let mut smallest = [_mm512_set1_epi8(MAGNITUDE_MAX); N];
    let (mut second, mut parity) = (smallest, [zero; N]);
    let take = |edge: usize, j: usize, smallest: &mut __m512i, second: &mut __m512i| {
        // SAFETY: the lengths are N times the weight, and each source leaves a chunk of the sums
        // behind it. Pointers, because tests of bounds take a port that minima need.
        let rest = unsafe {
            let source = *sources.add(j * weight).add(edge) as usize;
            let sum = _mm512_loadu_si512(sums.add(source).cast());
            let rest = if FIRST {
                sum
            } else {
                let Choice { second, negative } = *choices.add(j * weight).add(edge);
                let less = _mm512_mask_blend_epi8(second, old[j].0, old[j].1);
                _mm512_add_epi8(sum, _mm512_mask_sub_epi8(less, negative, zero, less))
            };
            _mm512_storeu_si512(held.add(j * weight).add(edge).cast(), rest);
            rest
        };
        let magnitude = _mm512_abs_epi8(rest);
        *second = _mm512_min_epu8(*second, _mm512_max_epu8(*smallest, magnitude));
        *smallest = _mm512_min_epu8(*smallest, magnitude);
        rest
    };
    // In pairs, because one instruction adds two signs to a parity.
    for edge in (1..weight).step_by(2) {
        for j in 0..N {
            let before = take(edge - 1, j, &mut smallest[j], &mut second[j]);
            let rest = take(edge, j, &mut smallest[j], &mut second[j]);
            parity[j] = _mm512_ternarylogic_epi64::<0x96>(parity[j], before, rest);
        }
    }
    if weight % 2 == 1 {
        for j in 0..N {
            let rest = take(weight - 1, j, &mut smallest[j], &mut second[j]);
            parity[j] = _mm512_xor_si512(parity[j], rest);
        }
    }
    let offset = _mm512_set1_epi8(OFFSET.cast_signed());
    for j in 0..N {
        // Negated, so that adding them takes a message out of a sum; see the module.
        let positive = !_mm512_movepi8_mask(parity[j]);
        let message = |magnitude: __m512i| {
            let message = _mm512_subs_epu8(magnitude, offset);
            _mm512_mask_sub_epi8(message, positive, zero, message)
        };
        store_lanes(&mut found[j].0, smallest[j]);
        store_lanes(&mut checks[j].first, message(smallest[j]));
        store_lanes(&mut checks[j].second, message(second[j]));
    }
}

/// Writes new messages and sums of `N` chunks; the first chunk again behind the column's end.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn scatter<const REPEAT: bool, const N: usize>(
    sums: &mut [i8],
    (offset, z): (usize, usize),
    targets: &[u32],
    choices: &mut [Choice],
    held: &[[i8; CHUNK]],
    (checks, found): (&[Check; N], &[Lanes; N]),
) {
    let weight = targets.len();
    let zero = _mm512_setzero_si512();
    let mut lanes = [(zero, zero, zero); N];
    for (lanes, (check, found)) in lanes.iter_mut().zip(checks.iter().zip(found)) {
        *lanes = (load_lanes(&check.first), load_lanes(&check.second), load_lanes(&found.0));
    }
    assert_eq!(held.len(), N * weight);
    assert_eq!(choices.len(), N * weight);
    let (choices, held) = (choices.as_mut_ptr(), held.as_ptr());
    // SAFETY: each target leaves a column and a chunk of the sums behind it, and the offset is
    // that of N chunks within the column.
    let (here, again) = unsafe { (sums.as_mut_ptr().add(offset), sums.as_mut_ptr().add(z)) };
    for (edge, &target) in targets.iter().enumerate() {
        let target = target as usize;
        for (j, &(first, second, smallest)) in lanes.iter().enumerate() {
            // SAFETY: there are held values for N times the weight.
            let rest = unsafe { _mm512_loadu_si512(held.add(j * weight).add(edge).cast()) };
            let is_smallest = _mm512_cmpeq_epi8_mask(_mm512_abs_epi8(rest), smallest);
            let message = _mm512_mask_blend_epi8(is_smallest, first, second);
            let negative = _mm512_movepi8_mask(rest);
            let message = _mm512_mask_sub_epi8(message, negative, zero, message);
            let sum = _mm512_sub_epi8(rest, message);
            // SAFETY: there are choices for N times the weight; for the sums see above.
            unsafe {
                let choice = Choice { second: is_smallest, negative };
                choices.add(j * weight).add(edge).write(choice);
                _mm512_storeu_si512(here.add(target).add(j * CHUNK).cast(), sum);
                if REPEAT && j == 0 {
                    _mm512_storeu_si512(again.add(target).cast(), sum);
                }
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_lanes(lanes: &[i8; CHUNK]) -> __m512i {
    // SAFETY: the array has the bytes of a vector.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store_lanes(lanes: &mut [i8; CHUNK], vector: __m512i) {
    // SAFETY: the array has the bytes of a vector.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), vector) }
}
