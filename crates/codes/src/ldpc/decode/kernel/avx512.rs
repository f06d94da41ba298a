//! One vector for 64 checks. No saturating arithmetic is needed, so additions can use any port that
//! handles 512 bits.

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi8, _mm512_add_epi8, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512,
    _mm512_mask_blend_epi8, _mm512_mask_loadu_epi8, _mm512_mask_sub_epi8, _mm512_maskz_loadu_epi8,
    _mm512_max_epi8, _mm512_max_epu8, _mm512_min_epi8, _mm512_min_epu8, _mm512_movepi8_mask,
    _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_subs_epu8,
    _mm512_testn_epi8_mask, _mm512_xor_si512,
};

use super::{
    CHANNEL_MAX, CHUNK, Check, Kernel, Layer, MAGNITUDE_MAX, OFFSET, Plan, State, for_each_layer,
    hard_decide_any,
};

/// Maximum number of chunks processed together: the state of eight does not fit the registers.
const GROUP_MAX: usize = 4;

// SAFETY of each call: the table is only used on processors that support the level.
pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512",
    group_max: GROUP_MAX,
    // SAFETY: see above.
    load: |plan, state, soft| unsafe { load(plan, state, soft) },
    // SAFETY: see above.
    first: |plan, state| unsafe { iterate::<true>(plan, state) },
    // SAFETY: see above.
    next: |plan, state| unsafe { iterate::<false>(plan, state) },
    // SAFETY: see above.
    parity: |layer| unsafe { parity(layer) },
    // SAFETY: see above.
    hard_decide: |plan, state, word| unsafe { hard_decide(plan, state, word) },
    // SAFETY: see above.
    compare: |soft, word| unsafe { compare(soft, word) },
};

/// Like [`super::load_any`]. Where a chunk runs over the column's end, the rest comes from the
/// column's start, selected by masks instead of unpredictable branches.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    let z = plan.words * CHUNK;
    let max = _mm512_set1_epi8(CHANNEL_MAX);
    let min = _mm512_set1_epi8(-CHANNEL_MAX);
    let columns = state.sums.values().chunks_exact_mut(z + CHUNK);
    for ((column, soft), &shift) in columns.zip(soft.chunks_exact(z)).zip(&plan.last_shifts) {
        let chunks = column.as_chunks_mut::<CHUNK>().0;
        for (index, chunk) in chunks.iter_mut().enumerate() {
            // The size of a circulant is a power of two.
            let start = (index * CHUNK + shift) & (z - 1);
            let here = u64::MAX >> (CHUNK - (z - start).min(CHUNK));
            let values = soft.as_ptr().wrapping_add(start);
            // SAFETY: the masks select at most z - start values from `start` on; the others come
            // from the column's start, which is z values before the position that the vector would
            // reach.
            let values = unsafe {
                let ahead = _mm512_maskz_loadu_epi8(here, values);
                _mm512_mask_loadu_epi8(ahead, !here, values.wrapping_sub(z))
            };
            store_lanes(chunk, _mm512_max_epi8(_mm512_min_epi8(values, max), min));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn hard_decide(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    hard_decide_any(plan, state, word, |values| signs(values))
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
    match layer.group {
        GROUP_MAX => group_parity::<GROUP_MAX>(layer),
        2 => group_parity::<2>(layer),
        _ => group_parity::<1>(layer),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn group_parity<const N: usize>(layer: Layer<'_>) -> bool {
    let sums = layer.sums.as_ptr();
    layer.sources.as_chunks::<N>().0.chunks_exact(layer.targets.len()).all(|edges| {
        let mut parity = [_mm512_setzero_si512(); N];
        for sources in edges {
            for (parity, &source) in parity.iter_mut().zip(sources) {
                // SAFETY: at least a chunk of the sums follows each source.
                let sum = unsafe { _mm512_loadu_si512(sums.add(source as usize).cast()) };
                *parity = _mm512_xor_si512(*parity, sum);
            }
        }
        parity.into_iter().all(|parity| _mm512_movepi8_mask(parity) == 0)
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn iterate<const FIRST: bool>(plan: &Plan, state: &mut State) {
    match plan.group {
        GROUP_MAX => for_each_layer(plan, state, |layer| pass::<FIRST, GROUP_MAX>(layer)),
        2 => for_each_layer(plan, state, |layer| pass::<FIRST, 2>(layer)),
        _ => for_each_layer(plan, state, |layer| pass::<FIRST, 1>(layer)),
    }
}

/// Updates a layer by groups of chunks, whose dependency chains of minima are independent.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pass<const FIRST: bool, const N: usize>(layer: Layer<'_>) {
    let Layer { sources, targets, sums, messages, checks, .. } = layer;
    let weight = targets.len();
    let z = checks.len() * CHUNK;
    let messages = messages.as_chunks_mut::<CHUNK>().0.as_chunks_mut::<N>().0;
    let checks = checks.as_chunks_mut::<N>().0;
    let groups = sources.as_chunks().0.chunks_exact(weight).zip(messages.chunks_exact_mut(weight));
    for ((sources, messages), checks) in groups.zip(&mut *checks) {
        gather::<FIRST, N>(sums, sources, messages, checks);
    }
    let groups = checks.iter().zip(messages.chunks_exact_mut(weight)).enumerate();
    for (group, (checks, messages)) in groups {
        if group == 0 {
            scatter::<true, N>(sums, (0, z), targets, messages, checks);
        } else {
            scatter::<false, N>(sums, (group * N * CHUNK, z), targets, messages, checks);
        }
    }
}

/// Reads `N` chunks of checks and finds their minima. Replaces the old messages by sums minus
/// messages.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn gather<const FIRST: bool, const N: usize>(
    sums: &[i8],
    sources: &[[u32; N]],
    messages: &mut [[[i8; CHUNK]; N]],
    checks: &mut [Check; N],
) {
    let zero = _mm512_setzero_si512();
    let mut smallest = [_mm512_set1_epi8(MAGNITUDE_MAX); N];
    let (mut second, mut parity) = (smallest, [zero; N]);
    for (sources, messages) in sources.iter().zip(messages) {
        for j in 0..N {
            // SAFETY: at least a chunk of the sums follows each source.
            let sum = unsafe { _mm512_loadu_si512(sums.as_ptr().add(sources[j] as usize).cast()) };
            let extrinsic =
                if FIRST { sum } else { _mm512_sub_epi8(sum, load_lanes(&messages[j])) };
            store_lanes(&mut messages[j], extrinsic);
            let magnitude = _mm512_abs_epi8(extrinsic);
            let larger = _mm512_max_epu8(smallest[j], magnitude);
            second[j] = _mm512_min_epu8(second[j], larger);
            smallest[j] = _mm512_min_epu8(smallest[j], magnitude);
            parity[j] = _mm512_xor_si512(parity[j], extrinsic);
        }
    }
    let offset = _mm512_set1_epi8(OFFSET.cast_signed());
    for j in 0..N {
        let negative = _mm512_movepi8_mask(parity[j]);
        let message = |magnitude: __m512i| {
            let message = _mm512_subs_epu8(magnitude, offset);
            _mm512_mask_sub_epi8(message, negative, zero, message)
        };
        store_lanes(&mut checks[j].smallest, smallest[j]);
        store_lanes(&mut checks[j].first, message(smallest[j]));
        store_lanes(&mut checks[j].second, message(second[j]));
    }
}

/// Writes new messages and sums of `N` chunks; repeats the first chunk after the column's end.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn scatter<const REPEAT: bool, const N: usize>(
    sums: &mut [i8],
    (offset, z): (usize, usize),
    targets: &[u32],
    messages: &mut [[[i8; CHUNK]; N]],
    checks: &[Check; N],
) {
    let zero = _mm512_setzero_si512();
    let mut lanes = [(zero, zero, zero); N];
    for (lanes, check) in lanes.iter_mut().zip(checks) {
        *lanes = (load_lanes(&check.first), load_lanes(&check.second), load_lanes(&check.smallest));
    }
    // SAFETY: at least a column and a chunk of the sums follow each target, and the offset is that
    // of N chunks within the column.
    let (here, repeated) = unsafe { (sums.as_mut_ptr().add(offset), sums.as_mut_ptr().add(z)) };
    for (&target, messages) in targets.iter().zip(messages) {
        let target = target as usize;
        for j in 0..N {
            let (first, second, smallest) = lanes[j];
            let extrinsic = load_lanes(&messages[j]);
            let is_smallest = _mm512_cmpeq_epi8_mask(_mm512_abs_epi8(extrinsic), smallest);
            let message = _mm512_mask_blend_epi8(is_smallest, first, second);
            let negative = _mm512_movepi8_mask(extrinsic);
            let message = _mm512_mask_sub_epi8(message, negative, zero, message);
            let sum = _mm512_add_epi8(extrinsic, message);
            store_lanes(&mut messages[j], message);
            // SAFETY: see above.
            unsafe {
                _mm512_storeu_si512(here.add(target).add(j * CHUNK).cast(), sum);
                if REPEAT && j == 0 {
                    _mm512_storeu_si512(repeated.add(target).cast(), sum);
                }
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_lanes(lanes: &[i8; CHUNK]) -> __m512i {
    // SAFETY: the array has the size of a vector.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store_lanes(lanes: &mut [i8; CHUNK], vector: __m512i) {
    // SAFETY: the array has the size of a vector.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), vector) }
}
