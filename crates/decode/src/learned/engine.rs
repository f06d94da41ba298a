//! Engines, which run networks.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::integer::IntegerEngine;
use super::logits::Logits;
use super::model::Model;
use super::onnxruntime::OnnxRuntime;
use super::tile::Tile;
#[cfg(feature = "tract")]
use super::tract::TractEngine;
use crate::{DecodeError, Range};

/// Runs one network, one tile at a time, on one thread. Each decoder has its own engine.
pub trait Engine: fmt::Debug + Send {
    /// Name of the engine, with the device that it runs on.
    fn name(&self) -> &'static str;

    /// Longest side of a tile, in voxels: the fastest one measured, overlap included
    /// (docs/design/0007).
    fn tile_side_max(&self) -> usize {
        128
    }

    /// The range to which the engine would quantize images anyway, so that they can be passed as
    /// bytes.
    fn images(&self) -> Option<Range> {
        None
    }

    /// Computes the logits of a tile's voxels.
    ///
    /// # Errors
    /// [`DecodeError::Engine`] when that fails.
    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError>;
}

/// Selects the engine that runs a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The built-in engines: our own for int8 networks, and tract for float32 networks if the
    /// program is built with the feature `tract`; otherwise those are refused.
    #[default]
    BuiltIn,
    /// ONNX Runtime, a shared library installed on the machine: for both precisions, and for GPUs.
    OnnxRuntime {
        /// Path of the library; if none, that of the variable `FULGURITE_ONNXRUNTIME` or
        /// `ORT_DYLIB_PATH`.
        library: Option<PathBuf>,
        /// The device that it runs on.
        device: Device,
    },
}

/// The device that ONNX Runtime runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU with CUDA; an error if there is none.
    Cuda,
    /// A GPU with CUDA if there is one, else the CPU.
    CudaIfAvailable,
}

impl EngineChoice {
    /// ONNX Runtime on the CPU, from the library that the environment names.
    #[must_use]
    pub const fn onnx_runtime() -> Self {
        Self::OnnxRuntime { library: None, device: Device::Cpu }
    }

    /// Starts the engine with a model.
    ///
    /// # Errors
    /// [`DecodeError::EngineMissing`] when it is not on this machine, [`DecodeError::Engine`] when
    /// it refuses the model.
    pub fn start(&self, model: &Arc<Model>) -> Result<Box<dyn Engine>, DecodeError> {
        Ok(match self {
            Self::BuiltIn if model.card().precision == "int8" => {
                Box::new(IntegerEngine::new(model)?)
            }
            #[cfg(feature = "tract")]
            Self::BuiltIn => Box::new(TractEngine::new(Arc::clone(model))),
            #[cfg(not(feature = "tract"))]
            Self::BuiltIn => {
                return Err(DecodeError::EngineMissing {
                    engine: "built-in engine for networks of float32",
                    reason: format!(
                        "the model {} is one, and this program was built without tract",
                        model.id()
                    ),
                    remedy: "take the engine onnxruntime (ONNX Runtime), a network of 8 bits, or \
                             a program that was built with `--features tract`",
                });
            }
            Self::OnnxRuntime { library, device } => {
                Box::new(OnnxRuntime::new(model, library.as_deref(), *device)?)
            }
        })
    }
}
