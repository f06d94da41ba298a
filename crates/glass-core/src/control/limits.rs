//! All limits of the library, by name. Anything over a limit is rejected, never dropped and never
//! queued without bound.

use fulgurite_units::Duration;

/// Requests accepted and not finished, of all kinds. A million is two orders of magnitude more than
/// the paper's heaviest half day (4.3 reads a second over a tail of 2.8 h are 43,000).
pub const REQUESTS_MAX: usize = 1 << 20;

/// Written platters of one panel that wait in its eject bay. Assumed: more than ten platter-sets of
/// 16+3, so that sealing never waits for the library to empty the bay.
pub const EJECT_BAY_PLATTERS_MAX: usize = 256;

/// Reads served in one visit of a platter before it has to go home, so that a platter with an
/// endless stream of reads does not keep a drive from all others.
pub const READS_PER_VISIT_MAX: u32 = 1024;

/// Customer fetches that a shuttle makes in a row while a new platter waits for it.
pub const FETCHES_IN_A_ROW_MAX: u32 = 16;

/// Minimum interval between two checks of whether verification is in time, if nothing happens.
pub const PACE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Reserve for the unforeseen, in percent of the time a new platter has: a quarter of an hour of a
/// day.
pub const VERIFY_RESERVE_PERCENT: u64 = 1;

/// How late a new platter may be although its drive does nothing else, in percent of the time it
/// has. A later one cannot be helped, and customers do not wait for it.
pub const VERIFY_TOO_LATE_PERCENT: u64 = 5;

/// Share of the drives of a panel that may only verify at once, percent.
pub const VERIFY_ONLY_SHARE_PERCENT: usize = 50;

/// New platters that wait outside the drives, in percent of the drives of the panel, from which the
/// panel does not keep up and no drive only verifies.
pub const VERIFY_BEHIND_PERCENT: usize = 25;

/// Sides of a library.
pub const PANELS_MAX: u16 = 2;

/// Drives that fit into a read rack (Silica, section 7.1).
pub const DRIVES_PER_READ_RACK_MAX: u16 = 10;

/// Shuttles of a panel for each of its read drives (Silica, section 4).
pub const SHUTTLES_PER_DRIVE_MAX: u16 = 2;

/// Storage slots of one library.
pub const SLOTS_MAX: u32 = 1 << 24;

/// Crabs away from its goal a shuttle makes on one way to get around others, before it waits.
pub const STRAYS_MAX: u32 = 2;

/// Distance between two position reports of a moving shuttle, in micrometers.
pub const REPORT_UM: u64 = 600_000;

/// How long a shuttle waits before it claims its way against lower ranks.
pub const CLAIM_DELAY: Duration = Duration::from_secs(15);

/// Length of a charging interval, after which the controller decides again: no errand waits longer
/// for a shuttle that charges.
pub const CHARGE_INTERVAL: Duration = Duration::from_secs(60);

/// Percent a battery must lack before a shuttle that is not low goes to a charging point. With
/// less, shuttles that only make way for each other there would charge for that without end.
pub const TOP_UP_PERCENT: u8 = 10;

/// A full battery.
pub const BATTERY_PERCENT_MAX: u8 = 100;

/// Work of a fetch, in milliseconds: about one cycle of a shuttle.
pub const LOAD_FETCH_MS: u64 = 45_000;

/// Work of reading a track, in milliseconds: 20 MB at 60 MB/s.
pub const LOAD_TRACK_MS: u64 = 333;

/// Base load of each cell, so that every cell belongs to a group.
pub const LOAD_BASE_MS: u64 = 5_000;

/// Load of a group, in percent of the mean, from which boundaries are moved,
pub const UNEVEN_PERCENT: u64 = 150;

/// and number of fetches by which it must exceed that.
pub const UNEVEN_FETCHES: u64 = 10;

/// Wait of a neighbor's oldest read, in percent of the group's own, from which a shuttle fetches
/// for the neighbor first,
pub const LONGER_WAIT_PERCENT: u64 = 120;

/// and how much longer than that it must be.
pub const LONGER_WAIT: Duration = Duration::from_secs(600);

/// Slots of a read drive.
pub const CUSTOMER_SLOTS_MAX: u8 = 2;

/// Oldest platters among which the nearest is chosen.
pub const CANDIDATES_MAX: u16 = 64;

const _: () = assert!(READS_PER_VISIT_MAX > 0);
const _: () = assert!(FETCHES_IN_A_ROW_MAX > 0);
const _: () = assert!(EJECT_BAY_PLATTERS_MAX < REQUESTS_MAX);
