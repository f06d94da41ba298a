//! Decodes images of a sector to the probabilities of its symbols, by decoders behind one trait.
//!
//! ```text
//! SectorImages --> Flat (illumination taken out) --> Displacement (where each voxel really is)
//!                    |                                   |
//!                    +------> Matched, Linear <----------+--> estimates --> Demapper --+
//!                    |                                   |                             |
//!                    +------> registered images <--------+                             |
//!                                   |                                                  |
//!                                   +--> Learned: tiles, an engine, logits ------------+
//!                                                                                      |
//!                                             Scores <-- SymbolProbabilities, or soft bits
//! ```
//!
//! A pure function of images and a decoder's parameters: no clock, no state from read to read, and
//! no I/O except for loading a model or an engine's library on request. Probabilities become soft
//! bits and codewords in the crate `codes`.

mod cubic;
mod decoder;
mod demap;
mod error;
mod fit;
mod flat;
mod frame;
mod front;
#[cfg(feature = "learned")]
mod learned;
#[cfg(feature = "learned")]
mod limits;
mod linear;
mod matched;
mod positions;
mod probabilities;
mod registration;
mod resample;
mod score;
mod soft;
mod soft_reader;
mod standard;
mod tones;
mod voxels;

#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use demap::Demapper;
pub use error::DecodeError;
pub use fit::{LinearFit, Refit};
pub use flat::FlatImages;
pub use frame::{GUARD, SectorFrame};
pub use front::{FrontEnd, registered};
#[cfg(feature = "learned")]
pub use learned::{
    Card, Device, Engine, EngineChoice, Learned, Logits, MODEL_FORMAT, Model, ModelId,
    ModelRegistry, ReloadingDecoder, Tile,
};
pub use linear::Linear;
pub use matched::Matched;
pub use probabilities::SymbolProbabilities;
pub use registration::Displacement;
#[cfg(feature = "learned")]
pub use resample::Range;
pub use score::{Score, Scores};
pub use soft::{
    DrawResult, Interval, OutcomeReader, Provenance, SoftChannel, SoftFit, SoftStatistics,
};
pub use soft_reader::SoftReader;
pub use standard::standard_linear;
#[cfg(feature = "learned")]
pub use standard::standard_model;
pub use voxels::{Damage, SectorOutcome, VoxelMedium, VoxelReader};
