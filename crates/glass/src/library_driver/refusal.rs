//! Why the library did not do what was requested, as an error for the requester.

use fulgurite_glass_core::control::{Error, ErrorKind, Fault};
use fulgurite_units::PlatterId;

use crate::GlassError;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Broken machines hold the platter: it exists, and the rest of its set may be within reach.
    OutOfReach(String),
    /// No drive can read the platter, or it is gone.
    Unreadable(String),
    /// There are too many requests.
    Busy(String),
    /// A bug, on one side or the other.
    Other(String),
}

impl Refusal {
    /// Converts the fault of an accepted request.
    pub(super) fn failed(fault: Fault) -> Self {
        let reason = fault.to_string();
        match fault {
            Fault::PlatterMissing | Fault::Unreadable => Self::Unreadable(reason),
            Fault::DriveBroken | Fault::ShuttleBroken | Fault::BatteryFlat | Fault::Unreachable => {
                Self::OutOfReach(reason)
            }
        }
    }

    /// Converts the rejection of a request.
    pub(super) fn rejected(error: &Error) -> Self {
        let reason = error.to_string();
        if matches!(error, Error::Unreachable { .. }) {
            return Self::OutOfReach(Fault::Unreachable.to_string());
        }
        match error.kind() {
            ErrorKind::Unavailable => Self::Busy(reason),
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid | _ => {
                Self::Other(reason)
            }
        }
    }

    /// Returns the error for a request about `platter`.
    pub(super) fn into_error(self, platter: PlatterId) -> GlassError {
        match self {
            Self::OutOfReach(reason) => GlassError::PlatterOutOfReach { platter, reason },
            Self::Unreadable(reason) => GlassError::PlatterUnreadable { platter, reason },
            Self::Busy(what) => GlassError::Busy { what },
            Self::Other(what) => GlassError::Internal { what: format!("the library: {what}") },
        }
    }
}
