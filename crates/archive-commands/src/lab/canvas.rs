//! A picture of voxels: each enlarged to a square, with a title, a scale and a legend.
//!
//! ```text
//! title
//! map             every voxel `voxel_pixels` pixels wide
//! |-----|  20 voxels, 10 um
//! [] legend  [] legend
//! ```
//!
//! Letters are 5 x 8 points, drawn at twice the size, so that no font of the machine is needed.

use std::path::Path;

/// Approximate longest side of a map in pixels; voxels are whole pixels.
const MAP_PIXELS: usize = 960;

/// Largest side of a voxel in pixels.
const VOXEL_PIXELS_MAX: usize = 16;

/// Spacing around everything and between items, in pixels.
const SPACE: usize = 12;

/// Pixels per point of a letter.
const POINT: usize = 2;

/// Rows and columns of points of a letter, including an empty last column.
const LETTER: [usize; 2] = [8, 6];

const LINE: usize = LETTER[0] * POINT;
const WHITE: Color = [255; 3];
const BLACK: Color = [0; 3];
const GRAY: Color = [128; 3];

/// Red, green and blue.
pub(super) type Color = [u8; 3];

/// The contents of a picture.
pub(super) struct Map<'a> {
    pub(super) title: String,
    /// Rows and columns of voxels.
    pub(super) size: [usize; 2],
    pub(super) voxels: &'a [Color],
    /// Side of a voxel in the glass.
    pub(super) pitch_um: f64,
    pub(super) legend: &'a [(Color, String)],
}

/// Pixels, row by row.
pub(super) struct Canvas {
    rows: usize,
    columns: usize,
    pixels: Vec<Color>,
}

impl Map<'_> {
    /// Returns the side of a voxel in pixels.
    pub(super) fn voxel_pixels(&self) -> usize {
        let longest = self.size[0].max(self.size[1]).max(1);
        (MAP_PIXELS / longest).clamp(1, VOXEL_PIXELS_MAX)
    }

    /// Draws the map.
    pub(super) fn draw(&self) -> Canvas {
        let (side, [rows, columns]) = (self.voxel_pixels(), self.size);
        let (voxels, label) = self.scale();
        let bar = voxels * side;
        let legend: usize = self.legend.iter().map(|(_, text)| swatch(text)).sum();
        let widest = [columns * side, width(&self.title), bar + SPACE + width(&label), legend];
        let wide = widest.into_iter().max().unwrap_or_default() + 2 * SPACE;
        let high = rows * side + 3 * LINE + 5 * SPACE;
        let mut canvas = Canvas { rows: high, columns: wide, pixels: vec![WHITE; wide * high] };
        canvas.text([SPACE, SPACE], &self.title);
        let top = 2 * SPACE + LINE;
        canvas.fill([top - 1, SPACE - 1], [rows * side + 2, columns * side + 2], GRAY);
        for (at, color) in self.voxels.iter().enumerate() {
            let place = [top + at / columns * side, SPACE + at % columns * side];
            canvas.fill(place, [side, side], *color);
        }
        let below = top + rows * side + SPACE;
        canvas.fill([below + LINE / 2 - 1, SPACE], [2, bar], BLACK);
        for end in [SPACE, SPACE + bar - 2] {
            canvas.fill([below, end], [LINE, 2], BLACK);
        }
        canvas.text([below, 2 * SPACE + bar], &label);
        let (bottom, mut left) = (below + LINE + SPACE, SPACE);
        for (color, text) in self.legend {
            canvas.fill([bottom, left], [LINE, LINE], GRAY);
            canvas.fill([bottom + 1, left + 1], [LINE - 2, LINE - 2], *color);
            canvas.text([bottom, left + LINE + SPACE / 2], text);
            left += swatch(text);
        }
        canvas
    }

    /// Returns the length of the scale bar in voxels, at most a third of the map, and its label.
    fn scale(&self) -> (usize, String) {
        let third = (self.size[1] / 3).max(1);
        let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
        let voxels = steps.into_iter().rfind(|step| *step <= third).unwrap_or(1);
        #[expect(clippy::cast_precision_loss, reason = "at most 1000")]
        let length = voxels as f64 * self.pitch_um;
        let word = if voxels == 1 { "voxel" } else { "voxels" };
        (voxels, format!("{voxels} {word}, {length:.1} um"))
    }
}

impl Canvas {
    /// Writes the picture as PNG.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let size = [self.rows, self.columns];
        super::render::write_png(path, size, png::ColorType::Rgb, self.pixels.as_flattened())
    }

    /// Fills a rectangle, clipped to the canvas.
    fn fill(&mut self, [top, left]: [usize; 2], [rows, columns]: [usize; 2], color: Color) {
        for row in top..(top + rows).min(self.rows) {
            let ends = [left, left + columns].map(|at| row * self.columns + at.min(self.columns));
            self.pixels[ends[0]..ends[1]].fill(color);
        }
    }

    fn text(&mut self, [top, left]: [usize; 2], text: &str) {
        for (at, letter) in text.chars().enumerate() {
            for (column, points) in shape(letter).into_iter().enumerate() {
                for row in (0..LETTER[0]).filter(|row| points >> row & 1 == 1) {
                    let across = left + (at * LETTER[1] + column) * POINT;
                    self.fill([top + row * POINT, across], [POINT, POINT], BLACK);
                }
            }
        }
    }
}

/// Returns the width of a text in pixels.
fn width(text: &str) -> usize {
    text.chars().count() * LETTER[1] * POINT
}

/// Returns the width of a legend item in pixels, including the space after it.
fn swatch(text: &str) -> usize {
    LINE + SPACE / 2 + width(text) + SPACE
}

/// Returns the columns of a letter, with the top point as the lowest bit; a hollow square for an
/// unknown letter.
fn shape(letter: char) -> [u8; 5] {
    const DIGITS: [[u8; 5]; 10] = [
        [0x3E, 0x51, 0x49, 0x45, 0x3E],
        [0x00, 0x42, 0x7F, 0x40, 0x00],
        [0x72, 0x49, 0x49, 0x49, 0x46],
        [0x21, 0x41, 0x49, 0x4D, 0x33],
        [0x18, 0x14, 0x12, 0x7F, 0x10],
        [0x27, 0x45, 0x45, 0x45, 0x39],
        [0x3C, 0x4A, 0x49, 0x49, 0x31],
        [0x41, 0x21, 0x11, 0x09, 0x07],
        [0x36, 0x49, 0x49, 0x49, 0x36],
        [0x46, 0x49, 0x49, 0x29, 0x1E],
    ];
    const LETTERS: [[u8; 5]; 26] = [
        [0x20, 0x54, 0x54, 0x78, 0x40],
        [0x7F, 0x28, 0x44, 0x44, 0x38],
        [0x38, 0x44, 0x44, 0x44, 0x28],
        [0x38, 0x44, 0x44, 0x28, 0x7F],
        [0x38, 0x54, 0x54, 0x54, 0x18],
        [0x00, 0x08, 0x7E, 0x09, 0x02],
        [0x18, 0xA4, 0xA4, 0x9C, 0x78],
        [0x7F, 0x08, 0x04, 0x04, 0x78],
        [0x00, 0x44, 0x7D, 0x40, 0x00],
        [0x20, 0x40, 0x40, 0x3D, 0x00],
        [0x7F, 0x10, 0x28, 0x44, 0x00],
        [0x00, 0x41, 0x7F, 0x40, 0x00],
        [0x7C, 0x04, 0x78, 0x04, 0x78],
        [0x7C, 0x08, 0x04, 0x04, 0x78],
        [0x38, 0x44, 0x44, 0x44, 0x38],
        [0xFC, 0x18, 0x24, 0x24, 0x18],
        [0x18, 0x24, 0x24, 0x18, 0xFC],
        [0x7C, 0x08, 0x04, 0x04, 0x08],
        [0x48, 0x54, 0x54, 0x54, 0x24],
        [0x04, 0x04, 0x3F, 0x44, 0x24],
        [0x3C, 0x40, 0x40, 0x20, 0x7C],
        [0x1C, 0x20, 0x40, 0x20, 0x1C],
        [0x3C, 0x40, 0x30, 0x40, 0x3C],
        [0x44, 0x28, 0x10, 0x28, 0x44],
        [0x4C, 0x90, 0x90, 0x90, 0x7C],
        [0x44, 0x64, 0x54, 0x4C, 0x44],
    ];
    let nth = |from: char| letter as usize - from as usize;
    match letter {
        '0'..='9' => DIGITS[nth('0')],
        'a'..='z' => LETTERS[nth('a')],
        ' ' => [0; 5],
        '.' => [0x00, 0x00, 0x60, 0x60, 0x00],
        ',' => [0x00, 0x80, 0x70, 0x30, 0x00],
        ':' => [0x00, 0x00, 0x14, 0x00, 0x00],
        '-' => [0x08; 5],
        _ => [0x7F, 0x41, 0x41, 0x41, 0x7F],
    }
}

#[cfg(test)]
mod tests {
    //! Tests of pixels at known positions.

    use super::{BLACK, LINE, Map, SPACE, WHITE, shape};

    const RED: [u8; 3] = [255, 0, 0];
    const BLUE: [u8; 3] = [0, 0, 255];

    #[test]
    fn voxels_scale_and_legend_are_drawn_in_place() {
        let voxels: Vec<[u8; 3]> =
            (0..40 * 60).map(|at| if at == 60 + 2 { RED } else { BLUE }).collect();
        let legend = [(RED, "one".to_owned()), (BLUE, "the others".to_owned())];
        let map = Map {
            title: "a map".to_owned(),
            size: [40, 60],
            voxels: &voxels,
            pitch_um: 0.5,
            legend: &legend,
        };
        let side = map.voxel_pixels();
        assert_eq!(side, 16);
        assert_eq!(map.scale(), (20, "20 voxels, 10.0 um".to_owned()));
        let canvas = map.draw();
        let pixel = |row: usize, column: usize| canvas.pixels[row * canvas.columns + column];
        let count = |color| canvas.pixels.iter().filter(|pixel| **pixel == color).count();
        let top = 2 * SPACE + LINE;
        assert_eq!(pixel(top + side, SPACE + 2 * side), RED);
        assert_eq!(pixel(top + 2 * side - 1, SPACE + 3 * side - 1), RED);
        assert_eq!(pixel(top + 2 * side, SPACE + 2 * side), BLUE);
        // One voxel, and the square of the legend.
        assert_eq!(count(RED), side * side + (LINE - 2) * (LINE - 2));
        let bar = top + 40 * side + SPACE + LINE / 2;
        let row = &canvas.pixels[bar * canvas.columns..][SPACE..SPACE + 20 * side];
        assert!(row.iter().all(|pixel| *pixel == BLACK));
        assert_eq!(pixel(bar, SPACE + 20 * side), WHITE);
        assert_eq!(pixel(0, 0), WHITE);
    }

    #[test]
    fn small_and_large_maps_are_drawn() {
        for size in [[1, 1], [3, 2000], [2000, 3]] {
            let voxels = vec![RED; size[0] * size[1]];
            let map =
                Map { title: String::new(), size, voxels: &voxels, pitch_um: 0.5, legend: &[] };
            assert!(
                map.draw().pixels.iter().filter(|pixel| **pixel == RED).count() >= voxels.len()
            );
        }
    }

    #[test]
    fn letters_differ() {
        let all: std::collections::BTreeSet<[u8; 5]> =
            ('a'..='z').chain('0'..='9').chain(" .,:-?".chars()).map(shape).collect();
        assert_eq!(all.len(), 42);
    }
}
