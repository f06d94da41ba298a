//! Every limit of the library, by name. What goes over a limit is answered with a rejection, never
//! dropped and never queued without end.

use fulgurite_units::Duration;

/// Requests accepted and not finished, of all kinds. A million is two orders more than the paper's
/// heaviest half day (4.3 reads a second over a tail of 2.8 h are 43,000).
pub const REQUESTS_MAX: usize = 1 << 20;

/// Written platters of one panel that wait in its eject bay. Assumed: more than ten platter-sets
/// of 16+3, so that a seal never waits for the library to empty the bay.
pub const EJECT_BAY_PLATTERS_MAX: usize = 256;

/// Reads served in one visit of a platter before it has to go home, so that one platter that is
/// asked for without pause does not keep a drive from all others.
pub const READS_PER_VISIT_MAX: u32 = 1024;

/// Fetches for customers a shuttle makes in a row while a new platter waits for it.
pub const FETCHES_IN_A_ROW_MAX: u32 = 16;

/// The least time until it is worked out again whether verification is in time, if nothing happens.
pub const PACE_LOOK: Duration = Duration::from_secs(60);

/// Of the time a new platter has, what is kept for what cannot be foreseen, percent: a quarter of
/// an hour of a day.
pub const VERIFY_RESERVE_PERCENT: u64 = 1;

/// Of the time a new platter has, by how much it may be late although its drive does nothing else,
/// percent: with more it cannot be helped, and customers do not wait for it.
pub const VERIFY_TOO_LATE_PERCENT: u64 = 5;

/// Of the drives of a panel, how many may do nothing but verify at once, percent.
pub const INSIST_SHARE_PERCENT: usize = 50;

/// New platters that wait outside of drives, in percent of the drives of the panel, from which on
/// it does not keep up, and no drive does nothing but verify.
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

/// Micrometers between two reports of a shuttle on its way.
pub const REPORT_UM: u64 = 600_000;

/// How long a shuttle waits before it claims its way against lower ranks.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A piece of charging, after which the controller looks again: nobody waits longer for a charging
/// point or for a shuttle that charges.
pub const CHARGE_PIECE: Duration = Duration::from_secs(60);

/// Percent a battery must lack for a shuttle that is not low to go to a charging point: with less,
/// shuttles that only make way for each other there would charge for that without end.
pub const TOP_UP_PERCENT: u8 = 10;

/// A full battery.
pub const BATTERY_PERCENT_MAX: u8 = 100;

/// Work a fetch means, in milliseconds: about one cycle of a shuttle.
pub const LOAD_FETCH_MS: u64 = 45_000;

/// Work a track means, in milliseconds: 20 MB at 60 MB/s.
pub const LOAD_TRACK_MS: u64 = 333;

/// Load each cell counts for without any, so that none is nobody's.
pub const LOAD_BASE_MS: u64 = 5_000;

/// Load of a group, in percent of the mean, from which on borders are moved,
pub const UNEVEN_PERCENT: u64 = 150;

/// and fetches it has to have more than that.
pub const UNEVEN_FETCHES: u64 = 10;

/// Wait of the oldest read of a neighbor, in percent of a group's own, from which on a shuttle
/// fetches for the neighbor first,
pub const LONGER_WAIT_PERCENT: u64 = 120;

/// and how much longer than that it has to be.
pub const LONGER_WAIT: Duration = Duration::from_secs(600);

/// Slots of a read drive.
pub const CUSTOMER_SLOTS_MAX: u8 = 2;

/// Oldest platters among which the nearest is chosen.
pub const CANDIDATES_MAX: u16 = 64;

const _: () = assert!(READS_PER_VISIT_MAX > 0);
const _: () = assert!(FETCHES_IN_A_ROW_MAX > 0);
const _: () = assert!(EJECT_BAY_PLATTERS_MAX < REQUESTS_MAX);
