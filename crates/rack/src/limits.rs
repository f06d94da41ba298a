//! Named limits of the rack's data path.

use fulgurite_units::Duration;

/// Maximum number of stacks of a blob: shards of a small code.
pub const CODING_STACKS_MAX: usize = fulgurite_codes::small::SHARDS_MAX;

/// Maximum bytes of an entry: a name and attributes, as S3 bounds them, with some slack.
pub const ENTRY_BYTES_MAX: usize = 64 << 10;

/// Sequence numbers per millisecond; if there are more puts, sequences run ahead of the clock. With
/// 1024, a sequence of this century is exact in a JSON reader that has only doubles.
pub(crate) const SEQUENCES_PER_MS: u64 = 1024;

/// Rows of the index that are read per page.
pub const INDEX_PAGE_MAX: usize = 1000;

/// How often lost stacks are rebuilt on other disks while a blob is written.
pub(crate) const WRITE_ATTEMPTS_MAX: u32 = 3;

/// Objects up to this size are stored inline in the index: names and claims of the layer that uses
/// the rack as a tier, which must be readable without spinning up a disk.
pub const INLINE_BYTES_MAX: u64 = 4096;

/// Size of the staged files when an object is copied.
pub(crate) const STAGED_PIECE_BYTES: usize = 16 << 20;

/// Approximate number of unwanted rows that one garbage collection handles: other operations of the
/// group wait no longer than that.
pub(crate) const GC_ROWS_MAX: usize = 1000;

/// Stripe buffers that a read keeps for reuse: those queued for a client, and the one the client
/// holds.
pub(crate) const BUFFERS_KEPT_MAX: usize = PIPE_STRIPES_MAX + 1;

/// Stripes queued for a client.
pub(crate) const PIPE_STRIPES_MAX: usize = 2;

/// How long a group waits for a slow client before its read is parked.
pub(crate) const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes written to a stack before writeback is started.
pub(crate) const WRITE_BEHIND_BYTES: u64 = 4 << 20;

/// Capacity of the driver's inbox. If it is full, submitting fails and other senders block
/// (back-pressure).
pub(crate) const DRIVER_INBOX_MAX: usize = 1024;

/// Events buffered for subscribers; older ones are overwritten and reported as missed.
pub(crate) const EVENTS_BUFFERED: usize = 1024;

/// Backoff of a failed verification.
pub(crate) const SCRUB_BACKOFF: Duration = Duration::from_secs(3600);

/// Retry interval of spin-ups that are held back because the ledger cannot be written. Retrying
/// spins up nothing.
pub(crate) const LEDGER_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Interval at which disks in standby are polled, to detect disks spun up by other programs or
/// removed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Initial backoff before a wrong disk is checked again; doubled each time, up to a maximum.
pub(crate) const WRONG_DISK_BACKOFF: Duration = Duration::from_secs(60);
/// Maximum of that backoff.
pub(crate) const WRONG_DISK_BACKOFF_MAX: Duration = Duration::from_secs(24 * 3600);

/// How often a disk that failed to spin up is probed without a request for it. Transient failures
/// are over by then, and a dead disk costs no more.
pub(crate) const PROBES_MAX: u32 = 4;

/// Blobs that one operation verifies or rebuilds: other operations of the group wait no longer than
/// that.
pub(crate) const REPAIR_BLOBS_MAX: usize = 16;

/// Initial backoff before a read may again trigger the repair of a blob whose repair failed;
/// doubled each time.
pub(crate) const READ_REPAIR_BACKOFF: Duration = Duration::from_secs(600);
/// Maximum of that backoff.
pub(crate) const READ_REPAIR_BACKOFF_MAX: Duration = Duration::from_secs(24 * 3600);
/// Blobs tracked for repair after reads; more are left to verifications.
pub(crate) const READ_REPAIRS_MAX: usize = 4096;

/// Unrepaired blobs queued for subscribers between two passes of the driver; those beyond are only
/// counted.
pub(crate) const UNREPAIRED_WAITING_MAX: usize = 1024;

/// Faults recorded per stack; more are only counted.
pub(crate) const FAULTS_KEPT_MAX: usize = 4;

const _: () = assert!(READ_REPAIR_BACKOFF.as_nanos() <= READ_REPAIR_BACKOFF_MAX.as_nanos());
const _: () = assert!(WRONG_DISK_BACKOFF.as_nanos() <= WRONG_DISK_BACKOFF_MAX.as_nanos());
const _: () = assert!(ENTRY_BYTES_MAX <= u32::MAX as usize);
const _: () = assert!(CODING_STACKS_MAX <= u8::MAX as usize);
