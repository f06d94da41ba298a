//! Every bound of the glass tier by name.

use fulgurite_units::Duration;

pub use fulgurite_glass::limits::SEALED_ENTRY_BYTES_MAX;

/// Size at which the log of the library ends.
pub(crate) const LIBRARY_LOG_BYTES_MAX: u64 = 64 << 20;
/// Scenes and steps of the library that wait for one who watches it; with one more it is late.
pub(crate) const WATCH_STEPS_MAX: usize = 4096;
/// Most bodies one platter-set plan holds in memory while it is sorted.
pub(crate) const PLAN_BODIES_MAX: usize = 200_000;
/// Rows changed by one catalog transaction of a batch step (planning, release).
pub(crate) const ROWS_PER_TRANSACTION_MAX: usize = 1000;
/// Bytes of a body that are read before they are written to a platter, and the other way.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;
/// Faults of its own after which a set is given up and planned anew on other platters.
pub(crate) const SET_FAULTS_MAX: u32 = 3;
/// Sets that wait to be tried again, or were given up a short time ago, beyond which no more are
/// begun: trouble that meets every set must not plan all that is staged.
pub(crate) const SETS_WAITING_MAX: usize = 4;
/// How long a set waits after the first time it could not go on; twice as long each time after.
pub(crate) const SEAL_RETRY: Duration = Duration::from_secs(10);
/// How long it waits at most.
pub(crate) const SEAL_RETRY_MAX: Duration = Duration::from_secs(3600);
/// Threads that compute the redundancy of a set: more than a disk can feed, each with 40 MB of a
/// platter of the profile `silica` at hand.
pub(crate) const ENCODERS_MAX: usize = 4;
/// Finished platters of a set that wait to be synced while others are written.
pub(crate) const FINISHING_MAX: usize = 4;
/// What is read of a platter in one go that is verified, past the system's memory.
pub(crate) const DIRECT_WINDOW_BYTES: usize = 1 << 20;
/// Where in files and memory such a read begins: the largest block that disks have.
pub(crate) const DIRECT_ALIGN: usize = 4096;
/// Tracks between two shards that are read in one go: to seek takes as long as reading as many.
pub(crate) const READ_GAP_TRACKS: u32 = 2;
/// What is read of a platter at another site in one go.
pub(crate) const FAR_WINDOW_BYTES: u64 = 4 << 20;
/// What is compared at a time of a platter that was carried there.
pub(crate) const FAR_COMPARE_BYTES: u64 = 8 << 20;
/// Messages waiting for the driver of the library; one more waits at its sender.
pub(crate) const DRIVER_INBOX_MAX: usize = 1024;

const _: () = assert!(DIRECT_WINDOW_BYTES.is_multiple_of(DIRECT_ALIGN), "windows are whole blocks");
