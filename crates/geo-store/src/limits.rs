//! Every bound of this crate.

use std::time::Duration;

/// Bytes of an object's key, at most, so that its row and its fragments have names everywhere.
pub const KEY_BYTES_MAX: usize = 600;

/// Bytes of a chunk, at least and at most.
pub const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// See [`CHUNK_BYTES_MIN`].
pub const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a row that tell of versions before those that nobody asks for are removed without the
/// grace: a row that is full takes nothing more.
pub const CROWDED_BYTES: usize = fulgurite_geo::limits::ROW_BYTES_MAX / 4;
/// Of these, what any version takes beside its attributes and bytes that lie in the row.
pub const VERSION_BYTES: usize = 200;

/// Parts of an upload, at most.
pub const PARTS_MAX: usize = 10_000;

/// Chunks of one object that are read ahead or written at once.
pub const CHUNKS_AT_ONCE: usize = 4;

/// Objects that are healed, collected or looked at at once.
pub const OBJECTS_AT_ONCE: usize = 8;

/// How often an object is looked at of which nobody could say whether it is whole.
pub const HEAL_TRIES: u32 = 4;

/// Objects that are looked at again, at most, and how many of them at once: fewer than at first,
/// since it may have been too many.
pub const HEAL_AGAIN_MAX: usize = 10_000;
/// See [`HEAL_AGAIN_MAX`].
pub const HEAL_AGAIN_AT_ONCE: usize = 2;

/// Objects with a version that waits undecided that a program remembers, at most.
pub const UNDECIDED_MAX: usize = 1024;

/// Objects that are named to whoever asks which have one, at most.
pub const WAITING_NAMED: usize = 100;

/// Tellings of one site under way at once; more wait.
pub const TELLINGS_AT_ONCE: usize = 256;

/// Tellings of one site that are under way or wait, at most: some MiB. More are left out.
pub const TELLINGS_MAX: usize = 2048;

/// Fragments on their way to sites that did not answer lately: nobody waits for them, and each is
/// held in memory. Any more are not sent, and are made again when the site is back.
pub const LATE_FRAGMENTS_MAX: usize = 16;

/// Writes given up before they were proposed whose fragments are erased at once; those of more are
/// swept.
pub const FORGETTING_AT_ONCE: usize = 16;

/// Events of an operation that wait to be taken in.
pub const HEARD_AT_ONCE: usize = 256;

/// Rows of a listing that wait for their reader, of one site.
pub const LISTED_AHEAD: usize = 256;

/// Failures of a site, one after the other, after which it is taken to be down.
pub const FAILURES_OF_DOWN: u32 = 3;

/// For how long it is, until it is counted on again.
pub const DOWN_FOR: Duration = Duration::from_secs(10);

/// Bytes of an object that may share a stripe, at most.
pub const BATCHED_BYTES_MAX: u64 = 64 << 10;

/// Objects of a stripe, at most.
pub const BATCHED_MAX: usize = 256;

/// Bytes of the list of a stripe's objects, at most: a number for all, and a number for each key.
pub const STRIPE_LIST_BYTES_MAX: usize = 4 + BATCHED_MAX * (4 + KEY_BYTES_MAX);

/// Objects that wait to share a stripe; more wait to wait.
pub const BATCHES_AHEAD: usize = 1024;

/// Rows of a site that are remembered, at most twice as many: some MiB.
pub const ROWS_REMEMBERED: usize = 4096;

/// How long a fragment may take before another is asked as well, at least.
pub const HEDGE_MIN: Duration = Duration::from_millis(20);

/// How long one blob may take to be written, tries included.
pub const BLOB_WITHIN: Duration = Duration::from_secs(60);

/// Tries of one blob's write or removal.
pub const BLOB_TRIES: u32 = 4;

/// Rest between them, doubled each time.
pub const BLOB_REST: Duration = Duration::from_millis(50);

/// Fragments in a cache, at most: some 50 MiB of memory for their names.
pub const CACHE_ENTRIES_MAX: usize = 1 << 18;

/// No fragment takes more than this share of a cache.
pub const CACHE_SHARE: u64 = 4;

/// Fragments that are written to a cache at once; what comes meanwhile is left out.
pub const CACHE_WRITES: usize = 8;

/// For how long a cache is left alone whose disk has failed.
pub const CACHE_REST: Duration = Duration::from_secs(60);

/// Between two looks of who watches.
pub const LOOK: Duration = Duration::from_secs(1);

const _: () = assert!(CHUNK_BYTES_MIN < CHUNK_BYTES_MAX);
const _: () = assert!(TELLINGS_AT_ONCE < TELLINGS_MAX);
