//! Construction of base matrices: progressive edge growth (PEG) on circulants.
//!
//! ```text
//!            information columns      p0   p1 p2 p3 .. staircase
//!   row 0     . x . x x . x           a    0
//!   row 1     x . x x . . x           .    0  0
//!   row 2     x x . . . x x           0       0  0           p0: weight 3, shifts a, 0, a
//!   row 3     . x x . x x .           .          0  0        p1 ..: weight 2, shifts 0
//!   row 4     . x . x x x .           a             0
//! ```
//!
//! The parity part is fixed: a dual-diagonal staircase of weight 2, closed by one column of weight
//! 3, as in IEEE 802.11n. The sum of all rows is then p0 alone, so parity takes one pass. No bit
//! has a single check only, which would cause an error floor. The information columns are placed
//! one by one, the light ones first, each edge where it closes the fewest short cycles with the
//! existing graph: no cycle of 4 if possible, then the fewest of 6, then of 8. A cycle has more
//! weight the fewer edges lead out of it (6 / (degree - 1) for each of its bits), because a cycle
//! of light bits is a trapping set by itself. The seed breaks ties.
//!
//! The degrees come from density evolution ([`super::density`]); this file places the edges.

use super::base::{BaseMatrix, Entry};
use super::code::{Block, Rate};
use super::random::Random;
use crate::CodeError;

/// Weight of the first parity column.
const CLOSING: usize = 3;
/// Minimum number of rows: the closing column needs three different ones, with staircase between.
const ROWS_MIN: usize = 4;
/// Maximum column weight for which the decoder has headroom.
pub const COLUMN_WEIGHT_MAX: usize = 4;

/// A cycle of 4 costs more than all cycles of 6, one of 6 more than all of 8. The counts from one
/// edge stay far below these: 115^2 walks of weight 36 and 115^3 of weight 216 in the densest code.
const CYCLE_4_COST: u64 = 1 << 52;
const CYCLE_6_COST: u64 = 1 << 30;

/// Parameters of a matrix to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// Rows and columns of a circulant: a power of two from 64 to 1024.
    pub circulant: usize,
    /// Block rows.
    pub rows: usize,
    /// Block columns.
    pub columns: usize,
    /// Information columns of weight 4; the others have weight 3.
    pub heavy: usize,
    /// Seed that breaks ties.
    pub seed: u64,
}

impl Design {
    /// Returns the design of a standard code.
    #[must_use]
    pub fn standard(rate: Rate, block: Block) -> Self {
        let (rows, columns, finer) = match rate {
            Rate::R5of6 => (21, 126, 1),
            Rate::R7of8 => (16, 128, 1),
            Rate::R9of10 => (13, 130, 1),
            Rate::R15of16 => (16, 256, 2),
            Rate::R19of20 => (13, 260, 2),
        };
        let circulant = match block {
            Block::Bits16k => 128,
            Block::Bits64k => 512,
        } / finer;
        // Thresholds by density evolution at rate 0.9, by share of heavy columns: none 0.0624, a
        // tenth 0.0632, a quarter 0.0639, half 0.0640, all 0.0622. A quarter gets nearly all of the
        // gain for 8 % more edges.
        Self { circulant, rows, columns, heavy: columns / 4, seed: 1 }
    }

    /// Builds the matrix. The same design gives the same matrix on every machine. Takes seconds.
    ///
    /// # Errors
    /// [`CodeError::BaseMatrix`] when the counts fit no code: fewer than 4 rows, no more columns
    /// than rows, more heavy columns than information columns, an invalid circulant size.
    pub fn build(&self) -> Result<BaseMatrix, CodeError> {
        let reason = "the design has too few rows or columns, or too many heavy ones";
        if self.rows < ROWS_MIN
            || self.columns <= self.rows
            || self.heavy > self.columns - self.rows
        {
            return Err(CodeError::BaseMatrix { reason });
        }
        // Checks the other counts before any work.
        BaseMatrix::new(self.circulant, self.rows, vec![Vec::new(); self.columns])?;
        let mut growth = Growth::new(*self);
        let information = self.columns - self.rows;
        growth.close_staircase(information);
        for column in 0..information {
            let weight = if column < information - self.heavy { 3 } else { 4 };
            growth.place_column(column, weight);
        }
        BaseMatrix::new(self.circulant, self.rows, growth.columns)
    }
}

/// The graph under construction.
struct Growth {
    design: Design,
    random: Random,
    columns: Vec<Vec<Entry>>,
    row_entries: Vec<Vec<(usize, usize)>>,
    /// Final weight of each column.
    weights: Vec<usize>,
    /// Cost of each possible edge of the current column: row by row, shift by shift.
    costs: Vec<u64>,
}

impl Growth {
    fn new(design: Design) -> Self {
        Self {
            design,
            random: Random::new(design.seed),
            columns: vec![Vec::new(); design.columns],
            row_entries: vec![Vec::new(); design.rows],
            weights: vec![0; design.columns],
            costs: vec![0; design.rows * design.circulant],
        }
    }

    fn add(&mut self, column: usize, entry: Entry) {
        self.columns[column].push(entry);
        self.row_entries[entry.row].push((column, entry.shift));
    }

    fn close_staircase(&mut self, first: usize) {
        for step in 1..self.design.rows {
            self.weights[first + step] = 2;
            self.add(first + step, Entry { row: step - 1, shift: 0 });
            self.add(first + step, Entry { row: step, shift: 0 });
        }
        // The paths of the staircase join the ends of the closing column without a shift, so only
        // the shift between them keeps its cycles long; an odd shift has the full order.
        let shift = self.random.below(self.design.circulant / 2) * 2 + 1;
        self.weights[first] = CLOSING;
        let last = self.design.rows - 1;
        for (row, shift) in [(0, shift), (self.design.rows / 2, 0), (last, shift)] {
            self.add(first, Entry { row, shift });
        }
    }

    /// Places an information column.
    fn place_column(&mut self, column: usize, weight: usize) {
        self.weights[column] = weight;
        self.costs.fill(0);
        for _ in 0..weight {
            let entry = self.cheapest(column);
            self.add(column, entry);
            self.charge(column, entry);
        }
    }

    /// Returns the cheapest place for the next edge among the lightest rows.
    fn cheapest(&mut self, column: usize) -> Entry {
        let z = self.design.circulant;
        let taken: Vec<usize> = self.columns[column].iter().map(|entry| entry.row).collect();
        let free = |row: &usize| !taken.contains(row);
        let lightest = (0..self.design.rows)
            .filter(free)
            .map(|row| self.row_entries[row].len())
            .min()
            .expect("a column has fewer edges than there are rows");
        let mut best = (u64::MAX, Entry { row: 0, shift: 0 });
        let mut ties = 0;
        for row in (0..self.design.rows).filter(free) {
            if self.row_entries[row].len() > lightest + 1 {
                continue;
            }
            for shift in 0..z {
                let cost = self.costs[row * z + shift];
                ties = if cost < best.0 { 1 } else { ties + usize::from(cost == best.0) };
                if cost < best.0 || cost == best.0 && self.random.below(ties) == 0 {
                    best = (cost, Entry { row, shift });
                }
            }
        }
        best.1
    }

    /// Adds to the costs the cycles that another edge of `column` would close with the edge
    /// `entry`.
    fn charge(&mut self, column: usize, entry: Entry) {
        let z = self.design.circulant;
        // Bit 0 of the column takes part in this check.
        let check = (z - entry.shift) % z;
        let weight = 6 / (self.weights[column] as u64 - 1);
        let Self { columns, row_entries, weights, costs, .. } = self;
        let graph = Graph { columns, row_entries, weights, circulant: z };
        graph.walk(costs, (column, entry.row), check, 1, weight);
    }
}

/// The graph, as the walks see it.
struct Graph<'a> {
    columns: &'a [Vec<Entry>],
    row_entries: &'a [Vec<(usize, usize)>],
    weights: &'a [usize],
    circulant: usize,
}

impl Graph<'_> {
    /// Walks from a check through each of its bits to their other checks: an edge from bit 0 of the
    /// first column to such a check would close a cycle of `2 * bits + 2`.
    fn walk(
        &self,
        costs: &mut [u64],
        (from, row): (usize, usize),
        check: usize,
        bits: usize,
        weight: u64,
    ) {
        let z = self.circulant;
        for &(column, shift) in self.row_entries[row].iter().filter(|next| next.0 != from) {
            let bit = (check + shift) % z;
            let weight = weight * 6 / (self.weights[column] as u64 - 1);
            for entry in self.columns[column].iter().filter(|entry| entry.row != row) {
                let check = (bit + z - entry.shift) % z;
                costs[entry.row * z + (z - check) % z] += match bits {
                    1 => CYCLE_4_COST,
                    2 => CYCLE_6_COST * weight,
                    _ => weight,
                };
                if bits < 3 {
                    self.walk(costs, (column, entry.row), check, bits + 1, weight);
                }
            }
        }
    }
}
