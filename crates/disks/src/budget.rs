//! Budgets of spin-ups: how often disks may be woken, in a day and over their lives.
//!
//! Disks are rated for some hundred thousand loads of their heads. A rack that is read once in two
//! seconds wakes each of its disks more often in two years (measured with the twin), so what a
//! customer may not notice has to wait for another day.

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

/// Whose spin-ups a budget holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Only what can wait ([`crate::CauseKind::can_wait`]); customers and rebuilds go on, with a
    /// warning.
    #[default]
    Background,
    /// Customers wait as well; rebuilds, and a disk's first look, go on.
    Customers,
}

/// How often disks may be woken. Without a number there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Spin-ups of a disk in any 24 hours.
    pub disk_spinups_per_day: Option<u32>,
    /// Spin-ups of a group in any 24 hours.
    pub group_spinups_per_day: Option<u32>,
    /// Spin-ups of a disk over its life, as it is rated.
    pub disk_spinups_per_life: Option<u64>,
    /// Whom it holds back.
    pub binding: Binding,
}

/// What a budget says to a spin-up that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is within.
    Within,
    /// It is over, and goes on: somebody should know.
    Over,
    /// It is over, and has to wait: until then, or for ever when a disk's life is spent.
    Wait {
        /// When there is room again.
        until: Option<UnixTime>,
    },
}

impl Verdict {
    /// Whether disks may be woken.
    #[must_use]
    pub const fn may_wake(self) -> bool {
        match self {
            Self::Within | Self::Over => true,
            Self::Wait { .. } => false,
        }
    }
}
