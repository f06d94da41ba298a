//! The decoder's inner loops for each instruction-set level, and their scalar reference.

use super::plan::{CHUNK, Check, Layer, Plan, State};
use super::{CHANNEL_MAX, MESSAGE_MAX, OFFSET};
use crate::Isa;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// Initial minimum of a check: no larger magnitude can lead to a larger message.
const MAGNITUDE_MAX: i8 = MESSAGE_MAX + OFFSET.cast_signed();

/// Functions of one instruction-set level.
pub(super) struct Kernel {
    name: &'static str,
    /// Maximum number of chunks processed together.
    group_max: usize,
    load: fn(&Plan, &mut State, &[i8]),
    first: fn(&Plan, &mut State),
    next: fn(&Plan, &mut State),
    parity: fn(Layer<'_>) -> bool,
    hard_decide: fn(&Plan, &mut State, &mut [u8]) -> bool,
    compare: fn(&[i8], &[u8]) -> [usize; 2],
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static SCALAR: Kernel = Kernel {
    name: "scalar",
    group_max: 1,
    load: load_any,
    first: |plan, state| for_each_layer(plan, state, pass_scalar::<true>),
    next: |plan, state| for_each_layer(plan, state, pass_scalar::<false>),
    parity: parity_scalar,
    hard_decide: |plan, state, word| hard_decide_any(plan, state, word, signs_scalar),
    compare: |soft, word| compare_any(soft, word, signs_scalar),
};

impl Kernel {
    /// Returns the kernel of a level, or of the best lower level that has one.
    pub(super) fn select(isa: Isa) -> &'static Self {
        if !isa.is_supported() {
            return &SCALAR;
        }
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Gfni => &avx512::KERNEL,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx2Gfni => &avx2::KERNEL,
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512Gfni | Isa::Avx2 | Isa::Avx2Gfni => &SCALAR,
            // On AArch64 the compiler vectorizes the scalar loops over 64 lanes.
            Isa::Scalar | Isa::Neon => &SCALAR,
        }
    }

    /// Maximum number of chunks processed together: the plan orders the messages accordingly.
    pub(super) fn group_max(&self) -> usize {
        self.group_max
    }

    /// Loads the channel values.
    pub(super) fn load(&self, plan: &Plan, state: &mut State, soft: &[i8]) {
        (self.load)(plan, state, soft);
    }

    /// Updates every layer. In the first iteration the old messages are zeros and are not read.
    pub(super) fn iterate(&self, plan: &Plan, state: &mut State, is_first: bool) {
        if is_first { (self.first)(plan, state) } else { (self.next)(plan, state) }
    }

    /// Returns whether the hard decisions are a codeword. Unless the first layer rules it out,
    /// writes them to `word`.
    pub(super) fn is_codeword(&self, plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
        (self.parity)(Layer::select(plan, state, 0)) && self.hard_decide(plan, state, word)
    }

    /// Writes the hard decisions to `word`, and returns whether those bits satisfy every check.
    pub(super) fn hard_decide(&self, plan: &Plan, state: &mut State, word: &mut [u8]) -> bool {
        (self.hard_decide)(plan, state, word)
    }

    /// Counts the bits in which the word differs from the input, and the erased bits.
    pub(super) fn compare(&self, soft: &[i8], word: &[u8]) -> [usize; 2] {
        (self.compare)(soft, word)
    }
}

/// Runs all layers within one function of a level: at 16k, a call for each layer cost 1 %.
#[inline(always)]
fn for_each_layer(plan: &Plan, state: &mut State, pass: impl Fn(Layer<'_>)) {
    for layer in 0..plan.layers() {
        pass(Layer::select(plan, state, layer));
    }
}

/// Loads the channel values, column by column, in the rotation of the last layer.
#[inline(always)]
fn load_any(plan: &Plan, state: &mut State, soft: &[i8]) {
    let z = plan.words * CHUNK;
    let columns = state.sums.values().chunks_exact_mut(z + CHUNK);
    for ((column, soft), &shift) in columns.zip(soft.chunks_exact(z)).zip(&plan.last_shifts) {
        let chunks = column.as_chunks_mut::<CHUNK>().0;
        for (index, chunk) in chunks.iter_mut().enumerate() {
            let (start, mut values) = ((index * CHUNK + shift) & (z - 1), [0; CHUNK]);
            match soft[start..].first_chunk() {
                Some(whole) => values = *whole,
                None => {
                    let (front, back) = values.split_at_mut(z - start);
                    front.copy_from_slice(&soft[start..]);
                    back.copy_from_slice(&soft[..start + CHUNK - z]);
                }
            }
            for (to, value) in chunk.iter_mut().zip(values) {
                *to = value.clamp(-CHANNEL_MAX, CHANNEL_MAX);
            }
        }
    }
}

/// Packs the signs of the sums into bits, in the order of the word, and tests them.
#[inline(always)]
fn hard_decide_any(
    plan: &Plan,
    state: &mut State,
    word: &mut [u8],
    signs: impl Fn(&[i8; CHUNK]) -> u64,
) -> bool {
    match plan.words {
        1 => hard_decide_words::<1>(plan, state, word, signs),
        2 => hard_decide_words::<2>(plan, state, word, signs),
        4 => hard_decide_words::<4>(plan, state, word, signs),
        8 => hard_decide_words::<8>(plan, state, word, signs),
        16 => hard_decide_words::<16>(plan, state, word, signs),
        words => unreachable!("no matrix has circulants of {words} words"),
    }
    plan.is_satisfied(&state.doubled)
}

#[inline(always)]
fn hard_decide_words<const W: usize>(
    plan: &Plan,
    state: &mut State,
    word: &mut [u8],
    signs: impl Fn(&[i8; CHUNK]) -> u64,
) {
    let State { sums, doubled, .. } = state;
    let columns = sums.values().chunks_exact((W + 1) * CHUNK);
    let doubled = doubled.as_chunks_mut::<W>().0.as_chunks_mut::<2>().0;
    let word = word.as_chunks_mut::<8>().0.as_chunks_mut::<W>().0;
    for (((column, doubled), word), &shift) in columns.zip(doubled).zip(word).zip(&plan.last_shifts)
    {
        let mut straight = [0; W];
        for (i, straight) in straight.iter_mut().enumerate() {
            // Undoes the rotation; the sums repeated after the column let the read run over its
            // end.
            let start = ((W + i) * CHUNK - shift) & (W * CHUNK - 1);
            *straight = signs(chunk_at(column, start));
        }
        *doubled = [straight; 2];
        *word = straight.map(u64::to_le_bytes);
    }
}

/// Counts the bits in which the word differs from the input, and the erased bits.
#[inline(always)]
fn compare_any(soft: &[i8], word: &[u8], signs: impl Fn(&[i8; CHUNK]) -> u64) -> [usize; 2] {
    let (mut corrected, mut erased) = (0, 0);
    for (soft, word) in soft.as_chunks::<CHUNK>().0.iter().zip(word.as_chunks().0) {
        // Only 0 becomes negative: a zero is an erasure, so its sign cannot be wrong.
        let zeros = signs(&soft.map(|soft| if soft == 0 { -1 } else { 0 }));
        let wrong = (signs(soft) ^ u64::from_le_bytes(*word)) & !zeros;
        erased += zeros.count_ones() as usize;
        corrected += wrong.count_ones() as usize;
    }
    [corrected, erased]
}

/// Packs the sign bits of 64 values, by a multiplication that gathers eight at a time.
fn signs_scalar(values: &[i8; CHUNK]) -> u64 {
    let mut signs = 0;
    for (i, eight) in values.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(eight.map(i8::cast_unsigned)) >> 7 & 0x0101_0101_0101_0101;
        signs |= bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i);
    }
    signs
}

/// Whether the hard decisions satisfy the layer.
fn parity_scalar(layer: Layer<'_>) -> bool {
    let weight = layer.targets.len();
    layer.sources.chunks_exact(weight).all(|sources| {
        let mut parity = [0i8; CHUNK];
        for &source in sources {
            let sums = chunk_at(layer.sums, source as usize);
            (0..CHUNK).for_each(|i| parity[i] ^= sums[i]);
        }
        parity.iter().all(|&parity| parity >= 0)
    })
}

/// Updates a layer in plain Rust. Its sums stay in range (see the module), so the wrapping
/// operations never wrap; they let the compiler vectorize.
fn pass_scalar<const FIRST: bool>(layer: Layer<'_>) {
    let weight = layer.targets.len();
    let messages = layer.messages.as_chunks_mut::<CHUNK>().0;
    let chunks = layer.sources.chunks_exact(weight).zip(messages.chunks_exact_mut(weight));
    for (chunk, check) in chunks.zip(&mut *layer.checks) {
        gather_scalar::<FIRST>(chunk, layer.sums, check);
    }
    let z = layer.checks.len() * CHUNK;
    let chunks = layer.checks.iter().zip(messages.chunks_exact_mut(weight));
    for (index, (check, messages)) in chunks.enumerate() {
        for (&target, message) in layer.targets.iter().zip(messages) {
            let sums = scatter_scalar(check, message);
            let target = target as usize;
            let place = target + index * CHUNK;
            layer.sums[place..place + CHUNK].copy_from_slice(&sums);
            if index == 0 {
                layer.sums[target + z..target + z + CHUNK].copy_from_slice(&sums);
            }
        }
    }
}

/// Reads a chunk of checks and finds their minima. Replaces the old messages by sums minus
/// messages.
fn gather_scalar<const FIRST: bool>(
    (sources, messages): (&[u32], &mut [[i8; CHUNK]]),
    sums: &[i8],
    check: &mut Check,
) {
    let mut smallest = [MAGNITUDE_MAX; CHUNK];
    let (mut second, mut parity) = (smallest, [0i8; CHUNK]);
    for (&source, message) in sources.iter().zip(messages) {
        let sums = chunk_at(sums, source as usize);
        if FIRST {
            *message = *sums;
        } else {
            message.iter_mut().zip(sums).for_each(|(old, sum)| *old = sum.wrapping_sub(*old));
        }
        update_minima(message, &mut smallest, &mut second, &mut parity);
    }
    check.smallest = smallest;
    for i in 0..CHUNK {
        let message = |magnitude: i8| {
            let message = magnitude.wrapping_sub(OFFSET.cast_signed()).max(0);
            if parity[i] < 0 { message.wrapping_neg() } else { message }
        };
        check.first[i] = message(smallest[i]);
        check.second[i] = message(second[i]);
    }
}

/// Updates the minima and the parity by the values of one edge. A separate function, because the
/// compiler vectorizes this loop only without knowledge of the arrays around it.
#[inline(never)]
fn update_minima(
    extrinsic: &[i8; CHUNK],
    smallest: &mut [i8; CHUNK],
    second: &mut [i8; CHUNK],
    parity: &mut [i8; CHUNK],
) {
    for i in 0..CHUNK {
        // As unsigned numbers, for which the oldest vector instructions have a minimum.
        let magnitude = extrinsic[i].unsigned_abs();
        let (first, next) = (smallest[i].cast_unsigned(), second[i].cast_unsigned());
        second[i] = next.min(first.max(magnitude)).cast_signed();
        smallest[i] = first.min(magnitude).cast_signed();
        parity[i] ^= extrinsic[i];
    }
}

/// Writes an edge's new messages in place of what is left of its sums, and returns the new sums.
#[inline(never)]
fn scatter_scalar(check: &Check, edge: &mut [i8; CHUNK]) -> [i8; CHUNK] {
    let mut sums = [0; CHUNK];
    for i in 0..CHUNK {
        let extrinsic = edge[i];
        // Masks instead of branches: all ones where the edge has the smallest magnitude, and where
        // the value is negative.
        let is_smallest = i8::from(extrinsic.wrapping_abs() == check.smallest[i]).wrapping_neg();
        let message = check.first[i] ^ (is_smallest & (check.first[i] ^ check.second[i]));
        let sign = extrinsic >> 7;
        let message = (message ^ sign).wrapping_sub(sign);
        edge[i] = message;
        sums[i] = extrinsic.wrapping_add(message);
    }
    sums
}

#[inline(always)]
fn chunk_at(sums: &[i8], source: usize) -> &[i8; CHUNK] {
    sums[source..].first_chunk().expect("the sums repeat behind each column")
}
