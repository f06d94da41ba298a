//! Why a disk was woken: every spin-up has a cause.

use std::fmt;

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::{GroupId, PlaceId};

/// Why disks were woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Somebody reads; the number of the operation that came first.
    Request(u64),
    /// Something is written that waited elsewhere; the number of the operation that came first.
    Write(u64),
    /// Something is removed; the number of the operation that came first.
    Delete(u64),
    /// What was on a disk that failed is made again.
    Rebuild,
    /// What is on it is checked.
    Scrub,
    /// It is looked at for the first time since the start.
    Init,
    /// None of ours: another program woke it, and it was found turning.
    Foreign,
    /// What was written there is read back by whoever wrote it, and compared; the number of the
    /// operation that came first.
    Verify(u64),
}

/// A cause without its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the cause of its name")]
pub enum CauseKind {
    Request,
    Write,
    Delete,
    Rebuild,
    Scrub,
    Init,
    Foreign,
    Verify,
}

impl CauseKind {
    /// Every one, in the order of their names here.
    pub const ALL: [Self; 8] = [
        Self::Request,
        Self::Write,
        Self::Delete,
        Self::Rebuild,
        Self::Scrub,
        Self::Init,
        Self::Foreign,
        Self::Verify,
    ];

    /// Its name in outputs, metrics and the ledger.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Rebuild => "rebuild",
            Self::Scrub => "scrub",
            Self::Init => "init",
            Self::Foreign => "foreign",
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
    /// Which kind of cause.
    #[must_use]
    pub const fn kind(self) -> CauseKind {
        match self {
            Self::Request(_) => CauseKind::Request,
            Self::Write(_) => CauseKind::Write,
            Self::Delete(_) => CauseKind::Delete,
            Self::Rebuild => CauseKind::Rebuild,
            Self::Scrub => CauseKind::Scrub,
            Self::Init => CauseKind::Init,
            Self::Foreign => CauseKind::Foreign,
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
            Self::Rebuild | Self::Scrub | Self::Init | Self::Foreign => {
                fmt::Display::fmt(&self.kind(), f)
            }
        }
    }
}

/// Disks that were woken together, each of them one spin-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// When they were told to turn, or were found turning.
    pub at: UnixTime,
    /// The group that was woken; none when single disks were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    /// The disks that were woken, each once.
    pub places: Vec<PlaceId>,
    /// Why.
    pub cause: Cause,
}
