//! The precondition of a put.

use object_store::CopyMode;

/// The precondition of a put under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None: overwrites whatever exists.
    Overwrite,
    /// Nothing exists under the key.
    Create,
    /// The existing object has this sequence.
    Update(u64),
    /// The existing object has an entity tag that no object can have: always fails.
    Never,
}

impl Mode {
    /// Whether the precondition holds, given the sequence of the existing object, if any.
    #[must_use]
    pub fn is_met(self, existing: Option<u64>) -> bool {
        match self {
            Self::Overwrite => true,
            Self::Create => existing.is_none(),
            Self::Update(expected) => existing == Some(expected),
            Self::Never => false,
        }
    }
}

impl From<CopyMode> for Mode {
    fn from(mode: CopyMode) -> Self {
        match mode {
            CopyMode::Overwrite => Self::Overwrite,
            CopyMode::Create => Self::Create,
        }
    }
}
