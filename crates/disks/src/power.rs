//! Power states of a disk, and their power draw.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Power state of a disk, as its driver knows it.
///
/// ```text
///            +-----------------------------------+
///            v                                   |
///        Standby --> SpinningUp --> Active --> Unmounting
///            |           |            |            |
///            +-----------+------+-----+------------+
///                               v
///                Failed, Absent, Unclean --> Standby, when it was replaced or checked
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Its platters do not spin; its electronics respond.
    #[default]
    Standby,
    /// Commanded to spin up and not ready: spinning up, or being mounted.
    SpinningUp,
    /// It spins, is mounted, and may be read and written.
    Active,
    /// Not in use any more; being unmounted and spun down.
    Unmounting,
    /// It was given up.
    Failed,
    /// Nothing is in its place.
    Absent,
    /// It lost power while in use, for example when a tray's fuse blew: must be checked before use.
    Unclean,
}

impl Power {
    /// All states, in the order of the picture.
    pub const ALL: [Self; 7] = [
        Self::Standby,
        Self::SpinningUp,
        Self::Active,
        Self::Unmounting,
        Self::Failed,
        Self::Absent,
        Self::Unclean,
    ];

    /// Whether its platters spin or may spin, so that it takes its share of power and cooling.
    #[must_use]
    pub const fn is_spinning(self) -> bool {
        match self {
            Self::SpinningUp | Self::Active | Self::Unmounting => true,
            Self::Standby | Self::Failed | Self::Absent | Self::Unclean => false,
        }
    }

    /// Whether it is out of use until an operator intervenes.
    #[must_use]
    pub const fn is_out_of_service(self) -> bool {
        match self {
            Self::Failed | Self::Absent | Self::Unclean => true,
            Self::Standby | Self::SpinningUp | Self::Active | Self::Unmounting => false,
        }
    }

    /// Whether the transition to `next` is allowed; staying is not a transition.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Standby, Self::SpinningUp)
            // After a failed spin-up the next attempt starts from standby.
            | (Self::SpinningUp, Self::Active | Self::Standby)
            | (Self::Active, Self::Unmounting)
            | (Self::Unmounting | Self::Failed | Self::Absent | Self::Unclean, Self::Standby) => {
                true
            }
            (from, to) => to.is_out_of_service() && !from.same(to),
        }
    }

    const fn same(self, other: Self) -> bool {
        self as u8 == other as u8
    }

    /// Returns the name used in output and metrics.
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

/// Power draw of a disk, in milliwatts: an estimate, since nothing here measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// With the platters stopped and the electronics on.
    pub standby_mw: u64,
    /// While it spins up.
    pub spinning_up_mw: u64,
    /// While it spins.
    pub active_mw: u64,
}

impl Draw {
    /// A disk of Pelican: 1,152 of them draw 1.797 kW in standby, 10.85 kW spinning and 24.80 kW
    /// spinning up (OSDI 2014, section 4; its figures divided by its disks).
    pub const PELICAN: Self = Self { standby_mw: 1_560, spinning_up_mw: 21_530, active_mw: 9_420 };

    /// Returns the power draw of a state, in milliwatts.
    #[must_use]
    pub const fn milliwatts(self, power: Power) -> u64 {
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
