//! What runs a network.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::integer::Integer;
use super::logits::Logits;
use super::model::Model;
use super::onnxruntime::OnnxRuntime;
use super::tile::Tile;
#[cfg(feature = "tract")]
use super::tract::Tract;
use crate::{DecodeError, Range};

/// Runs one network, one tile at a time, on one thread. A decoder has its own.
pub trait Engine: fmt::Debug + Send {
    /// What it is called, and what it runs on.
    fn name(&self) -> &'static str;

    /// Voxels of a tile's side at most: of those measured the fastest, overlap counted
    /// (docs/design/0007).
    fn tile_side_max(&self) -> usize {
        128
    }

    /// The bytes that it takes images in, if it would make them bytes anyway.
    fn images(&self) -> Option<Range> {
        None
    }

    /// Logits of a tile's voxels.
    ///
    /// # Errors
    /// [`DecodeError::Engine`] when it cannot.
    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError>;
}

/// Which engine is to run a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// What is built in: our own, which runs networks of 8 bits. Those of float32 are run by tract
    /// where the program is built with the feature `tract`, and are refused where it is not.
    #[default]
    BuiltIn,
    /// ONNX Runtime: a library of the machine, for both, and for GPUs.
    OnnxRuntime {
        /// Its file; without one, that of the variable `FULGURITE_ONNXRUNTIME` or
        /// `ORT_DYLIB_PATH`.
        library: Option<PathBuf>,
        /// What it runs on.
        device: Device,
    },
}

/// What ONNX Runtime runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU by CUDA, or an error.
    Cuda,
    /// A GPU by CUDA if there is one, else the processor.
    CudaIfThere,
}

impl EngineChoice {
    /// ONNX Runtime on the processor, from the library that the environment names.
    #[must_use]
    pub const fn onnx_runtime() -> Self {
        Self::OnnxRuntime { library: None, device: Device::Cpu }
    }

    /// Makes the engine ready to run a model.
    ///
    /// # Errors
    /// [`DecodeError::EngineMissing`] when it is not on this machine, [`DecodeError::Engine`] when
    /// it refuses the model.
    pub fn start(&self, model: &Arc<Model>) -> Result<Box<dyn Engine>, DecodeError> {
        Ok(match self {
            Self::BuiltIn if model.card().precision == "int8" => Box::new(Integer::new(model)?),
            #[cfg(feature = "tract")]
            Self::BuiltIn => Box::new(Tract::new(Arc::clone(model))),
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
