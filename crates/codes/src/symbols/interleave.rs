//! Which voxel of a sector holds which bits of which codeword.
//!
//! ```text
//! voxel (row, column)   -- row by row, each rotated by `skew` more --> running number
//! running number        -- divided by the count of codewords       --> slot, remainder: codeword
//! ```
//!
//! Damage is spatial: specks, scratches along any direction, a bad edge. A codeword fails by its
//! own count of bad voxels, so each should have the same share of any damage. Along a row the
//! codewords take turns; down a column they advance by `step` each row. The voxels of a codeword
//! are then a lattice in the plane, and `step` is chosen so that its nearest points are as far
//! apart as can be: of a disk of n voxels, each of c codewords has close to n / c. After as many
//! rows as there are codewords the lattice moves on by one, so that no long line, whatever its
//! slope, stays with a few of them.
//!
//! Within a codeword the order stays: bits that follow one another are in the same circulant of
//! the code (see [`crate::ldpc`]), where no two share a check, so a burst is no worse there than
//! bits apart. Nothing is stored: both directions are a few divisions.

use crate::CodeError;

/// A map between the voxels of a sector and the slots of its codewords.
///
/// A slot is the place of one voxel's bits in a codeword. Voxels are counted row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaver {
    codewords: usize,
    slots: usize,
    row: usize,
    skew: usize,
}

impl Interleaver {
    /// A map for `codewords` of `slots` voxels each, in rows of `row` voxels.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero, or when there would be more than 2^32 voxels.
    pub fn new(codewords: usize, slots: usize, row: usize) -> Result<Self, CodeError> {
        let counts = CodeError::Counts { information: codewords, redundancy: slots };
        let voxels = codewords.checked_mul(slots).ok_or_else(|| counts.clone())?;
        if voxels == 0 || row == 0 || voxels > 1 << 32 || row > 1 << 32 {
            return Err(counts);
        }
        // A row further down is `row + skew` running numbers on.
        let step = best_step(codewords);
        let skew = (step + codewords - row % codewords) % codewords;
        Ok(Self { codewords, slots, row, skew })
    }

    /// How many voxels there are.
    #[must_use]
    pub const fn voxels(&self) -> usize {
        self.codewords * self.slots
    }

    /// How many voxels each codeword has.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// The codeword and the slot of a voxel.
    ///
    /// # Panics
    /// When there is no such voxel.
    #[must_use]
    pub fn place(&self, voxel: usize) -> (usize, usize) {
        assert!(voxel < self.voxels(), "voxel {voxel} of {}", self.voxels());
        let (first, length, shift) = self.row_of(voxel);
        let running = first + (voxel - first + shift) % length;
        (running % self.codewords, running / self.codewords)
    }

    /// The voxel of a slot of a codeword.
    ///
    /// # Panics
    /// When there is no such slot or codeword.
    #[must_use]
    pub fn voxel(&self, codeword: usize, slot: usize) -> usize {
        assert!(codeword < self.codewords, "codeword {codeword} of {}", self.codewords);
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        let running = slot * self.codewords + codeword;
        let (first, length, shift) = self.row_of(running);
        first + (running - first + length - shift) % length
    }

    /// Every voxel in turn, with its codeword and slot: [`Self::place`] without its divisions.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let mut first = 0;
        while first < self.voxels() {
            let (_, length, shift) = self.row_of(first);
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

    /// The first voxel of the row of a voxel, the length of that row, and by how much it is
    /// rotated. The last row may be short.
    fn row_of(&self, voxel: usize) -> (usize, usize, usize) {
        let row = voxel / self.row;
        let first = row * self.row;
        let length = self.row.min(self.voxels() - first);
        // Below 2^32 each: the product is within 2^64.
        (first, length, (row * self.skew + row / self.codewords) % length)
    }
}

/// The step from row to row whose lattice of equal codewords has the longest shortest distance, of
/// those that visit every codeword down a column.
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
