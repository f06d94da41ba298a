//! MD5 of one body, or of several in parallel (RFC 1321).
//!
//! An MD5 block is a chain of 64 dependent steps, which leaves most of a processor idle. Four of
//! them in one vector take little longer than one. A single digest uses the crate `md-5`;
//! [`Md5::update_all`] computes four at a time, one in each lane of a vector.

use md5::block_api::compress;

/// MD5s in parallel: the number of lanes of the vectors that every processor has.
pub(crate) const LANES: usize = 4;

const BLOCK_BYTES: usize = 64;
/// Offset of the length in the last block.
const LENGTH_AT: usize = 56;

/// Left rotation of each step of each round.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// Index of the block's word that each step of each round uses.
const WORDS: [fn(usize) -> usize; 4] =
    [|step| step, |step| (5 * step + 1) % 16, |step| (3 * step + 5) % 16, |step| 7 * step % 16];
/// The integer part of 2^32 times |sin(step)|, steps counted from 1.
const CONSTANTS: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

type Block = [u8; BLOCK_BYTES];
/// One word of all lanes.
type Words = [u32; LANES];

/// A running MD5.
#[derive(Clone, Debug)]
pub(super) struct Md5 {
    state: [u32; 4],
    bytes: u64,
    /// Starts with the bytes that do not fill a block yet.
    tail: Block,
}

impl Md5 {
    pub(super) const fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, bytes: 0, tail: [0; BLOCK_BYTES] }
    }

    /// Adds the next bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let (blocks, tail) = self.align(bytes).as_chunks();
        compress(&mut self.state, blocks);
        self.bytes += size_of_val(blocks) as u64;
        self.keep(tail);
    }

    /// Adds the next bytes of several bodies.
    pub(super) fn update_all(bodies: &mut [(&mut Self, &[u8])]) {
        for four in bodies.chunks_mut(LANES) {
            for (md5, bytes) in four.iter_mut() {
                *bytes = md5.align(bytes);
            }
            while update_some(four) {}
            for (md5, bytes) in four {
                md5.update(bytes);
            }
        }
    }

    /// Returns the digest of all bytes added.
    pub(super) fn finish(mut self) -> [u8; 16] {
        let bits = self.bytes.wrapping_mul(8);
        self.update(&[0x80]);
        if self.tail_bytes() > LENGTH_AT {
            self.update(&[0; BLOCK_BYTES][self.tail_bytes()..]);
        }
        self.update(&[0; LENGTH_AT][self.tail_bytes()..]);
        self.update(&bits.to_le_bytes());
        let mut digest = [0; 16];
        for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(self.state) {
            *bytes = word.to_le_bytes();
        }
        digest
    }

    fn tail_bytes(&self) -> usize {
        // The lowest byte is enough: the others count whole blocks.
        usize::from(self.bytes.to_le_bytes()[0]) % BLOCK_BYTES
    }

    /// Fills the block that was begun, and returns the remaining bytes.
    fn align<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let tail = self.tail_bytes();
        if tail == 0 {
            return bytes;
        }
        let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - tail));
        self.keep(now);
        if self.tail_bytes() == 0 && !now.is_empty() {
            compress(&mut self.state, &[self.tail]);
        }
        later
    }

    /// Buffers bytes that end within the block that was begun.
    fn keep(&mut self, bytes: &[u8]) {
        let tail = self.tail_bytes();
        self.tail[tail..][..bytes.len()].copy_from_slice(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// Compresses blocks of all bodies that have any, as many of each as the shortest of them has.
/// Returns false when fewer than two bodies have a block.
fn update_some(bodies: &mut [(&mut Md5, &[u8])]) -> bool {
    let mut running: Vec<_> =
        bodies.iter_mut().filter(|(_, bytes)| bytes.len() >= BLOCK_BYTES).collect();
    if running.len() < 2 {
        return false;
    }
    let bytes = running.iter().map(|(_, bytes)| bytes.len()).min().unwrap_or(0);
    let bytes = bytes / BLOCK_BYTES * BLOCK_BYTES;
    // Unused lanes repeat the first one.
    let lane = |lane: usize| running.get(lane).unwrap_or(&running[0]);
    let data = std::array::from_fn(|at| lane(at).1[..bytes].as_chunks().0);
    let mut states = std::array::from_fn(|word| std::array::from_fn(|at| lane(at).0.state[word]));
    compress_all(&mut states, data);
    for (at, (md5, rest)) in running.iter_mut().enumerate() {
        md5.state = states.map(|words: Words| words[at]);
        md5.bytes += bytes as u64;
        *rest = &rest[bytes..];
    }
    true
}

/// Updates the state of each lane with its blocks; all lanes have equally many.
fn compress_all(state: &mut [Words; 4], data: [&[Block]; LANES]) {
    let mut now = *state;
    for at in 0..data[0].len() {
        let before = now;
        let words = transpose(data.map(|blocks| &blocks[at]));
        round::<0>(&mut now, &words, |b, c, d| ((c ^ d) & b) ^ d);
        round::<1>(&mut now, &words, |b, c, d| ((b ^ c) & d) ^ c);
        round::<2>(&mut now, &words, |b, c, d| b ^ c ^ d);
        round::<3>(&mut now, &words, |b, c, d| c ^ (b | !d));
        for (now, before) in now.iter_mut().zip(before) {
            *now = each(|lane| now[lane].wrapping_add(before[lane]));
        }
    }
    *state = now;
}

/// Runs sixteen steps, each mixing three words of the state into the fourth.
#[inline(always)]
fn round<const ROUND: usize>(
    state: &mut [Words; 4],
    words: &[Words; 16],
    mix: impl Fn(u32, u32, u32) -> u32,
) {
    steps::<ROUND, 0>(state, words, &mix);
    steps::<ROUND, 4>(state, words, &mix);
    steps::<ROUND, 8>(state, words, &mix);
    steps::<ROUND, 12>(state, words, &mix);
}

/// Runs four steps, after which each word is back in its place. All constants of a step are known
/// at compile time.
#[inline(always)]
fn steps<const ROUND: usize, const FIRST: usize>(
    state: &mut [Words; 4],
    words: &[Words; 16],
    mix: impl Fn(u32, u32, u32) -> u32,
) {
    let step = |step: usize, a: Words, b: Words, c: Words, d: Words| {
        let word = words[WORDS[ROUND](FIRST + step)];
        let constant = CONSTANTS[16 * ROUND + FIRST + step];
        each(|lane| {
            let mixed = mix(b[lane], c[lane], d[lane]);
            let sum = a[lane].wrapping_add(word[lane]).wrapping_add(constant).wrapping_add(mixed);
            sum.rotate_left(SHIFTS[ROUND][step]).wrapping_add(b[lane])
        })
    };
    let [mut a, mut b, mut c, mut d] = *state;
    a = step(0, a, b, c, d);
    d = step(1, d, a, b, c);
    c = step(2, c, d, a, b);
    b = step(3, b, c, d, a);
    *state = [a, b, c, d];
}

/// Returns the words of four blocks, transposed into lanes.
#[inline(always)]
fn transpose(blocks: [&Block; LANES]) -> [Words; 16] {
    let blocks = blocks.map(|block| block.as_chunks::<4>().0);
    std::array::from_fn(|word| each(|lane| u32::from_le_bytes(blocks[lane][word])))
}

#[inline(always)]
fn each(word: impl FnMut(usize) -> u32) -> Words {
    std::array::from_fn(word)
}

#[cfg(test)]
mod tests;
