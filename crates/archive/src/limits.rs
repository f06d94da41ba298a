//! Every bound of the archive by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// Shortest bucket name, in bytes (S3).
pub const BUCKET_NAME_BYTES_MIN: usize = 3;
/// Longest bucket name, in bytes (S3).
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
/// How long a tier that did not answer rests the first time; twice as long each time after.
pub const TIER_REST: Duration = Duration::from_secs(10);
/// How long it rests at most.
pub const TIER_REST_MAX: Duration = Duration::from_secs(3600);
/// Pause between looks for platters that belong to far libraries.
pub const FAR_TICK: Duration = Duration::from_secs(10);
/// Bodies that a tier takes of one look at what waits.
pub const TIER_BATCH: usize = 64;
/// Bodies on their way to a tier at one time.
pub const TIER_BODIES_AT_ONCE: usize = 4;
/// Memory of bodies on their way to the tier at which puts are acknowledged; more wait.
pub const TIER_BRING_BYTES: u64 = 256 << 20;
/// Bodies of which it is remembered that their tier has them, so that they are not put twice.
pub const TIER_BROUGHT_MAX: usize = 1 << 20;
/// A larger body goes to a tier in parts of this size. S3 takes 10,000 of 5 MiB and more.
pub const TIER_PART_BYTES: usize = 8 << 20;
/// Parts of one body under way at one time.
pub const TIER_PARTS_AT_ONCE: usize = 2;
/// Entries of a tier that a recovery reads at one time.
pub const TIER_ENTRIES_AT_ONCE: usize = 32;
/// Restores of each retrieval that a tier is asked for at a time, unless it says otherwise.
pub const TIER_RESTORES_AT_ONCE: usize = 16;
/// Bytes fetched from a tier at one time by one reader.
pub const TIER_WINDOW_BYTES: u64 = 4 << 20;
/// Seconds that a connection to a store may take.
pub const TIER_CONNECT_SECONDS: u64 = 5;
/// Seconds that one call of a store may take, its bytes included.
pub const TIER_REQUEST_SECONDS: u64 = 120;
/// Seconds within which a call that failed is tried again at once.
pub const TIER_TRIES_SECONDS: u64 = 20;
/// How often it is tried again at most.
pub const TIER_TRIES_MAX: usize = 3;
/// Threads that wait for the stores of all tiers.
pub const TIER_THREADS: usize = 2;
/// Damaged bodies of a tier that a verification names.
pub const TIER_DAMAGED_MAX: usize = 100;
/// Objects that get another class at one time: each is a body on its way in.
pub const MOVES_AT_ONCE: usize = 16;
/// Keys that are listed at a time of objects that are to get another class.
pub const MOVE_KEYS_LISTED: usize = 100;
/// Objects that stayed in their class which a report names.
pub const LEFT_OBJECTS_MAX: usize = 100;
/// Longest name of a tier.
pub const TIER_NAME_BYTES_MAX: usize = 32;
/// Longest object key, in bytes of UTF-8 (S3).
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest key of an object in a bucket that archives share, whose name at a site has four letters
/// for three bytes.
pub const SHARED_KEY_BYTES_MAX: usize = 390;
/// Times that a restore which meets damage is begun, each with the tries of its pieces, before it
/// is given up: some seventy seconds.
pub const RESTORE_DAMAGED_ROUNDS: u32 = 1;
/// The same of one whose bytes are out of reach: with the rests between them two and a half hours.
pub const RESTORE_ROUNDS_MAX: u32 = 8;
/// Times that a copy is made whose bytes are not those ingested.
pub const RESTORE_COPIES_MAX: u32 = 4;
/// Bytes of what is noted of an object of a shared bucket: sealed and in letters it is an attribute
/// that lies in the object's row.
pub const SHARED_NOTE_BYTES_MAX: usize = 5 << 10;
/// Runs of parts of one length that are noted of an object of a shared bucket: at most 480 bytes.
pub const SHARED_PART_RUNS_MAX: usize = 32;
/// Chunks of a body that wait for a shared bucket's store, of one writer.
pub const SHARED_AHEAD: usize = 4;
/// Times that the end of an object in a shared bucket is looked for while it is put anew.
pub const SHARED_TRIES_MAX: u32 = 8;
/// Names that a listing of a shared bucket passes over behind a common prefix before it looks
/// behind all that begin so.
pub const SHARED_SKIP: usize = 200;
/// Most user metadata of one object, names and values together (S3).
pub const USER_METADATA_BYTES_MAX: usize = 2048;
/// Bytes of a version's id; its text has twice as many characters, where S3 allows 1,024.
pub const VERSION_ID_BYTES: usize = 16;
/// Most tags of an object (S3).
pub const TAGS_MAX: usize = 10;
/// Longest name of a tag, in characters (S3).
pub const TAG_NAME_CHARS_MAX: usize = 128;
/// Longest value of a tag, in characters (S3).
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// Most bytes that all tags of an object take: characters of UTF-8 have four at most, lengths two.
pub const TAGS_BYTES_MAX: usize =
    1 + TAGS_MAX * (4 * (TAG_NAME_CHARS_MAX + TAG_VALUE_CHARS_MAX) + 4);
/// Largest body put in one call or as one part (S3): 5 GiB.
pub const BODY_BYTES_MAX: u64 = ByteCount::gib(5).get();
/// Smallest part but the last of a multipart upload (S3): 5 MiB.
pub const PART_BYTES_MIN: u64 = ByteCount::mib(5).get();
/// Largest part number (S3).
pub const PART_NUMBER_MAX: u32 = 10_000;
/// Times that completing an upload is tried while its parts change.
pub const COMPLETE_TRIES_MAX: u32 = 8;
/// Most keys one listing page returns (S3).
pub const LIST_KEYS_MAX: usize = 1000;
/// Most keys one `DeleteObjects` call names (S3).
pub const DELETE_KEYS_MAX: usize = 1000;
/// Longest restore, in days: a century; longer is a typing error.
pub const RESTORE_DAYS_MAX: u32 = 36_500;

/// Plaintext bytes of one encryption frame.
pub const FRAME_BYTES: usize = 64 << 10;
/// Bytes of one frame's authentication tag.
pub const TAG_BYTES: usize = 16;
/// Plaintext gathered before it is hashed, encrypted and written in one go.
pub const CHUNK_BYTES: usize = 512 << 10;
/// Such pieces of one body that wait to be digested, or are: while one is, the next is there.
pub const DIGESTS_AHEAD: usize = 2;
/// A body no larger than this is written inline, without a trip to the blocking pool.
pub const INLINE_BYTES_MAX: usize = FRAME_BYTES;
/// Most copies of the key table: each is written and synced before any key is used.
pub const KEY_TABLES_MAX: usize = 4;
/// Size at which a log segment is closed and the next begun.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// Longest sealed entry in a log: names and metadata have far shorter limits of their own.
pub const ENTRY_RECORD_BYTES_MAX: usize = 256 << 10;
/// Bytes of a segment that a scan reads at a time.
pub const SCAN_BUFFER_BYTES: usize = 512 << 10;
/// Smallest free stretch of a segment whose blocks are given back before the segment goes.
pub const PUNCH_BYTES_MIN: u64 = 1 << 20;
/// Rows changed by one catalog transaction of a batch step (release, expiry, recovery).
pub const ROWS_PER_TRANSACTION_MAX: usize = 1000;
/// Bytes of rows that a recovery writes to the new catalog in one batch.
pub const RECOVERY_BATCH_BYTES: usize = 8 << 20;
/// Threads that a recovery scans segments with.
pub const SCAN_THREADS_MAX: usize = 8;
/// Bytes at the end of a log that a start after a crash looks through for what was durable in the
/// catalog.
pub const MARK_LOOK_BYTES: u64 = 16 << 20;
/// How often jobs look whether there is something to do, if nothing rings; and how long most of
/// them rest after a failure, the first time.
pub const JOB_TICK: Duration = Duration::from_secs(1);
/// How long most of them rest at most.
pub const JOB_REST_MAX: Duration = Duration::from_secs(60);
/// Orders to one job that are open at one time, begun or not; one more is answered `SlowDown`.
pub const ORDERS_MAX: usize = 16;
/// How long sealing rests after it failed; each set that cannot go on waits for itself as well.
pub const SEAL_REST: Duration = Duration::from_secs(10);
/// Restore requests waiting for glass at one time; one more is answered `SlowDown`.
pub const RESTORE_QUEUE_MAX: usize = 1_000_000;
/// Restores of a retrieval whose pieces are known; more wait by their times alone.
pub const RESTORES_HELD_MAX: usize = fulgurite_restore::limits::HELD_MAX;
/// Restored copies that are synced together at most, and committed behind it.
pub const RESTORE_COMMITS_MAX: usize = 4096;
/// Threads that put shards together out of a platter-set, or copy what is still staged.
pub const RESTORE_WORKERS: usize = 4;
/// Room for restored copies is told in steps of this: a little less or more changes nothing.
pub const RESTORE_ROOM_STEP: u64 = 64 << 20;
/// More room than this is not told: nothing needs it.
pub const RESTORE_ROOM_MAX: u64 = 1 << 50;
/// Size at which the log of the controller of restores ends.
pub const RESTORE_LOG_BYTES_MAX: u64 = 64 << 20;
/// Frames of a restored copy that are authenticated before its time is extended: 16 MiB.
pub const LOOK_FRAMES_MAX: u64 = 256;
/// Free bytes that no body may take, when the configuration does not say: at most this.
pub const FREE_MIN_BYTES_MAX: u64 = ByteCount::gib(1).get();
/// Bytes of the reserve, when the configuration does not say: at most this. The catalog keeps 16
/// MiB of rows in memory; to open it with them takes their tables, and what compaction writes
/// beside those it replaces.
pub const RESERVE_BYTES_MAX: u64 = ByteCount::mib(64).get();
/// Floor and reserve of a small disk are one part of it in so many.
pub const SPACE_SHARE: u64 = 16;
/// Requests waiting for the thread that syncs; one more blocks its caller for a moment.
pub const SYNC_QUEUE_MAX: usize = 4096;
/// Bytes of one body after which a sync begins that nobody waits for: what is left at its end takes
/// a disk of 1 GB/s 4 ms.
pub const SYNC_AHEAD_BYTES: u64 = 4 << 20;
/// Most of each kind that a status or a verification names: failed restores, damaged copies and
/// bodies, bodies in doubt.
pub const NAMED_MAX: usize = 100;
/// Restores that were given up and that somebody who watches was not told of yet.
pub(crate) const GIVEN_UP_WAITING_MAX: usize = 256;
/// Most bytes that S3 lets names, user metadata and tags have in an entry.
const ENTRY_NAMED_BYTES_MAX: usize = BUCKET_NAME_BYTES_MAX
    + KEY_BYTES_MAX
    + VERSION_ID_BYTES
    + USER_METADATA_BYTES_MAX
    + TAGS_BYTES_MAX;

/// What the list of a platter takes of one.
const ENTRY_LISTED_BYTES_MAX: usize = fulgurite_platters::SEALED_ENTRY_BYTES_MAX as usize;

const _: () = assert!(ENTRY_NAMED_BYTES_MAX <= ENTRY_LISTED_BYTES_MAX / 2, "with headers it fits");
const _: () = assert!(ENTRY_LISTED_BYTES_MAX <= ENTRY_RECORD_BYTES_MAX, "logs take no less");
const _: () = assert!(CHUNK_BYTES.is_multiple_of(FRAME_BYTES), "a chunk is whole frames");
const _: () = assert!(INLINE_BYTES_MAX <= CHUNK_BYTES, "an inline body fits one chunk");
const _: () = assert!(RESTORE_COMMITS_MAX > 0 && RESTORE_WORKERS > 0, "restores end");
const _: () = assert!(TIER_PART_BYTES >= 5 << 20, "S3 takes no smaller part");
const _: () = assert!(SEGMENT_BYTES > CHUNK_BYTES as u64, "a segment holds a chunk");
