//! Every bound of the command line by name, and the relations between them.

use std::time::Duration;

use fulgurite_units::ByteCount;

/// Attempts of one request, the first included, before its error is shown.
pub(crate) const ATTEMPTS_MAX: u32 = 6;
/// Pause before the second attempt; it doubles with each one that follows.
pub(crate) const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Longest pause between two attempts.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of a server in the middle of an S3 answer.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(300);
/// Largest XML or JSON document that is read from a server.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 32 << 20;
/// Largest line of a progress stream that is read from a server.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;

/// A file larger than this is put in parts.
pub(crate) const MULTIPART_THRESHOLD_BYTES: u64 = ByteCount::mib(64).get();
/// Smallest part: large enough to keep a connection busy, small enough to keep four in memory.
pub(crate) const PART_BYTES_MIN: u64 = ByteCount::mib(16).get();
/// Most parts of one object (S3).
pub(crate) const PARTS_MAX: u64 = 10_000;
/// Largest part of an input of unknown length: 10,000 parts that grow to it hold 1.6 TiB.
pub(crate) const STREAMED_PART_BYTES_MAX: u64 = ByteCount::mib(256).get();
/// An object larger than this is copied in parts (S3).
pub(crate) const COPY_BYTES_MAX: u64 = ByteCount::gib(5).get();
/// Length of such parts.
pub(crate) const COPY_PART_BYTES: u64 = ByteCount::gib(1).get();
/// Parts of one file on their way at one time.
pub(crate) const PARTS_IN_FLIGHT_MAX: usize = 4;
/// Bodies on their way to a server hold at most this much memory together.
pub(crate) const BODY_MEMORY_MIB: u32 = 256;
/// Objects transferred at one time, unless `--transfers` says otherwise.
pub(crate) const TRANSFERS_DEFAULT: usize = 16;
/// Most objects transferred at one time.
pub(crate) const TRANSFERS_MAX: usize = 256;
/// Keys named by one `DeleteObjects` call (S3).
pub(crate) const DELETE_KEYS_MAX: usize = 1000;
/// Longest key, in bytes of UTF-8 (S3).
pub(crate) const KEY_BYTES_MAX: usize = 1024;
/// Bytes gathered before they are written to a file.
pub(crate) const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// How the name of a file begins that is not whole yet.
pub(crate) const PART_PREFIX: &str = ".fulgurite-";
/// How it ends.
pub(crate) const PART_SUFFIX: &str = ".part";
/// First pause between two looks at a running restore.
pub(crate) const POLL_FIRST: Duration = Duration::from_millis(200);
/// Longest pause between two looks at a running restore.
pub(crate) const POLL_MAX: Duration = Duration::from_secs(15);
/// Fewest descriptors with which an archive is served: some 40 for its files, the rest for clients.
pub(crate) const DESCRIPTORS_MIN: u64 = 64;
/// Failed objects that are named one by one on the terminal; the rest is counted.
pub(crate) const FAILURES_SHOWN_MAX: usize = 10;

const _: () = assert!(PART_BYTES_MIN <= MULTIPART_THRESHOLD_BYTES, "a multipart file has parts");
const _: () = assert!(MULTIPART_THRESHOLD_BYTES >> 20 <= BODY_MEMORY_MIB as u64, "a body fits");
const _: () = assert!(STREAMED_PART_BYTES_MAX >> 20 <= BODY_MEMORY_MIB as u64, "a part fits");
const _: () = assert!(COPY_PART_BYTES <= COPY_BYTES_MAX, "a part is no larger than an object");
const _: () = assert!(TRANSFERS_DEFAULT <= TRANSFERS_MAX, "the default is allowed");

/// Restores of each retrieval that a rack is asked for at a time: more than the usual number, since
/// it orders what waits by its groups.
pub(crate) const RACK_RESTORES_AT_ONCE: usize = 64;
/// Bodies that are brought to tomes at a time: each waits until its parities have turned, which is
/// minutes, and what it takes meanwhile is a few hundred bytes.
pub(crate) const TOMES_BODIES_AT_ONCE: usize = 64;
/// How long a store of a site may take to answer `geo status`.
pub(crate) const SITE_ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Objects that `geo verify` reads at a time.
pub(crate) const GEO_VERIFIED_AT_ONCE: usize = 4;
/// Damaged or unreadable objects that it names.
pub(crate) const GEO_NAMED_MAX: usize = 100;
/// `tomes init` waits so long for tomes in other processes to answer.
pub(crate) const TOMES_ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Memory of bodies on their way to buckets that archives share, and as much on their way out, in
/// MiB; more wait.
pub(crate) const SHARED_ROOM_MIB: usize = 2048;
