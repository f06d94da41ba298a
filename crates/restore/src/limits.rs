//! Every bound of restores by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// By when a restore of retrieval Expedited is due, from its request on: the times that S3 names
/// for `GLACIER`.
pub const EXPEDITED_WITHIN: Duration = Duration::from_secs(5 * 60);
/// The same of retrieval Standard.
pub const STANDARD_WITHIN: Duration = Duration::from_secs(5 * 3600);
/// The same of retrieval Bulk.
pub const BULK_WITHIN: Duration = Duration::from_secs(12 * 3600);

/// Visits of a retrieval under way for each drive, however long they take: one is read while the
/// next is fetched.
pub const VISITS_PER_DRIVE: usize = 2;
/// Bytes of a retrieval under way, beyond which no more visits begin than keep the drives busy. A
/// tier that orders its own queue sees this much of it: some thousands of small objects.
pub const UNDER_WAY_BYTES: ByteCount = ByteCount::mib(256);
/// Pieces of a retrieval under way, beyond which the same holds: each has a few KiB of memory.
pub const UNDER_WAY_PIECES: usize = 16_384;
/// Restores of a retrieval that a driver tells the controller of at a time; more wait with it, by
/// when they were asked for.
pub const HELD_MAX: usize = 16_384;
/// Pieces fetched in one visit.
pub const VISIT_PIECES_MAX: usize = 1024;

/// How long a piece rests after it failed once; twice as long each time after.
pub const PIECE_REST: Duration = Duration::from_secs(10);
/// Times that a piece is tried before its restore gives back the room that it holds.
pub const PIECE_TRIES_MAX: u32 = 4;
/// How long a restore rests after its copy was lost once; twice as long each time after.
pub const COPY_REST: Duration = Duration::from_secs(1);
/// How long anything rests at most.
pub const REST_MAX: Duration = Duration::from_secs(3600);

const _: () = assert!(EXPEDITED_WITHIN.as_nanos() < STANDARD_WITHIN.as_nanos(), "sooner is sooner");
const _: () = assert!(STANDARD_WITHIN.as_nanos() < BULK_WITHIN.as_nanos(), "sooner is sooner");
const _: () = assert!(VISITS_PER_DRIVE > 0, "what is asked for begins");
const _: () = assert!(HELD_MAX > 0, "something is known");
const _: () = assert!(VISIT_PIECES_MAX > 0, "a visit is for something");
const _: () = assert!(VISIT_PIECES_MAX <= UNDER_WAY_PIECES, "a whole visit may begin");
const _: () = assert!(PIECE_TRIES_MAX > 0, "everything is tried");
const _: () = assert!(PIECE_REST.as_nanos() <= REST_MAX.as_nanos(), "rests grow");
