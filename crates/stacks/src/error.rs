//! What can go wrong with blobs and stacks, with the ids a caller needs to act.

use fulgurite_codes::CodeError;
use fulgurite_units::{BlobId, ErrorKind};

use crate::Fault;

/// A stack of a blob that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStack {
    /// Which of the blob's stacks it is.
    pub index: u8,
    /// The disk that has it, or should.
    pub disk: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl std::fmt::Display for LostStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stack {} on {}: {}", self.index, self.disk, self.fault)
    }
}

/// An operation on blobs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum StacksError {
    #[error("{what}")]
    Invalid { what: String },
    #[error(
        "blob {blob} of {group} has {have} stacks that can be used, and {need} are needed: {}",
        list(lost)
    )]
    TooFewStacks { blob: BlobId, group: String, have: usize, need: usize, lost: Vec<LostStack> },
    #[error("blob {blob} of {group} is damaged: {what}")]
    Corrupt { blob: BlobId, group: String, what: String },
    #[error(transparent)]
    Code(#[from] CodeError),
}

/// The result of an operation on blobs.
pub type Result<T, E = StacksError> = std::result::Result<T, E>;

impl StacksError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::Invalid,
            // Some of them may be on disks that come back.
            Self::TooFewStacks { lost, .. } if lost.iter().any(|lost| lost.fault.may_pass()) => {
                ErrorKind::Unavailable
            }
            Self::TooFewStacks { .. } | Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Code(_) => ErrorKind::Internal,
        }
    }
}

/// Lost stacks in one line.
fn list(lost: &[LostStack]) -> String {
    lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
