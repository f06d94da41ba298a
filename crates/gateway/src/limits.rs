//! Every bound of the gateway by name.

use std::time::Duration;

/// Largest XML body of a request. A `CompleteMultipartUpload` of 10,000 parts with checksums has
/// about 3 MB, a `DeleteObjects` of 1,000 long keys about 6 MB when every byte is escaped.
pub(crate) const XML_BYTES_MAX: usize = 8 << 20;
/// Longest line that introduces a chunk.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 1024;
/// Longest trailer after a chunked body: a checksum and a signature have 200 bytes.
pub(crate) const TRAILER_BYTES_MAX: usize = 16 << 10;
/// Bytes read from a connection in one go, and so the largest frame of a body.
pub(crate) const READ_BUFFER_BYTES: usize = 512 << 10;
/// Longest life of a presigned URL (S3): seven days.
pub(crate) const PRESIGNED_SECONDS_MAX: i64 = 604_800;
/// Most a request's clock may differ from ours (S3): 15 minutes.
pub(crate) const CLOCK_SKEW_SECONDS_MAX: u32 = 900;
/// Body bytes still taken from a client after its request was refused, so that it reads the answer
/// instead of a reset connection.
pub(crate) const DRAIN_BYTES_MAX: u64 = 16 << 20;
/// Most keys, prefixes, parts or uploads one page of a listing returns (S3).
pub(crate) const PAGE_ENTRIES_MAX: usize = 1000;
/// Most buckets of one page (S3).
pub(crate) const BUCKETS_MAX: usize = 10_000;
/// Most keys one `DeleteObjects` names (S3).
pub(crate) const DELETE_KEYS_MAX: usize = 1000;
/// Deletes of one `DeleteObjects` that run at a time; they share the archive's group commits.
pub(crate) const DELETES_AT_ONCE: usize = 64;
/// Largest part number (S3).
pub(crate) const PART_NUMBER_MAX: i32 = 10_000;
/// Most connections at a time, however many descriptors there are.
const CONNECTIONS_MAX: usize = 2048;
/// Descriptors that connections leave to the archive: its logs, catalog, platters and library, and
/// the files that a compaction or a restore opens beside them. An idle archive holds about 30.
const FILES_RESERVE: u64 = 512;
/// Where so many descriptors are not to be had, connections get the fourth part of them.
const CONNECTIONS_SHARE: u64 = 4;
/// An idle connection is not ended for another before it has been idle so long: a client that asks
/// one thing after the other keeps its own.
pub(crate) const IDLE_PROTECTED: Duration = Duration::from_secs(1);
/// How long a client that watches the library hears nothing; then it is told nothing, by which it
/// is found out whether it is still there.
pub(crate) const EVENTS_SILENCE_MAX: Duration = Duration::from_secs(15);
/// Pages for machines wait so long for a tier: a tome answers between two things that it does, and
/// one in another process may not answer at all.
pub(crate) const TIERS_ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Events of the rack that wait for one who watches it.
pub(crate) const RACK_EVENTS_WAITING: usize = 1024;
/// How often a long admin call says how far it is.
pub(crate) const ADMIN_PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// Most that the time of an operator's call may differ from ours.
pub(crate) const ADMIN_WINDOW_MS: u64 = 5 * 60 * 1000;
/// Calls of the operator whose nonces are remembered at a time: 100 a second for ten minutes, for
/// which a nonce must be known at most. One call more is refused until others are too old.
pub(crate) const ADMIN_NONCES_MAX: usize = 60_000;
/// Days for which a certificate of the server's own is valid.
pub(crate) const CERTIFICATE_DAYS: i64 = 365;
/// It is renewed so many days before it expires.
pub(crate) const CERTIFICATE_RENEWED_DAYS: i64 = 30;
/// How often it is looked whether that is now.
pub(crate) const CERTIFICATE_CHECK_PERIOD: Duration = Duration::from_secs(24 * 3600);
/// Largest body of an operator's call.
pub(crate) const ADMIN_BODY_BYTES_MAX: usize = 64 << 10;

/// What an operator may set; the defaults suit two cores and half a gigabyte of memory.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at a time; more wait in the listener's queue, and the one that has been
    /// idle for longest is ended for them.
    pub connections: usize,
    /// S3 requests in progress at a time; one more is answered 503 `SlowDown`.
    pub requests: usize,
    /// Admin calls in progress at a time; one more is answered 503.
    pub admin_requests: usize,
    /// Clients that watch the library at a time; one more is answered 503. For each, so many steps
    /// wait as the archive lets.
    pub watchers: usize,
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
            connections: CONNECTIONS_MAX,
            // A large PUT holds about 2 MiB, so all of them together stay within 256 MiB.
            requests: 128,
            admin_requests: 16,
            watchers: 8,
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The defaults, with as many connections as a process with `descriptors` can hold beside the
    /// files of an archive.
    #[must_use]
    pub fn for_descriptors(descriptors: u64) -> Self {
        let room = descriptors.saturating_sub(FILES_RESERVE).max(descriptors / CONNECTIONS_SHARE);
        let connections =
            usize::try_from(room).map_or(CONNECTIONS_MAX, |room| room.clamp(1, CONNECTIONS_MAX));
        Self { connections, ..Self::default() }
    }
}

const _: () = assert!(CERTIFICATE_RENEWED_DAYS < CERTIFICATE_DAYS, "a new one is not due");
const _: () = assert!(DELETES_AT_ONCE <= DELETE_KEYS_MAX, "no more at once than there can be");

#[cfg(test)]
mod tests;
