//! The engine that is built in for networks of 8 bits.
//!
//! Its sums are integers and what is rounded is rounded in one order, so a sector decodes to the
//! same bytes on every processor. A network is what the lab exports (`network`); maps of it belong
//! to the engine and are kept for tiles of one size.

mod kernel;
mod map;
mod network;
#[cfg(test)]
mod tests;

use fulgurite_glass::numeric::vectorized;

use self::kernel::{BLOCK, Convolution, Kernel};
use self::map::{GROUP, Map};
use self::network::{Network, Range, Step, Tensor, Weights};
use super::engine::Engine;
use super::model::Model;
use super::tile::Tile;
use crate::DecodeError;

const NAME: &str = "integer";

/// The first step: the images.
const IMAGES: usize = 0;

/// What is added to a number below 2^22 so that its last bits are the nearest integer.
const ROUND: f32 = 12_582_912.0;

/// Runs a network of 8 bits.
#[derive(Debug)]
pub(crate) struct Integer {
    model: String,
    pitch: usize,
    kernel: &'static Kernel,
    tensors: Vec<Tensor>,
    steps: Vec<Work>,
    /// Pixels of every map's border.
    border: usize,
    /// Rows and columns of pixels that the maps are for.
    size: Option<[usize; 2]>,
    maps: Vec<Map>,
}

/// A step and what it works on.
#[derive(Debug)]
struct Work {
    step: Step,
    packed: Packed,
    /// The map that it fills. What nobody reads any more is filled again.
    map: usize,
    /// Its input with columns sorted by what they are modulo the stride, if [`is_sorted`].
    sorted: Map,
    taps: Vec<usize>,
}

/// Weights as the kernel reads them.
#[derive(Debug, Default)]
struct Packed {
    weights: Vec<i32>,
    bias: Vec<i32>,
    scale: Vec<f32>,
}

impl Packed {
    fn new(mut weights: Weights, kernel: &Kernel) -> Self {
        let count = weights.channels.len().next_multiple_of(BLOCK);
        let nothing = vec![[0; GROUP]; weights.channels[0].len()];
        weights.channels.resize(count, nothing);
        weights.bias.resize(count, 0);
        weights.scale.resize(count, 1.0);
        let packed = kernel.pack(&weights.channels);
        Self { weights: packed, bias: weights.bias, scale: weights.scale }
    }
}

impl Integer {
    pub(crate) fn new(model: &Model) -> Result<Self, DecodeError> {
        Self::with_kernel(model, Kernel::current())
    }

    fn with_kernel(model: &Model, kernel: &'static Kernel) -> Result<Self, DecodeError> {
        let refused = |reason| refused(&model.id().to_string(), reason);
        let network = Network::read(model.onnx()).map_err(refused)?;
        let paddings = network.steps.iter().map(|step| match step {
            Step::Convolution { weights, .. } if weights.stride == 1 => weights.padding,
            Step::Convolution { .. } | Step::Input | Step::Add { .. } | Step::Spread { .. } => 0,
        });
        let border = paddings.max().unwrap_or_default();
        let work = |step: Step| {
            let packed = match &step {
                Step::Convolution { weights, .. } => Packed::new(weights.clone(), kernel),
                Step::Input | Step::Add { .. } | Step::Spread { .. } => Packed::default(),
            };
            Work { step, packed, map: 0, sorted: Map::default(), taps: Vec::new() }
        };
        Ok(Self {
            model: model.id().to_string(),
            pitch: model.card().pixels_per_pitch,
            kernel,
            tensors: network.tensors,
            steps: network.steps.into_iter().map(work).collect(),
            border,
            size: None,
            maps: Vec::new(),
        })
    }

    /// Makes maps for tiles of a size.
    fn prepare(&mut self, size: [usize; 2]) -> Result<(), String> {
        self.size = None;
        self.maps.clear();
        // Maps that nobody reads after the step at hand.
        let mut free = Vec::new();
        for at in 0..self.steps.len() {
            let tensor = self.tensors[at];
            let (shape, groups) = self.shape(at, size)?;
            let new = Map::new(groups, shape, self.border, tensor.range.zero);
            let step = &self.steps[at].step;
            let later: Vec<usize> =
                self.steps[at + 1..].iter().flat_map(|work| work.step.reads()).collect();
            let read = step.reads().into_iter().filter(|from| !later.contains(from));
            let read: Vec<usize> = read.map(|from| self.steps[from].map).collect();
            // A sum may take the place of what it is made of.
            let is_sum = matches!(step, Step::Add { .. });
            if is_sum {
                free.extend(&read);
            }
            let fits = |map: &usize| self.maps[*map].is_like(&new);
            let map = match free.iter().rposition(fits) {
                Some(found) => free.swap_remove(found),
                None => {
                    self.maps.push(new);
                    self.maps.len() - 1
                }
            };
            if !is_sum {
                free.extend(&read);
            }
            self.steps[at].map = map;
        }
        let found = self.steps.last().map(|last| &self.maps[last.map]);
        let found = found.map(|map| [map.rows * self.pitch, map.columns * self.pitch]);
        if found != Some(size) {
            return Err(format!("it makes logits of {found:?} pixels from images of {size:?}"));
        }
        self.size = Some(size);
        Ok(())
    }

    /// Rows and columns of what a step makes, and its groups; finds its inputs' places on the way.
    fn shape(&mut self, at: usize, size: [usize; 2]) -> Result<([usize; 2], usize), String> {
        let groups = self.tensors[at].channels.next_multiple_of(BLOCK) / GROUP;
        let (made, rest) = self.steps.split_at_mut(at);
        let work = &mut rest[0];
        let map_of = |from: usize| &self.maps[made[from].map];
        let shape_of = |from: usize| [map_of(from).rows, map_of(from).columns];
        let shape = match &work.step {
            // What reads them makes them 8 bits.
            Step::Input => return Ok((size, 0)),
            Step::Add { from: [a, b] } => {
                let (shape, other) = (shape_of(*a), shape_of(*b));
                if !map_of(*a).is_like(map_of(*b)) {
                    return Err(format!("it adds {shape:?} pixels and {other:?}"));
                }
                shape
            }
            Step::Spread { from, side } => shape_of(*from).map(|length| length * side),
            Step::Convolution { from, weights } => {
                let padded = shape_of(*from).map(|length| length + 2 * weights.padding);
                if padded.iter().any(|length| *length < weights.side) {
                    return Err(format!("images of {size:?} pixels are too small for it"));
                }
                if is_sorted(*from, weights) {
                    let groups = self.tensors[*from].channels.div_ceil(GROUP) * weights.stride;
                    let shape = [padded[0], padded[1].div_ceil(weights.stride)];
                    work.sorted = Map::new(groups, shape, 0, self.tensors[*from].range.zero);
                    work.taps = taps(&work.sorted, weights, 0);
                } else {
                    work.taps = taps(map_of(*from), weights, self.border - weights.padding);
                }
                padded.map(|length| (length - weights.side) / weights.stride + 1)
            }
        };
        Ok((shape, groups))
    }

    fn infer(&mut self, tile: &Tile<'_>) -> Result<Vec<f32>, String> {
        if tile.states() != self.tensors[0].channels {
            let states = self.tensors[0].channels;
            return Err(format!("it reads {states} images, not {}", tile.states()));
        }
        if self.size != Some(tile.size()) {
            self.prepare(tile.size())?;
        }
        for at in 0..self.steps.len() {
            let mut map = std::mem::take(&mut self.maps[self.steps[at].map]);
            let made = self.step(at, tile, &mut map);
            self.maps[self.steps[at].map] = map;
            made?;
        }
        let last = self.steps.len() - 1;
        Ok(dequantize(&self.maps[self.steps[last].map], self.tensors[last]))
    }

    /// Fills a step's map, which is taken out of the others.
    fn step(&mut self, at: usize, tile: &Tile<'_>, map: &mut Map) -> Result<(), String> {
        let range = |of: usize| self.tensors[of].range;
        let to = range(at);
        let (made, rest) = self.steps.split_at_mut(at);
        let work = &mut rest[0];
        let map_of = |from: usize| &self.maps[made[from].map];
        if let Step::Add { from: [a, b] } = work.step {
            let [(a, of_a), (b, of_b)] = [a, b].map(|from| (made[from].map, range(from)));
            // A map that is taken is the one that the sum is to be in.
            if work.map == b {
                add(map, of_b, &self.maps[a], of_a, to);
            } else {
                if work.map != a {
                    map.bytes.copy_from_slice(&self.maps[a].bytes);
                }
                add(map, of_a, &self.maps[b], of_b, to);
            }
            return Ok(());
        }
        map.clear_border(to.zero);
        match &work.step {
            Step::Input => {}
            Step::Spread { from, side } => {
                spread(map_of(*from), *side, self.tensors[at].channels / GROUP, map);
            }
            Step::Convolution { from, weights } => {
                let (mut source, sorted) = (map_of(*from), &mut work.sorted);
                if *from == IMAGES {
                    sort_images(tile, range(IMAGES), weights, sorted)?;
                } else if weights.stride > 1 {
                    for group in 0..self.tensors[*from].channels.div_ceil(GROUP) {
                        for row in 0..source.rows {
                            sort_row(source.pixels(group, row), [group, row], weights, sorted);
                        }
                    }
                }
                if is_sorted(*from, weights) {
                    source = sorted;
                }
                self.kernel.run(Convolution {
                    input: &source.bytes,
                    input_row: source.stride * GROUP * weights.stride,
                    taps: &work.taps,
                    weights: &work.packed.weights,
                    bias: &work.packed.bias,
                    scale: &work.packed.scale,
                    zero: f32::from(to.zero),
                    output_at: map.row(0, 0),
                    output_row: map.stride * GROUP,
                    output_plane: map.plane(),
                    rows: map.rows,
                    columns: map.columns,
                    output: &mut map.bytes,
                });
            }
            Step::Add { .. } => unreachable!("is done above"),
        }
        Ok(())
    }
}

impl Engine for Integer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tile_side_max(&self) -> usize {
        // It takes 200 bytes a voxel and runs as fast in any tile, so less overlap is faster.
        384
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Vec<f32>, DecodeError> {
        self.infer(tile).map_err(|reason| refused(&self.model, reason))
    }
}

fn refused(model: &str, reason: String) -> DecodeError {
    DecodeError::Engine { engine: NAME, model: model.to_owned(), reason }
}

/// Where a pixel's inputs are in a map, whose first pixel is `start` pixels from its corner.
fn taps(map: &Map, weights: &Weights, start: usize) -> Vec<usize> {
    let Weights { side, stride, .. } = *weights;
    let count = weights.channels[0].len();
    let place = |tap: usize| {
        let (group, row, column) = (tap / (side * side), tap / side % side, tap % side);
        let plane = group * stride + column % stride;
        plane * map.plane() + ((start + row) * map.stride + start + column / stride) * GROUP
    };
    (0..count).map(place).collect()
}

/// Whether a convolution reads its input sorted.
fn is_sorted(from: usize, weights: &Weights) -> bool {
    from == IMAGES || weights.stride > 1
}

/// Images to 8 bits, their states side by side, and sorted for a convolution.
fn sort_images(
    tile: &Tile<'_>,
    range: Range,
    weights: &Weights,
    out: &mut Map,
) -> Result<(), String> {
    let (scale, zero) = (1.0 / range.scale, f32::from(range.zero));
    let [rows, columns] = tile.size();
    let mut made: [Vec<f32>; GROUP] = std::array::from_fn(|_| vec![0.0; columns]);
    let mut line = vec![[0; GROUP]; columns];
    for group in 0..tile.states().div_ceil(GROUP) {
        for row in 0..rows {
            let mut state = group * GROUP;
            let [a, b, c, d] = made.each_mut().map(|made| {
                state += 1;
                // Where there is no image, its weights are zero.
                if state <= tile.states() { tile.row(state - 1, row, made) } else { &made[..] }
            });
            let mut is_finite = true;
            vectorized(
                #[inline(always)]
                || {
                    for ((((out, a), b), c), d) in line.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                        is_finite &= (a + b + c + d).is_finite();
                        let [a, b, c, d] = [a, b, c, d].map(|value| whole(value * scale + zero));
                        *out = (a | b << 8 | c << 16 | d << 24).to_le_bytes();
                    }
                },
            );
            if !is_finite {
                return Err(format!("row {row} of its images has what is no number"));
            }
            sort_row(&line, [group, row], weights, out);
        }
    }
    Ok(())
}

/// Adds a map to another, borders and all.
fn add(out: &mut Map, of_out: Range, other: &Map, of_other: Range, to: Range) {
    let [by_out, by_other] = [of_out, of_other].map(|range| range.scale / to.scale);
    let zeros = by_out * f32::from(of_out.zero) + by_other * f32::from(of_other.zero);
    let zero = f32::from(to.zero) - zeros;
    vectorized(
        #[inline(always)]
        || {
            for (out, other) in out.bytes.iter_mut().zip(&other.bytes) {
                *out = byte(by_out * f32::from(*out) + by_other * f32::from(*other) + zero);
            }
        },
    );
}

/// The nearest of 0 to 255, to even; 0 for what is no number.
#[inline(always)]
fn whole(value: f32) -> u32 {
    (value.clamp(0.0, 255.0) + ROUND).to_bits() & 0xff
}

/// The same as a byte.
#[inline(always)]
fn byte(value: f32) -> u8 {
    whole(value).to_le_bytes()[0]
}

/// Channels to places (see [`Step::Spread`]); `groups` of them.
fn spread(from: &Map, side: usize, groups: usize, out: &mut Map) {
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

/// Puts columns that are the same modulo the stride side by side, padding before them.
fn sort_row(pixels: &[[u8; GROUP]], [group, row]: [usize; 2], weights: &Weights, out: &mut Map) {
    let Weights { stride, padding, .. } = *weights;
    for phase in 0..stride {
        // The first column of this phase that is not padding.
        let first = (phase + stride - padding % stride) % stride;
        let at =
            out.row(group * stride + phase, row + padding) + (first + padding) / stride * GROUP;
        let to = out.bytes[at..].as_chunks_mut::<GROUP>().0;
        let pixels = pixels.get(first..).unwrap_or_default();
        match stride {
            2 => every::<2>(pixels, to),
            3 => every::<3>(pixels, to),
            _ => pixels.iter().step_by(stride).zip(to).for_each(|(from, to)| *to = *from),
        }
    }
}

/// Takes one pixel of `STEP`.
fn every<const STEP: usize>(from: &[[u8; GROUP]], to: &mut [[u8; GROUP]]) {
    let (chunks, rest) = from.as_chunks::<STEP>();
    let (most, last) = to.split_at_mut(chunks.len());
    vectorized(
        #[inline(always)]
        || most.iter_mut().zip(chunks).for_each(|(to, chunk)| *to = chunk[0]),
    );
    last.iter_mut().zip(rest.first()).for_each(|(to, from)| *to = *from);
}

/// 8 bits to logits, channel by channel.
fn dequantize(map: &Map, tensor: Tensor) -> Vec<f32> {
    let Range { scale, zero } = tensor.range;
    let zero = f32::from(zero);
    let mut out = Vec::with_capacity(tensor.channels * map.rows * map.columns);
    for channel in 0..tensor.channels {
        for row in 0..map.rows {
            let pixels = map.pixels(channel / GROUP, row);
            let lane = channel % GROUP;
            out.extend(pixels.iter().map(|pixel| (f32::from(pixel[lane]) - zero) * scale));
        }
    }
    out
}
