//! Every limit of the gateway, by name.

use std::time::Duration;

/// Largest XML body of a request. A `CompleteMultipartUpload` of 10,000 parts with checksums has
/// about 3 MB, a `DeleteObjects` of 1,000 long keys about 6 MB when every byte is escaped.
pub(crate) const XML_BYTES_MAX: usize = 8 << 20;
/// Longest chunk header line.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 1024;
/// Longest trailer after a chunked body: a checksum and a signature have 200 bytes.
pub(crate) const TRAILER_BYTES_MAX: usize = 16 << 10;
/// Bytes per read from a connection, and so the largest frame of a body.
pub(crate) const READ_BUFFER_BYTES: usize = 512 << 10;
/// Longest validity of a presigned URL (S3): seven days.
pub(crate) const PRESIGNED_SECONDS_MAX: i64 = 604_800;
/// Largest clock skew of a request (S3): 15 minutes.
pub(crate) const CLOCK_SKEW_SECONDS_MAX: u32 = 900;
/// Body bytes that are still read from a client after its request was refused, so that it reads the
/// response instead of a reset connection.
pub(crate) const DRAIN_BYTES_MAX: u64 = 16 << 20;
/// Most keys, prefixes, parts or uploads on one page of a listing (S3).
pub(crate) const PAGE_ENTRIES_MAX: usize = 1000;
/// Most buckets on one page (S3).
pub(crate) const BUCKETS_MAX: usize = 10_000;
/// Most keys in one `DeleteObjects` (S3).
pub(crate) const DELETE_KEYS_MAX: usize = 1000;
/// Concurrent deletes of one `DeleteObjects`; they share the archive's group commits.
pub(crate) const DELETE_CONCURRENCY: usize = 64;
/// Largest part number (S3).
pub(crate) const PART_NUMBER_MAX: i32 = 10_000;
/// Most concurrent connections, however many descriptors there are.
const CONNECTIONS_MAX: usize = 2048;
/// Most connections that wait to be accepted.
pub(crate) const LISTEN_BACKLOG: u32 = 1024;
/// Descriptors that connections leave to the archive: its logs, catalog, platters and library, and
/// the files that a compaction or a restore opens besides them. An idle archive holds about 30.
const FILES_RESERVE: u64 = 512;
/// Where the reserve would leave less, connections get a quarter of the descriptors.
const CONNECTIONS_SHARE: u64 = 4;
/// An idle connection is not closed for another before it has been idle this long, so a client that
/// sends one request after another keeps its connection.
pub(crate) const IDLE_GRACE: Duration = Duration::from_secs(1);
/// Longest silence of an event stream. After that a keep-alive is sent, which detects a client that
/// is gone.
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How long health and metrics pages wait for a tier: a tome answers between two operations, and
/// one in another process may not answer at all.
pub(crate) const TIER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a long admin call reports its progress.
pub(crate) const ADMIN_PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// Largest clock skew of an operator's call.
pub(crate) const ADMIN_CLOCK_SKEW_MS: u64 = 5 * 60 * 1000;
/// Most nonces of operator's calls that are remembered at a time: 100 a second for ten minutes, the
/// longest that a nonce must be remembered. Further calls are refused until nonces expire.
pub(crate) const ADMIN_NONCES_MAX: usize = 60_000;
/// Validity in days of a self-signed certificate.
pub(crate) const CERTIFICATE_DAYS: i64 = 365;
/// It is renewed this many days before it expires.
pub(crate) const CERTIFICATE_RENEWAL_DAYS: i64 = 30;
/// How often the certificate's expiry is checked.
pub(crate) const CERTIFICATE_CHECK_PERIOD: Duration = Duration::from_secs(24 * 3600);
/// Largest body of an operator's call.
pub(crate) const ADMIN_BODY_BYTES_MAX: usize = 64 << 10;

/// Limits that an operator may set; the defaults suit two cores and half a gigabyte of memory.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent connections; more wait in the listen queue, and the one that has been idle for
    /// longest is closed for them.
    pub connections: usize,
    /// Concurrent S3 requests; one more gets 503 `SlowDown`.
    pub requests: usize,
    /// Concurrent admin calls; one more gets 503.
    pub admin_requests: usize,
    /// Concurrent subscribers to events; one more gets 503. The archive limits how many steps are
    /// buffered for each.
    pub subscribers: usize,
    /// Time a client has for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Time a client has for the head of a request; also how long an idle connection is kept open.
    pub head_timeout: Duration,
    /// Longest pause within a request body.
    pub body_timeout: Duration,
    /// Longest pause of a client that reads a response.
    pub write_timeout: Duration,
    /// Time running requests have to finish after a stop was requested.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            // A large PUT holds about 2 MiB, so all of them together stay within 256 MiB.
            requests: 128,
            admin_requests: 16,
            subscribers: 8,
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns the defaults, with as many connections as a process with `descriptors` can hold
    /// besides the files of an archive.
    #[must_use]
    pub fn for_descriptors(descriptors: u64) -> Self {
        let room = descriptors.saturating_sub(FILES_RESERVE).max(descriptors / CONNECTIONS_SHARE);
        let connections =
            usize::try_from(room).map_or(CONNECTIONS_MAX, |room| room.clamp(1, CONNECTIONS_MAX));
        Self { connections, ..Self::default() }
    }
}

const _: () = assert!(
    CERTIFICATE_RENEWAL_DAYS < CERTIFICATE_DAYS,
    "a new certificate is not due for renewal"
);
const _: () = assert!(DELETE_CONCURRENCY <= DELETE_KEYS_MAX, "no more deletes than keys");

#[cfg(test)]
mod tests;
