//! Every bound of a live set of tomes by name, and the relations between them.

use fulgurite_catalog::limits::VALUE_BYTES_MAX;
use fulgurite_tome::limits::PUT_BLOCKS_MAX;
use fulgurite_units::{ByteCount, Duration};

/// Largest block of a live tome: a delta that waits is one row of the awake store.
pub const BLOCK_BYTES_MAX: ByteCount = ByteCount::mib(4);
/// Bytes in front of each block on a disk. A multiple of a sector, so that blocks stay whole ones.
pub const LABEL_BYTES: usize = 512;
/// Bytes in front of the blocks of a file.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of the file that says which tome a disk is.
pub const IDENTITY_BYTES_MAX: u64 = 4096;
/// Bytes of an object's name. It is a key, in which a zero byte takes two.
pub const NAME_BYTES_MAX: usize = 1024;
/// Rows of an awake store that are read at a time.
pub const LOAD_PAGE_MAX: usize = 4096;
/// Rows in memory before the awake store of a tome writes them to a table.
pub const AWAKE_WRITE_BUFFER: ByteCount = ByteCount::mib(8);
/// Bytes of tables that the awake store of a tome keeps in memory beside the tome's own.
pub const AWAKE_BLOCK_CACHE: ByteCount = ByteCount::mib(2);

/// A disk that did not turn up, or was not let to, is told to again after so long.
pub const SPIN_UP_REST: Duration = Duration::from_secs(10);
/// A tome that was given up is reopened after so long; each time that this fails it rests twice
/// as long.
pub const REOPEN_REST: Duration = Duration::from_secs(5);
/// The longest that it rests where what it keeps awake failed.
pub const REOPEN_REST_MAX: Duration = Duration::from_secs(60);
/// The longest where its disk failed, which is woken each time.
pub const PROBE_REST_MAX: Duration = Duration::from_secs(600);
/// Letters that wait at a tome. What the network brings beyond that is lost, and what clients ask
/// for is refused.
pub const INBOX_MAX: usize = 256;
/// Notes that wait at the keeper of tokens.
pub const KEEPER_INBOX_MAX: usize = 4096;
/// A read of a disk that turns has so long to end while no tokens are given.
pub const STUCK_GRACE: Duration = Duration::from_secs(2);
/// What a keeper could not write down is tried again after so long.
pub const KEEPER_REST: Duration = Duration::from_secs(10);
/// Tomes of a set in one process.
pub const TOMES_MAX: u32 = 1024;
/// Groups of a set.
pub const GROUPS_MAX: usize = 65_536;
/// Bytes of objects that are being put, over all tomes of a process.
pub const PUT_BYTES_MAX: ByteCount = ByteCount::mib(512);
/// They are counted in grains of so many.
pub const PUT_GRAIN_BYTES: ByteCount = ByteCount::kib(4);
/// Bytes that members of groups told of objects whose own tomes are not asked. What would take more
/// by itself waits for all of it.
pub const AROUND_BYTES_MAX: ByteCount = ByteCount::mib(256);
/// Objects that are being put to a tome by itself.
pub const PUTS_MAX: usize = 256;
/// A set is not well when something is unprotected for longer. The paper has what is written
/// protected in 8 h (Pergamum (FAST 2008), section 5.2).
pub const UNPROTECTED_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Rows and messages of a tome that wait for one commit.
pub const HELD_COMMANDS_MAX: usize = 256;
/// Bytes of blocks among them, beyond which no more is waited for.
pub const HELD_BYTES_MAX: ByteCount = ByteCount::mib(4);
/// Letters that are taken before what they led to is kept.
pub const LETTERS_SHARED_MAX: usize = 64;
/// The core is told no sooner again that time passed.
pub const TIMER_REST: Duration = Duration::from_millis(100);
/// Removals that were put off, of a tome in another process that answers again, before seats that
/// move are looked at.
pub const REMOVALS_AT_ONCE: usize = 64;
/// Names of objects that are told one by one with a reason why a set is not well.
pub const NAMES_TOLD: usize = 16;
/// Things that happened and wait for one who watches; what is written over it has missed.
pub const HAPPENINGS_WAITING: usize = 1024;
/// Alarms of a tome that are told with its status.
pub const ALARMS_KEPT: usize = 16;
/// Spots of a disk that are read before what was found in them is kept.
pub const SURVEY_BATCH: u64 = 256;
/// A disk that is read whole is put down after so long when others wait for its token.
pub const SURVEY_TURN: Duration = Duration::from_secs(60);
/// Changes of one block of which a parity may have some and lack others: more are not told apart.
pub const UNSURE_MAX: usize = 8;
/// Times that it is told to before it is given up.
pub const SPIN_UP_TRIES_MAX: u32 = 5;

const _: () = assert!(BLOCK_BYTES_MAX.get() * 2 <= VALUE_BYTES_MAX as u64, "a delta is a row");
const _: () = assert!(
    BLOCK_BYTES_MAX.get() * PUT_BLOCKS_MAX as u64 <= PUT_BYTES_MAX.get(),
    "the largest object can be put"
);
const _: () = assert!(REOPEN_REST.as_nanos() < REOPEN_REST_MAX.as_nanos(), "rests grow");
const _: () = assert!(REOPEN_REST_MAX.as_nanos() < PROBE_REST_MAX.as_nanos(), "a wake costs more");
const _: () = assert!(UNSURE_MAX < 16, "all of their sets are tried");
const _: () = assert!(LETTERS_SHARED_MAX <= INBOX_MAX, "no more than wait");
const _: () = assert!(INBOX_MAX * 4 <= KEEPER_INBOX_MAX, "many tomes may ask at once");
const _: () = assert!(LABEL_BYTES.is_multiple_of(512) && HEADER_BYTES.is_multiple_of(512));
