//! On what condition an object is put.

use object_store::CopyMode;

/// On what condition an object is put under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In place of whatever is there.
    Overwrite,
    /// When nothing is there.
    Create,
    /// When what is there has this sequence.
    Update(u64),
    /// When what is there has a tag that no object has.
    Never,
}

impl Mode {
    /// Whether it is met by what is there, if anything is.
    #[must_use]
    pub fn is_met(self, there: Option<u64>) -> bool {
        match self {
            Self::Overwrite => true,
            Self::Create => there.is_none(),
            Self::Update(expected) => there == Some(expected),
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
