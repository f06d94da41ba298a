//! Policy values: what a class serves next, which disks are spun up for it, and how often.

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::limits::{DEFAULT_DEADLINE, VISIT_MAX};

/// The order in which a class serves operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Batches in the order in which they began, as far as others may be pushed back (Pelican,
    /// section 2.2.3). Ignores deadlines.
    Batches,
    /// Earliest deadline first.
    Due(Due),
}

/// Parameters of the deadline order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Due {
    /// How long an operation may be delayed so that others of its group are batched with it.
    /// Operations due sooner are never delayed, and none is when a queue is half full.
    pub patience: Duration,
    /// Default deadline of an operation, counted from its arrival.
    pub usual: Duration,
    /// How long a group is served at a stretch while other groups have work.
    pub stay: Duration,
}

impl Default for Due {
    fn default() -> Self {
        Self { patience: Duration::ZERO, usual: DEFAULT_DEADLINE, stay: VISIT_MAX }
    }
}

/// Limit on spin-ups of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Maximum spin-ups of a disk in any 24 hours. At least a sixteenth of them may come at once;
    /// the others are spaced evenly.
    pub max_spinups_per_day: u32,
}

/// Which disks of a group are spun up for its waiting operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpinUps {
    /// All of them, as in Pelican: every stack of a blob is read and checked.
    #[default]
    All,
    /// For reads as few as give each of them enough. Its group opens as soon as the first read has
    /// that. Stacks on the other disks are not checked.
    Needed {
        /// Extra disks for each waiting read, so that it need not wait for its slowest.
        spare: u32,
    },
}

impl SpinUps {
    /// Returns the extra disks for a read; none if all of its group are spun up.
    pub(crate) const fn spare(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Needed { spare } => Some(spare),
        }
    }
}
