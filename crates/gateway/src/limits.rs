//! Every bound of the gateway by name.

use std::time::Duration;

/// Largest XML body of a request. A `CompleteMultipartUpload` of 10,000 parts with checksums has
/// about 3 MB, a `DeleteObjects` of 1,000 long keys about 6 MB when every byte is escaped.
pub(crate) const XML_BYTES_MAX: usize = 8 << 20;
/// Largest chunk of a body whose chunks are signed one by one: a chunk must be held in memory until
/// its signature is checked. Clients use 64 KiB to 1 MiB.
pub(crate) const SIGNED_CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Longest line that introduces a chunk.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 1024;
/// Bytes read from a connection in one go, and so the largest frame of a body.
pub(crate) const READ_BUFFER_BYTES: usize = 512 << 10;
/// Longest life of a presigned URL (S3): seven days.
pub(crate) const PRESIGNED_SECONDS_MAX: u64 = 604_800;
/// Most a request's clock may differ from ours (S3): 15 minutes.
pub(crate) const CLOCK_SKEW_SECONDS_MAX: u32 = 900;
/// Body bytes still taken from a client after its request was refused, so that it reads the answer
/// instead of a reset connection.
pub(crate) const DRAIN_BYTES_MAX: u64 = 16 << 20;
/// Most keys, prefixes, parts or uploads one page of a listing returns (S3).
pub(crate) const PAGE_ENTRIES_MAX: usize = 1000;
/// Most keys one `DeleteObjects` names (S3).
pub(crate) const DELETE_KEYS_MAX: usize = 1000;
/// Deletes of one `DeleteObjects` that run at a time; they share the archive's group commits.
pub(crate) const DELETES_AT_ONCE: usize = 64;
/// Largest part number (S3).
pub(crate) const PART_NUMBER_MAX: i32 = 10_000;
/// How often a long admin call says how far it is.
pub(crate) const ADMIN_PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// What an operator may set; the defaults suit two cores and half a gigabyte of memory.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at a time; more wait in the listener's queue.
    pub connections: usize,
    /// S3 requests in progress at a time; one more is answered 503 `SlowDown`.
    pub requests: usize,
    /// Admin calls in progress at a time; one more is answered 503.
    pub admin_requests: usize,
    /// Time a client has for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Time a client has for the head of a request; also how long an idle connection is kept.
    pub head_timeout: Duration,
    /// Longest pause within a body that a client sends.
    pub body_timeout: Duration,
    /// Longest pause of a client that reads an answer.
    pub write_timeout: Duration,
    /// Time running requests have to finish after a stop was asked for.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 2048,
            // A large PUT holds about 2 MiB, so all of them together stay within 256 MiB.
            requests: 128,
            admin_requests: 16,
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(30),
        }
    }
}

const _: () = assert!(DELETES_AT_ONCE <= DELETE_KEYS_MAX, "no more at once than there can be");
