//! Images of a sector to the probabilities of its symbols, by decoders behind one trait.
//!
//! ```text
//! SectorImages --> Flat (illumination taken out) --> Displacement (where each voxel really is)
//!                    |                                   |
//!                    +------> Matched, Linear <----------+--> estimates --> Demapper
//!                                                                              |
//!                                                      Scores <-- SymbolProbabilities
//! ```
//!
//! A pure function of images and a decoder's numbers: no I/O, no clock, no state from read to read.
//! What probabilities become, soft bits and code words, is the crate `codes`.

mod decoder;
mod demap;
mod error;
mod fit;
mod flat;
mod interleaved;
mod linear;
mod matched;
mod probabilities;
mod registration;
mod resample;
mod score;

#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use demap::Demapper;
pub use error::DecodeError;
pub use fit::{LinearFit, Refit};
pub use flat::Flat;
pub use linear::Linear;
pub use matched::Matched;
pub use probabilities::SymbolProbabilities;
pub use registration::Displacement;
pub use resample::registered;
pub use score::{Score, Scores};
