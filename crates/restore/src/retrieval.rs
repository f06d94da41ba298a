//! Retrieval classes: how fast a restore is wanted.

use fulgurite_units::{Duration, UnixTime};
use serde::{Deserialize, Serialize};

use crate::limits::{BULK_WITHIN, EXPEDITED_WITHIN, STANDARD_WITHIN};

/// How fast a restore is wanted: S3's retrieval tier, called a class here because tiers are where
/// objects are stored. Rows store it as a number, in this order.
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
    /// All classes, the most urgent first.
    pub const URGENT_FIRST: [Self; 3] = [Self::Expedited, Self::Standard, Self::Bulk];

    /// Returns how long a restore may take: its objective.
    #[must_use]
    pub const fn within(self) -> Duration {
        match self {
            Self::Bulk => BULK_WITHIN,
            Self::Standard => STANDARD_WITHIN,
            Self::Expedited => EXPEDITED_WITHIN,
        }
    }

    /// Returns when a restore that was requested at `requested` is due.
    #[must_use]
    pub const fn due(self, requested: UnixTime) -> UnixTime {
        let within_ms = self.within().as_nanos() / 1_000_000;
        UnixTime::from_millis(requested.as_millis().saturating_add(within_ms))
    }

    /// Index into a table of all three.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Bulk => 0,
            Self::Standard => 1,
            Self::Expedited => 2,
        }
    }
}
