//! The optional built-in engine for float32 networks: tract, which is pure Rust. It takes three
//! quarters of a build, so the feature `tract` is off by default.
//!
//! tract plans for a fixed image size, so plans are cached by size. The cache belongs to the model:
//! all its decoders share it. Images are passed one by one; batches cost twice as much per image.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tract_onnx::onnx;
use tract_onnx::prelude::*;

use super::engine::Engine;
use super::logits::Logits;
use super::model::Model;
use super::tile::Tile;
use crate::DecodeError;

/// Cached plans of a model: tiles of a sector have one size, and there are few kinds of sectors. A
/// plan holds a copy of the weights.
const PLANS_MAX: usize = 8;

const NAME: &str = "tract";

/// Plans by the shape of images.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<[usize; 4], Arc<TypedRunnableModel>>>);

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Plans").field(&plans.keys().collect::<Vec<_>>()).finish()
    }
}

impl Plans {
    /// Returns the plan for a size. Others wait while one is made, since they need the same one.
    fn get(&self, model: &Model, shape: [usize; 4]) -> TractResult<Arc<TypedRunnableModel>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&shape) {
            return Ok(Arc::clone(plan));
        }
        let plan = onnx()
            .model_for_read(&mut model.onnx())?
            .with_input_fact(0, f32::fact(shape).into())?
            .into_optimized()?
            .into_runnable()?;
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(shape, Arc::clone(&plan));
        Ok(plan)
    }
}

/// tract with a model.
#[derive(Debug)]
pub(crate) struct TractEngine {
    model: Arc<Model>,
    input: Vec<f32>,
}

impl TractEngine {
    pub(crate) const fn new(model: Arc<Model>) -> Self {
        Self { model, input: Vec::new() }
    }

    fn infer(&mut self, tile: &Tile<'_>) -> TractResult<Vec<f32>> {
        let [rows, columns] = tile.size();
        let shape = [1, tile.states(), rows, columns];
        let plan = self.model.plans().get(&self.model, shape)?;
        tile.copy_to(&mut self.input);
        let input = Tensor::from_shape(&shape, &self.input)?;
        let logits = plan.run(tvec!(input.into()))?;
        Ok(logits[0].try_as_plain_ram()?.as_slice::<f32>()?.to_vec())
    }
}

impl Engine for TractEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        self.infer(tile).map(Logits::new).map_err(|error| DecodeError::Engine {
            engine: NAME,
            model: self.model.id().to_string(),
            reason: format!("{error:#}"),
        })
    }
}
