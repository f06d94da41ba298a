//! Girth: the length of the shortest cycle in the graph of bits and checks, and how many there are.
//!
//! Two walks of `half` steps from one bit that never turn around and end at one place close a
//! cycle of `2 * half` steps. Circulants make all bits of a column alike, so one bit a column is
//! enough: 21 thousand walks of four steps for a bit of degree 3 in checks of degree 60.

use super::BaseMatrix;

/// Half of the longest cycle looked for: the walks grow by a factor of 60 to 120 each two steps.
const HALF_MAX: usize = 4;

/// The shortest cycles of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Girth {
    /// Steps of the shortest cycle, or 10 when that is 10 or more.
    pub length: usize,
    /// Cycles of that length in the whole graph, 0 when `length` is 10.
    pub cycles: usize,
}

impl Girth {
    /// Finds the shortest cycles of a code.
    #[must_use]
    pub fn of(matrix: &BaseMatrix) -> Self {
        let by_row = matrix.by_row();
        let mut ends = Ends::new(matrix);
        for half in 2..=HALF_MAX {
            let mut pairs = 0;
            for column in 0..matrix.columns().len() {
                pairs += ends.pairs(matrix, &by_row, column, half);
            }
            if pairs > 0 {
                // Each cycle is found at each of its bits.
                let cycles = pairs * matrix.circulant() / half;
                return Self { length: 2 * half, cycles };
            }
        }
        Self { length: 2 * HALF_MAX + 2, cycles: 0 }
    }
}

/// How many walks end at each place, and which places have any.
struct Ends {
    counts: Vec<u32>,
    used: Vec<usize>,
}

impl Ends {
    fn new(matrix: &BaseMatrix) -> Self {
        Self { counts: vec![0; matrix.bits()], used: Vec::new() }
    }

    /// Pairs of walks from bit 0 of `column` that end at one place after `half` steps.
    fn pairs(
        &mut self,
        matrix: &BaseMatrix,
        by_row: &[Vec<(usize, usize)>],
        column: usize,
        half: usize,
    ) -> usize {
        self.walk(matrix, by_row, (column, 0), usize::MAX, half);
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
        by_row: &[Vec<(usize, usize)>],
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
            for &(next, shift) in by_row[entry.row].iter().filter(|next| next.0 != column) {
                let place = (next, (check + shift) % z);
                self.walk(matrix, by_row, place, entry.row, steps - 2);
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
