//! The learned decoder: a network from registered images to the logits of every voxel.
//!
//! ```text
//! images --registered--> planes or bytes --tiles--> Engine (ours | tract | ONNX Runtime)
//!                                                      | logits / temperature
//! ModelRegistry (by name) --> Model = ONNX + card      +--> SymbolProbabilities, or soft bits
//! ```
//!
//! The network comes from the lab (`python/`): trained there, opened here, run on one core. Nothing
//! here trains, and nothing here decides which engine a machine should have.

mod card;
mod engine;
mod graph;
mod integer;
mod logits;
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

use fulgurite_codes::symbols::Demapper;
use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};
use fulgurite_platter::numeric::{LANES, dispatch_simd};

pub use card::{Card, MODEL_FORMAT, ModelId};
pub use engine::{Device, Engine, EngineChoice};
pub use logits::Logits;
pub use model::Model;
pub use models::{ModelRegistry, ReloadingDecoder};
pub use tile::Tile;
use tiles::Tiling;

use crate::decoder::{bits_per_symbol, demapper_error};
use crate::front::{FrontEnd, RegisteredImages};
use crate::probabilities::{Block, store_normalized};
use crate::{DecodeError, Decoder, SymbolProbabilities};

/// A decoder with one model.
#[derive(Debug)]
pub struct Learned {
    medium: Medium,
    front: FrontEnd,
    network: Network,
}

/// A model and its engine.
#[derive(Debug)]
struct Network {
    model: Arc<Model>,
    engine: Box<dyn Engine>,
    tile_side_max: usize,
    /// Buffer for the logits of a row of voxels.
    blocks: Vec<f32>,
}

impl Learned {
    /// Creates a decoder for a medium.
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

    /// Creates a decoder with a custom engine, which must run that model.
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
        let network = Network { model, engine, tile_side_max, blocks: Vec::new() };
        Ok(Self { medium, front: FrontEnd::default(), network })
    }

    /// Sets the longest side of tiles, instead of the fastest one measured. Results differ only by
    /// the network's receptive field beyond `margin`, which matters little.
    #[must_use]
    pub const fn with_tile_side_max(mut self, side_max: usize) -> Self {
        self.network.tile_side_max = side_max;
        self
    }

    /// The model it decodes with.
    #[must_use]
    pub const fn model(&self) -> &Arc<Model> {
        &self.network.model
    }

    /// Name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.network.engine.name()
    }

    /// Returns the registered images of a sector, and the network.
    fn register_images(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<(RegisteredImages<'_>, &mut Network), DecodeError> {
        let Self { medium, front, network } = self;
        let pitch = network.model.card().pixels_per_pitch;
        let input =
            front.register_images(images, shape, *medium, pitch, network.engine.images())?;
        Ok((input, network))
    }
}

impl Network {
    /// Runs the network on all tiles of a sector. `put` receives the logits of each row of voxels
    /// in blocks, symbol by symbol and divided by the temperature, and the position of the row.
    fn rows<const SYMBOLS: usize>(
        &mut self,
        input: RegisteredImages<'_>,
        shape: SectorShape,
        mut put: impl FnMut(&mut [Block<SYMBOLS>], VoxelRun) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let Self { model, engine, blocks, .. } = self;
        let card = model.card();
        let sides = [shape.rows(), shape.columns()];
        let tiling = Tiling::new(sides, self.tile_side_max, card.block, card.margin);
        let scale = 1.0 / card.temperature;
        let name = engine.name();
        for [down, right] in tiling.tiles() {
            let pixels = |voxels: usize| voxels * card.pixels_per_pitch;
            let from = [down, right].map(|span| pixels(span.start));
            let found = engine.run(&Tile::from_images(input, from, tiling.size.map(pixels)))?;
            let expected = SYMBOLS * tiling.size[0] * tiling.size[1];
            if found.count() != expected {
                return Err(DecodeError::Engine {
                    engine: name,
                    model: model.id().to_string(),
                    reason: format!("it gave {} logits of a tile's {expected}", found.count()),
                });
            }
            let columns = right.from - right.start..right.to - right.start;
            let room = columns.len().next_multiple_of(LANES) * SYMBOLS;
            blocks.resize(room, 0.0);
            for row in down.from..down.to {
                let line = row - down.start;
                let blocks = blocks.as_chunks_mut::<LANES>().0.as_chunks_mut::<SYMBOLS>().0;
                let mut is_finite = true;
                dispatch_simd(
                    #[inline(always)]
                    || {
                        for (at, block) in blocks.iter_mut().enumerate() {
                            let column = columns.start + at * LANES;
                            *block = found.block(tiling.size, line, column, scale);
                            is_finite &= all_finite(block);
                        }
                    },
                );
                if let Some(bad) = found.find_non_finite(tiling.size, line, &columns, is_finite) {
                    let column = right.start + bad;
                    let place = format!("the logits of the voxel in row {row}, column {column}");
                    return Err(DecodeError::ModelNotFinite {
                        model: model.id().to_string(),
                        place,
                    });
                }
                let first = row * shape.columns() + right.from;
                put(blocks, VoxelRun { first, count: columns.len() })?;
            }
        }
        Ok(())
    }

    fn probabilities<const SYMBOLS: usize>(
        &mut self,
        input: RegisteredImages<'_>,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let mut logarithms = vec![0.0; shape.voxels() * SYMBOLS];
        let out = logarithms.as_chunks_mut::<SYMBOLS>().0;
        self.rows::<SYMBOLS>(input, shape, |blocks, place| {
            let out = &mut out[place.first..][..place.count];
            dispatch_simd(
                #[inline(always)]
                || {
                    for (block, out) in blocks.iter().zip(out.chunks_mut(LANES)) {
                        store_normalized(*block, out);
                    }
                },
            );
            Ok(())
        })?;
        Ok(SymbolProbabilities::from_normalized(SYMBOLS, logarithms))
    }

    fn soft_bits<const SYMBOLS: usize>(
        &mut self,
        input: RegisteredImages<'_>,
        shape: SectorShape,
        demapper: &Demapper,
        soft: &mut Vec<i8>,
    ) -> Result<(), DecodeError> {
        let bits = bits_per_symbol(SYMBOLS);
        soft.resize(shape.voxels() * bits, 0);
        self.rows::<SYMBOLS>(input, shape, |blocks, place| {
            let soft = &mut soft[place.first * bits..][..place.count * bits];
            let blocks = blocks.as_flattened().as_flattened();
            demapper.demap_logarithm_blocks(blocks, soft).map_err(demapper_error)
        })
    }
}

#[inline(always)]
fn all_finite<const SYMBOLS: usize>(block: &Block<SYMBOLS>) -> bool {
    // Infinities and NaN times zero are NaN, and stay so in a sum.
    let mut sums = [0.0f32; LANES];
    for values in block {
        for lane in 0..LANES {
            sums[lane] += 0.0 * values[lane];
        }
    }
    sums.iter().sum::<f32>().is_finite()
}

/// Voxels of a row; `first` is an index in the sector.
#[derive(Clone, Copy, Debug)]
struct VoxelRun {
    first: usize,
    count: usize,
}

impl Decoder for Learned {
    fn name(&self) -> &str {
        "learned"
    }

    fn model_id(&self) -> Option<ModelId> {
        Some(self.network.model.id())
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let symbols = self.medium.symbols();
        let (input, network) = self.register_images(images, shape)?;
        match symbols {
            4 => network.probabilities::<4>(input, shape),
            8 => network.probabilities::<8>(input, shape),
            other => unreachable!("a medium has 4 or 8 symbols, not {other}"),
        }
    }

    fn soft_bits(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        demapper: &Demapper,
        soft: &mut Vec<i8>,
    ) -> Result<(), DecodeError> {
        let symbols = self.medium.symbols();
        let (input, network) = self.register_images(images, shape)?;
        match symbols {
            4 => network.soft_bits::<4>(input, shape, demapper, soft),
            8 => network.soft_bits::<8>(input, shape, demapper, soft),
            other => unreachable!("a medium has 4 or 8 symbols, not {other}"),
        }
    }
}
