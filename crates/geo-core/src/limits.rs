//! Limits of this crate.

use fulgurite_units::Duration;

/// Maximum number of sites that vote on versions.
pub const VOTING_SITES_MAX: usize = 9;

/// Maximum number of sites that hold fragments.
pub const DATA_SITES_MAX: usize = 32;

/// Number of gone versions whose writes a row still names (the last ones), so that a late proposer
/// learns whether one of them was its own.
pub const GONE_WRITES_MAX: usize = 4;

/// Maximum number of versions sent along with a request: the newest ones.
pub const SENT_VERSIONS_MAX: usize = 8;

/// Maximum size of a row in bytes. Smaller than what any supported store allows.
pub const ROW_BYTES_MAX: usize = 64 * 1024;

/// Maximum size in bytes of an object stored in its rows instead of in fragments.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;

/// Maximum size in bytes of the writer's attributes in a row.
pub const ATTRIBUTES_BYTES_MAX: usize = 8 * 1024;

/// Maximum number of agreements per repair of an object: every concurrent write leaves another
/// version to settle.
pub const HEAL_AGREEMENTS_MAX: u32 = 16;

/// The backoff after a lost ballot doubles up to this.
pub const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Jitter: a backoff is drawn from half of its length to the whole of it.
pub const BACKOFF_JITTER: f64 = 0.5;

const _: () = assert!(INLINE_BYTES_MAX + ATTRIBUTES_BYTES_MAX < ROW_BYTES_MAX / 4);
const _: () = assert!(GONE_WRITES_MAX < SENT_VERSIONS_MAX);
