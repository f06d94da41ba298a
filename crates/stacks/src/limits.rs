//! Every bound of the rack's bytes by name.

use fulgurite_units::Duration;

/// Stacks of a blob at most: shards of a small code.
pub const CODING_STACKS_MAX: usize = fulgurite_codes::small::SHARDS_MAX;

/// Bytes of an entry at most: a name and attributes, as S3 bounds them, and room.
pub const ENTRY_BYTES_MAX: usize = 64 << 10;

/// Puts of a millisecond that a sequence counts; more run ahead of the clock. With 1024 a sequence
/// of this century is a whole number of a JSON reader that has only doubles.
pub(crate) const SEQUENCES_PER_MS: u64 = 1024;

/// Rows of the index that are read in one go.
pub const INDEX_PAGE_MAX: usize = 1000;

/// Times that stacks of a blob are made anew on other disks while it is written.
pub(crate) const WRITE_ATTEMPTS_MAX: u32 = 3;

/// Objects of at most so many bytes are kept whole in the index: names and claims of whoever has
/// the rack as a tier, which a listing must not wake a disk for.
pub const INLINE_BYTES_MAX: u64 = 4096;

/// Bytes of a staged file when an object is copied.
pub(crate) const STAGED_PIECE_BYTES: usize = 16 << 20;

/// Rows of what is unwanted that one sweep brings to an end, about: others that want the group wait
/// for no more.
pub(crate) const SWEEP_ROWS_MAX: usize = 1000;

/// Buffers of stripes that a read keeps for the next: those that wait for a client, and the one
/// that it has.
pub(crate) const BUFFERS_KEPT_MAX: usize = PIPE_STRIPES_MAX + 1;

/// Stripes that wait for a client.
pub(crate) const PIPE_STRIPES_MAX: usize = 2;

/// How long a group waits for a client that does not take what it asked for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of a stack after which its disk is sent what was written.
pub(crate) const WRITE_BEHIND_BYTES: u64 = 4 << 20;

/// Messages that wait for the driver; one more is refused, or waits at its sender.
pub(crate) const DRIVER_INBOX_MAX: usize = 1024;

/// How long a verification rests that could not be done.
pub(crate) const SCRUB_REST: Duration = Duration::from_secs(3600);

/// How long spin-ups rest whose wakes cannot be written down, before that is tried again: it wakes
/// nobody.
pub(crate) const LEDGER_REST: Duration = Duration::from_secs(5);

/// How often disks that sleep are looked at, for whoever else woke them or took them away.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(60);

/// How long a disk rests that is not the right one, before it is looked at again; doubled each
/// time, but never for ever.
pub(crate) const WRONG_DISK_REST: Duration = Duration::from_secs(60);
/// The longest such rest.
pub(crate) const WRONG_DISK_REST_MAX: Duration = Duration::from_secs(24 * 3600);

/// Times that a disk which did not come up is woken to see whether it does, when nobody else wants
/// it: what passes is over by then, and a dead disk costs no more.
pub(crate) const PROBES_MAX: u32 = 4;

/// Blobs that are verified or rebuilt by one operation: others that want the group wait for no
/// more.
pub(crate) const REPAIR_BLOBS_MAX: usize = 16;

/// How long a blob rests that reads found below its redundancy and that could not be mended, before
/// another read has it tried again; doubled each time.
pub(crate) const MEND_REST: Duration = Duration::from_secs(600);
/// The longest such rest.
pub(crate) const MEND_REST_MAX: Duration = Duration::from_secs(24 * 3600);
/// Blobs that are remembered as such; more are left to verifications.
pub(crate) const MENDS_KEPT_MAX: usize = 4096;

/// Blobs that could not be made whole and that those who watch are told of one by one between two
/// looks of the driver; the others are counted.
pub(crate) const UNMENDED_WAITING_MAX: usize = 1024;

/// Most faults of one stack that are remembered; the rest is counted.
pub(crate) const FAULTS_KEPT_MAX: usize = 4;

const _: () = assert!(MEND_REST.as_nanos() <= MEND_REST_MAX.as_nanos());
const _: () = assert!(WRONG_DISK_REST.as_nanos() <= WRONG_DISK_REST_MAX.as_nanos());
const _: () = assert!(ENTRY_BYTES_MAX <= u32::MAX as usize);
const _: () = assert!(CODING_STACKS_MAX <= u8::MAX as usize);
