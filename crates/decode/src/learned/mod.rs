//! The learned decoder: a network from registered images to the logits of every voxel.
//!
//! ```text
//! images --registered()--> planes --tiles--> Engine (tract | ONNX Runtime) --> logits
//!                                                                               | / temperature
//! Models (by name) --> Model = ONNX + card                    SymbolProbabilities
//! ```
//!
//! The network is the lab's (`python/`): trained elsewhere, opened here, run on one core. Nothing
//! here trains, and nothing here decides which engine a machine should have.

mod card;
mod engine;
mod graph;
mod model;
mod models;
mod onnxruntime;
#[cfg(test)]
mod tests;
mod tiles;
mod tract;

use std::sync::Arc;

use fulgurite_glass::channel::{Medium, SectorImages, SectorShape};
use fulgurite_glass::numeric::Plane;

pub use card::{Card, MODEL_FORMAT, ModelId};
pub use engine::{Device, Engine, EngineChoice};
pub use model::Model;
pub use models::{Following, Models};
use tiles::{Span, Tiling};

use crate::{DecodeError, Decoder, SymbolProbabilities, registered};

/// Voxels of a tile's side at most. Of those measured the fastest with both engines, overlap
/// counted (docs/design/0007).
const TILE_SIDE_MAX: usize = 168;

/// Decodes with one model.
#[derive(Debug)]
pub struct Learned {
    model: Arc<Model>,
    medium: Medium,
    engine: Box<dyn Engine>,
    tile_side_max: usize,
    /// Images of a tile.
    input: Vec<f32>,
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
        Ok(Self { model, medium, engine, tile_side_max: TILE_SIDE_MAX, input: Vec::new() })
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

    /// Logits `[voxel, symbol]` over the temperature, of registered images.
    fn logits(&mut self, planes: &[Plane], shape: SectorShape) -> Result<Vec<f32>, DecodeError> {
        let card = self.model.card();
        let sides = [shape.rows(), shape.columns()];
        let tiling = Tiling::new(sides, self.tile_side_max, card.block, card.margin);
        let mut logits = vec![0.0; shape.voxels() * card.symbols];
        for tile in tiling.tiles() {
            gather(planes, tile, tiling.size, card.pixels_per_pitch, &mut self.input);
            let found = self.engine.run(tiling.size, &self.input)?;
            let expected = card.symbols * tiling.size[0] * tiling.size[1];
            if found.len() != expected {
                return Err(DecodeError::Engine {
                    engine: self.engine.name(),
                    model: self.model.id().to_string(),
                    reason: format!("it gave {} logits of a tile's {expected}", found.len()),
                });
            }
            scatter(&found, tile, tiling.size, card, shape, &mut logits).map_err(|voxel| {
                let [row, column] = voxel;
                let place = format!("the logits of the voxel in row {row}, column {column}");
                DecodeError::ModelNumber { model: self.model.id().to_string(), place }
            })?;
        }
        Ok(logits)
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
        let planes = registered(images, shape, self.medium, pitch)?;
        let logits = self.logits(&planes, shape)?;
        Ok(SymbolProbabilities::normalized(self.model.card().symbols, logits))
    }
}

/// Images of a tile, state by state. Beyond the sector there is no light, as the network was taught
/// by its own padding.
fn gather(planes: &[Plane], tile: [Span; 2], size: [usize; 2], pitch: usize, out: &mut Vec<f32>) {
    let [rows, columns] = size.map(|side| side * pitch);
    let [top, left] = tile.map(|span| span.start * pitch);
    out.clear();
    for plane in planes {
        let width = columns.min(plane.columns - left);
        for row in top..top + rows {
            if row < plane.rows {
                out.extend_from_slice(&plane.row(row)[left..left + width]);
                out.resize(out.len() + columns - width, 0.0);
            } else {
                out.resize(out.len() + columns, 0.0);
            }
        }
    }
    debug_assert_eq!(out.len(), planes.len() * rows * columns, "whole images");
}

/// Puts logits `[symbol, row, column]` of a tile where they belong. The error is a voxel whose
/// logits are not finite.
fn scatter(
    found: &[f32],
    tile: [Span; 2],
    size: [usize; 2],
    card: &Card,
    shape: SectorShape,
    logits: &mut [f32],
) -> Result<(), [usize; 2]> {
    let [down, right] = tile;
    let scale = 1.0 / card.temperature;
    for (symbol, plane) in found.chunks_exact(size[0] * size[1]).enumerate() {
        for row in down.from..down.to {
            let line = &plane[(row - down.start) * size[1]..][..size[1]];
            let line = &line[right.from - right.start..right.to - right.start];
            let first = (row * shape.columns() + right.from) * card.symbols;
            let voxels = logits[first..].chunks_exact_mut(card.symbols);
            for (at, (voxel, value)) in voxels.zip(line).enumerate() {
                if !value.is_finite() {
                    return Err([row, right.from + at]);
                }
                voxel[symbol] = scale * value;
            }
        }
    }
    Ok(())
}
