//! What a disk may be doing, and what that takes of power.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a disk does, as whoever drives it knows.
///
/// ```text
///            +-----------------------------------+
///            v                                   |
///        Standby --> SpinningUp --> Active --> Unmounting
///            |           |            |            |
///            +-----------+------+-----+------------+
///                               v
///                   Failed, Absent, Unclean --> Standby, when it was replaced or looked at
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Its platters stand still; its electronics answer.
    #[default]
    Standby,
    /// It was told to turn, and is not ready: turning up, or being mounted.
    SpinningUp,
    /// It turns, is mounted, and may be read and written.
    Active,
    /// Nobody uses it any more; it is being unmounted and put down.
    Unmounting,
    /// It was given up.
    Failed,
    /// Nothing is in its place.
    Absent,
    /// It lost power while it was used, as when a tray's fuse trips: to be looked at before use.
    Unclean,
}

impl Power {
    /// Every one, in the order of the picture.
    pub const ALL: [Self; 7] = [
        Self::Standby,
        Self::SpinningUp,
        Self::Active,
        Self::Unmounting,
        Self::Failed,
        Self::Absent,
        Self::Unclean,
    ];

    /// Whether its platters turn or may turn, so that it takes its share of power and cooling.
    #[must_use]
    pub const fn turns(self) -> bool {
        match self {
            Self::SpinningUp | Self::Active | Self::Unmounting => true,
            Self::Standby | Self::Failed | Self::Absent | Self::Unclean => false,
        }
    }

    /// Whether it is out of use until somebody does something about it.
    #[must_use]
    pub const fn is_out(self) -> bool {
        match self {
            Self::Failed | Self::Absent | Self::Unclean => true,
            Self::Standby | Self::SpinningUp | Self::Active | Self::Unmounting => false,
        }
    }

    /// Whether a disk may go from this to `next`; staying is no step.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Standby, Self::SpinningUp)
            // A spin-up that failed is tried again from standby.
            | (Self::SpinningUp, Self::Active | Self::Standby)
            | (Self::Active, Self::Unmounting)
            | (Self::Unmounting | Self::Failed | Self::Absent | Self::Unclean, Self::Standby) => {
                true
            }
            (from, to) => to.is_out() && !from.same(to),
        }
    }

    const fn same(self, other: Self) -> bool {
        self as u8 == other as u8
    }

    /// Its name in outputs and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::SpinningUp => "spinning-up",
            Self::Active => "active",
            Self::Unmounting => "unmounting",
            Self::Failed => "failed",
            Self::Absent => "absent",
            Self::Unclean => "unclean",
        }
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a disk takes of power, in milliwatts: an estimate, since nothing here measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// With its platters still and its electronics on.
    pub standby_mw: u64,
    /// While it turns up.
    pub spinning_up_mw: u64,
    /// While it turns.
    pub active_mw: u64,
}

impl Draw {
    /// A disk of Pelican: 1,152 of them take 1.797 kW in standby, 10.85 kW turning and 24.80 kW
    /// turning up (OSDI 2014, section 4, whose figures these are divided by its disks).
    pub const PELICAN: Self = Self { standby_mw: 1_560, spinning_up_mw: 21_530, active_mw: 9_420 };

    /// What a disk takes, in milliwatts.
    #[must_use]
    pub const fn of(self, power: Power) -> u64 {
        match power {
            Power::Standby | Power::Failed => self.standby_mw,
            Power::SpinningUp => self.spinning_up_mw,
            Power::Active | Power::Unmounting => self.active_mw,
            Power::Absent | Power::Unclean => 0,
        }
    }
}

impl Default for Draw {
    fn default() -> Self {
        Self::PELICAN
    }
}
