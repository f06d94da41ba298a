//! Which logs there are.

use serde::{Deserialize, Serialize};

/// Which of the three logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum LogKind {
    Staging,
    Online,
    Restored,
}

impl LogKind {
    pub(crate) const ALL: [Self; 3] = [Self::Staging, Self::Online, Self::Restored];

    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Online => "online",
            Self::Restored => "restored",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Staging => 0,
            Self::Online => 1,
            Self::Restored => 2,
        }
    }

    /// Whether its bodies say themselves what they are; copies can be made again from glass.
    pub(crate) const fn is_framed(self) -> bool {
        !matches!(self, Self::Restored)
    }

    /// The log of this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}
