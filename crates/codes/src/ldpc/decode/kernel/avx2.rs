//! Two vectors for 64 checks, interleaved: their dependency chains of minima are independent.

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m256i, _mm256_abs_epi8, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_sign_epi8, _mm256_storeu_si256, _mm256_sub_epi8,
    _mm256_subs_epu8, _mm256_xor_si256,
};

use super::{
    CHUNK, Check, Kernel, Layer, MAGNITUDE_MAX, OFFSET, Plan, State, compare_any, for_each_layer,
    hard_decide_any, load_any,
};

/// Checks per vector.
const HALF: usize = CHUNK / 2;

// SAFETY of each call: the table is only used on processors that support the level.
pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    group_max: 1,
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

#[target_feature(enable = "avx2")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    load_any(plan, state, soft);
}

#[target_feature(enable = "avx2,popcnt")]
fn hard_decide(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    hard_decide_any(plan, state, word, |values| signs(values))
}

#[target_feature(enable = "avx2,popcnt")]
fn compare(soft: &[i8], word: &[u8]) -> [usize; 2] {
    compare_any(soft, word, |values| signs(values))
}

#[target_feature(enable = "avx2")]
fn signs(values: &[i8; CHUNK]) -> u64 {
    let (low, high) = values.split_at(HALF);
    // SAFETY: each half has the size of a vector.
    let mask = |half: &[i8]| _mm256_movemask_epi8(unsafe { get(half.as_ptr()) }).cast_unsigned();
    u64::from(mask(low)) | u64::from(mask(high)) << 32
}

/// Loads a vector.
///
/// # Safety
/// 32 values must be readable.
#[target_feature(enable = "avx2")]
unsafe fn get(from: *const i8) -> __m256i {
    // SAFETY: guaranteed by the caller.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// Stores a vector.
///
/// # Safety
/// 32 values must be writable.
#[target_feature(enable = "avx2")]
unsafe fn put(to: *mut i8, vector: __m256i) {
    // SAFETY: guaranteed by the caller.
    unsafe { _mm256_storeu_si256(to.cast(), vector) }
}

#[target_feature(enable = "avx2")]
fn parity(layer: Layer<'_>) -> bool {
    let sums = layer.sums.as_ptr();
    layer.sources.chunks_exact(layer.targets.len()).all(|sources| {
        let mut parity = [_mm256_setzero_si256(); 2];
        for &source in sources {
            for (half, parity) in parity.iter_mut().enumerate() {
                // SAFETY: at least a chunk of the sums follows each source.
                let sum = unsafe { get(sums.add(source as usize + half * HALF)) };
                *parity = _mm256_xor_si256(*parity, sum);
            }
        }
        _mm256_movemask_epi8(_mm256_or_si256(parity[0], parity[1])) == 0
    })
}

#[target_feature(enable = "avx2")]
fn iterate<const FIRST: bool>(plan: &Plan, state: &mut State) {
    for_each_layer(plan, state, |layer| pass::<FIRST>(layer));
}

#[target_feature(enable = "avx2")]
fn pass<const FIRST: bool>(layer: Layer<'_>) {
    let Layer { sources, targets, sums, messages, checks, .. } = layer;
    let weight = targets.len();
    let z = checks.len() * CHUNK;
    let messages = messages.as_chunks_mut::<CHUNK>().0;
    let chunks = sources.chunks_exact(weight).zip(messages.chunks_exact_mut(weight));
    for ((sources, messages), check) in chunks.zip(&mut *checks) {
        gather::<FIRST>(sums, sources, messages, check);
    }
    for (chunk, (check, messages)) in
        checks.iter().zip(messages.chunks_exact_mut(weight)).enumerate()
    {
        if chunk == 0 {
            scatter::<true>(sums, (0, z), targets, messages, check);
        } else {
            scatter::<false>(sums, (chunk * CHUNK, z), targets, messages, check);
        }
    }
}

/// Reads a chunk of checks and finds their minima. Replaces the old messages by sums minus
/// messages.
#[target_feature(enable = "avx2")]
fn gather<const FIRST: bool>(
    sums: &[i8],
    sources: &[u32],
    messages: &mut [[i8; CHUNK]],
    check: &mut Check,
) {
    let mut smallest = [_mm256_set1_epi8(MAGNITUDE_MAX); 2];
    let (mut second, mut parity) = (smallest, [_mm256_setzero_si256(); 2]);
    for (&source, message) in sources.iter().zip(messages) {
        for half in 0..2 {
            // SAFETY: at least a chunk of the sums follows each source; the message is a chunk.
            let extrinsic = unsafe {
                let sum = get(sums.as_ptr().add(source as usize + half * HALF));
                let place = message.as_mut_ptr().add(half * HALF);
                let extrinsic = if FIRST { sum } else { _mm256_sub_epi8(sum, get(place)) };
                put(place, extrinsic);
                extrinsic
            };
            let magnitude = _mm256_abs_epi8(extrinsic);
            let larger = _mm256_max_epu8(smallest[half], magnitude);
            second[half] = _mm256_min_epu8(second[half], larger);
            smallest[half] = _mm256_min_epu8(smallest[half], magnitude);
            parity[half] = _mm256_xor_si256(parity[half], extrinsic);
        }
    }
    let offset = _mm256_set1_epi8(OFFSET.cast_signed());
    for half in 0..2 {
        // The instruction multiplies by the sign, -1, 0 or 1; setting the lowest bit avoids 0.
        let parity = _mm256_or_si256(parity[half], _mm256_set1_epi8(1));
        let message =
            |magnitude: __m256i| _mm256_sign_epi8(_mm256_subs_epu8(magnitude, offset), parity);
        // SAFETY: each array of a check has the size of two vectors.
        unsafe {
            put(check.smallest.as_mut_ptr().add(half * HALF), smallest[half]);
            put(check.first.as_mut_ptr().add(half * HALF), message(smallest[half]));
            put(check.second.as_mut_ptr().add(half * HALF), message(second[half]));
        }
    }
}

/// Writes a chunk's new messages and sums; repeats the first chunk after the column's end.
#[target_feature(enable = "avx2")]
fn scatter<const REPEAT: bool>(
    sums: &mut [i8],
    (offset, z): (usize, usize),
    targets: &[u32],
    messages: &mut [[i8; CHUNK]],
    check: &Check,
) {
    let one = _mm256_set1_epi8(1);
    let lanes = [0, HALF].map(|half| {
        // SAFETY: each array of a check has the size of two vectors.
        unsafe {
            let first = get(check.first.as_ptr().add(half));
            let change = _mm256_xor_si256(first, get(check.second.as_ptr().add(half)));
            (first, change, get(check.smallest.as_ptr().add(half)))
        }
    });
    // SAFETY: at least a column and a chunk of the sums follow each target, and the offset is
    // within the column.
    let (here, repeated) = unsafe { (sums.as_mut_ptr().add(offset), sums.as_mut_ptr().add(z)) };
    for (&target, message) in targets.iter().zip(messages) {
        for (half, (first, change, smallest)) in lanes.into_iter().enumerate() {
            let half = half * HALF;
            // SAFETY: see above; the message is a chunk.
            unsafe {
                let place = message.as_mut_ptr().add(half);
                let extrinsic = get(place);
                let is_smallest = _mm256_cmpeq_epi8(_mm256_abs_epi8(extrinsic), smallest);
                let message = _mm256_xor_si256(first, _mm256_and_si256(is_smallest, change));
                let message = _mm256_sign_epi8(message, _mm256_or_si256(extrinsic, one));
                let sum = _mm256_add_epi8(extrinsic, message);
                put(place, message);
                put(here.add(target as usize + half), sum);
                if REPEAT {
                    put(repeated.add(target as usize + half), sum);
                }
            }
        }
    }
}
