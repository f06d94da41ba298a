//! Identifiers of the library's own things: requests, commands, panels, racks, shelves, zones, and
//! positions along the rails. Those of drives, shuttles, slots and platters are in `units`.

use std::fmt;

use fulgurite_units::{DriveIndex, ShuttleIndex};
use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        pub struct $name($int);

        impl $name {
            /// Creates the identifier with this number.
            #[must_use]
            pub const fn new(number: $int) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// A request to the library, numbered by the requester; the number is free again once the
    /// request is finished.
    RequestId,
    u64
);
name!(
    /// A command of the controller, numbered in the order given; never reused.
    CommandId,
    u64
);
name!(
    /// A side of the library.
    PanelIndex,
    u16
);
name!(
    /// A storage rack, counted from the write drive's end.
    RackIndex,
    u16
);
name!(
    /// A shelf of a panel, counted from below: the space between two rails.
    ShelfIndex,
    u16
);
name!(
    /// A blast zone: what one failure can make unreachable, one shelf of one rack of one panel
    /// (Silica, section 6).
    ZoneIndex,
    u32
);
name!(
    /// A place along the rails of a panel, in micrometers from the write drive's end.
    RailPosition,
    u64
);

impl RailPosition {
    /// Returns the meters between here and `other`.
    #[must_use]
    pub fn meters_to(self, other: Self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rail is shorter than 2^53 micrometers")]
        let micrometers = self.0.abs_diff(other.0) as f64;
        micrometers / 1e6
    }
}

/// A machine or a section of rail that can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    /// A shuttle; it stands where it broke and bars the way.
    Shuttle(ShuttleIndex),
    /// A read drive, with the platters inside.
    Drive(DriveIndex),
    /// A section of rail that no shuttle can pass or stand on.
    Rail {
        /// The panel.
        panel: PanelIndex,
        /// The shelf above the rail.
        shelf: ShelfIndex,
        /// Where the section begins.
        from: RailPosition,
        /// Where it ends.
        to: RailPosition,
    },
}
