//! The memory layout of the decoder, and the addresses at which kernels access it.
//!
//! ```text
//! sums      column | z sums | first 64 again |      stride z + 64
//!           rotated so that the layer that used the column last finds its check r at place r
//! messages  layer, group of chunks of 64 checks, edge, chunk: 64 messages each, in order of use
//! ```
//!
//! A layer needs the column in its own rotation, so it reads, unaligned, from a place that is ahead
//! by the difference of both shifts, and writes back, aligned, in the new rotation. The repeated
//! first 64 sums let a read run over the end. All reads of a layer come before its writes, so one
//! copy of the sums is enough. The differences are the same in each iteration and are precomputed
//! here.

use super::super::Code;
use super::super::bits::{self, Rotation};

/// Number of checks processed together.
pub(super) const CHUNK: usize = 64;

/// Precomputed places and shifts of one code.
#[derive(Debug)]
pub(super) struct Plan {
    /// Number of bits of a word.
    pub(super) bits: usize,
    /// Number of 64-bit words in a circulant: the chunks of a layer.
    pub(super) words: usize,
    /// Shift in which the last layer that uses a column leaves it.
    pub(super) last_shifts: Vec<usize>,
    /// Number of chunks that a kernel processes together.
    pub(super) group: usize,
    layers: Vec<LayerPlan>,
    /// Rotations by row, for the final test.
    rows: Vec<Vec<Rotation>>,
}

#[derive(Debug)]
struct LayerPlan {
    /// Places where the sums start, ordered by group, edge and chunk.
    sources: Vec<u32>,
    /// Place where each edge's column starts.
    targets: Vec<u32>,
    /// Number of sources in all previous layers.
    first: usize,
}

/// One layer of the code, over the memory of one decoder.
///
/// At least `CHUNK` of `sums` follow every source, and a whole column and `CHUNK` every target.
/// `messages` has `CHUNK` values for each source, and `checks` an entry for each chunk.
/// [`Layer::select`] guarantees this; the kernels rely on it.
pub(super) struct Layer<'a> {
    /// Number of chunks processed together: it determines the order of sources and messages.
    pub(super) group: usize,
    pub(super) sources: &'a [u32],
    pub(super) targets: &'a [u32],
    pub(super) sums: &'a mut [i8],
    /// The messages; between reading and writing, the sums minus the old messages.
    pub(super) messages: &'a mut [i8],
    /// Results of the reading phase, which the writing phase needs.
    pub(super) checks: &'a mut [Check],
}

/// Result of the reading phase for a chunk of checks.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Check {
    /// Message from the smallest magnitude, with the parity of all signs.
    pub(super) first: [i8; CHUNK],
    /// Message from the second smallest magnitude, for the edge that has the smallest.
    pub(super) second: [i8; CHUNK],
    /// Smallest magnitude.
    pub(super) smallest: [i8; CHUNK],
}

/// Working memory of one decoder.
#[derive(Debug)]
pub(super) struct State {
    pub(super) sums: AlignedBuffer,
    messages: AlignedBuffer,
    checks: Vec<Check>,
    pub(super) doubled: Vec<u64>,
}

impl Plan {
    /// Creates the plan of a code for a kernel that processes up to `group_max` chunks, a power of
    /// two, together.
    pub(super) fn new(code: &Code, group_max: usize) -> Self {
        let (matrix, z) = (code.matrix(), code.matrix().circulant());
        let words = z / CHUNK;
        // Both are powers of two.
        let group = words.min(group_max);
        assert_eq!(words % group, 0);
        let mut shifts: Vec<usize> = matrix
            .columns()
            .iter()
            .map(|column| column.last().map_or(0, |entry| entry.shift))
            .collect();
        let last_shifts = shifts.clone();
        let place = |place: usize| u32::try_from(place).expect("a word is below 2^21 bits");
        let mut layers = Vec::new();
        let mut first = 0;
        for row in matrix.row_entries() {
            let start = |column: usize| column * (z + CHUNK);
            let targets: Vec<u32> = row.iter().map(|entry| place(start(entry.0))).collect();
            let mut sources = Vec::with_capacity(words * row.len());
            for first in (0..words).step_by(group) {
                for &(column, shift) in &row {
                    for chunk in first..first + group {
                        let ahead = (shift + z - shifts[column] + chunk * CHUNK) % z;
                        sources.push(place(start(column) + ahead));
                    }
                }
            }
            row.iter().for_each(|&(column, shift)| shifts[column] = shift);
            first += sources.len();
            layers.push(LayerPlan { first: first - sources.len(), sources, targets });
        }
        assert_eq!(shifts, last_shifts, "an iteration leaves the columns as it finds them");
        let rotations = |row: Vec<(usize, usize)>| {
            row.into_iter().map(|(column, shift)| Rotation::new(column, shift, words)).collect()
        };
        let rows = matrix.row_entries().into_iter().map(rotations).collect();
        Self { bits: matrix.bits(), words, last_shifts, group, layers, rows }
    }

    pub(super) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Whether a word of packed bits satisfies every check.
    pub(super) fn is_codeword(&self, word: &[u8]) -> bool {
        let mut doubled = vec![0; self.bits / 32];
        match self.words {
            1 => bits::double::<1>(word, &mut doubled),
            2 => bits::double::<2>(word, &mut doubled),
            4 => bits::double::<4>(word, &mut doubled),
            8 => bits::double::<8>(word, &mut doubled),
            16 => bits::double::<16>(word, &mut doubled),
            words => unreachable!("no matrix has circulants of {words} words"),
        }
        self.is_satisfied(&doubled)
    }

    /// Whether words, with each circulant doubled, satisfy every check.
    #[inline(always)]
    pub(super) fn is_satisfied(&self, doubled: &[u64]) -> bool {
        match self.words {
            1 => self.is_satisfied_by::<1>(doubled),
            2 => self.is_satisfied_by::<2>(doubled),
            4 => self.is_satisfied_by::<4>(doubled),
            8 => self.is_satisfied_by::<8>(doubled),
            16 => self.is_satisfied_by::<16>(doubled),
            words => unreachable!("no matrix has circulants of {words} words"),
        }
    }

    #[inline(always)]
    fn is_satisfied_by<const W: usize>(&self, doubled: &[u64]) -> bool {
        self.rows.iter().all(|row| bits::row_sum::<W>(doubled, row) == [0; W])
    }
}

impl<'a> Layer<'a> {
    /// Borrows a layer of a plan, over a state that was created for that plan.
    pub(super) fn select(plan: &'a Plan, state: &'a mut State, index: usize) -> Self {
        let LayerPlan { sources, targets, first } = &plan.layers[index];
        assert_eq!(sources.len(), plan.words * targets.len());
        assert_eq!(state.checks.len(), plan.words);
        let sums = state.sums.values();
        assert_eq!(sums.len(), plan.last_shifts.len() * (plan.words + 1) * CHUNK);
        Self {
            group: plan.group,
            sources,
            targets,
            sums,
            messages: &mut state.messages.values()[first * CHUNK..(first + sources.len()) * CHUNK],
            checks: &mut state.checks,
        }
    }
}

impl State {
    /// Allocates the memory for a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let edges: usize = plan.layers.iter().map(|layer| layer.sources.len()).sum();
        let zeros = [0; CHUNK];
        let check = Check { first: zeros, second: zeros, smallest: zeros };
        Self {
            sums: AlignedBuffer::new(plan.last_shifts.len() * (plan.words + 1) * CHUNK),
            messages: AlignedBuffer::new(edges * CHUNK),
            checks: vec![check; plan.words],
            doubled: vec![0; plan.bits / 32],
        }
    }
}

/// Values aligned to 64 bytes, because a store across cache lines costs two. Only speed depends on
/// it.
#[derive(Debug)]
pub(super) struct AlignedBuffer {
    values: Vec<i8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    fn new(length: usize) -> Self {
        let values = vec![0; length + CHUNK - 1];
        let start = values.as_ptr().align_offset(CHUNK).min(CHUNK - 1);
        Self { values, start, length }
    }

    pub(super) fn values(&mut self) -> &mut [i8] {
        &mut self.values[self.start..self.start + self.length]
    }
}
