//! Whom a class serves next, which disks are woken for it, and how often: values of a policy.

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::limits::{STAY, USUAL};

/// Whom a class serves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Batches in the order in which they began, as far as others may be pushed back (Pelican,
    /// section 2.2.3). It knows of nothing that is due.
    Batches,
    /// What is due first.
    Due(Due),
}

/// How what is due is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Due {
    /// How long an operation is made to wait on purpose, so that others of its group come with it;
    /// what is due sooner than that never is, and nothing when a queue is half full.
    pub patience: Duration,
    /// When an operation that does not say is due, from when it came.
    pub usual: Duration,
    /// How long a group is served at a stretch while others want something.
    pub stay: Duration,
}

impl Default for Due {
    fn default() -> Self {
        Self { patience: Duration::ZERO, usual: USUAL, stay: STAY }
    }
}

/// How often disks may be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Spin-ups of a disk in any 24 hours, at most. Half an eighth of them and more may come at
    /// once; the others come evenly.
    pub max_spinups_per_day: u32,
}

/// Which disks of a group are woken for what waits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wakes {
    /// All of them, as in Pelican: every stack of a blob is read and checked.
    #[default]
    All,
    /// For reads as few as give each of them enough, and its group opens as soon as the first has
    /// that. Stacks on the others are not looked at.
    Needed {
        /// Disks more for each read that waits, so that it need not wait for its slowest.
        spare: u32,
    },
}

impl Wakes {
    /// Disks more than enough that a read has woken; none if all of its group are.
    pub(crate) const fn spare(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Needed { spare } => Some(spare),
        }
    }
}
