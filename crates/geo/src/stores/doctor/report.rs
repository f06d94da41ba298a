//! The doctor's report.

use serde::{Deserialize, Serialize};

use crate::stores::{BlobError, Key, TableError};

/// Name of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckName {
    /// What was acknowledged is read back, with the tag that the write got.
    Kept,
    /// Of many concurrent creates of a row, one succeeds.
    CreateRace,
    /// Of many concurrent replacements of one image of a row, one succeeds.
    UpdateRace,
    /// A write with the tag of an earlier image is refused.
    StaleTag,
    /// A write with a tag is refused if there is no row.
    TagOfNothing,
    /// No increment of several writers is lost.
    Counter,
    /// One connection reads what another wrote.
    SecondConnection,
    /// The outcome of a write whose reply was lost can be resolved.
    LostReply,
    /// A row is only removed if its tag still matches.
    ConditionalDelete,
    /// Whether a row that gets earlier bytes again gets its earlier tag again (ABA).
    TagReuse,
    /// The longest row is stored, and a longer one refused.
    SizeLimit,
    /// A scan is complete and in the order of keys.
    ScanOrder,
    /// A range read of a blob returns the requested bytes.
    Ranges,
    /// A removed blob is gone, and removing it again is no error.
    Removal,
    /// The examination leaves nothing behind.
    CleanUp,
}

impl std::fmt::Display for CheckName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The store supports it.
    Passed,
    /// The store claims to support it, but does not.
    Failed,
    /// The store does not claim to support it, and need not.
    Unsupported,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: CheckName,
    /// Its result.
    pub outcome: Outcome,
    /// What was observed.
    pub seen: String,
}

/// The report on one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the store.
    pub store: String,
    /// The checks, in order.
    pub checks: Vec<Check>,
}

impl Report {
    /// Checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.outcome == Outcome::Failed)
    }

    /// Refuses a store that failed a check.
    ///
    /// # Errors
    /// [`DoctorError::Refused`].
    pub fn accept(&self) -> Result<(), DoctorError> {
        let failed: Vec<Check> = self.failed().cloned().collect();
        if failed.is_empty() {
            return Ok(());
        }
        Err(DoctorError::Refused { store: self.store.clone(), failed })
    }
}

/// A store could not be examined, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// Something exists where the examination would take place.
    #[error("\"{key}\" exists already: examine the store below an unused prefix")]
    Occupied {
        /// Its key.
        key: Key,
    },
    /// The table does not answer.
    #[error("the table cannot be examined")]
    Table(#[from] TableError),
    /// The blob store does not answer.
    #[error("the blob store cannot be examined")]
    Blob(#[from] BlobError),
    /// The store does not do what sites rely on.
    #[error("the store {store} is refused: {}", shown(failed))]
    Refused {
        /// Name of the store.
        store: String,
        /// The failed checks.
        failed: Vec<Check>,
    },
}

impl DoctorError {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> fulgurite_units::ErrorKind {
        match self {
            Self::Occupied { .. } => fulgurite_units::ErrorKind::Conflict,
            Self::Table(error) => error.kind(),
            Self::Blob(error) => error.kind(),
            Self::Refused { .. } => fulgurite_units::ErrorKind::Invalid,
        }
    }
}

fn shown(failed: &[Check]) -> String {
    let each = failed.iter().map(|check| format!("{}: {}", check.name, check.seen));
    each.collect::<Vec<_>>().join("; ")
}
