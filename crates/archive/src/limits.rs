//! Every limit of the archive by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// Shortest bucket name, in bytes (S3).
pub const BUCKET_NAME_BYTES_MIN: usize = 3;
/// Longest bucket name, in bytes (S3).
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
/// First backoff of a tier that did not answer; doubled on each further failure.
pub const TIER_BACKOFF: Duration = Duration::from_secs(10);
/// Maximum backoff of a tier.
pub const TIER_BACKOFF_MAX: Duration = Duration::from_secs(3600);
/// Interval of polling for platters that belong to far libraries.
pub const FAR_TICK: Duration = Duration::from_secs(10);
/// Bodies that a tier takes from its queue at a time.
pub const TIER_BATCH: usize = 64;
/// Bodies being moved to a tier at one time.
pub const TIER_BODIES_AT_ONCE: usize = 4;
/// Memory of bodies being copied to the tier at which puts are acknowledged; more wait.
pub const TIER_UPLOAD_BYTES: u64 = 256 << 20;
/// Bodies remembered as present in their tier, so that they are not uploaded twice.
pub const TIER_UPLOADED_MAX: usize = 1 << 20;
/// A larger body goes to a tier in parts of this size. S3 takes 10,000 of 5 MiB and more.
pub const TIER_PART_BYTES: usize = 8 << 20;
/// Parts of one body uploaded at one time.
pub const TIER_PARTS_AT_ONCE: usize = 2;
/// Entries of a tier that a recovery reads in parallel.
pub const TIER_ENTRIES_AT_ONCE: usize = 32;
/// Restores of each retrieval class that a tier is sent at a time, unless it states otherwise.
pub const TIER_RESTORES_AT_ONCE: usize = 16;
/// Bytes fetched from a tier at one time by one reader.
pub const TIER_WINDOW_BYTES: u64 = 4 << 20;
/// Connect timeout of a store, in seconds.
pub const TIER_CONNECT_SECONDS: u64 = 5;
/// Timeout of one store request including its bytes, in seconds.
pub const TIER_REQUEST_SECONDS: u64 = 120;
/// Seconds within which a failed request is retried without backoff.
pub const TIER_TRIES_SECONDS: u64 = 20;
/// Maximum number of these retries.
pub const TIER_TRIES_MAX: usize = 3;
/// Threads that wait for the stores of all tiers.
pub const TIER_THREADS: usize = 2;
/// Damaged bodies of a tier that a verification report names.
pub const TIER_DAMAGED_MAX: usize = 100;
/// Objects that change their class in parallel; each is a body being ingested.
pub const MOVES_AT_ONCE: usize = 16;
/// Keys listed at a time when objects change their class.
pub const MOVE_KEYS_LISTED: usize = 100;
/// Objects that kept their class, named in a report.
pub const SKIPPED_OBJECTS_MAX: usize = 100;
/// Longest name of a tier.
pub const TIER_NAME_BYTES_MAX: usize = 32;
/// Longest object key, in bytes of UTF-8 (S3).
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest key of an object in a shared bucket. Its name at a site is encoded as 4 characters for 3
/// bytes.
pub const SHARED_KEY_BYTES_MAX: usize = 390;
/// Rounds of a restore that meets damage, each with all tries of its pieces, before it is given up:
/// about seventy seconds.
pub const RESTORE_DAMAGED_ROUNDS: u32 = 1;
/// The same for unreachable bytes: two and a half hours with the backoff in between.
pub const RESTORE_ROUNDS_MAX: u32 = 8;
/// Times that a copy is restored whose bytes differ from the ingested ones.
pub const RESTORE_COPIES_MAX: u32 = 4;
/// Maximum metadata of an object in a shared bucket: sealed and text-encoded it is an attribute in
/// the object's row.
pub const SHARED_NOTE_BYTES_MAX: usize = 5 << 10;
/// Runs of parts of equal length stored for an object of a shared bucket: at most 480 bytes.
pub const SHARED_PART_RUNS_MAX: usize = 32;
/// Chunks of one writer's body that wait for a shared bucket's store.
pub const SHARED_AHEAD: usize = 4;
/// Attempts to open a byte range of an object in a shared bucket while it is being overwritten.
pub const SHARED_TRIES_MAX: u32 = 8;
/// Names that a listing of a shared bucket skips one by one under a common prefix before it seeks
/// past the prefix.
pub const SHARED_SKIP: usize = 200;
/// Maximum user metadata of one object, names and values together (S3).
pub const USER_METADATA_BYTES_MAX: usize = 2048;
/// Bytes of a version id; its text has twice as many characters, and S3 allows 1,024.
pub const VERSION_ID_BYTES: usize = 16;
/// Maximum tags of an object (S3).
pub const TAGS_MAX: usize = 10;
/// Longest tag key, in characters (S3).
pub const TAG_NAME_CHARS_MAX: usize = 128;
/// Longest tag value, in characters (S3).
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// Maximum bytes of all tags of an object: UTF-8 characters take at most four, lengths two.
pub const TAGS_BYTES_MAX: usize =
    1 + TAGS_MAX * (4 * (TAG_NAME_CHARS_MAX + TAG_VALUE_CHARS_MAX) + 4);
/// Largest body put in one call or as one part (S3): 5 GiB.
pub const BODY_BYTES_MAX: u64 = ByteCount::gib(5).get();
/// Smallest part of a multipart upload except the last (S3): 5 MiB.
pub const PART_BYTES_MIN: u64 = ByteCount::mib(5).get();
/// Largest part number (S3).
pub const PART_NUMBER_MAX: u32 = 10_000;
/// Attempts to complete an upload while its parts change.
pub const COMPLETE_TRIES_MAX: u32 = 8;
/// Maximum keys per listing page (S3).
pub const LIST_KEYS_MAX: usize = 1000;
/// Maximum keys per `DeleteObjects` call (S3).
pub const DELETE_KEYS_MAX: usize = 1000;
/// Longest restore, in days: a century; more is a typing error.
pub const RESTORE_DAYS_MAX: u32 = 36_500;

/// Plaintext bytes of one encryption frame.
pub const FRAME_BYTES: usize = 64 << 10;
/// Bytes of one frame's authentication tag.
pub const TAG_BYTES: usize = 16;
/// Plaintext buffered before it is hashed, encrypted and written in one go.
pub const CHUNK_BYTES: usize = 512 << 10;
/// Such buffers of one body queued for digesting, including the current one: while one is digested,
/// the next is ready.
pub const DIGESTS_AHEAD: usize = 2;
/// A body no larger than this is written inline, without a trip to the blocking pool.
pub const INLINE_BYTES_MAX: usize = FRAME_BYTES;
/// Maximum copies of the key table: each is written and synced before any key is used.
pub const KEY_TABLES_MAX: usize = 4;
/// Size at which a log segment is closed and the next begun.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// Longest sealed entry in a log; names and metadata have far lower limits of their own.
pub const ENTRY_RECORD_BYTES_MAX: usize = 256 << 10;
/// Bytes of a segment that a scan reads at a time.
pub const SCAN_BUFFER_BYTES: usize = 512 << 10;
/// Smallest free range of a segment that is punched out before the whole segment is unlinked.
pub const PUNCH_BYTES_MIN: u64 = 1 << 20;
/// Rows changed by one catalog transaction of a batch step (release, expiry, recovery).
pub const ROWS_PER_TRANSACTION_MAX: usize = 1000;
/// Bytes of rows that a recovery writes to the new catalog in one batch.
pub const RECOVERY_BATCH_BYTES: usize = 8 << 20;
/// Threads that a recovery scans segments with.
pub const SCAN_THREADS_MAX: usize = 8;
/// Bytes at the end of a log that a start after a crash scans for the catalog's durable state.
pub const MARK_SCAN_BYTES: u64 = 16 << 20;
/// Polling interval of jobs that are not notified, and first backoff of most of them.
pub const JOB_TICK: Duration = Duration::from_secs(1);
/// Maximum backoff of most jobs.
pub const JOB_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Open orders to one job, started or not; a further one is answered `SlowDown`.
pub const ORDERS_MAX: usize = 16;
/// Backoff of sealing after a failure; each set that cannot proceed has its own as well.
pub const SEAL_BACKOFF: Duration = Duration::from_secs(10);
/// Restore requests waiting for glass; a further one is answered `SlowDown`.
pub const RESTORE_QUEUE_MAX: usize = 1_000_000;
/// Restores of a retrieval class whose pieces are held in memory; further ones wait with only their
/// times.
pub const RESTORES_SUBMITTED_MAX: usize = fulgurite_restore::limits::SUBMITTED_MAX;
/// Restored copies that share one sync and commit.
pub const RESTORE_COMMITS_MAX: usize = 4096;
/// Threads that reconstruct shards from a platter-set, or copy bodies that are still staged.
pub const RESTORE_WORKERS: usize = 4;
/// Space for restored copies is reported in steps of this size; smaller changes do not matter.
pub const RESTORE_ROOM_STEP: u64 = 64 << 20;
/// Upper bound of the space reported for restored copies: no more is needed.
pub const RESTORE_ROOM_MAX: u64 = 1 << 50;
/// Size limit of the restore controller's log.
pub const RESTORE_LOG_BYTES_MAX: u64 = 64 << 20;
/// Frames of a restored copy that are authenticated before its expiry is extended: 16 MiB.
pub const CHECK_FRAMES_MAX: u64 = 256;
/// Upper bound of the default free space that no body may take.
pub const FREE_MIN_BYTES_MAX: u64 = ByteCount::gib(1).get();
/// Upper bound of the default reserve. The catalog keeps 16 MiB of rows in memory. Opening it with
/// them needs space for their tables, and for the output of compaction beside the tables it
/// replaces.
pub const RESERVE_BYTES_MAX: u64 = ByteCount::mib(64).get();
/// On a small disk, minimum free space and reserve are each one part of it in this many.
pub const SPACE_SHARE: u64 = 16;
/// Requests waiting for the sync thread; a further one blocks its caller for a moment.
pub const SYNC_QUEUE_MAX: usize = 4096;
/// Bytes of one body after which an asynchronous sync starts: what is left at its end takes a disk
/// of 1 GB/s 4 ms.
pub const SYNC_AHEAD_BYTES: u64 = 4 << 20;
/// Maximum items of each kind that a status or a verification names: failed restores, damaged
/// copies and bodies, unconfirmed bodies.
pub const NAMED_MAX: usize = 100;
/// Restores given up that a subscriber has not received yet.
pub(crate) const GIVEN_UP_WAITING_MAX: usize = 256;
/// Maximum bytes of names, user metadata and tags in an entry that S3 allows.
const ENTRY_NAMED_BYTES_MAX: usize = BUCKET_NAME_BYTES_MAX
    + KEY_BYTES_MAX
    + VERSION_ID_BYTES
    + USER_METADATA_BYTES_MAX
    + TAGS_BYTES_MAX;

/// Maximum bytes of one entry in a platter's file list.
const ENTRY_LISTED_BYTES_MAX: usize = fulgurite_glass::SEALED_ENTRY_BYTES_MAX as usize;

const _: () = assert!(ENTRY_NAMED_BYTES_MAX <= ENTRY_LISTED_BYTES_MAX / 2, "with headers it fits");
const _: () = assert!(ENTRY_LISTED_BYTES_MAX <= ENTRY_RECORD_BYTES_MAX, "logs take no less");
const _: () = assert!(CHUNK_BYTES.is_multiple_of(FRAME_BYTES), "a chunk is whole frames");
const _: () = assert!(INLINE_BYTES_MAX <= CHUNK_BYTES, "an inline body fits one chunk");
const _: () = assert!(RESTORE_COMMITS_MAX > 0 && RESTORE_WORKERS > 0, "restores end");
const _: () = assert!(TIER_PART_BYTES >= 5 << 20, "S3 takes no smaller part");
const _: () = assert!(SEGMENT_BYTES > CHUNK_BYTES as u64, "a segment holds a chunk");
