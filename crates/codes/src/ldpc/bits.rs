//! Bits packed in words, and rotated sums of them, the one operation that encoding and checking
//! need.
//!
//! A column of the code is `W` words of 64 bits, stored twice in a row, so that every rotation of
//! it is a plain shifted read. This is plain Rust with a constant `W`, which the compiler turns
//! into vector instructions where the caller enables them.

/// Copies bits into words, with two consecutive copies of each circulant.
#[inline(always)]
pub(crate) fn double<const W: usize>(bytes: &[u8], doubled: &mut [u64]) {
    let columns = bytes.as_chunks::<8>().0.as_chunks::<W>().0;
    let copies = doubled.as_chunks_mut::<W>().0.as_chunks_mut::<2>().0;
    debug_assert_eq!(columns.len(), copies.len());
    for (column, copy) in columns.iter().zip(copies) {
        *copy = [column.map(u64::from_le_bytes); 2];
    }
}

/// A circulant of a row, as the position in the doubled words where its rotated column starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    word: u32,
    bit: u32,
}

impl Rotation {
    /// Creates the rotation by `shift` of column `column`, in circulants of `words` words.
    pub(crate) fn new(column: usize, shift: usize, words: usize) -> Self {
        let word = 2 * words * column + shift / 64;
        let fit = |number: usize| u32::try_from(number).expect("a word is below 2^21 bits");
        Self { word: fit(word), bit: fit(shift % 64) }
    }
}

/// Adds a circulant times a column: `sum[r] ^= column[(r + shift) mod z]`, bit by bit.
#[inline(always)]
pub(crate) fn add_rotated<const W: usize>(sum: &mut [u64; W], doubled: &[u64], from: Rotation) {
    if W == 1 {
        // One instruction rotates a word; the second copy is not needed.
        sum[0] ^= doubled[from.word as usize].rotate_right(from.bit);
        return;
    }
    let source = &doubled[from.word as usize..][..=W];
    for i in 0..W {
        // The second shift, by 64 - bit, takes two steps, because a shift by 64 is not allowed.
        sum[i] ^= source[i] >> from.bit | source[i + 1] << 1 << (63 - from.bit);
    }
}

/// Returns the sum of a row of circulants.
#[inline(always)]
pub(crate) fn row_sum<const W: usize>(doubled: &[u64], row: &[Rotation]) -> [u64; W] {
    let mut sum = [0; W];
    for &from in row {
        add_rotated(&mut sum, doubled, from);
    }
    sum
}
