//! Every bound of the tome tier by name.

use fulgurite_units::{ByteCount, Duration};

/// Objects of one page of a listing.
pub const INDEX_PAGE_MAX: usize = 1000;
/// Puts of a millisecond that a sequence counts; more run ahead of the clock. With 1024 a sequence
/// of this century is a whole number of a JSON reader that has only doubles.
pub(crate) const SEQUENCES_PER_MS: u64 = 1024;
/// Bytes of a key. S3 has as many.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes of what an object's last piece says of it: key, attributes, parts.
pub const HEADER_BYTES_MAX: ByteCount = ByteCount::kib(512);
/// Pieces of one object that are put at a time.
pub const PIECES_AT_ONCE: usize = 2;
/// Heads of objects that are read at a time when the index is made again: as many as a tome is
/// asked for without refusing any, so that each disk is woken for many.
pub(crate) const HEADS_AT_ONCE: usize = 192;
/// Objects whose pieces nobody wants that are looked at behind one put or removal.
pub const SWEEP_MAX: usize = 64;
/// How long a put waits until every parity has it; then it is refused, to be tried again.
pub const PROTECTED_WITHIN: Duration = Duration::from_secs(3600);
/// How long the removal of a piece waits for a tome that has too much to do: its inbox is full for
/// as long as it writes what is in there.
pub(crate) const REMOVED_WITHIN: Duration = Duration::from_secs(30);
/// What could not be removed, since its tome did not answer, is tried again after so long.
pub const SWEEP_REST: Duration = Duration::from_secs(600);
/// How often a set is looked at for each who watches it.
pub(crate) const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(2);
/// Problems of groups that are told one by one.
pub const PROBLEMS_MAX: usize = 256;
/// Parts of an upload. S3 has as many.
pub const PARTS_MAX: usize = 10_000;
