//! All limits of the client, and the relations between them.

use std::time::Duration;

use fulgurite_units::ByteCount;

/// Attempts of one request, the first included, before its error is shown.
pub const ATTEMPTS_MAX: u32 = 6;
/// Backoff before the second attempt; doubled for each further one.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Maximum backoff between two attempts.
pub const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of a server in the middle of an S3 answer.
pub const READ_TIMEOUT: Duration = Duration::from_secs(300);
/// Largest XML or JSON document that is read from a server.
pub const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// A file larger than this is put in parts.
pub const MULTIPART_THRESHOLD_BYTES: u64 = ByteCount::mib(64).get();
/// Smallest part: large enough to keep a connection busy, small enough to keep four in memory.
pub const PART_BYTES_MIN: u64 = ByteCount::mib(16).get();
/// Most parts of one object (S3).
pub const PARTS_MAX: u64 = 10_000;
/// Largest part of an input of unknown length: 10,000 parts that grow to it hold 1.6 TiB.
pub const STREAMED_PART_BYTES_MAX: u64 = ByteCount::mib(256).get();
/// An object larger than this is copied in parts (S3).
pub const COPY_BYTES_MAX: u64 = ByteCount::gib(5).get();
/// Length of such parts.
pub const COPY_PART_BYTES: u64 = ByteCount::gib(1).get();
/// Parts of one file in flight at one time.
pub const PARTS_IN_FLIGHT_MAX: usize = 4;
/// Maximum memory of all bodies in flight to a server.
pub const BODY_MEMORY_MIB: u32 = 256;
/// Maximum number of keys in one `DeleteObjects` call (S3).
pub const DELETE_KEYS_MAX: usize = 1000;
/// Longest key, in bytes of UTF-8 (S3).
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes gathered before they are written to a file.
pub const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// Prefix of the name of an incomplete file.
pub const PART_PREFIX: &str = ".fulgurite-";
/// Suffix of that name.
pub const PART_SUFFIX: &str = ".part";

const _: () = assert!(
    PART_BYTES_MIN <= MULTIPART_THRESHOLD_BYTES,
    "a multipart upload has at least one full part"
);
const _: () = assert!(MULTIPART_THRESHOLD_BYTES >> 20 <= BODY_MEMORY_MIB as u64, "a body fits");
const _: () = assert!(STREAMED_PART_BYTES_MAX >> 20 <= BODY_MEMORY_MIB as u64, "a part fits");
const _: () = assert!(COPY_PART_BYTES <= COPY_BYTES_MAX, "a part is no larger than an object");
