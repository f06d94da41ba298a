//! How fast a restore is wanted.

use fulgurite_units::{Duration, UnixTime};
use serde::{Deserialize, Serialize};

use crate::limits::{BULK_WITHIN, EXPEDITED_WITHIN, STANDARD_WITHIN};

/// How fast a restore is wanted; S3 calls it a tier. Rows name these by number, in this order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Retrieval {
    /// Slowest and cheapest.
    Bulk,
    /// The default.
    #[default]
    Standard,
    /// Fastest.
    Expedited,
}

impl Retrieval {
    /// All of them, the most urgent first.
    pub const URGENT_FIRST: [Self; 3] = [Self::Expedited, Self::Standard, Self::Bulk];

    /// How long a restore may take: its objective.
    #[must_use]
    pub const fn within(self) -> Duration {
        match self {
            Self::Bulk => BULK_WITHIN,
            Self::Standard => STANDARD_WITHIN,
            Self::Expedited => EXPEDITED_WITHIN,
        }
    }

    /// By when a restore is due that was asked for at `asked`.
    #[must_use]
    pub const fn due(self, asked: UnixTime) -> UnixTime {
        let within_ms = self.within().as_nanos() / 1_000_000;
        UnixTime::from_millis(asked.as_millis().saturating_add(within_ms))
    }

    /// Its place in a table of all three.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Bulk => 0,
            Self::Standard => 1,
            Self::Expedited => 2,
        }
    }
}
