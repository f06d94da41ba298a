//! What can be wrong with what a decoder is given. A sector that decodes badly is not here: it is
//! probabilities that say so.

use std::path::PathBuf;

use fulgurite_glass::GlassError;

/// A decoder cannot work with what it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The images are not those of such a sector.
    #[error("the images are {found}; a sector of {rows} x {columns} voxels has {expected}")]
    Images {
        /// What they are.
        found: String,
        /// What they should be.
        expected: String,
        /// Voxels of the sector.
        rows: usize,
        /// Voxels of the sector.
        columns: usize,
    },
    /// Sectors of this size cannot be put into voxels, or what was decoded is not such a sector.
    #[error("a sector of {bytes} bytes: {reason}")]
    Frame {
        /// Bytes of the sector.
        bytes: usize,
        /// What is wrong.
        reason: String,
    },
    /// Soft bits cannot be made by this demapper.
    #[error("soft bits of a sector: {reason}")]
    Demapper {
        /// Why.
        reason: String,
    },
    /// A number of the channel is out of range.
    #[error("{reason}")]
    Channel {
        /// Which, what it is and what it may be.
        reason: String,
    },
    /// No decoder comes with the program for this preset.
    #[error(
        "there is no linear decoder for preset {preset}; there are nominal, easy, dense, phase"
    )]
    Preset {
        /// The name asked for.
        preset: String,
    },
    /// Nothing can be learned from this.
    #[error("cannot fit a decoder: {reason}")]
    Fit {
        /// Why.
        reason: String,
    },
    /// A model or its card cannot be read.
    #[error("cannot read {path}: {reason}; `python -m fulgurite.lab export` writes models")]
    ModelMissing {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The card beside a model is no card, or says what cannot be.
    #[error("{path} is no card of a model: {reason}; export the model again")]
    ModelCard {
        /// The card.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A model is for another front end than this one's.
    #[error("{path} is a {found:?}; this is made for a {expected:?}: export the model again")]
    ModelFormat {
        /// The model or its card.
        path: PathBuf,
        /// What it says it is.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// A model is not the one that its card is about.
    #[error("{path} has the hash {found}, its card says {expected}: take both from one export")]
    ModelHash {
        /// The model.
        path: PathBuf,
        /// BLAKE3 of the file.
        found: String,
        /// What the card says.
        expected: String,
    },
    /// A file is no ONNX graph from images to logits.
    #[error("{path} is no network of the lab in ONNX: {reason}; export it again")]
    NotOnnx {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A model is for another medium.
    #[error("the model {model} has {found} {what}, {medium} has {expected}: name another model")]
    ModelMedium {
        /// Name, version and hash.
        model: String,
        /// Symbols or states.
        what: &'static str,
        /// How many the model has.
        found: usize,
        /// How many the medium has.
        expected: usize,
        /// The medium.
        medium: &'static str,
    },
    /// Weights or what is made of them are not finite.
    #[error("the model {model} has a number that is none in {place}: it is damaged, take another")]
    ModelNumber {
        /// Name, version and hash.
        model: String,
        /// Which weights, or which voxel's logits.
        place: String,
    },
    /// No model of this name is loaded.
    #[error("no model {name} is loaded; there are {known}")]
    ModelUnknown {
        /// The name.
        name: String,
        /// Those that are.
        known: String,
    },
    /// An engine is not on this machine.
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

impl From<GlassError> for DecodeError {
    fn from(error: GlassError) -> Self {
        Self::Channel { reason: error.to_string() }
    }
}
