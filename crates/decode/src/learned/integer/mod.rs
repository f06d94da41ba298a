//! The built-in engine for int8 networks.
//!
//! Its sums are integers, and rounding has a fixed order, so a sector decodes to the same bytes on
//! every processor. A network is as the lab exports it (`network`); its feature maps belong to the
//! engine and are reused for tiles of one size.

mod graph;
mod kernel;
mod map;
mod network;
mod passes;
#[cfg(test)]
mod tests;

use self::kernel::{BLOCK, Convolution, Kernel};
use self::map::GROUP;
pub(super) use self::map::Map;
use self::network::{Network, Step, Tensor, Weights};
use self::passes::{add, depth_to_space, split_image_phases, split_row_phases};
use super::engine::Engine;
use super::logits::Logits;
use super::model::Model;
use super::tile::Tile;
use crate::limits::MAPS_BYTES_MAX;
use crate::{DecodeError, Range};

const NAME: &str = "integer";

/// Index of the first step: the images.
const IMAGES: usize = 0;

/// Runs an int8 network.
#[derive(Debug)]
pub(crate) struct IntegerEngine {
    model: String,
    pitch: usize,
    kernel: &'static Kernel,
    tensors: Vec<Tensor>,
    steps: Vec<PreparedStep>,
    /// Width of every map's border, in pixels.
    border: usize,
    /// Rows and columns of pixels that the maps are allocated for.
    size: Option<[usize; 2]>,
    maps: Vec<Map>,
}

/// A step and its buffers.
#[derive(Debug)]
struct PreparedStep {
    step: Step,
    packed: Packed,
    /// The map that it fills. Maps that no later step reads are reused.
    map: usize,
    /// Its input with columns grouped by their remainder modulo the stride, if [`is_polyphase`].
    polyphase: Map,
    taps: Vec<usize>,
}

/// Weights in the kernel's layout.
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

impl IntegerEngine {
    pub(crate) fn new(model: &Model) -> Result<Self, DecodeError> {
        Self::with_kernel(model, Kernel::current())
    }

    fn with_kernel(model: &Model, kernel: &'static Kernel) -> Result<Self, DecodeError> {
        let engine_error = |reason| engine_error(&model.id().to_string(), reason);
        let network = Network::read(model.onnx()).map_err(engine_error)?;
        let paddings = network.steps.iter().map(|step| match step {
            Step::Convolution { weights, .. } if weights.stride == 1 => weights.padding,
            Step::Convolution { .. }
            | Step::Input
            | Step::Add { .. }
            | Step::DepthToSpace { .. } => 0,
        });
        let border = paddings.max().unwrap_or_default();
        let prepared = |step: Step| {
            let packed = match &step {
                Step::Convolution { weights, .. } => Packed::new(weights.clone(), kernel),
                Step::Input | Step::Add { .. } | Step::DepthToSpace { .. } => Packed::default(),
            };
            PreparedStep { step, packed, map: 0, polyphase: Map::default(), taps: Vec::new() }
        };
        Ok(Self {
            model: model.id().to_string(),
            pitch: model.card().pixels_per_pitch,
            kernel,
            tensors: network.tensors,
            steps: network.steps.into_iter().map(prepared).collect(),
            border,
            size: None,
            maps: Vec::new(),
        })
    }

    /// Allocates maps for tiles of a size.
    fn prepare(&mut self, size: [usize; 2]) -> Result<(), String> {
        self.size = None;
        self.maps.clear();
        // Maps that no step after this one reads.
        let mut free = Vec::new();
        let mut bytes_left = MAPS_BYTES_MAX;
        for at in 0..self.steps.len() {
            let tensor = self.tensors[at];
            let (shape, groups) = self.shape(at, size, &mut bytes_left)?;
            let new = Map::new(groups, shape, self.border, tensor.range.zero, &mut bytes_left)?;
            let step = &self.steps[at].step;
            let later: Vec<usize> =
                self.steps[at + 1..].iter().flat_map(|prepared| prepared.step.reads()).collect();
            let read = step.reads().into_iter().filter(|from| !later.contains(from));
            let read: Vec<usize> = read.map(|from| self.steps[from].map).collect();
            // A sum may be computed in place.
            let is_sum = matches!(step, Step::Add { .. });
            if is_sum {
                free.extend(&read);
            }
            let fits = |map: &usize| self.maps[*map].has_same_layout(&new);
            let map = match free.iter().rposition(fits) {
                Some(found) => {
                    bytes_left += new.bytes.len();
                    free.swap_remove(found)
                }
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

    /// Returns rows and columns of a step's output, and its groups; computes the offsets of its
    /// inputs on the way.
    fn shape(
        &mut self,
        at: usize,
        size: [usize; 2],
        bytes_left: &mut usize,
    ) -> Result<([usize; 2], usize), String> {
        let groups = self.tensors[at].channels.next_multiple_of(BLOCK) / GROUP;
        let (made, rest) = self.steps.split_at_mut(at);
        let prepared = &mut rest[0];
        let map_of = |from: usize| &self.maps[made[from].map];
        let shape_of = |from: usize| [map_of(from).rows, map_of(from).columns];
        let shape = match &prepared.step {
            // The steps that read images quantize them.
            Step::Input => return Ok((size, 0)),
            Step::Add { from: [a, b] } => {
                let (shape, other) = (shape_of(*a), shape_of(*b));
                if !map_of(*a).has_same_layout(map_of(*b)) {
                    return Err(format!("it adds {shape:?} pixels and {other:?}"));
                }
                shape
            }
            Step::DepthToSpace { from, side } => shape_of(*from).map(|length| length * side),
            Step::Convolution { from, weights } => {
                let padded = shape_of(*from).map(|length| length + 2 * weights.padding);
                if padded.iter().any(|length| *length < weights.side) {
                    return Err(format!("images of {size:?} pixels are too small for it"));
                }
                if is_polyphase(*from, weights) {
                    let groups = self.tensors[*from].channels.div_ceil(GROUP) * weights.stride;
                    let shape = [padded[0], padded[1].div_ceil(weights.stride)];
                    let zero = self.tensors[*from].range.zero;
                    prepared.polyphase = Map::new(groups, shape, 0, zero, bytes_left)?;
                    prepared.taps = taps(&prepared.polyphase, weights, 0);
                } else {
                    prepared.taps = taps(map_of(*from), weights, self.border - weights.padding);
                }
                padded.map(|length| (length - weights.side) / weights.stride + 1)
            }
        };
        Ok((shape, groups))
    }

    fn infer(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, String> {
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
        let Tensor { channels, range } = self.tensors[last];
        Ok(Logits::from_map(&self.maps[self.steps[last].map], channels, range))
    }

    /// Computes a step's map, which is taken out of the others.
    fn step(&mut self, at: usize, tile: &Tile<'_>, map: &mut Map) -> Result<(), String> {
        let range = |index: usize| self.tensors[index].range;
        let to = range(at);
        let (made, rest) = self.steps.split_at_mut(at);
        let prepared = &mut rest[0];
        let map_of = |from: usize| &self.maps[made[from].map];
        if let Step::Add { from: [a, b] } = prepared.step {
            let [(a, range_a), (b, range_b)] = [a, b].map(|from| (made[from].map, range(from)));
            // A map that is already taken out is the one that the sum is written to.
            if prepared.map == b {
                add(map, range_b, &self.maps[a], range_a, to);
            } else {
                if prepared.map != a {
                    map.bytes.copy_from_slice(&self.maps[a].bytes);
                }
                add(map, range_a, &self.maps[b], range_b, to);
            }
            return Ok(());
        }
        map.clear_border(to.zero);
        match &prepared.step {
            Step::Input => {}
            Step::DepthToSpace { from, side } => {
                depth_to_space(map_of(*from), *side, self.tensors[at].channels / GROUP, map);
            }
            Step::Convolution { from, weights } => {
                let (mut source, polyphase) = (map_of(*from), &mut prepared.polyphase);
                if *from == IMAGES {
                    split_image_phases(tile, range(IMAGES), weights, polyphase)?;
                } else if weights.stride > 1 {
                    for group in 0..self.tensors[*from].channels.div_ceil(GROUP) {
                        for row in 0..source.rows {
                            split_row_phases(
                                source.pixels(group, row),
                                [group, row],
                                weights,
                                polyphase,
                            );
                        }
                    }
                }
                if is_polyphase(*from, weights) {
                    source = polyphase;
                }
                self.kernel.run(Convolution {
                    input: &source.bytes,
                    input_row_stride: source.stride * GROUP * weights.stride,
                    taps: &prepared.taps,
                    weights: &prepared.packed.weights,
                    bias: &prepared.packed.bias,
                    scale: &prepared.packed.scale,
                    zero: f32::from(to.zero),
                    output_offset: map.row(0, 0),
                    output_row_stride: map.stride * GROUP,
                    output_group_stride: map.plane(),
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

impl Engine for IntegerEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tile_side_max(&self) -> usize {
        // It takes some 250 bytes a voxel and runs as fast in any tile, so less overlap is faster.
        384
    }

    fn images(&self) -> Option<Range> {
        (self.tensors[IMAGES].channels <= GROUP).then_some(self.tensors[IMAGES].range)
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        let model = self.model.clone();
        self.infer(tile).map_err(|reason| engine_error(&model, reason))
    }
}

fn engine_error(model: &str, reason: String) -> DecodeError {
    DecodeError::Engine { engine: NAME, model: model.to_owned(), reason }
}

/// Returns the offsets of a pixel's inputs in a map, whose first pixel is `start` pixels from its
/// corner.
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

/// Returns whether a convolution reads its input with columns grouped.
fn is_polyphase(from: usize, weights: &Weights) -> bool {
    from == IMAGES || weights.stride > 1
}
