//! Operations on feature maps besides convolutions.

use fulgurite_platter::numeric::dispatch_simd;

use super::map::{GROUP, Map};
use super::network::Weights;
use crate::Range;
use crate::learned::Tile;
use crate::resample::nearest_byte;

/// Quantizes images to interleaved bytes, with columns grouped for a convolution.
pub(super) fn split_image_phases(
    tile: &Tile<'_>,
    range: Range,
    weights: &Weights,
    out: &mut Map,
) -> Result<(), String> {
    let [rows, columns] = tile.size();
    let mut buffers: [Vec<f32>; GROUP] = std::array::from_fn(|_| vec![0.0; columns]);
    let mut line = vec![[range.zero; GROUP]; columns];
    for group in 0..tile.states().div_ceil(GROUP) {
        for row in 0..rows {
            let pixels = match tile.bytes(row, range) {
                Some(own) if own.len() == columns => own,
                Some(own) => {
                    line[..own.len()].copy_from_slice(own);
                    line[own.len()..].fill([range.zero; GROUP]);
                    &line
                }
                None => {
                    to_bytes(tile, group, row, range, &mut buffers, &mut line)?;
                    &line
                }
            };
            split_row_phases(pixels, [group, row], weights, out);
        }
    }
    Ok(())
}

/// Quantizes a row of images.
fn to_bytes(
    tile: &Tile<'_>,
    group: usize,
    row: usize,
    range: Range,
    buffers: &mut [Vec<f32>; GROUP],
    line: &mut [[u8; GROUP]],
) -> Result<(), String> {
    let (scale, zero) = (1.0 / range.scale, f32::from(range.zero));
    let mut state = group * GROUP;
    let [a, b, c, d] = buffers.each_mut().map(|buffers| {
        state += 1;
        // For missing images the weights are zero.
        if state <= tile.states() { tile.row(state - 1, row, buffers) } else { &buffers[..] }
    });
    let mut is_finite = true;
    dispatch_simd(
        #[inline(always)]
        || {
            for ((((out, a), b), c), d) in line.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                is_finite &= (a + b + c + d).is_finite();
                *out = [a, b, c, d].map(|value| nearest_byte(value * scale + zero));
            }
        },
    );
    if is_finite {
        Ok(())
    } else {
        Err(format!("row {row} of its images has a value that is not finite"))
    }
}

/// Adds a map to another, including borders.
pub(super) fn add(out: &mut Map, out_range: Range, other: &Map, other_range: Range, to: Range) {
    let [out_scale, other_scale] = [out_range, other_range].map(|range| range.scale / to.scale);
    let zeros = out_scale * f32::from(out_range.zero) + other_scale * f32::from(other_range.zero);
    let zero = f32::from(to.zero) - zeros;
    dispatch_simd(
        #[inline(always)]
        || {
            for (out, other) in out.bytes.iter_mut().zip(&other.bytes) {
                *out = nearest_byte(
                    out_scale * f32::from(*out) + other_scale * f32::from(*other) + zero,
                );
            }
        },
    );
}

/// Depth to space, in squares of `side`, to `groups` groups.
pub(super) fn depth_to_space(from: &Map, side: usize, groups: usize, out: &mut Map) {
    for group in 0..groups {
        for row in 0..from.rows {
            for place in 0..side * side {
                let pixels = from.pixels(place * groups + group, row);
                let at = out.row(group, row * side + place / side) + place % side * GROUP;
                let to = out.bytes[at..].as_chunks_mut::<GROUP>().0;
                to.iter_mut().step_by(side).zip(pixels).for_each(|(to, pixel)| *to = *pixel);
            }
        }
    }
}

/// Groups columns by their remainder modulo the stride, with padding before them.
pub(super) fn split_row_phases(
    pixels: &[[u8; GROUP]],
    [group, row]: [usize; 2],
    weights: &Weights,
    out: &mut Map,
) {
    let Weights { stride, padding, .. } = *weights;
    for phase in 0..stride {
        // The first column with this remainder that is not padding.
        let first = (phase + stride - padding % stride) % stride;
        let at =
            out.row(group * stride + phase, row + padding) + (first + padding) / stride * GROUP;
        let to = out.bytes[at..].as_chunks_mut::<GROUP>().0;
        let pixels = pixels.get(first..).unwrap_or_default();
        match stride {
            2 => copy_strided::<2>(pixels, to),
            3 => copy_strided::<3>(pixels, to),
            _ => pixels.iter().step_by(stride).zip(to).for_each(|(from, to)| *to = *from),
        }
    }
}

/// Takes every `STEP`-th pixel.
fn copy_strided<const STEP: usize>(from: &[[u8; GROUP]], to: &mut [[u8; GROUP]]) {
    let (chunks, rest) = from.as_chunks::<STEP>();
    let (whole, last) = to.split_at_mut(chunks.len());
    dispatch_simd(
        #[inline(always)]
        || whole.iter_mut().zip(chunks).for_each(|(to, chunk)| *to = chunk[0]),
    );
    last.iter_mut().zip(rest.first()).for_each(|(to, from)| *to = *from);
}
