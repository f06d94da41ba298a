//! Limits of this crate.

use fulgurite_units::{ByteCount, Duration};

/// Maximum number of places of a rack: about a hundred times the largest one known.
pub const PLACES_MAX: u64 = 100_000;
/// Maximum number of axes of a shape.
pub const AXES_MAX: u64 = 8;
/// Maximum number of kinds of domains, and of kinds of failure units, of a shape: each is a bit in
/// the loss state of a place.
pub const SHARED_MAX: u64 = 16;

/// Maximum number of legal states that a check enumerates. Above it, the proof is only the sum over
/// classes, which gives the same answer.
pub const STATES_MAX: u128 = 1 << 17;
/// Exchanges of two places that the search for groups tries per place before it gives up.
pub const SEARCH_STEPS_PER_PLACE: u32 = 500;
/// Maximum number of exchanges.
pub const SEARCH_STEPS_MAX: u32 = 200_000;

/// Minimum cost of an operation in bytes, so that even one of no bytes cannot overtake others
/// forever: a fragment (Pelican, section 2.2.2).
pub const OP_BYTES_MIN: ByteCount = ByteCount::kib(128);
/// Minimum cost of an operation in time: slightly more than a seek of an archival disk.
pub const OP_TIME_MIN: Duration = Duration::from_millis(5);
/// Client operations that may wait in a class (Pelican, section 4.2).
pub const CLIENT_QUEUE: usize = 1_000;
/// Background operations (rebuilds, scrubs) that may wait in a class. The driver submits more as
/// these complete.
pub const BACKGROUND_QUEUE: usize = 1_000;
/// Maximum number of operations that run at once in a group.
pub const CONCURRENCY_MAX: usize = 64;
/// Default deadline of an operation, counted from its arrival: longer than anything waits in a
/// Pelican with full queues (20 minutes, measured with the twin).
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(3600);
/// Operations due within this time may use the reserve of a spin-up budget.
pub const SOON: Duration = Duration::from_secs(15 * 60);
/// How long a group is served at a stretch while other groups have work: about twenty times a
/// switch.
pub const VISIT_MAX: Duration = Duration::from_secs(300);
/// Reads of a group that are examined to determine which disks they need; if more wait, all disks
/// are spun up.
pub const NEEDED_READS_MAX: usize = 64;
/// Minimum time before a refused request may be retried.
pub const RETRY_MIN: Duration = Duration::from_secs(1);

/// Attempts to spin a disk up before its group goes on without it for this visit.
pub const SPIN_UP_ATTEMPTS: u32 = 3;
/// Initial backoff of a place after such a visit, before it is tried with its group again; doubled
/// each time, up to a maximum.
pub const SPIN_UP_BACKOFF: Duration = Duration::from_secs(60);
/// Maximum of that backoff.
pub const SPIN_UP_BACKOFF_MAX: Duration = Duration::from_secs(6 * 3600);
const _: () =
    assert!(SPIN_UP_BACKOFF.as_nanos() <= SPIN_UP_BACKOFF_MAX.as_nanos(), "backoffs only grow");
const _: () = assert!(SPIN_UP_ATTEMPTS > 0, "a disk is tried at least once");
