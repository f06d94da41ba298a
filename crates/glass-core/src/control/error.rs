//! Why a library cannot be built or a request cannot be accepted.

use fulgurite_units::{ErrorKind, PlatterId, ShuttleIndex, SlotIndex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::control::{PanelIndex, RequestId};

/// An invalid shape, or a request that this library cannot accept.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Error {
    /// A count is outside its range.
    #[error("{field} is {value}, but must be from {min} to {max}")]
    #[serde(skip_deserializing)]
    ShapeRange {
        /// The field of the shape.
        #[serde(skip_deserializing)]
        field: &'static str,
        /// Its value.
        value: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// The drives of a read rack cannot be divided evenly among the panels.
    #[error("drives_per_read_rack is {drives}, but must be a multiple of the {panels} panels")]
    DrivesPerPanel {
        /// Drives of a read rack.
        drives: u16,
        /// Panels.
        panels: u16,
    },
    /// More shuttles than the drives of a panel can use.
    #[error(
        "shuttles_per_panel is {shuttles}, but a panel with {drives} read drives takes at most \
         twice as many"
    )]
    ShuttlesPerDrive {
        /// Shuttles of a panel.
        shuttles: u16,
        /// Read drives of a panel.
        drives: u16,
    },
    /// A drive would have no shelf.
    #[error(
        "a read rack has {drives} drives on a panel, but only {shelves} shelves to put them at"
    )]
    DriveShelves {
        /// Drives of a read rack on one panel.
        drives: u16,
        /// Shelves of a panel.
        shelves: u16,
    },
    /// Shuttles could not get out of each other's way.
    #[error(
        "shuttles_per_panel is {shuttles}, but a panel with {places} places for shuttles on at \
         least 2 shelves needs 3 for each and 2 more"
    )]
    ShuttlesCrowded {
        /// Shuttles of a panel.
        shuttles: u16,
        /// Places of a panel that do not overlap.
        places: u64,
    },
    /// The slot is reserved for displaced platters.
    #[error("slot {slot} is a spare slot and cannot be a platter's home")]
    SpareSlot {
        /// The slot.
        slot: SlotIndex,
    },
    /// No drive has this throughput.
    #[error("a read drive has 30 to 210 MB/s in steps of 30, not {megabytes}")]
    Throughput {
        /// Millions of bytes per second.
        megabytes: u32,
    },
    /// A parameter of the mechanics is not a valid time or share.
    #[error("{field} is {value}, which is not a valid time or share")]
    #[serde(skip_deserializing)]
    Mechanics {
        /// The field of the parameters.
        #[serde(skip_deserializing)]
        field: &'static str,
        /// Its value.
        value: String,
    },
    /// No policy has this name.
    #[error("no policy {name:?}; use one of {}", crate::control::POLICY_NAMES.join(", "))]
    NoSuchPolicy {
        /// The name.
        name: String,
    },
    /// The interval between two rebalances must not be zero.
    #[error("rebalance is 0, but must be longer")]
    RebalanceZero,
    /// The charging bounds contradict each other.
    #[error(
        "charge_below is {below} and charge_until is {until}, but the first must be above 0 and \
         below the second, which is 100 at most"
    )]
    ChargeRange {
        /// Below this a shuttle charges before anything else.
        below: u8,
        /// A shuttle charges up to this.
        until: u8,
    },
    /// The library holds all the requests it can.
    #[error("request {request} exceeds the limit of {limit} pending requests")]
    QueueFull {
        /// The request.
        request: RequestId,
        /// The limit.
        limit: usize,
    },
    /// The eject bay holds all the platters it can.
    #[error("platter {platter} does not fit: the eject bay of a panel holds {limit}")]
    EjectBayFull {
        /// The platter.
        platter: PlatterId,
        /// The limit.
        limit: usize,
    },
    /// A request with this number is not finished yet.
    #[error("request {request} is not finished yet")]
    RequestExists {
        /// The number.
        request: RequestId,
    },
    /// No tracks, or tracks beyond the last number.
    #[error("request {request} asks for {track_count} tracks from track {first}")]
    BadTracks {
        /// The request.
        request: RequestId,
        /// The first track.
        first: u32,
        /// Number of tracks.
        track_count: u32,
    },
    /// There is no such slot.
    #[error("there is no slot {slot}; the library has {slot_count}")]
    NoSuchSlot {
        /// The slot.
        slot: SlotIndex,
        /// Number of slots.
        slot_count: u32,
    },
    /// There is no such panel.
    #[error("there is no panel {panel}")]
    NoSuchPanel {
        /// The panel.
        panel: PanelIndex,
    },
    /// The slot belongs to another platter.
    #[error("slot {slot} belongs to platter {owner}, not to {platter}")]
    SlotTaken {
        /// The slot.
        slot: SlotIndex,
        /// The platter that owns it.
        owner: PlatterId,
        /// The platter that was to get it.
        platter: PlatterId,
    },
    /// The platter lives in another slot.
    #[error("platter {platter} lives in slot {home}, not in slot {slot}")]
    OtherSlot {
        /// The platter.
        platter: PlatterId,
        /// The slot it lives in.
        home: SlotIndex,
        /// The slot that was requested.
        slot: SlotIndex,
    },
    /// The slot is on a panel that the platter cannot get to.
    #[error("platter {platter} is on panel {panel} and cannot get to slot {slot} on another")]
    OtherPanel {
        /// The platter.
        platter: PlatterId,
        /// The panel it is on.
        panel: PanelIndex,
        /// The slot it was to go to.
        slot: SlotIndex,
    },
    /// The platter is new and has no slot yet, so it cannot be read.
    #[error("platter {platter} is not stored yet")]
    NotStored {
        /// The platter.
        platter: PlatterId,
    },
    /// Only a platter whose verification ended can be stored.
    #[error("platter {platter} is not waiting for a slot")]
    NotVerified {
        /// The platter.
        platter: PlatterId,
    },
    /// A platter that is in the library cannot come out of the write drive.
    #[error("platter {platter} is in the library already")]
    PlatterExists {
        /// The platter.
        platter: PlatterId,
    },
    /// An inventory names a platter twice.
    #[error("the inventory has platter {platter} in two places")]
    TwoPlaces {
        /// The platter.
        platter: PlatterId,
    },
    /// An inventory names a place twice.
    #[error("the inventory has platter {platter} in the place of platter {other}")]
    PlaceTaken {
        /// The platter.
        platter: PlatterId,
        /// The platter that is there.
        other: PlatterId,
    },
    /// An inventory names a place that this library does not have, or not for this platter.
    #[error("the inventory has platter {platter} in an impossible place")]
    NoSuchPlace {
        /// The platter.
        platter: PlatterId,
    },
    /// An inventory has too few or too many shuttles.
    #[error("the inventory has {count} shuttles, but the library has {expected}")]
    ShuttleCount {
        /// Number of shuttles in the inventory.
        count: usize,
        /// Number of shuttles of the library.
        expected: usize,
    },
    /// An inventory puts a shuttle where no rails are.
    #[error("the inventory has shuttle {shuttle} outside its panel")]
    ShuttleOutside {
        /// The shuttle.
        shuttle: ShuttleIndex,
    },
    /// An inventory puts two shuttles in one place.
    #[error("the inventory has shuttle {shuttle} in the place of another")]
    ShuttlesMeet {
        /// The shuttle.
        shuttle: ShuttleIndex,
    },
    /// A broken shuttle or drive keeps the platter out of reach.
    #[error("platter {platter} is out of reach of every working shuttle and drive")]
    Unreachable {
        /// The platter.
        platter: PlatterId,
    },
}

impl Error {
    /// Returns what the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::ShapeRange { .. }
            | Self::DrivesPerPanel { .. }
            | Self::ShuttlesPerDrive { .. }
            | Self::DriveShelves { .. }
            | Self::ShuttlesCrowded { .. }
            | Self::SpareSlot { .. }
            | Self::Throughput { .. }
            | Self::Mechanics { .. }
            | Self::RebalanceZero
            | Self::ChargeRange { .. }
            | Self::BadTracks { .. }
            | Self::TwoPlaces { .. }
            | Self::PlaceTaken { .. }
            | Self::ShuttleCount { .. }
            | Self::ShuttleOutside { .. }
            | Self::ShuttlesMeet { .. }
            | Self::OtherPanel { .. } => ErrorKind::Invalid,
            Self::NoSuchPlace { .. }
            | Self::NoSuchSlot { .. }
            | Self::NoSuchPanel { .. }
            | Self::NoSuchPolicy { .. } => ErrorKind::NotFound,
            Self::RequestExists { .. }
            | Self::SlotTaken { .. }
            | Self::OtherSlot { .. }
            | Self::NotStored { .. }
            | Self::NotVerified { .. }
            | Self::PlatterExists { .. } => ErrorKind::Conflict,
            Self::QueueFull { .. } | Self::EjectBayFull { .. } | Self::Unreachable { .. } => {
                ErrorKind::Unavailable
            }
        }
    }
}
