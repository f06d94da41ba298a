//! 64 checks to a vector. Arithmetic that saturates is not needed, so additions go to either port
//! that takes 512 bits; what is left to one port alone are the absolute value and three minima.

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi8, _mm512_add_epi8, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512,
    _mm512_mask_blend_epi8, _mm512_mask_sub_epi8, _mm512_max_epu8, _mm512_min_epu8,
    _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_sub_epi8, _mm512_subs_epu8, _mm512_xor_si512,
};

use super::{
    CHUNK, Check, Choice, Kernel, Lanes, Layer, MAGNITUDE_MAX, OFFSET, Plan, State, compare_any,
    harden_any, load_any,
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

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    load_any(plan, state, soft);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn harden(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    harden_any(plan, state, word, |values| signs(values))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1")]
fn compare(soft: &[i8], word: &[u8]) -> [usize; 2] {
    compare_any(soft, word, |values| signs(values))
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
    let edges = sources.chunks_exact(step).zip(choices.chunks_exact(step));
    let found = checks.as_chunks_mut::<N>().0.iter_mut().zip(smallest.as_chunks_mut::<N>().0);
    for (((sources, choices), held), found) in edges.zip(held.chunks_exact_mut(step)).zip(found) {
        gather::<FIRST, N>(sums, weight, (sources, choices), held, found);
    }
    let found = checks.as_chunks::<N>().0.iter().zip(smallest.as_chunks::<N>().0);
    let edges = choices.chunks_exact_mut(step).zip(held.chunks_exact(step));
    for ((group, found), (choices, held)) in found.enumerate().zip(edges) {
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
    // The old messages, negated: adding them to a sum takes them out of it.
    let zero = _mm512_setzero_si512();
    let mut old = [(zero, zero); N];
    for (old, check) in old.iter_mut().zip(&*checks) {
        old.0 = _mm512_sub_epi8(zero, load_lanes(&check.first));
        old.1 = _mm512_sub_epi8(zero, load_lanes(&check.second));
    }
    let length = N * weight;
    assert_eq!([sources.len(), choices.len(), held.len()], [length; 3]);
    let (sources, choices, held) = (sources.as_ptr(), choices.as_ptr(), held.as_mut_ptr());
    let sums = sums.as_ptr();
    let mut smallest = [_mm512_set1_epi8(MAGNITUDE_MAX); N];
    let (mut second, mut parity) = (smallest, [zero; N]);
    for edge in 0..weight {
        for j in 0..N {
            // SAFETY: the lengths are N times the weight, and each source leaves a chunk of the
            // sums behind it. Pointers, because tests of bounds take a port that minima need.
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
            second[j] = _mm512_min_epu8(second[j], _mm512_max_epu8(smallest[j], magnitude));
            smallest[j] = _mm512_min_epu8(smallest[j], magnitude);
            parity[j] = _mm512_xor_si512(parity[j], rest);
        }
    }
    let offset = _mm512_set1_epi8(OFFSET.cast_signed());
    for j in 0..N {
        let negative = _mm512_movepi8_mask(parity[j]);
        let message = |magnitude: __m512i| {
            let message = _mm512_subs_epu8(magnitude, offset);
            _mm512_mask_sub_epi8(message, negative, zero, message)
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
            let sum = _mm512_add_epi8(rest, message);
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
