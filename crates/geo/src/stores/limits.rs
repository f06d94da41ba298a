//! Limits of stores at sites, and the relations between them.

use std::time::Duration;

/// Maximum bytes of a key, including slashes. S3 allows 1024 with the prefix.
pub const KEY_BYTES_MAX: usize = 700;
/// Maximum bytes of the key prefix of a table in a bucket or in etcd.
pub const PREFIX_BYTES_MAX: usize = 256;
/// Maximum bytes between two slashes of a key. A file name has at most 255, and a suffix of one
/// character is added.
pub const SEGMENT_BYTES_MAX: usize = 200;
/// Maximum bytes of a row in every table here. etcd accepts requests of 1.5 MiB.
pub const ROW_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of a blob, which is written in one call.
pub const BLOB_BYTES_MAX: usize = 256 << 20;
/// Maximum bytes of an answer of etcd: a page of rows, in Base64.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Rows of one page of a scan.
pub const PAGE_ROWS: usize = 32;
/// The same for a directory, whose folders are read again for each page.
pub const PAGE_FILES: usize = 1024;
/// A page of a directory ends once its rows have this many bytes.
pub const PAGE_BYTES: usize = 8 << 20;
/// Rows of a bucket that a scan fetches concurrently.
pub const ROWS_AT_ONCE: usize = 8;
/// Maximum bytes that are read of an error response.
pub const REASON_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of a store's error text in our errors.
pub const CAUSE_BYTES_MAX: usize = 512;

/// Default for the maximum number of connections of a table to a `PostgreSQL`.
pub const CONNECTIONS: usize = 8;
/// Maximum that its address may ask for.
pub const CONNECTIONS_MAX: usize = 256;
/// Timeout of a connection attempt.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a table call; after that its outcome is unknown.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of one blob call, including its bytes.
pub const BLOB_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of reads and writes per transaction.
pub const TRIES_MAX: u32 = 40;
/// Base of the maximum backoff, which doubles with each call.
pub const BACKOFF_MIN: Duration = Duration::from_millis(2);
/// The longest backoff.
pub const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// Lock files of a directory: rows that share one wait for each other.
pub const STRIPES: usize = 64;
/// First backoff when polling a lock file; it doubles with each try.
pub const LOCK_BACKOFF_MIN: Duration = Duration::from_micros(100);
/// The longest of these backoffs.
pub const LOCK_BACKOFF_MAX: Duration = Duration::from_millis(8);
/// Maximum tries for a lock file: about ten seconds.
pub const LOCK_TRIES_MAX: u32 = 1250;

/// Maximum bytes of a fragment's header.
pub const HEADER_BYTES_MAX: usize = 4096;
/// Maximum bytes of the object key in a header.
pub const OBJECT_KEY_BYTES_MAX: usize = 2048;
/// Maximum bytes of a chunk, which is coded at once.
pub const CHUNK_BYTES_MAX: u64 = 1 << 30;

const _: () = assert!(KEY_BYTES_MAX + PREFIX_BYTES_MAX + 1 < 1024, "the key of a row fits S3");
const _: () = assert!(SEGMENT_BYTES_MAX < 255, "a segment and a suffix are a file name");
const _: () =
    assert!(ROW_BYTES_MAX * PAGE_ROWS / 3 * 4 < ANSWER_BYTES_MAX, "a page fits an answer");
const _: () = assert!(OBJECT_KEY_BYTES_MAX <= HEADER_BYTES_MAX / 2, "a key fits a header");
