//! Every bound of the engine layer, in one place.
//!
//! A limit is either a promise to the backend (it can store this) or a bound on memory and on the
//! time one caller waits for another.

use std::time::Duration;

/// Longest key in bytes. The journal of the fjall backend holds key lengths in 16 bits; an S3 key
/// of 1,024 bytes that is all zero bytes escapes to 2,050.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Longest value in bytes.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// Most bytes (keys and values) that one transaction may write.
pub const TRANSACTION_BYTES_MAX: usize = 32 << 20;

/// Closures that wait for the committer before a submitter has to wait for room.
pub const QUEUE_CLOSURES_MAX: usize = 1_024;

/// Most closures answered by one synced batch: bounds how long the first of them waits.
pub const GROUP_CLOSURES_MAX: usize = 512;

/// A group takes no further closure once it holds this many bytes: bounds the overlay and the
/// length of one journal write. One transaction may still be larger.
pub const GROUP_BYTES_MAX: usize = 4 << 20;

/// Bytes counted for each row beside its key and value: the entry in the overlay.
pub const ROW_OVERHEAD_BYTES: usize = 64;

/// Torn batches kept beside the store, each from a start after a power cut; the oldest goes.
pub const CUT_BATCHES_MAX: usize = 16;

/// Buckets of the group size histogram: bucket `i` counts groups of `2^i` to `2^(i+1) - 1`
/// closures.
pub const GROUP_SIZE_BUCKETS: usize = 10;

/// Tables that are read at one time when a store is opened, each by a thread with a buffer of
/// 1 MiB.
pub const TABLE_CHECKS_MAX: usize = 8;

/// A store that is reopened after a failure has its tables checked, unless they were within
/// this time: a disk that stays full has it opened every some seconds.
pub const TABLES_TRUSTED_FOR: Duration = Duration::from_secs(60);

/// How often the committer asks a store whether it is still usable.
pub const TICK: Duration = Duration::from_secs(1);

/// Pause after the first failed try to open a store anew; it doubles with each further one. There
/// is no last try.
pub const REOPEN_PAUSE_MIN: Duration = Duration::from_millis(50);

/// Longest pause between two tries to open a store anew.
pub const REOPEN_PAUSE_MAX: Duration = Duration::from_secs(5);

/// A store that fails again within this time of being opened anew is not opened at once.
pub const RELAPSE_WITHIN: Duration = Duration::from_secs(10);

/// Longest that new readers are held up at a time while a store waits for its last reader before
/// it is opened anew. A reader that needs a second view to end its first waits no longer than this.
pub const READERS_HELD_MAX: Duration = Duration::from_millis(50);

/// How often that is done before the try ends and is made again later.
pub const READERS_HELD_TIMES_MAX: u32 = 20;

const _: () = assert!(REOPEN_PAUSE_MIN.as_nanos() <= REOPEN_PAUSE_MAX.as_nanos());
const _: () = assert!(REOPEN_PAUSE_MAX.as_nanos() < RELAPSE_WITHIN.as_nanos());
const _: () = assert!(REOPEN_PAUSE_MAX.as_nanos() < TABLES_TRUSTED_FOR.as_nanos());
const _: () = assert!(TABLE_CHECKS_MAX > 0);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(GROUP_BYTES_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(GROUP_CLOSURES_MAX <= QUEUE_CLOSURES_MAX);
const _: () = assert!(GROUP_CLOSURES_MAX < 1 << GROUP_SIZE_BUCKETS);
