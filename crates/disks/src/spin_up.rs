//! Spin-ups and their causes.

use std::fmt;

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::{GroupId, PlaceId};

/// Why disks were spun up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A client reads; the id of the first operation.
    Request(u64),
    /// Staged data is written; the id of the first operation.
    Write(u64),
    /// Something is removed; the id of the first operation.
    Delete(u64),
    /// The content of a failed disk is rebuilt.
    Rebuild,
    /// Its content is verified.
    Scrub,
    /// It is initialized for the first time since the start.
    Init,
    /// External: another program spun it up, and it was found spinning.
    External,
    /// Written data is read back by its writer and compared; the id of the first operation.
    Verify(u64),
}

/// A cause without its operation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each variant is named after its cause")]
pub enum CauseKind {
    Request,
    Write,
    Delete,
    Rebuild,
    Scrub,
    Init,
    External,
    Verify,
}

impl CauseKind {
    /// All kinds, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Request,
        Self::Write,
        Self::Delete,
        Self::Rebuild,
        Self::Scrub,
        Self::Init,
        Self::External,
        Self::Verify,
    ];

    /// Returns the name used in output, metrics and the ledger.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Rebuild => "rebuild",
            Self::Scrub => "scrub",
            Self::Init => "init",
            Self::External => "external",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Cause {
    /// Returns the kind of cause.
    #[must_use]
    pub const fn kind(self) -> CauseKind {
        match self {
            Self::Request(_) => CauseKind::Request,
            Self::Write(_) => CauseKind::Write,
            Self::Delete(_) => CauseKind::Delete,
            Self::Rebuild => CauseKind::Rebuild,
            Self::Scrub => CauseKind::Scrub,
            Self::Init => CauseKind::Init,
            Self::External => CauseKind::External,
            Self::Verify(_) => CauseKind::Verify,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(number)
            | Self::Write(number)
            | Self::Delete(number)
            | Self::Verify(number) => {
                write!(f, "{} {number}", self.kind())
            }
            Self::Rebuild | Self::Scrub | Self::Init | Self::External => {
                fmt::Display::fmt(&self.kind(), f)
            }
        }
    }
}

/// A record of disks that were spun up together, each counting as one spin-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpinUp {
    /// When they were commanded to spin up, or were found spinning.
    pub at: UnixTime,
    /// The group that was spun up; none for single disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    /// The disks, each listed once.
    pub places: Vec<PlaceId>,
    /// The cause.
    pub cause: Cause,
}
