//! Limits of the engine layer.
//!
//! A limit is either a requirement on the backend (it can store this) or a bound on memory and on
//! the time one caller waits for another.

use std::time::Duration;

/// Longest key in bytes. The journal of the fjall backend holds key lengths in 16 bits; an S3 key
/// of 1,024 bytes that is all zero bytes escapes to 2,050.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Longest value in bytes.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// Maximum bytes (keys and values) that one transaction may write.
pub const TRANSACTION_BYTES_MAX: usize = 32 << 20;

/// Maximum number of queued closures; further submitters wait (back-pressure).
pub const QUEUE_CLOSURES_MAX: usize = 1_024;

/// Maximum number of closures per synced batch: bounds how long the first of them waits.
pub const GROUP_CLOSURES_MAX: usize = 512;

/// A group takes no more closures once it holds this many bytes: bounds the overlay and the length
/// of one journal write. A single transaction may be larger.
pub const GROUP_BYTES_MAX: usize = 4 << 20;

/// Bytes counted per row in addition to key and value, for the entry in the overlay.
pub const ROW_OVERHEAD_BYTES: usize = 64;

/// Torn batches kept beside the store, each from an open after a power cut; the oldest is removed.
pub const CUT_BATCHES_MAX: usize = 16;

/// Buckets of the group size histogram: bucket `i` counts groups of `2^i` to `2^(i+1) - 1`
/// closures.
pub const GROUP_SIZE_BUCKETS: usize = 10;

/// Maximum number of tables that are verified in parallel at open, each by a thread with a buffer
/// of 1 MiB.
pub const TABLE_CHECKS_MAX: usize = 8;

/// Tables are verified when a store is reopened after a failure, unless that was done within this
/// time: with a disk that stays full the store is reopened every few seconds.
pub const TABLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Interval at which an idle committer polls whether the store is still usable.
pub const TICK: Duration = Duration::from_secs(1);

/// Backoff after the first failed attempt to reopen a store, doubled with each further one. Retries
/// never end.
pub const REOPEN_BACKOFF_MIN: Duration = Duration::from_millis(50);

/// Maximum backoff between two attempts to reopen a store.
pub const REOPEN_BACKOFF_MAX: Duration = Duration::from_secs(5);

/// A store that fails again within this time of being reopened is not reopened at once.
pub const RELAPSE_WINDOW: Duration = Duration::from_secs(10);

/// Maximum time that new readers are blocked at once while a store waits for its last reader before
/// reopening. A reader that needs a second view to finish its first waits no longer than this.
pub const READERS_BLOCKED_MAX: Duration = Duration::from_millis(50);

/// How often that is tried before the attempt to reopen is put off.
pub const READERS_BLOCKED_TIMES_MAX: u32 = 20;

const _: () = assert!(REOPEN_BACKOFF_MIN.as_nanos() <= REOPEN_BACKOFF_MAX.as_nanos());
const _: () = assert!(REOPEN_BACKOFF_MAX.as_nanos() < RELAPSE_WINDOW.as_nanos());
const _: () = assert!(REOPEN_BACKOFF_MAX.as_nanos() < TABLE_CHECK_INTERVAL.as_nanos());
const _: () = assert!(TABLE_CHECKS_MAX > 0);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(GROUP_BYTES_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(GROUP_CLOSURES_MAX <= QUEUE_CLOSURES_MAX);
const _: () = assert!(GROUP_CLOSURES_MAX < 1 << GROUP_SIZE_BUCKETS);
