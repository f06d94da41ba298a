//! Girth: the length of the shortest cycle in the Tanner graph, and the number of such cycles.
//!
//! Two walks of `half` steps that start at the same bit, never turn back and end at the same place
//! form a cycle of `2 * half` steps. Circulants make all bits of a column equivalent, so one bit
//! per column is enough: 21 thousand walks of four steps for a bit of degree 3 in checks of degree
//! 60.

use super::BaseMatrix;

/// Half of the longest cycle searched for: the walks grow by a factor of 60 to 120 per two steps.
const HALF_MAX: usize = 4;

/// Shortest cycles of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Girth {
    /// Length of the shortest cycle, or 10 if it is 10 or more.
    pub length: usize,
    /// Number of cycles of that length in the whole graph; 0 when `length` is 10.
    pub cycles: usize,
}

impl Girth {
    /// Finds the shortest cycles of a code.
    #[must_use]
    pub fn compute(matrix: &BaseMatrix) -> Self {
        let row_entries = matrix.row_entries();
        let mut ends = Ends::new(matrix);
        for half in 2..=HALF_MAX {
            let mut pairs = 0;
            for column in 0..matrix.columns().len() {
                pairs += ends.pairs(matrix, &row_entries, column, half);
            }
            if pairs > 0 {
                // Each cycle is counted once at each of its bits.
                let cycles = pairs * matrix.circulant() / half;
                return Self { length: 2 * half, cycles };
            }
        }
        Self { length: 2 * HALF_MAX + 2, cycles: 0 }
    }
}

/// Number of walks that end at each place, and the list of places with any.
struct Ends {
    counts: Vec<u32>,
    used: Vec<usize>,
}

impl Ends {
    fn new(matrix: &BaseMatrix) -> Self {
        Self { counts: vec![0; matrix.bits()], used: Vec::new() }
    }

    /// Counts pairs of walks of `half` steps from bit 0 of `column` that end at the same place.
    fn pairs(
        &mut self,
        matrix: &BaseMatrix,
        row_entries: &[Vec<(usize, usize)>],
        column: usize,
        half: usize,
    ) -> usize {
        self.walk(matrix, row_entries, (column, 0), usize::MAX, half);
        let mut pairs = 0;
        for place in self.used.drain(..) {
            let count = std::mem::take(&mut self.counts[place]) as usize;
            pairs += count * (count - 1) / 2;
        }
        pairs
    }

    fn walk(
        &mut self,
        matrix: &BaseMatrix,
        row_entries: &[Vec<(usize, usize)>],
        (column, bit): (usize, usize),
        from_row: usize,
        steps: usize,
    ) {
        let z = matrix.circulant();
        if steps == 0 {
            return self.end(column * z + bit);
        }
        for entry in matrix.columns()[column].iter().filter(|entry| entry.row != from_row) {
            let check = (bit + z - entry.shift) % z;
            if steps == 1 {
                self.end(entry.row * z + check);
                continue;
            }
            for &(next, shift) in row_entries[entry.row].iter().filter(|next| next.0 != column) {
                let place = (next, (check + shift) % z);
                self.walk(matrix, row_entries, place, entry.row, steps - 2);
            }
        }
    }

    fn end(&mut self, place: usize) {
        if self.counts[place] == 0 {
            self.used.push(place);
        }
        self.counts[place] += 1;
    }
}
