//! Every limit of a live set of tomes by name, and the relations between them.

use fulgurite_tome_core::limits::PUT_BLOCKS_MAX;
use fulgurite_units::{ByteCount, Duration};

/// Largest block of a live tome.
pub const BLOCK_BYTES_MAX: ByteCount = ByteCount::mib(4);
/// Bytes before each block on a disk. A multiple of a sector, so that blocks stay aligned.
pub const LABEL_BYTES: usize = 512;
/// Bytes before the blocks of a file.
pub const HEADER_BYTES: usize = 4096;
/// Largest size of the identity file of a disk.
pub const IDENTITY_BYTES_MAX: u64 = 4096;
/// Longest object name in bytes. It is a key, in which a zero byte takes two.
pub const NAME_BYTES_MAX: usize = 1024;
/// Rows of a metadata store read at a time.
pub const LOAD_PAGE_MAX: usize = 4096;
/// Memory for rows before a tome's metadata store writes them to a table.
pub const METADATA_WRITE_BUFFER: ByteCount = ByteCount::mib(8);
/// Block cache of a tome's metadata store, beside the tome's own memory.
pub const METADATA_BLOCK_CACHE: ByteCount = ByteCount::mib(2);

/// Backoff after a spin-up that failed or was not admitted.
pub const SPIN_UP_BACKOFF: Duration = Duration::from_secs(10);
/// Backoff before a failed tome is reopened; it doubles with each failure.
pub const REOPEN_BACKOFF: Duration = Duration::from_secs(5);
/// Longest backoff when the metadata store failed.
pub const REOPEN_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Longest backoff when the disk failed, since each try spins it up.
pub const PROBE_BACKOFF_MAX: Duration = Duration::from_secs(600);
/// Messages that wait at a tome. Beyond that, network messages are dropped and client requests
/// refused.
pub const INBOX_MAX: usize = 256;
/// Messages that wait at the token manager.
pub const TOKEN_MANAGER_INBOX_MAX: usize = 4096;
/// Time for a read from a spinning disk to finish while no tokens are granted.
pub const STUCK_GRACE: Duration = Duration::from_secs(2);
/// Retry interval after the token manager could not persist its state.
pub const TOKEN_MANAGER_BACKOFF: Duration = Duration::from_secs(10);
/// Tomes of a set in one process.
pub const TOMES_MAX: u32 = 1024;
/// Groups of a set.
pub const GROUPS_MAX: usize = 65_536;
/// Bytes of objects being put, over all tomes of a process.
pub const PUT_BYTES_MAX: ByteCount = ByteCount::mib(512);
/// Unit in which they are counted.
pub const PUT_GRAIN_BYTES: ByteCount = ByteCount::kib(4);
/// Bytes of holdings in memory for degraded reads. A larger read waits for all of it.
pub const DEGRADED_READ_BYTES_MAX: ByteCount = ByteCount::mib(256);
/// Objects being put to a standalone tome.
pub const PUTS_MAX: usize = 256;
/// A set is not healthy when something is unprotected for longer. The paper protects writes within
/// 8 h (Pergamum (FAST 2008), section 5.2).
pub const UNPROTECTED_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Rows and messages of a tome that wait for one commit.
pub const COMMIT_BATCH_COMMANDS_MAX: usize = 256;
/// Bytes of blocks among them that trigger the commit.
pub const COMMIT_BATCH_BYTES_MAX: ByteCount = ByteCount::mib(4);
/// Messages handled before their rows are committed.
pub const MESSAGES_PER_COMMIT_MAX: usize = 64;
/// Least time between timer events of the core.
pub const TIMER_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Deferred removals carried out on a tome in another process that answers again, before moves of
/// member slots are polled.
pub const REMOVALS_PER_POLL: usize = 64;
/// Object names listed in a reason why a set is not healthy.
pub const NAMES_LISTED_MAX: usize = 16;
/// Events buffered for a subscriber; older ones are overwritten and reported as missed.
pub const EVENTS_BUFFERED: usize = 1024;
/// Alarms in the status of a tome.
pub const ALARMS_MAX: usize = 16;
/// Physical blocks read by an inventory before its findings are committed.
pub const INVENTORY_BATCH: u64 = 256;
/// Longest turn of an inventory while others wait for its token.
pub const INVENTORY_TURN: Duration = Duration::from_secs(60);
/// Most unconfirmed changes of a block for which every combination is tried; with more, all or
/// none.
pub const UNCONFIRMED_MAX: usize = 8;
/// Spin-up attempts before a tome is given up.
pub const SPIN_UP_TRIES_MAX: u32 = 5;

const _: () = assert!(
    BLOCK_BYTES_MAX.get() * PUT_BLOCKS_MAX as u64 <= PUT_BYTES_MAX.get(),
    "the largest object can be put"
);
const _: () =
    assert!(REOPEN_BACKOFF.as_nanos() < REOPEN_BACKOFF_MAX.as_nanos(), "the backoff grows");
const _: () =
    assert!(REOPEN_BACKOFF_MAX.as_nanos() < PROBE_BACKOFF_MAX.as_nanos(), "a spin-up costs more");
const _: () = assert!(UNCONFIRMED_MAX < 16, "every combination is tried");
const _: () = assert!(MESSAGES_PER_COMMIT_MAX <= INBOX_MAX, "no more than fit in the inbox");
const _: () =
    assert!(INBOX_MAX * 4 <= TOKEN_MANAGER_INBOX_MAX, "many tomes may request tokens at once");
const _: () = assert!(LABEL_BYTES.is_multiple_of(512) && HEADER_BYTES.is_multiple_of(512));
