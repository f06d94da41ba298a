//! All limits of the glass tier, by name.

use fulgurite_units::Duration;

pub use fulgurite_platter::limits::SEALED_ENTRY_BYTES_MAX;

/// Size at which the log of the library ends.
pub(crate) const LIBRARY_LOG_BYTES_MAX: u64 = 64 << 20;
/// Snapshots and steps of the library that are kept for subscribers; one that is further behind is
/// dropped as late.
pub(crate) const WATCH_STEPS_MAX: usize = 4096;
/// Most bodies one platter-set plan holds in memory while it is sorted.
pub(crate) const PLAN_BODIES_MAX: usize = 200_000;
/// Rows changed by one catalog transaction of a batch step (planning, release).
pub(crate) const ROWS_PER_TRANSACTION_MAX: usize = 1000;
/// Bytes of a body that are read before they are written to a platter, and vice versa.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;
/// Faults of its own after which a set is given up and its bodies are planned again on other
/// platters.
pub(crate) const SET_FAULTS_MAX: u32 = 3;
/// Sets that wait for a retry, or were given up a short time ago, beyond which no more are started:
/// a failure that hits every set must not plan everything that is staged.
pub(crate) const SETS_WAITING_MAX: usize = 4;
/// Backoff of a set after the first failure; doubled after each further one.
pub(crate) const SEAL_RETRY: Duration = Duration::from_secs(10);
/// Maximum backoff of a set.
pub(crate) const SEAL_RETRY_MAX: Duration = Duration::from_secs(3600);
/// Threads that encode the redundancy of a set: more than a disk can feed, each with 40 MB of a
/// platter of the profile `silica` in memory.
pub(crate) const ENCODERS_MAX: usize = 4;
/// Finished platters of a set that wait to be synced while others are written.
pub(crate) const FINISHER_QUEUE_MAX: usize = 4;
/// Bytes of a platter that a verification reads in one go, past the page cache.
pub(crate) const DIRECT_WINDOW_BYTES: usize = 1 << 20;
/// Alignment of such a read in the file and in memory: the largest block size of disks.
pub(crate) const DIRECT_ALIGN: usize = 4096;
/// Tracks between two shards that are read in one go: a seek takes as long as reading this many.
pub(crate) const READ_GAP_TRACKS: u32 = 2;
/// Bytes of a platter at another site that are read in one go.
pub(crate) const FAR_WINDOW_BYTES: u64 = 4 << 20;
/// Bytes that are compared at a time after a platter was carried there.
pub(crate) const FAR_COMPARE_BYTES: u64 = 8 << 20;
/// Messages queued for the driver of the library; one more blocks its sender.
pub(crate) const DRIVER_INBOX_MAX: usize = 1024;

const _: () = assert!(DIRECT_WINDOW_BYTES.is_multiple_of(DIRECT_ALIGN), "windows are whole blocks");
