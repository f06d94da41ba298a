//! Every bound of this crate.

use fulgurite_units::Duration;

/// Sites that vote on versions, at most.
pub const VOTING_SITES_MAX: usize = 9;

/// Sites that hold fragments, at most.
pub const DATA_SITES_MAX: usize = 32;

/// Of versions that are gone, the last ones whose writes a row still names, so that a proposer that
/// comes late knows whether one of them was its own.
pub const GONE_NAMED: usize = 4;

/// Versions that a request tells of, at most: the newest ones.
pub const TOLD_VERSIONS: usize = 8;

/// Bytes of a row, at most. Smaller than what any supported store allows for one.
pub const ROW_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an object that lies in its rows instead of in fragments, at most.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;

/// Bytes that the writer's attributes take in a row, at most.
pub const ATTRIBUTES_BYTES_MAX: usize = 8 * 1024;

/// Agreements that healing one object takes, at most: who writes meanwhile leaves something to
/// decide each time.
pub const HEAL_STEPS: u32 = 16;

/// The first pause after a lost ballot doubles until this.
pub const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Pauses are drawn from half of their length to the whole of it.
pub const PAUSE_SPREAD: f64 = 0.5;

const _: () = assert!(INLINE_BYTES_MAX + ATTRIBUTES_BYTES_MAX < ROW_BYTES_MAX / 4);
const _: () = assert!(GONE_NAMED < TOLD_VERSIONS);
