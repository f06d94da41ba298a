//! The base matrix: a quasi-cyclic parity-check matrix, written as circulants.
//!
//! ```text
//!               column 0      column 1            circulant of shift s, size z:
//!   row 0     [ shift 17       .          .. ]    row r has its one in column (r + s) mod z
//!   row 1     [  .            shift 203   .. ]
//! ```
//!
//! Each entry stands for a z x z identity matrix rotated by its shift, an absent entry for zeros;
//! the code has `rows * z` checks on `columns * z` bits. The text form has one line per column:
//!
//! ```text
//! fulgurite ldpc 1
//! circulant 256 rows 25 columns 250
//! 0: 5+123 9+40 17+201          row + shift of each entry
//! ```
//!
//! This file knows nothing of encoding; see [`super::Code`] for the form that makes it cheap.

use std::fmt::Write as _;

use crate::CodeError;

/// First line of the text form.
const HEADER: &str = "fulgurite ldpc 1";

/// Maximum counts that the text form may declare, so that a damaged table cannot request much
/// memory: 2^10 columns of 2^10 bits are 1 Mbit, far above any sector.
const COLUMNS_MAX: usize = 1 << 10;
const CIRCULANT_MAX: usize = 1 << 10;

/// One circulant of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Block row.
    pub row: usize,
    /// Rotation, below the circulant size.
    pub shift: usize,
}

/// A quasi-cyclic parity-check matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseMatrix {
    circulant: usize,
    rows: usize,
    columns: Vec<Vec<Entry>>,
}

impl BaseMatrix {
    /// Creates a matrix of `rows` block rows with the given columns.
    ///
    /// # Errors
    /// [`CodeError::BaseMatrix`] when the circulant size is not a power of two from 64 to 1024, a
    /// count is zero or beyond 1024 columns, a row or shift is out of range, or a column has a row
    /// twice.
    pub fn new(
        circulant: usize,
        rows: usize,
        mut columns: Vec<Vec<Entry>>,
    ) -> Result<Self, CodeError> {
        let bad = |reason| Err(CodeError::BaseMatrix { reason });
        if !circulant.is_power_of_two() || !(64..=CIRCULANT_MAX).contains(&circulant) {
            return bad("the circulant size is not a power of two from 64 to 1024");
        }
        if rows == 0 || columns.len() <= rows || columns.len() > COLUMNS_MAX {
            return bad("there are not more columns than rows, or too many");
        }
        for column in &mut columns {
            column.sort_unstable();
            if column.iter().any(|entry| entry.row >= rows || entry.shift >= circulant) {
                return bad("a row or a shift is out of range");
            }
            if column.windows(2).any(|pair| pair[0].row == pair[1].row) {
                return bad("a column has two entries in a row");
            }
        }
        Ok(Self { circulant, rows, columns })
    }

    /// Parses the text form.
    ///
    /// # Errors
    /// [`CodeError::BaseMatrix`] as for [`Self::new`], or when a line is malformed.
    pub fn parse(text: &str) -> Result<Self, CodeError> {
        let bad = |reason| CodeError::BaseMatrix { reason };
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(bad("the first line is not that of a base matrix"));
        }
        let counts =
            lines.next().and_then(parse_counts).ok_or_else(|| bad("the counts are missing"))?;
        let [circulant, rows, count] = counts;
        if count > COLUMNS_MAX {
            return Err(bad("there are too many columns"));
        }
        let mut columns = Vec::with_capacity(count);
        for line in lines {
            let column = parse_column(line, columns.len())
                .ok_or_else(|| bad("a column cannot be parsed"))?;
            columns.push(column);
        }
        if columns.len() != count {
            return Err(bad("there are more or fewer columns than declared"));
        }
        Self::new(circulant, rows, columns)
    }

    /// Formats the text form.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (z, rows, columns) = (self.circulant, self.rows, self.columns.len());
        let mut text = format!("{HEADER}\ncirculant {z} rows {rows} columns {columns}\n");
        for (index, column) in self.columns.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = write!(text, "{index}:");
            for entry in column {
                let _ = write!(text, " {}+{}", entry.row, entry.shift);
            }
            text.push('\n');
        }
        text
    }

    /// Formats the whole matrix in MacKay's alist form, for other programs.
    #[must_use]
    pub fn to_alist(&self) -> String {
        let z = self.circulant;
        let mut by_bit = vec![Vec::new(); self.bits()];
        let mut by_check = vec![Vec::new(); self.rows * z];
        for (index, column) in self.columns.iter().enumerate() {
            for entry in column {
                for row in 0..z {
                    let (check, bit) = (entry.row * z + row, index * z + (row + entry.shift) % z);
                    by_bit[bit].push(check + 1);
                    by_check[check].push(bit + 1);
                }
            }
        }
        let longest = |lists: &[Vec<usize>]| lists.iter().map(Vec::len).max().unwrap_or(0);
        let line = |numbers: &mut dyn Iterator<Item = usize>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ") + "\n"
        };
        let (bit_max, check_max) = (longest(&by_bit), longest(&by_check));
        let mut text = format!("{} {}\n{bit_max} {check_max}\n", by_bit.len(), by_check.len());
        text += &line(&mut by_bit.iter().map(Vec::len));
        text += &line(&mut by_check.iter().map(Vec::len));
        for (lists, length) in [(&mut by_bit, bit_max), (&mut by_check, check_max)] {
            for list in lists {
                list.sort_unstable();
                list.resize(length, 0);
                text += &line(&mut list.iter().copied());
            }
        }
        text
    }

    /// Number of rows, and of columns, of a circulant.
    #[must_use]
    pub fn circulant(&self) -> usize {
        self.circulant
    }

    /// Number of block rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Block columns, each with its entries in the order of rows.
    #[must_use]
    pub fn columns(&self) -> &[Vec<Entry>] {
        &self.columns
    }

    /// Returns the bits of a codeword.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.columns.len() * self.circulant
    }

    /// Returns the number of ones in the whole matrix: the edges of its Tanner graph.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.columns.iter().map(Vec::len).sum::<usize>() * self.circulant
    }

    /// Returns the entries of each block row: column and shift, in the order of columns.
    #[must_use]
    pub fn row_entries(&self) -> Vec<Vec<(usize, usize)>> {
        let mut row_entries = vec![Vec::new(); self.rows];
        for (index, column) in self.columns.iter().enumerate() {
            for entry in column {
                row_entries[entry.row].push((index, entry.shift));
            }
        }
        row_entries
    }

    /// Computes the rank of the whole matrix over GF(2), by elimination. Slow: for tests.
    #[must_use]
    pub fn rank(&self) -> usize {
        let z = self.circulant;
        let words = self.bits() / 64;
        let mut rows = vec![vec![0u64; words]; self.rows * z];
        for (index, column) in self.columns.iter().enumerate() {
            for entry in column {
                for row in 0..z {
                    let bit = index * z + (row + entry.shift) % z;
                    rows[entry.row * z + row][bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        // Starts from the last bit, because the parity part is nearly triangular.
        let mut rank = 0;
        for bit in (0..self.bits()).rev() {
            let has_bit = |row: &[u64]| row[bit / 64] >> (bit % 64) & 1 == 1;
            let Some(pivot) = (rank..rows.len()).find(|&row| has_bit(&rows[row])) else { continue };
            rows.swap(rank, pivot);
            let (done, rest) = rows.split_at_mut(rank + 1);
            for row in rest.iter_mut().filter(|row| has_bit(row)) {
                row.iter_mut().zip(&done[rank]).for_each(|(word, pivot)| *word ^= pivot);
            }
            rank += 1;
            if rank == rows.len() {
                break;
            }
        }
        rank
    }
}

fn parse_counts(line: &str) -> Option<[usize; 3]> {
    let mut words = line.split(' ');
    let mut counts = [0; 3];
    for (name, count) in ["circulant", "rows", "columns"].into_iter().zip(&mut counts) {
        if words.next()? != name {
            return None;
        }
        *count = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(counts)
}

fn parse_column(line: &str, index: usize) -> Option<Vec<Entry>> {
    let (name, entries) = line.split_once(": ")?;
    if name.parse() != Ok(index) {
        return None;
    }
    entries
        .split(' ')
        .map(|entry| {
            let (row, shift) = entry.split_once('+')?;
            Some(Entry { row: row.parse().ok()?, shift: shift.parse().ok()? })
        })
        .collect()
}
