//! The interleaver: which voxel of a sector holds which bits of which codeword.
//!
//! ```text
//! voxel (row, column)   -- row by row, each rotated by `skew` more --> running number
//! running number        -- divided by the count of codewords       --> slot, remainder: codeword
//! ```
//!
//! Damage is spatial: specks, scratches in any direction, a bad edge. A codeword fails by its own
//! number of bad voxels, so each should get the same share of any damage. Along a row, the
//! codewords alternate; down a column, they advance by `step` per row. The voxels of a codeword are
//! then a lattice in the plane, and `step` maximizes the minimum distance of that lattice: of a
//! disk of n voxels, each of c codewords has close to n / c. After as many rows as there are
//! codewords the lattice shifts by one, so that no long line, whatever its slope, hits only a few
//! codewords.
//!
//! Within a codeword the order is unchanged: consecutive bits are in the same circulant of the code
//! (see [`crate::ldpc`]), where no two share a check, so a burst is no worse there than scattered
//! bits. Nothing is stored: both directions are a few divisions.

use crate::CodeError;

/// Maps between the voxels of a sector and the slots of its codewords.
///
/// A slot is the place of one voxel's bits in a codeword. Voxels are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaver {
    codewords: usize,
    slots: usize,
    row: usize,
    skew: usize,
}

impl Interleaver {
    /// Creates a map for `codewords` of `slots` voxels each, in rows of `row` voxels.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero, or when there would be more than 2^32 voxels.
    pub fn new(codewords: usize, slots: usize, row: usize) -> Result<Self, CodeError> {
        let counts = CodeError::Counts { information: codewords, redundancy: slots };
        let voxels = codewords.checked_mul(slots).ok_or_else(|| counts.clone())?;
        if voxels == 0 || row == 0 || voxels > 1 << 32 || row > 1 << 32 {
            return Err(counts);
        }
        // The next row is `row + skew` running numbers further.
        let step = best_step(codewords);
        let skew = (step + codewords - row % codewords) % codewords;
        Ok(Self { codewords, slots, row, skew })
    }

    /// Number of voxels.
    #[must_use]
    pub const fn voxels(&self) -> usize {
        self.codewords * self.slots
    }

    /// Number of voxels per codeword.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the codeword and the slot of a voxel.
    ///
    /// # Panics
    /// When there is no such voxel.
    #[must_use]
    pub fn locate(&self, voxel: usize) -> (usize, usize) {
        assert!(voxel < self.voxels(), "voxel {voxel} of {}", self.voxels());
        let (first, length, shift) = self.row_span(voxel);
        let running = first + (voxel - first + shift) % length;
        (running % self.codewords, running / self.codewords)
    }

    /// Returns the voxel of a slot of a codeword.
    ///
    /// # Panics
    /// When there is no such slot or codeword.
    #[must_use]
    pub fn voxel(&self, codeword: usize, slot: usize) -> usize {
        assert!(codeword < self.codewords, "codeword {codeword} of {}", self.codewords);
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        let running = slot * self.codewords + codeword;
        let (first, length, shift) = self.row_span(running);
        first + (running - first + length - shift) % length
    }

    /// Visits every voxel in order, with its codeword and slot: [`Self::locate`] without its
    /// divisions.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let mut first = 0;
        while first < self.voxels() {
            let (_, length, shift) = self.row_span(first);
            // A rotation is two runs of consecutive running numbers.
            for (start, running, count) in
                [(first, first + shift, length - shift), (first + length - shift, first, shift)]
            {
                let (mut codeword, mut slot) = (running % self.codewords, running / self.codewords);
                for voxel in start..start + count {
                    visit(voxel, codeword, slot);
                    codeword += 1;
                    if codeword == self.codewords {
                        (codeword, slot) = (0, slot + 1);
                    }
                }
            }
            first += length;
        }
    }

    /// Returns the first voxel of the row of a voxel, the length of that row, and its rotation. The
    /// last row may be short.
    fn row_span(&self, voxel: usize) -> (usize, usize, usize) {
        let row = voxel / self.row;
        let first = row * self.row;
        let length = self.row.min(self.voxels() - first);
        // Both are below 2^32, so the product fits 64 bits.
        (first, length, (row * self.skew + row / self.codewords) % length)
    }
}

/// Returns the step from row to row that maximizes the minimum distance of the lattice of a
/// codeword, among those that visit every codeword down a column.
fn best_step(codewords: usize) -> usize {
    // No lattice of that density has a shortest vector beyond sqrt(2 / sqrt(3) c) < 1.08 sqrt(c).
    let reach = codewords.isqrt() + 2;
    let shortest = |step: usize| {
        let squares = (1..=reach).map(|down| {
            let offset = step * down % codewords;
            let across = offset.min(codewords - offset);
            across * across + down * down
        });
        squares.min().unwrap_or_default()
    };
    let candidates = (1..codewords).filter(|step| greatest_common_divisor(*step, codewords) == 1);
    candidates.max_by_key(|step| (shortest(*step), codewords - step)).unwrap_or(0)
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
