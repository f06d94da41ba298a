//! The optional engine: ONNX Runtime, a shared library that is loaded on request. Its absence is an
//! error with a remedy, never a panic, and nothing else of this crate needs it. Telemetry is off,
//! and each network runs on the calling thread alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::ep;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use ort::value::TensorRef;

use super::engine::{Device, Engine};
use super::logits::Logits;
use super::model::Model;
use super::tile::Tile;
use crate::DecodeError;

/// Environment variables with the path of the library: ours, and that of the crate `ort`.
const VARIABLES: [&str; 2] = ["FULGURITE_ONNXRUNTIME", "ORT_DYLIB_PATH"];

const NAME: &str = "onnxruntime";
const REMEDY: &str = "name the file libonnxruntime.so of version 1.20 or later by the variable \
                      FULGURITE_ONNXRUNTIME, or take the built-in engine";
const REMEDY_CUDA: &str = "take the library of onnxruntime-gpu with its CUDA libraries, or the CPU";

/// The library loaded in this process, which cannot be changed, and its one environment.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// ONNX Runtime with a model.
pub(crate) struct OnnxRuntime {
    session: Session,
    input: Vec<f32>,
    model: String,
    is_cuda: bool,
}

impl fmt::Debug for OnnxRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnnxRuntime").field("model", &self.model).finish_non_exhaustive()
    }
}

impl OnnxRuntime {
    pub(crate) fn new(
        model: &Model,
        library: Option<&Path>,
        device: Device,
    ) -> Result<Self, DecodeError> {
        let environment = environment(library)?;
        let name = model.id().to_string();
        let cuda = match device {
            Device::Cpu => None,
            Device::Cuda => Some(with_cuda(&environment)?),
            Device::CudaIfAvailable => with_cuda(&environment).ok(),
        };
        let is_cuda = cuda.is_some();
        let builder = match cuda {
            Some(builder) => Ok(builder),
            None => builder(&environment),
        };
        let session = builder
            .and_then(|mut builder| builder.commit_from_memory(model.onnx()))
            .map_err(|error| engine_error(&name, &error))?;
        Ok(Self { session, input: Vec::new(), model: name, is_cuda })
    }

    fn infer(&mut self, tile: &Tile<'_>) -> ort::Result<Vec<f32>> {
        let [rows, columns] = tile.size();
        let shape = [1, tile.states(), rows, columns];
        tile.copy_to(&mut self.input);
        let input = TensorRef::from_array_view((shape, &self.input[..]))?;
        let outputs = self.session.run(ort::inputs![input])?;
        Ok(outputs[0].try_extract_tensor::<f32>()?.1.to_vec())
    }
}

impl Engine for OnnxRuntime {
    fn name(&self) -> &'static str {
        if self.is_cuda { "onnxruntime-cuda" } else { NAME }
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        self.infer(tile).map(Logits::new).map_err(|error| engine_error(&self.model, &error))
    }
}

fn engine_error(model: &str, error: &ort::Error) -> DecodeError {
    let reason = error.message().to_owned();
    DecodeError::Engine { engine: NAME, model: model.to_owned(), reason }
}

/// Uses one thread: throughput comes from parallel decoders, one per core.
fn builder(environment: &Environment) -> ort::Result<SessionBuilder> {
    Ok(Session::builder(environment)?.with_intra_threads(1)?)
}

fn with_cuda(environment: &Environment) -> Result<SessionBuilder, DecodeError> {
    // Full precision: results must not depend on the machine.
    let cuda = ep::CUDA::default().with_tf32(false).build().error_on_failure();
    let with = |builder: SessionBuilder| Ok(builder.with_execution_providers([cuda])?);
    builder(environment).and_then(with).map_err(|error: ort::Error| DecodeError::EngineMissing {
        engine: "onnxruntime with CUDA",
        reason: error.message().to_owned(),
        remedy: REMEDY_CUDA,
    })
}

/// Returns the environment of the library, which is loaded on first use. A second library is
/// refused: a process can have only one.
fn environment(library: Option<&Path>) -> Result<Environment, DecodeError> {
    let missing =
        |reason: String| DecodeError::EngineMissing { engine: NAME, reason, remedy: REMEDY };
    let Some(library) = library.map(Path::to_path_buf).or_else(from_variables) else {
        return Err(missing("no library is named".to_owned()));
    };
    // An absolute path: a bare name would be searched in system directories.
    let library = library
        .canonicalize()
        .map_err(|error| missing(format!("cannot read {}: {error}", library.display())))?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*loaded {
        Some((path, environment)) if *path == library => return Ok(environment.clone()),
        Some((path, _)) => {
            let (wanted, path) = (library.display(), path.display());
            return Err(missing(format!("{wanted} is named; this process has loaded {path}")));
        }
        None => {}
    }
    let builder = ort::init_from(&library).map_err(|error| missing(error.to_string()))?;
    let environment = builder
        .with_name("fulgurite")
        .with_telemetry(false)
        .build()
        .map_err(|error| missing(error.message().to_owned()))?;
    *loaded = Some((library, environment.clone()));
    Ok(environment)
}

#[expect(clippy::disallowed_methods, reason = "where the machine has a library, the machine says")]
fn from_variables() -> Option<PathBuf> {
    let mut named = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    named.find(|path| !path.is_empty()).map(PathBuf::from)
}
