//! Every limit of the tome tier by name.

use fulgurite_units::{ByteCount, Duration};

/// Objects in one page of a listing.
pub const INDEX_PAGE_MAX: usize = 1000;
/// Sequence numbers per millisecond; with more puts they run ahead of the clock. With 1024 a
/// sequence number of this century is exact in a JSON reader that has only doubles.
pub(crate) const SEQUENCES_PER_MS: u64 = 1024;
/// Longest key in bytes, as in S3.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes of an object's header: key, attributes, parts.
pub const HEADER_BYTES_MAX: ByteCount = ByteCount::kib(512);
/// Pieces of one object that are put concurrently.
pub const CONCURRENT_PIECES: usize = 2;
/// Heads of objects that are read concurrently while the index is rebuilt: as many as a tome
/// accepts without refusing any, so that each spin-up serves many.
pub(crate) const CONCURRENT_HEADS: usize = 192;
/// Objects with unwanted pieces that are garbage-collected after one put or removal.
pub const GC_BATCH_MAX: usize = 64;
/// How long a put waits for protection by every parity; then it fails and may be retried.
pub const PROTECTION_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long the removal of a piece waits for a busy tome: its inbox is full for as long as it
/// writes what is in there.
pub(crate) const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);
/// Backoff after a failed removal, since its tome did not answer.
pub const GC_BACKOFF: Duration = Duration::from_secs(600);
/// Poll interval of a set for each subscriber.
pub(crate) const WATCH_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Problems of groups that are listed individually.
pub const PROBLEMS_MAX: usize = 256;
