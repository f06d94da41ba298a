//! The learned decoder: a network from registered images to the logits of every voxel.
//!
//! ```text
//! images --registered()--> planes --tiles--> Engine (ours | tract | ONNX Runtime) --> logits
//!                                                                               | / temperature
//! Models (by name) --> Model = ONNX + card                    SymbolProbabilities
//! ```
//!
//! The network is the lab's (`python/`): trained elsewhere, opened here, run on one core. Nothing
//! here trains, and nothing here decides which engine a machine should have.

mod card;
mod engine;
mod graph;
mod integer;
mod model;
mod models;
mod onnx;
mod onnxruntime;
#[cfg(test)]
mod tests;
mod tile;
mod tiles;
#[cfg(feature = "tract")]
mod tract;

use std::sync::Arc;

use fulgurite_glass::channel::{Medium, SectorImages, SectorShape};
use fulgurite_glass::numeric::{LANES, Plane, vectorized};

pub use card::{Card, MODEL_FORMAT, ModelId};
pub use engine::{Device, Engine, EngineChoice};
pub use model::Model;
pub use models::{Following, Models};
pub use tile::Tile;
use tiles::{Span, Tiling};

use crate::front::Front;
use crate::probabilities::{Block, store_normalized};
use crate::{DecodeError, Decoder, SymbolProbabilities};

/// Decodes with one model.
#[derive(Debug)]
pub struct Learned {
    model: Arc<Model>,
    medium: Medium,
    engine: Box<dyn Engine>,
    tile_side_max: usize,
    front: Front,
}

impl Learned {
    /// Makes a decoder of a medium.
    ///
    /// # Errors
    /// [`DecodeError::ModelMedium`], [`DecodeError::EngineMissing`], [`DecodeError::Engine`].
    pub fn new(
        model: &Arc<Model>,
        medium: Medium,
        engine: &EngineChoice,
    ) -> Result<Self, DecodeError> {
        model.check(medium)?;
        Self::with_engine(model, medium, engine.start(model)?)
    }

    /// The same with an engine of one's own, which must run that model.
    ///
    /// # Errors
    /// [`DecodeError::ModelMedium`].
    pub fn with_engine(
        model: &Arc<Model>,
        medium: Medium,
        engine: Box<dyn Engine>,
    ) -> Result<Self, DecodeError> {
        model.check(medium)?;
        let model = Arc::clone(model);
        let tile_side_max = engine.tile_side_max();
        Ok(Self { model, medium, engine, tile_side_max, front: Front::default() })
    }

    /// With other tiles than those that were measured to be the fastest. What is decoded differs
    /// by what a network sees beyond `margin`, which is little.
    #[must_use]
    pub const fn tiles_of(mut self, side_max: usize) -> Self {
        self.tile_side_max = side_max;
        self
    }

    /// The model it decodes with.
    #[must_use]
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What runs the model.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// Probabilities of registered images.
    fn probabilities<const SYMBOLS: usize>(
        &mut self,
        planes: &[Plane],
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let card = self.model.card();
        let sides = [shape.rows(), shape.columns()];
        let tiling = Tiling::new(sides, self.tile_side_max, card.block, card.margin);
        let mut logarithms = vec![0.0; shape.voxels() * SYMBOLS];
        for tile in tiling.tiles() {
            let pixels = |voxels: usize| voxels * card.pixels_per_pitch;
            let from = tile.map(|span| pixels(span.start));
            let found = self.engine.run(&Tile::new(planes, from, tiling.size.map(pixels)))?;
            let expected = SYMBOLS * tiling.size[0] * tiling.size[1];
            if found.len() != expected {
                return Err(DecodeError::Engine {
                    engine: self.engine.name(),
                    model: self.model.id().to_string(),
                    reason: format!("it gave {} logits of a tile's {expected}", found.len()),
                });
            }
            let out = logarithms.as_chunks_mut::<SYMBOLS>().0;
            let scale = 1.0 / card.temperature;
            scatter(&found, tile, tiling.size, scale, shape, out).map_err(|voxel| {
                let [row, column] = voxel;
                let place = format!("the logits of the voxel in row {row}, column {column}");
                DecodeError::ModelNumber { model: self.model.id().to_string(), place }
            })?;
        }
        Ok(SymbolProbabilities::of_normalized(SYMBOLS, logarithms))
    }
}

impl Decoder for Learned {
    fn name(&self) -> &str {
        "learned"
    }

    fn model_id(&self) -> Option<ModelId> {
        Some(self.model.id())
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let pitch = self.model.card().pixels_per_pitch;
        let mut front = std::mem::take(&mut self.front);
        let found =
            front.registered(images, shape, self.medium, pitch).and_then(|planes| {
                match self.medium.symbols() {
                    4 => self.probabilities::<4>(planes, shape),
                    8 => self.probabilities::<8>(planes, shape),
                    other => unreachable!("a medium has 4 or 8 symbols, not {other}"),
                }
            });
        self.front = front;
        found
    }
}

/// Puts probabilities where they belong, from logits `[symbol, row, column]` of a tile, which are
/// multiplied by `scale`. The error is a voxel whose logits are not finite.
fn scatter<const SYMBOLS: usize>(
    found: &[f32],
    tile: [Span; 2],
    size: [usize; 2],
    scale: f32,
    shape: SectorShape,
    out: &mut [[f32; SYMBOLS]],
) -> Result<(), [usize; 2]> {
    let [down, right] = tile;
    let columns = right.from - right.start..right.to - right.start;
    for row in down.from..down.to {
        let line = (row - down.start) * size[1];
        let planes: [&[f32]; SYMBOLS] = std::array::from_fn(|symbol| {
            let from = symbol * size[0] * size[1] + line;
            &found[from + columns.start..from + columns.end]
        });
        let out = &mut out[row * shape.columns() + right.from..][..columns.len()];
        let mut is_finite = true;
        vectorized(
            #[inline(always)]
            || {
                for (at, out) in out.chunks_mut(LANES).enumerate() {
                    let block = take(&planes, at * LANES, scale);
                    is_finite &= all_finite(&block);
                    store_normalized(block, out);
                }
            },
        );
        if !is_finite {
            let is_bad = |at: &usize| planes.iter().any(|plane| !plane[*at].is_finite());
            let bad = (0..columns.len()).find(is_bad).unwrap_or_default();
            return Err([row, right.from + bad]);
        }
    }
    Ok(())
}

/// Logits of the voxels from `at` on, scaled; zeros where there are no more.
#[inline(always)]
fn take<const SYMBOLS: usize>(planes: &[&[f32]; SYMBOLS], at: usize, scale: f32) -> Block<SYMBOLS> {
    let mut block = [[0.0; LANES]; SYMBOLS];
    for (values, plane) in block.iter_mut().zip(planes) {
        let logits = &plane[at..];
        if let Some(logits) = logits.first_chunk::<LANES>() {
            for lane in 0..LANES {
                values[lane] = scale * logits[lane];
            }
        } else {
            for (value, logit) in values.iter_mut().zip(logits) {
                *value = scale * logit;
            }
        }
    }
    block
}

#[inline(always)]
fn all_finite<const SYMBOLS: usize>(block: &Block<SYMBOLS>) -> bool {
    // What is not finite is no number when it is multiplied by zero, and stays so in a sum.
    let mut sums = [0.0f32; LANES];
    for values in block {
        for lane in 0..LANES {
            sums[lane] += 0.0 * values[lane];
        }
    }
    sums.iter().sum::<f32>().is_finite()
}
