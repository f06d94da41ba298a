//! What the doctor saw.

use serde::{Deserialize, Serialize};

use crate::{BlobError, Key, TableError};

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckName {
    /// What was acknowledged is read back, with the tag that the write got.
    Kept,
    /// Of many who create a row at once one does.
    CreateRace,
    /// Of many who replace one image of a row one does.
    UpdateRace,
    /// A write with the tag of an earlier image is refused.
    StaleTag,
    /// A write with a tag where no row is is refused.
    TagOfNothing,
    /// Increments by several writers are all there.
    Counter,
    /// What one connection wrote another reads.
    SecondConnection,
    /// A write whose reply was lost is found out about.
    LostReply,
    /// A row is removed only if it is still the one that is named.
    ConditionalDelete,
    /// The tag of a row that is written back to earlier bytes.
    TagReuse,
    /// The longest row is kept, and a longer one refused.
    SizeLimit,
    /// A scan is complete and in the order of keys.
    ScanOrder,
    /// Parts of a blob are those that were asked for.
    Ranges,
    /// What is removed is not there, and that is no error.
    Removal,
    /// Nothing of the examination is left.
    CleanUp,
}

impl std::fmt::Display for CheckName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The store does it.
    Passed,
    /// The store says that it does it, and does not.
    Failed,
    /// The store says that it does not do it, and it need not.
    Unsupported,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: CheckName,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen.
    pub seen: String,
}

/// What the doctor saw of one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which store.
    pub store: String,
    /// What was checked, in its order.
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

/// A store was not examined, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// Something is where the examination would be.
    #[error("there is something at \"{key}\": the store is examined at a place where nothing is")]
    Occupied {
        /// Where.
        key: Key,
    },
    /// The table cannot be asked.
    #[error("the table cannot be examined")]
    Table(#[from] TableError),
    /// The store of blobs cannot be asked.
    #[error("the store of blobs cannot be examined")]
    Blob(#[from] BlobError),
    /// The store does not do what is relied on.
    #[error("the store {store} is refused: {}", shown(failed))]
    Refused {
        /// Which store.
        store: String,
        /// What it failed.
        failed: Vec<Check>,
    },
}

impl DoctorError {
    /// What the caller should do.
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
