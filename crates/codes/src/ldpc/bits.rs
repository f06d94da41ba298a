//! Bits in words: rotated sums, the one operation that encoding and checking consist of.
//!
//! A column of the code is `W` words of 64 bits, kept twice in a row, so that every rotation of it
//! is a plain shifted read. Written in plain Rust with a constant `W`, which the compiler turns
//! into vector instructions where the caller has them.

/// Copies bits into words that hold each circulant twice in a row.
pub(crate) fn double(bytes: &[u8], words: usize, doubled: &mut [u64]) {
    let (columns, copies) = (bytes.chunks_exact(8 * words), doubled.chunks_exact_mut(2 * words));
    debug_assert_eq!(columns.len(), copies.len());
    for (column, copy) in columns.zip(copies) {
        let (first, second) = copy.split_at_mut(words);
        for (word, bytes) in first.iter_mut().zip(column.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        second.copy_from_slice(first);
    }
}

/// Adds a circulant times a column: `sum[r] ^= column[(r + shift) mod z]`, bit by bit.
#[inline(always)]
pub(crate) fn add_rotated<const W: usize>(sum: &mut [u64; W], doubled: &[u64], shift: usize) {
    let (word, bit) = (shift / 64, shift % 64);
    let source = &doubled[word..word + W + 1];
    for i in 0..W {
        // The second shift is by 64 - bit in two steps, because a shift by 64 is none.
        sum[i] ^= source[i] >> bit | source[i + 1] << 1 << (63 - bit);
    }
}

/// The sum of a row of circulants, each with its place in `doubled` and its shift.
#[inline(always)]
pub(crate) fn row_sum<const W: usize>(doubled: &[u64], row: &[(usize, usize)]) -> [u64; W] {
    let mut sum = [0; W];
    for &(place, shift) in row {
        add_rotated(&mut sum, &doubled[place..place + 2 * W], shift);
    }
    sum
}
