//! Every limit of restores by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// Time from request to due time for Expedited retrieval. These are the times that S3 states for
/// `GLACIER`.
pub const EXPEDITED_WITHIN: Duration = Duration::from_secs(5 * 60);
/// The same for Standard retrieval.
pub const STANDARD_WITHIN: Duration = Duration::from_secs(5 * 3600);
/// The same for Bulk retrieval.
pub const BULK_WITHIN: Duration = Duration::from_secs(12 * 3600);

/// Fetches in flight per drive and retrieval class, however long they take: a drive reads for one
/// while the next is fetched.
pub const FETCHES_PER_DRIVE: usize = 2;
/// Bytes of a retrieval class in flight. Beyond it, only the fetches start that keep the drives
/// busy. A tier that orders its own queue sees this much of it: some thousands of small objects.
pub const IN_FLIGHT_BYTES: ByteCount = ByteCount::mib(256);
/// Pieces of a retrieval class in flight, with the same effect. Each takes a few KiB of memory.
pub const IN_FLIGHT_PIECES: usize = 16_384;
/// Restores of a retrieval class that a driver submits to the controller at a time. Further ones
/// wait in the driver, ordered by request time.
pub const SUBMITTED_MAX: usize = 16_384;
/// Pieces per fetch.
pub const FETCH_PIECES_MAX: usize = 1024;

/// Backoff of a piece after its first failure; doubled on each further failure.
pub const PIECE_BACKOFF: Duration = Duration::from_secs(10);
/// Attempts per piece before its restore releases its space.
pub const PIECE_TRIES_MAX: u32 = 4;
/// Backoff of a restore after its copy was lost once; doubled on each further loss.
pub const COPY_BACKOFF: Duration = Duration::from_secs(1);
/// Upper bound of every backoff.
pub const BACKOFF_MAX: Duration = Duration::from_secs(3600);

const _: () = assert!(
    EXPEDITED_WITHIN.as_nanos() < STANDARD_WITHIN.as_nanos(),
    "more urgent classes have shorter objectives"
);
const _: () = assert!(
    STANDARD_WITHIN.as_nanos() < BULK_WITHIN.as_nanos(),
    "more urgent classes have shorter objectives"
);
const _: () = assert!(FETCHES_PER_DRIVE > 0, "a fetch can start");
const _: () = assert!(SUBMITTED_MAX > 0, "the controller can hold a restore");
const _: () = assert!(FETCH_PIECES_MAX > 0, "a fetch has at least one piece");
const _: () = assert!(FETCH_PIECES_MAX <= IN_FLIGHT_PIECES, "a full fetch may start");
const _: () = assert!(PIECE_TRIES_MAX > 0, "each piece is tried at least once");
const _: () = assert!(PIECE_BACKOFF.as_nanos() <= BACKOFF_MAX.as_nanos(), "backoffs only grow");
