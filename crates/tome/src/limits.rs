//! Every bound of a tome and of a set of tomes by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// Smallest block: signatures are put together in whole blocks of theirs.
pub const BLOCK_BYTES_MIN: ByteCount = ByteCount::new(256);
/// Largest block. The paper has 128 KB to 1 MB "or larger" (Pergamum (FAST 2008), section 4.1).
pub const BLOCK_BYTES_MAX: ByteCount = ByteCount::mib(16);
/// Most blocks of a segment: those that the small code has points for.
pub const SEGMENT_BLOCKS_MAX: u32 = 255;
/// Most parity of a segment or a group.
pub const PARITY_MAX: u32 = 16;
/// Most members of a group (Pergamum (FAST 2008), section 4.2: k <= 50, typically).
pub const GROUP_MEMBERS_MAX: u32 = 50;
/// Most blocks of a region, so that each has a number of 32 bits.
pub const REGION_BLOCKS_MAX: u64 = 1 << 28;
/// Most blocks of a disk, for the same reason: 2^32 less some for spare spots.
pub const DISK_BLOCKS_MAX: u64 = (1 << 32) - (1 << 20);
/// Bytes of the awake store for each block of a region: its signature and the nodes above it, its
/// version, and the spot where it lies.
pub const AWAKE_BYTES_PER_BLOCK: u64 = 24;
/// Nodes of a level that a descent asks for at a time. What is inconsistent beyond that is found by
/// the next one.
pub const DESCENT_NODES_MAX: usize = 4096;
/// Changes of one region that may wait for its parities. What is written beyond that waits itself.
pub const PENDING_MAX: usize = 4096;

/// One disk in so many may turn (Pergamum (FAST 2008), section 4.3: 95 % or more do not).
pub const AWAKE_SHARE: u32 = 20;
/// How long a token is held after it was claimed, if it is not claimed again.
pub const LEASE: Duration = Duration::from_secs(300);
/// How much longer the keeper waits before it gives the token to somebody else.
pub const LEASE_GRACE: Duration = Duration::from_secs(15);
/// Before its lease ends a disk has so long to stop.
pub const STOP_WITHIN: Duration = Duration::from_secs(30);
/// A token is claimed again when so much of its lease is over.
pub const RENEW_AFTER: Duration = Duration::from_secs(60);
/// How long a token waits for who it was offered to.
pub const OFFER: Duration = Duration::from_secs(30);
/// A tome that has no answer asks again after so long.
pub const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Who has not asked again for so long does not want a token any more.
pub const WAIT_FORGOTTEN: Duration = Duration::from_secs(60);
/// While others wait, nobody holds a token for longer than this and one lease.
pub const HOLD_MAX: Duration = Duration::from_secs(1800);
/// What a request is to be served within: at that age it counts 1,000.
pub const SLO: Duration = Duration::from_secs(3600);
/// Older requests count no more than this.
pub const AGE_TERM_MAX: u64 = 10_000;
/// What a rebuild counts.
pub const REBUILD_TERM: u64 = 4_000;
/// What a reader that waits counts.
pub const READ_TERM: u64 = 2_000;
/// A disk that was still for so long is not spared any more.
pub const RESTED: Duration = Duration::from_secs(600);
/// Each such time that a tome waits for a token counts 1,000 more, without end.
pub const WAIT_TERM: Duration = Duration::from_secs(600);

/// Blocks of an object that is put at a time: what a job has in memory.
pub const PUT_BLOCKS_MAX: usize = 64;
/// Requests that wait at a tome.
pub const TASKS_MAX: usize = 1024;
/// Reads that go one after the other before something that waited longer.
pub const READS_AHEAD_MAX: usize = 16;
/// Versions of a region whose deltas are under way: what parities keep awake of each data member.
pub const DELTA_WINDOW: usize = PUT_BLOCKS_MAX;
/// Deltas that a parity keeps of a data member's region at most: a window, and as many that are
/// older and came after them.
pub const DELTAS_KEPT_MAX: usize = 2 * DELTA_WINDOW;
/// Blocks of parity that changes are folded into in one commit: as many as a put writes.
pub const FOLD_BATCH: usize = PUT_BLOCKS_MAX;
/// A delta of which nothing is heard is asked for after so long.
pub const RESEND: Duration = Duration::from_secs(20);
/// A parity that keeps a delta is asked that often whether it has folded it.
pub const POLL: Duration = Duration::from_secs(600);
/// A disk that does nothing is put down after so long, if nothing else is said.
pub const IDLE: Duration = Duration::from_secs(60);
/// The least that may be said instead: a disk that turned for nothing at all would be woken for
/// each message of a conversation.
pub const IDLE_MIN: Duration = Duration::from_millis(100);
/// The most: a tome does not ask for its token again while its disk does nothing.
pub const IDLE_MAX: Duration = Duration::from_secs(240);
/// A disk that does nothing while others wait for its token is put down after so long at most.
pub const IDLE_WANTED: Duration = Duration::from_secs(2);
/// Blocks of the limited scrub at each spin-up: "a few hundred" (Pergamum (FAST 2008), section
/// 4.3.2).
pub const LIMITED_SCRUB: usize = 256;
/// Blocks that are looked at in one job.
pub const SCRUB_BATCH: usize = 64;
/// Places of a disk that one job goes over, written or not.
pub const SCRUB_SCAN: u64 = 65_536;
/// Deltas that a disk would be woken for beyond its budget wait so long at most: half of what a put
/// waits for until it is protected.
pub const FOLD_WAIT_MAX: Duration = Duration::from_secs(1800);
/// A full scrub that a disk would be woken for beyond its budget waits so long at most: a pass has
/// four times as much to be late in.
pub const SCRUB_WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Wakes of a day that a budget may have.
pub const SPIN_UPS_A_DAY_MAX: u32 = 1000;
/// Who may wait at a time for a scrub that somebody asked for.
pub const SCRUB_ASKERS_MAX: usize = 16;
/// A full scrub is spread over so long: eleven months, and one is left to be late in.
pub const FULL_SCRUB: Duration = Duration::from_secs(335 * 24 * 3600);
/// The disk is woken when one such part of all blocks is overdue.
pub const SCRUB_LATE: u64 = 24;
/// Blocks of a segment that a group is asked for at a time: members keep them in memory.
pub const MEND_BLOCKS_MAX: usize = 4;
/// A member that is asked for its blocks and does not tell them in so long is passed over.
pub const MEND_WITHIN: Duration = Duration::from_secs(3600);
/// What a group could not bring back is tried again after so long.
pub const MEND_REST: Duration = Duration::from_secs(600);
/// A rebuild waits so long for members that do not answer, if enough of them do.
pub const BUILD_WAIT: Duration = Duration::from_secs(3600);
/// Segments of a source that a rebuild asks for at a time, and bytes of them that it keeps in
/// memory until they are written.
pub const BUILD_WINDOW_MAX: u32 = 16;
/// See [`BUILD_WINDOW_MAX`].
pub const BUILD_GATHER_BYTES: ByteCount = ByteCount::mib(64);
/// How long those that came wait for the others.
pub const BUILD_GATHER: Duration = Duration::from_secs(300);
/// A disk that nobody reads of is put down for who reads of another one, when it has turned for so
/// long, or for as long as it had waited for its token.
pub const YIELD_AFTER: Duration = Duration::from_secs(2);
/// But for no longer than this.
pub const YIELD_AFTER_MAX: Duration = Duration::from_secs(60);
/// Questions of other members for blocks that wait at a tome.
pub const HOLDS_MAX: usize = 64;
/// What was put within so long is kin to what follows ([`crate::placement`]).
pub const KIN_WITHIN: Duration = Duration::from_secs(3600);
/// Blocks of kin in a row on one tome: reading them all is one disk's work.
pub const KIN_BLOCKS_MAX: u64 = 1024;
/// Kin stays on a tome that has one such part at least of the room of the one with the most.
pub const KIN_ROOM_SHARE: u64 = 2;
/// Kins of which a set knows where the last went.
pub const KINS_MAX: usize = 4096;
/// Times that a check begins anew since a region changed meanwhile.
pub const CHECK_TRIES_MAX: u32 = 8;
/// A check that is not done by then is given up.
pub const CHECK_WITHIN: Duration = Duration::from_secs(600);

const _: () = assert!(BLOCK_BYTES_MIN.get() < BLOCK_BYTES_MAX.get(), "there is a size between");
const _: () = assert!(PARITY_MAX < GROUP_MEMBERS_MAX, "a group has data");
const _: () = assert!(PARITY_MAX < SEGMENT_BLOCKS_MAX, "a segment has data");
const _: () = assert!(GROUP_MEMBERS_MAX <= 255, "a member is a byte");
const _: () = assert!(REGION_BLOCKS_MAX < DISK_BLOCKS_MAX, "a disk has room for a region");
const _: () = assert!(PARITY_MAX <= 16, "a set of parities is 16 bits");
const _: () = assert!(RENEW_AFTER.as_nanos() * 2 < LEASE.as_nanos(), "a claim may be lost");
const _: () =
    assert!(RENEW_AFTER.as_nanos() + STOP_WITHIN.as_nanos() < LEASE.as_nanos(), "in time");
const _: () = assert!(ASK_AGAIN.as_nanos() * 2 < OFFER.as_nanos(), "an offer may be lost");
const _: () = assert!(ASK_AGAIN.as_nanos() * 2 < WAIT_FORGOTTEN.as_nanos(), "who asks is heard");
const _: () = assert!(LEASE_GRACE.as_nanos() * 100 >= LEASE.as_nanos(), "clocks differ by 1 %");
const _: () = assert!(PUT_BLOCKS_MAX <= PENDING_MAX, "a whole object may wait");
const _: () = assert!(RESEND.as_nanos() * 10 < MEND_WITHIN.as_nanos(), "a question may be lost");
const _: () = assert!(MEND_BLOCKS_MAX > 0 && HOLDS_MAX > 0, "what is bad is got back");
const _: () = assert!((BUILD_WINDOW_MAX as usize) < HOLDS_MAX, "a source takes all questions");
const _: () =
    assert!(YIELD_AFTER.as_nanos() < YIELD_AFTER_MAX.as_nanos(), "who waits turns longer");
const _: () = assert!(DELTA_WINDOW > 0 && FOLD_BATCH > 0, "deltas get on");
const _: () = assert!(IDLE_WANTED.as_nanos() < IDLE.as_nanos(), "others wait less");
const _: () = assert!(IDLE_MIN.as_nanos() < IDLE.as_nanos(), "the default may be said");
const _: () = assert!(IDLE.as_nanos() <= IDLE_MAX.as_nanos(), "the default may be said");
const _: () = assert!(
    IDLE_MAX.as_nanos() + STOP_WITHIN.as_nanos() < LEASE.as_nanos(),
    "who is idle stops first"
);
const _: () = assert!(KIN_BLOCKS_MAX >= PUT_BLOCKS_MAX as u64, "any object may have kin");
