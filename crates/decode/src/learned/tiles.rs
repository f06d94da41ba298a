//! Cuts a sector into overlapping tiles.
//!
//! ```text
//! tile 0   |-----------------|              all of one size, starts in whole blocks
//! tile 1            |-----------------|
//! tile 2                  |-----------------|     the last one shifted inward
//! voxels   |-------------|-----|------------|     each from the tile it lies deepest in
//! ```
//!
//! Beyond the edge of a tile a network sees zeros where there is glass; `margin` voxels further in
//! the effect is gone (measured; docs/design/0007). So seams are at least that deep. Tiles bound
//! memory use and have one size in a sector, since an engine may plan for one size only.

/// A tile in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// First voxel that the network sees.
    pub(crate) start: usize,
    /// First voxel that is used.
    pub(crate) from: usize,
    /// End of the used voxels, exclusive.
    pub(crate) to: usize,
}

/// A sector's tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows and columns of each tile.
    pub(crate) size: [usize; 2],
    /// Vertical and horizontal.
    pub(crate) spans: [Vec<Span>; 2],
}

impl Tiling {
    /// Cuts a sector of rows and columns into tiles with sides of at most `side_max`, or of the
    /// smallest possible side if that is larger. Partial blocks of `block` are padded.
    pub(crate) fn new(shape: [usize; 2], side_max: usize, block: usize, margin: usize) -> Self {
        let [rows, columns] = shape.map(|length| cut(length, side_max, block, margin));
        Self { size: [rows.0, columns.0], spans: [rows.1, columns.1] }
    }

    /// Iterates over the tiles, row by row.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = [Span; 2]> {
        let [down, right] = &self.spans;
        down.iter().flat_map(|row| right.iter().map(|column| [*row, *column]))
    }
}

/// Returns the side of the tiles, and their positions.
fn cut(length: usize, side_max: usize, block: usize, margin: usize) -> (usize, Vec<Span>) {
    assert!(length > 0 && block > 0, "a sector of some voxels");
    let padded = length.next_multiple_of(block);
    let overlap = (2 * margin).next_multiple_of(block);
    // A smaller tile would be nothing but overlap.
    let side_max = (side_max / block * block).max(overlap + block);
    if padded <= side_max {
        return (padded, vec![Span { start: 0, from: 0, to: length }]);
    }
    // As few as possible, then as short as that number allows: no tile is mostly overlap.
    let count = (padded - overlap).div_ceil(side_max - overlap);
    let side = (padded + (count - 1) * overlap).div_ceil(count).next_multiple_of(block);
    let start = |tile: usize| (tile * (side - overlap)).min(padded - side);
    // The middle of the overlap of two tiles.
    let seam = |tile: usize| (start(tile) + side + start(tile + 1)) / 2;
    let span = |tile: usize| Span {
        start: start(tile),
        from: if tile == 0 { 0 } else { seam(tile - 1) },
        to: if tile + 1 == count { length } else { seam(tile) },
    };
    (side, (0..count).map(span).collect())
}

#[cfg(test)]
mod tests {
    //! Every cut of every length.

    use super::{Span, Tiling, cut};

    #[test]
    fn tiles_cover_a_sector_once() {
        for block in [1, 4, 8] {
            for margin in [0, 3, 4] {
                for side_max in [8, 16, 20, 64] {
                    for length in (4..200).step_by(4) {
                        check(length, side_max, block, margin);
                    }
                }
            }
        }
    }

    fn check(length: usize, side_max: usize, block: usize, margin: usize) {
        let (side, spans) = cut(length, side_max, block, margin);
        let padded = length.next_multiple_of(block);
        assert!(side % block == 0 && side <= side_max.max(2 * margin + 2 * block));
        assert_eq!((spans[0].from, spans[spans.len() - 1].to), (0, length));
        for (tile, span) in spans.iter().enumerate() {
            assert!(span.start % block == 0 && span.start + side <= padded, "{span:?}");
            assert!(span.from < span.to && span.to <= span.start + side, "{span:?}");
            if tile > 0 {
                assert_eq!(spans[tile - 1].to, span.from);
                assert!(span.from >= span.start + margin, "{span:?}");
                assert!(spans[tile - 1].start + side >= span.from + margin, "{span:?}");
            }
        }
    }

    #[test]
    fn a_sector_of_320_is_two_by_two() {
        let tiling = Tiling::new([320, 64], 168, 4, 4);
        assert_eq!(tiling.size, [164, 64]);
        assert_eq!(
            tiling.spans[0],
            [Span { start: 0, from: 0, to: 160 }, Span { start: 156, from: 160, to: 320 }]
        );
        assert_eq!(tiling.tiles().count(), 2);
    }
}
