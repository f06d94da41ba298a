//! The kinds of logs.

use serde::{Deserialize, Serialize};

/// One of the three logs.
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

    /// Whether its bodies are stored as self-describing records. Restored copies are not, because
    /// they can be restored from glass again.
    pub(crate) const fn is_framed(self) -> bool {
        !matches!(self, Self::Restored)
    }

    /// Returns the log with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}
