//! Feature maps of 8 bits, in the layout that kernels need.
//!
//! ```text
//! group 0  row    [ c0 c1 c2 c3 | c0 c1 c2 c3 | ..   a pixel: four channels, one lane of a vector
//!          row    [ ..                               padded to 16 pixels; padding and
//! group 1  row    [ c4 c5 c6 c7 | ..                 border hold the zero point
//! ```
//!
//! So a vector is 16 pixels side by side, whatever the number of channels, and the neighbors of a
//! kernel are the same pixels at another offset.

/// Channels per group.
pub(super) const GROUP: usize = 4;

/// Pixels per vector.
pub(super) const LANES: usize = 16;

/// A feature map of 8 bits, with a border of zeros.
#[derive(Debug, Default)]
pub(in crate::learned) struct Map {
    pub(in crate::learned) rows: usize,
    pub(in crate::learned) columns: usize,
    /// Width of the border in pixels.
    pub(super) border: usize,
    /// Row stride in pixels.
    pub(super) stride: usize,
    pub(super) bytes: Vec<u8>,
}

impl Map {
    /// Channels per group.
    pub(in crate::learned) const GROUP: usize = GROUP;

    /// Creates a map of zeros, which are represented by `zero`; subtracts its bytes from
    /// `bytes_left`.
    pub(super) fn new(
        groups: usize,
        [rows, columns]: [usize; 2],
        border: usize,
        zero: u8,
        bytes_left: &mut usize,
    ) -> Result<Self, String> {
        let too_large =
            || format!("its maps of {groups} groups of {rows} by {columns} pixels are too large");
        let stride =
            columns.checked_next_multiple_of(LANES).and_then(|width| width.checked_add(2 * border));
        let stride = stride.ok_or_else(too_large)?;
        let pixels = rows.checked_add(2 * border).and_then(|rows| rows.checked_mul(stride));
        let bytes = pixels.and_then(|pixels| pixels.checked_mul(groups * GROUP));
        // The last vector of the last row may extend beyond its end.
        let bytes = bytes.and_then(|bytes| bytes.checked_add(LANES * GROUP));
        let bytes = bytes.filter(|bytes| bytes <= bytes_left).ok_or_else(too_large)?;
        *bytes_left -= bytes;
        Ok(Self { rows, columns, border, stride, bytes: vec![zero; bytes] })
    }

    /// Returns whether both have the same layout.
    pub(super) fn has_same_layout(&self, other: &Self) -> bool {
        let layout = |map: &Self| (map.bytes.len(), map.rows, map.columns, map.border);
        layout(self) == layout(other)
    }

    /// Size of a group in bytes.
    pub(super) const fn plane(&self) -> usize {
        (self.rows + 2 * self.border) * self.stride * GROUP
    }

    /// Returns the offset of the first pixel of a row.
    pub(super) const fn row(&self, group: usize, row: usize) -> usize {
        group * self.plane() + ((row + self.border) * self.stride + self.border) * GROUP
    }

    /// Resets the border and the padding beyond the last column to zeros.
    pub(super) fn clear_border(&mut self, zero: u8) {
        let (plane, row) = (self.plane(), self.stride * GROUP);
        let (edge, inner) = (self.border * (row + GROUP), self.columns * GROUP);
        for plane in self.bytes.chunks_exact_mut(plane) {
            plane[..edge].fill(zero);
            for end in 0..self.rows {
                let from = edge + end * row + inner;
                plane[from..from + row - inner].fill(zero);
            }
            plane[edge + self.rows * row..].fill(zero);
        }
    }

    /// Returns one channel of a row.
    pub(in crate::learned) fn channel(
        &self,
        channel: usize,
        row: usize,
    ) -> impl Iterator<Item = u8> {
        self.pixels(channel / GROUP, row).iter().map(move |pixel| pixel[channel % GROUP])
    }

    /// Returns a vector of pixels of a row, starting at a column; beyond the last column the values
    /// are arbitrary.
    #[inline(always)]
    pub(in crate::learned) fn lanes(
        &self,
        group: usize,
        row: usize,
        column: usize,
    ) -> &[[u8; GROUP]; LANES] {
        let pixels = self.bytes[self.row(group, row) + column * GROUP..].as_chunks().0;
        let lanes = pixels.first_chunk();
        lanes.expect("a map goes on for a vector behind its last row")
    }

    /// Returns the pixels of a row.
    pub(super) fn pixels(&self, group: usize, row: usize) -> &[[u8; GROUP]] {
        self.bytes[self.row(group, row)..][..self.columns * GROUP].as_chunks().0
    }
}
