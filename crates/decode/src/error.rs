//! Errors about the input of a decoder. A sector that decodes badly is not an error: its
//! probabilities say so.

use std::path::PathBuf;

use fulgurite_platter::PlatterError;

/// A decoder cannot work with its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The images do not match the sector.
    #[error("the images are {found}; a sector of {rows} x {columns} voxels has {expected}")]
    Images {
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
        /// Rows of the sector, in voxels.
        rows: usize,
        /// Columns of the sector, in voxels.
        columns: usize,
    },
    /// No sector of this size can be encoded in voxels, or the decoded data is not of such a
    /// sector.
    #[error("a sector of {bytes} bytes: {reason}")]
    Frame {
        /// Bytes of the sector.
        bytes: usize,
        /// What is wrong.
        reason: String,
    },
    /// This demapper cannot compute the soft bits.
    #[error("soft bits of a sector: {reason}")]
    Demapper {
        /// Why.
        reason: String,
    },
    /// A parameter of the channel is out of range.
    #[error("{reason}")]
    Channel {
        /// Which parameter, its value and its range.
        reason: String,
    },
    /// No built-in decoder for this preset.
    #[error(
        "there is no linear decoder for preset {preset}; there are nominal, easy, dense, phase"
    )]
    Preset {
        /// The requested preset.
        preset: String,
    },
    /// The data does not allow a fit.
    #[error("cannot fit a decoder: {reason}")]
    Fit {
        /// Why.
        reason: String,
    },
    /// A model or its card cannot be read.
    #[error("cannot read {path}: {reason}; `python -m fulgurite.lab export` writes models")]
    ModelUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The card beside a model is not a card, or has invalid values.
    #[error("{path} is not a model card: {reason}; export the model again")]
    ModelCard {
        /// The card.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A model is for another version of the front end.
    #[error("{path} has format {found:?}, not {expected:?}; export the model again")]
    ModelFormat {
        /// The model or its card.
        path: PathBuf,
        /// Its declared format.
        found: String,
        /// The expected format.
        expected: &'static str,
    },
    /// A model's hash differs from its card's.
    #[error("{path} has hash {found}, but its card has {expected}; use both from one export")]
    ModelHash {
        /// The model.
        path: PathBuf,
        /// BLAKE3 of the file.
        found: String,
        /// The hash in the card.
        expected: String,
    },
    /// A file is not an ONNX graph from images to logits.
    #[error("{path} is not an ONNX network of the lab: {reason}; export it again")]
    NotOnnx {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A model is for another medium.
    #[error(
        "the model {model} has {found} {property}, but {medium} has {expected}; use another model"
    )]
    ModelMedium {
        /// Name, version and hash.
        model: String,
        /// Symbols or states.
        property: &'static str,
        /// How many the model has.
        found: usize,
        /// How many the medium has.
        expected: usize,
        /// The medium.
        medium: &'static str,
    },
    /// Weights, or values computed from them, are not finite.
    #[error("the model {model} has a number that is not finite in {place}; use an undamaged one")]
    ModelNotFinite {
        /// Name, version and hash.
        model: String,
        /// Which weights, or which voxel's logits.
        place: String,
    },
    /// No model of this name is loaded.
    #[error("no model {name} is loaded; loaded are {known}")]
    ModelUnknown {
        /// The name.
        name: String,
        /// The loaded models.
        known: String,
    },
    /// An engine is not available on this machine.
    #[error("no {engine}: {reason}; {remedy}")]
    EngineMissing {
        /// The engine.
        engine: &'static str,
        /// Why.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// An engine cannot run a model.
    #[error("{engine} cannot run the model {model}: {reason}; try the other engine")]
    Engine {
        /// The engine.
        engine: &'static str,
        /// Name, version and hash.
        model: String,
        /// Why.
        reason: String,
    },
}

impl From<PlatterError> for DecodeError {
    fn from(error: PlatterError) -> Self {
        Self::Channel { reason: error.to_string() }
    }
}
