//! What can be wrong with what a decoder is given. A sector that decodes badly is not here: it is
//! probabilities that say so.

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
    /// Nothing can be learned from this.
    #[error("cannot fit a decoder: {reason}")]
    Fit {
        /// Why.
        reason: String,
    },
}
