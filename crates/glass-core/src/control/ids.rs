//! Identifiers of the library's own things: requests, commands, panels, racks, shelves, zones, and
//! positions along the rails. Those of drives, shuttles, slots and platters are in `units`.

use fulgurite_units::{DriveIndex, ShuttleIndex, number};
use serde::{Deserialize, Serialize};

number!(
    /// A request to the library, numbered by the requester; the number is free again once the
    /// request is finished.
    RequestId,
    u64
);
number!(
    /// A command of the controller, numbered in the order given; never reused.
    CommandId,
    u64
);
number!(
    /// A side of the library.
    PanelIndex,
    u16
);
number!(
    /// A storage rack, counted from the write drive's end.
    RackIndex,
    u16
);
number!(
    /// A shelf of a panel, counted from below: the space between two rails.
    ShelfIndex,
    u16
);
number!(
    /// A blast zone: what one failure can make unreachable, one shelf of one rack of one panel
    /// (Silica, section 6).
    ZoneIndex,
    u32
);
number!(
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
