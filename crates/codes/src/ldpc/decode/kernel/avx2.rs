//! 64 checks to two vectors, one after the other.

#![expect(unsafe_code, reason = "vector loads and stores at places that the plan has checked")]

use std::arch::x86_64::{
    __m256i, _mm256_abs_epi8, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_sign_epi8, _mm256_storeu_si256, _mm256_sub_epi8,
    _mm256_subs_epu8, _mm256_xor_si256,
};

use super::{
    CHUNK, Check, Kernel, Lanes, Layer, MAGNITUDE_MAX, OFFSET, Plan, State, compare_any,
    harden_any, load_any,
};

/// Checks of one vector.
const HALF: usize = CHUNK / 2;

// SAFETY of each call: the table is handed out on processors that have the level alone.
pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    choices: false,
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

#[target_feature(enable = "avx2")]
fn load(plan: &Plan, state: &mut State, soft: &[i8]) {
    load_any(plan, state, soft);
}

#[target_feature(enable = "avx2,popcnt")]
fn harden(plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
    harden_any(plan, state, word, |values| signs(values))
}

#[target_feature(enable = "avx2,popcnt")]
fn compare(soft: &[i8], word: &[u8]) -> [usize; 2] {
    compare_any(soft, word, |values| signs(values))
}

#[target_feature(enable = "avx2")]
fn signs(values: &[i8; CHUNK]) -> u64 {
    let (low, high) = values.split_at(HALF);
    // SAFETY: each half has the bytes of a vector.
    let mask = |half: &[i8]| _mm256_movemask_epi8(unsafe { get(half.as_ptr()) }).cast_unsigned();
    u64::from(mask(low)) | u64::from(mask(high)) << 32
}

/// Reads a vector.
///
/// # Safety
/// 32 values must be readable.
#[target_feature(enable = "avx2")]
unsafe fn get(from: *const i8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// Writes a vector.
///
/// # Safety
/// 32 values must be writable.
#[target_feature(enable = "avx2")]
unsafe fn put(to: *mut i8, vector: __m256i) {
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), vector) }
}

#[target_feature(enable = "avx2")]
fn parity(layer: Layer<'_>) -> bool {
    let sums = layer.sums.as_ptr();
    layer.sources.chunks_exact(layer.targets.len()).all(|sources| {
        let mut parity = [_mm256_setzero_si256(); 2];
        for &source in sources {
            for (half, parity) in parity.iter_mut().enumerate() {
                // SAFETY: each source leaves a chunk of the sums behind it.
                let sum = unsafe { get(sums.add(source as usize + half * HALF)) };
                *parity = _mm256_xor_si256(*parity, sum);
            }
        }
        _mm256_movemask_epi8(_mm256_or_si256(parity[0], parity[1])) == 0
    })
}

#[target_feature(enable = "avx2")]
fn pass<const FIRST: bool>(layer: Layer<'_>) {
    let Layer { sources, targets, sums, messages, held, smallest, checks, .. } = layer;
    let weight = targets.len();
    let z = checks.len() * CHUNK;
    for (chunk, found) in checks.iter_mut().zip(&mut *smallest).enumerate() {
        let start = chunk * weight;
        let values = start * CHUNK..(start + weight) * CHUNK;
        let (messages, held) = (&messages[values.clone()], &mut held[values]);
        for half in [0, HALF] {
            let sources = &sources[start..start + weight];
            gather::<FIRST>(sources, half, sums, messages, held, (found.0, found.1));
        }
    }
    for (chunk, found) in checks.iter().zip(&*smallest).enumerate() {
        let values = chunk * weight * CHUNK..(chunk + 1) * weight * CHUNK;
        let (messages, held) = (&mut messages[values.clone()], &held[values]);
        for half in [0, HALF] {
            let places = (chunk * CHUNK, half, (chunk == 0).then_some(z));
            scatter(targets, places, sums, messages, held, found);
        }
    }
}

/// Reads half a chunk of checks and finds their minima.
#[target_feature(enable = "avx2")]
fn gather<const FIRST: bool>(
    sources: &[u32],
    half: usize,
    sums: &[i8],
    messages: &[i8],
    held: &mut [i8],
    (check, found): (&mut Check, &mut Lanes),
) {
    // SAFETY: within the first chunk.
    let sums = unsafe { sums.as_ptr().add(half) };
    let edges = sources.iter().zip(messages.as_chunks::<CHUNK>().0);
    let mut smallest = _mm256_set1_epi8(MAGNITUDE_MAX);
    let (mut second, mut parity) = (smallest, _mm256_setzero_si256());
    for ((&source, message), held) in edges.zip(held.as_chunks_mut::<CHUNK>().0) {
        // SAFETY: each source leaves a chunk of the sums behind it; the others are chunks.
        let rest = unsafe {
            let sum = get(sums.add(source as usize));
            let rest =
                if FIRST { sum } else { _mm256_sub_epi8(sum, get(message.as_ptr().add(half))) };
            put(held.as_mut_ptr().add(half), rest);
            rest
        };
        let magnitude = _mm256_abs_epi8(rest);
        second = _mm256_min_epu8(second, _mm256_max_epu8(smallest, magnitude));
        smallest = _mm256_min_epu8(smallest, magnitude);
        parity = _mm256_xor_si256(parity, rest);
    }
    let offset = _mm256_set1_epi8(OFFSET.cast_signed());
    // The instruction multiplies by -1, 0 or 1; the one keeps a zero from being one.
    let parity = _mm256_or_si256(parity, _mm256_set1_epi8(1));
    let message =
        |magnitude: __m256i| _mm256_sign_epi8(_mm256_subs_epu8(magnitude, offset), parity);
    // SAFETY: each array of a check has the bytes of two vectors.
    unsafe {
        put(found.0.as_mut_ptr().add(half), smallest);
        put(check.first.as_mut_ptr().add(half), message(smallest));
        put(check.second.as_mut_ptr().add(half), message(second));
    }
}

/// Writes half a chunk's new messages and sums; the first chunk's again behind the column's end.
#[target_feature(enable = "avx2")]
fn scatter(
    targets: &[u32],
    (offset, half, repeat): (usize, usize, Option<usize>),
    sums: &mut [i8],
    messages: &mut [i8],
    held: &[i8],
    (check, found): (&Check, &Lanes),
) {
    // SAFETY: each array of a check has the bytes of two vectors.
    let (smallest, first, second) = unsafe {
        (
            get(found.0.as_ptr().add(half)),
            get(check.first.as_ptr().add(half)),
            get(check.second.as_ptr().add(half)),
        )
    };
    let change = _mm256_xor_si256(first, second);
    let one = _mm256_set1_epi8(1);
    // SAFETY: each target leaves a column and a chunk of the sums behind it, and the offset is
    // within the column.
    let here = unsafe { sums.as_mut_ptr().add(offset).add(half) };
    // SAFETY: see above.
    let again = repeat.map(|z| unsafe { sums.as_mut_ptr().add(z).add(half) });
    let edges = targets.iter().zip(messages.as_chunks_mut::<CHUNK>().0);
    for ((&target, to), held) in edges.zip(held.as_chunks::<CHUNK>().0) {
        // SAFETY: see above; the others are chunks.
        unsafe {
            let rest = get(held.as_ptr().add(half));
            let is_smallest = _mm256_cmpeq_epi8(_mm256_abs_epi8(rest), smallest);
            let message = _mm256_xor_si256(first, _mm256_and_si256(is_smallest, change));
            let message = _mm256_sign_epi8(message, _mm256_or_si256(rest, one));
            let sum = _mm256_add_epi8(rest, message);
            put(to.as_mut_ptr().add(half), message);
            put(here.add(target as usize), sum);
            if let Some(again) = again {
                put(again.add(target as usize), sum);
            }
        }
    }
}
