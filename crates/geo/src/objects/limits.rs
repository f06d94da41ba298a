//! Limits of this crate.

use std::time::Duration;

/// Maximum length of an object's key in bytes, so that its row and fragments have valid names in
/// every store.
pub const KEY_BYTES_MAX: usize = 600;

/// Minimum and maximum chunk size in bytes.
pub const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// See [`CHUNK_BYTES_MIN`].
pub const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// Size of an oversized row: above it, dead versions are removed without the grace period, because
/// a full row accepts nothing more.
pub const OVERSIZED_ROW_BYTES: usize = fulgurite_geo_core::limits::ROW_BYTES_MAX / 4;
/// Estimated size of a version in a row, besides its attributes and inline bytes.
pub const VERSION_BYTES: usize = 200;

/// Chunks of one object that are read ahead or written at once.
pub const CHUNKS_AT_ONCE: usize = 4;

/// Objects that are repaired, collected or checked concurrently.
pub const OBJECTS_AT_ONCE: usize = 8;

/// Objects that are read whole concurrently, to verify them.
pub const VERIFIED_AT_ONCE: usize = 4;

/// How often an object in an unknown state is checked.
pub const HEAL_TRIES: u32 = 4;

/// Maximum number of objects that are retried, and how many of them concurrently: fewer than in the
/// first pass, which may have overloaded the sites.
pub const HEAL_RETRIES_MAX: usize = 10_000;
/// See [`HEAL_RETRIES_MAX`].
pub const HEAL_RETRIES_AT_ONCE: usize = 2;

/// Maximum number of objects with an undecided version that a program remembers.
pub const UNDECIDED_MAX: usize = 1024;

/// Maximum number of objects with an undecided version that are listed by name.
pub const UNDECIDED_NAMED_MAX: usize = 100;

/// Concurrent notifications of one site; more wait.
pub const NOTIFICATIONS_AT_ONCE: usize = 256;

/// Maximum number of running and queued notifications of one site: some MiB. More are dropped.
pub const NOTIFICATIONS_MAX: usize = 2048;

/// Fragments in flight to sites that did not answer lately: nobody waits for them, and each takes
/// memory. More are not sent, and are rebuilt when the site is back.
pub const LATE_FRAGMENTS_MAX: usize = 16;

/// Writes abandoned before they were proposed whose fragments are erased concurrently; those of
/// more are left to an orphan sweep.
pub const DISCARDS_AT_ONCE: usize = 16;

/// Queue length for events of an operation.
pub const EVENT_QUEUE_LEN: usize = 256;

/// Queue length for the rows of one site in a listing.
pub const LISTING_QUEUE_LEN: usize = 256;

/// Consecutive failures after which a site is considered down.
pub const DOWN_AFTER_FAILURES: u32 = 3;

/// How long it is considered down, until it is tried again.
pub const DOWN_FOR: Duration = Duration::from_secs(10);

/// Maximum size in bytes of an object that may share a stripe.
pub const BATCHED_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of objects in a stripe.
pub const BATCHED_MAX: usize = 256;

/// Maximum size in bytes of the list of a stripe's objects: a count, then a length and a key for
/// each.
pub const STRIPE_LIST_BYTES_MAX: usize = 4 + BATCHED_MAX * (4 + KEY_BYTES_MAX);

/// Queue length for objects that wait to share a stripe; more get back-pressure.
pub const BATCH_QUEUE_LEN: usize = 1024;

/// Cached rows of a site per generation, of which there are two: some MiB.
pub const ROWS_CACHED_MAX: usize = 4096;

/// Minimum time before a second fragment is requested (hedged read).
pub const HEDGE_MIN: Duration = Duration::from_millis(20);

/// Time limit for writing one blob, retries included.
pub const BLOB_TIMEOUT: Duration = Duration::from_secs(60);

/// Tries of one blob's write or removal.
pub const BLOB_TRIES: u32 = 4;

/// Backoff between them, doubled each time.
pub const BLOB_BACKOFF: Duration = Duration::from_millis(50);

/// Maximum number of fragments in a cache: some 50 MiB of memory for their names.
pub const CACHE_ENTRIES_MAX: usize = 1 << 18;

/// No fragment takes more than one part in this many of a cache.
pub const CACHE_SHARE: u64 = 4;

/// Fragments written to a cache concurrently; others that arrive meanwhile are not cached.
pub const CACHE_WRITES: usize = 8;

/// How long a cache is disabled after its disk has failed.
pub const CACHE_COOLDOWN: Duration = Duration::from_secs(60);

/// Poll interval of subscribers.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

const _: () = assert!(CHUNK_BYTES_MIN < CHUNK_BYTES_MAX);
const _: () = assert!(NOTIFICATIONS_AT_ONCE < NOTIFICATIONS_MAX);
