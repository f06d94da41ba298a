//! Every bound of stores at sites by name, and the relations between them.

use std::time::Duration;

/// Bytes of a key, its slashes included. S3 takes 1024 with what stands in front of it.
pub const KEY_BYTES_MAX: usize = 700;
/// Bytes of what stands in front of all keys of a table in a bucket or in etcd.
pub const PREFIX_BYTES_MAX: usize = 256;
/// Bytes between two slashes of a key. A file's name has 255 at most, and one more letter is put
/// behind it.
pub const SEGMENT_BYTES_MAX: usize = 200;
/// Bytes of a row in each of the tables here. etcd takes requests of 1.5 MiB.
pub const ROW_BYTES_MAX: usize = 1 << 20;
/// Bytes of a blob that is written in one call.
pub const BLOB_BYTES_MAX: usize = 256 << 20;
/// Bytes of an answer of etcd that is read: a page of rows, four bytes for three.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Rows of one page of a scan.
pub const PAGE_ROWS: usize = 32;
/// The same of a directory, whose folders are read anew for each page.
pub const PAGE_FILES: usize = 1024;
/// Bytes of rows of such a page, but for the last.
pub const PAGE_BYTES: usize = 8 << 20;
/// Rows of a bucket that a scan fetches at a time.
pub const ROWS_AT_ONCE: usize = 8;
/// Bytes of an answer that is an error, that are read.
pub const REASON_BYTES_MAX: usize = 64 << 10;
/// Bytes of what a store says of an error, that go into ours.
pub const CAUSE_BYTES_MAX: usize = 512;

/// Connections to a `PostgreSQL` that a table has at most, unless its address says another number.
pub const CONNECTIONS: usize = 8;
/// How many its address may ask for.
pub const CONNECTIONS_MAX: usize = 256;
/// A connection is waited for so long.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// An answer of a table is waited for so long; then nobody knows what became of the question.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// One call of a store of blobs, its bytes included, may take so long.
pub const BLOB_WITHIN: Duration = Duration::from_secs(120);

/// Reads and writes of one transaction at most.
pub const TRIES_MAX: u32 = 40;
/// The longest rest after the first try that came to nothing; it doubles with each.
pub const REST_MIN: Duration = Duration::from_millis(2);
/// The longest rest.
pub const REST_MAX: Duration = Duration::from_millis(500);

/// Lock files of a directory: rows that share one wait for each other.
pub const STRIPES: usize = 64;
/// The first rest of who waits for a lock file; it doubles with each.
pub const LOCK_REST_MIN: Duration = Duration::from_micros(100);
/// The longest of these rests.
pub const LOCK_REST_MAX: Duration = Duration::from_millis(8);
/// Tries for a lock file before it is given up: about ten seconds.
pub const LOCK_TRIES_MAX: u32 = 1250;

/// Bytes of a fragment's header at most.
pub const HEADER_BYTES_MAX: usize = 4096;
/// Bytes of the key of the object that a header has.
pub const OBJECT_KEY_BYTES_MAX: usize = 2048;
/// Bytes of a chunk that is coded at once.
pub const CHUNK_BYTES_MAX: u64 = 1 << 30;

const _: () = assert!(KEY_BYTES_MAX + PREFIX_BYTES_MAX + 1 < 1024, "a row is an object of S3");
const _: () = assert!(SEGMENT_BYTES_MAX < 255, "a segment is a file's name with a letter more");
const _: () = assert!(ROW_BYTES_MAX * PAGE_ROWS / 3 * 4 < ANSWER_BYTES_MAX, "a page is answered");
const _: () = assert!(OBJECT_KEY_BYTES_MAX <= HEADER_BYTES_MAX / 2, "a key fits a header");
