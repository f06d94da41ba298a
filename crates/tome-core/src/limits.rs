//! Every limit of a tome and of a set of tomes by name, and the relations between them.

use fulgurite_units::{ByteCount, Duration};

/// Smallest block: signatures are combined in whole signature blocks.
pub const BLOCK_BYTES_MIN: ByteCount = ByteCount::new(256);
/// Largest block. The paper has 128 KB to 1 MB "or larger" (Pergamum (FAST 2008), section 4.1).
pub const BLOCK_BYTES_MAX: ByteCount = ByteCount::mib(16);
/// Most blocks of a segment: the small code has that many points.
pub const SEGMENT_BLOCKS_MAX: u32 = 255;
/// Most parity of a segment or a group.
pub const PARITY_MAX: u32 = 16;
/// Most members of a group (Pergamum (FAST 2008), section 4.2: k <= 50, typically).
pub const GROUP_MEMBERS_MAX: u32 = 50;
/// Most blocks of a region, so that each is numbered in 32 bits.
pub const REGION_BLOCKS_MAX: u64 = 1 << 28;
/// Most blocks of a disk, for the same reason: 2^32 less some for spare physical blocks.
pub const DISK_BLOCKS_MAX: u64 = (1 << 32) - (1 << 20);
/// Bytes of the metadata store for each block of a region: its signature and the nodes above it,
/// its version, and its physical block.
pub const METADATA_BYTES_PER_BLOCK: u64 = 24;
/// Nodes of a level that a descent asks for at a time. The next descent finds what is beyond that.
pub const DESCENT_NODES_MAX: usize = 4096;
/// Changes of one region that may wait for its parities. Writes beyond that wait.
pub const PENDING_MAX: usize = 4096;

/// One disk in this many may spin (Pergamum (FAST 2008), section 4.3: 95 % or more do not).
pub const TOMES_PER_TOKEN: u32 = 20;
/// A token's lease after a claim, if it is not renewed.
pub const LEASE: Duration = Duration::from_secs(300);
/// Grace period of the token manager after a lease before it grants the token again.
pub const LEASE_GRACE: Duration = Duration::from_secs(15);
/// Time to stop a disk before its lease ends.
pub const SPIN_DOWN_MARGIN: Duration = Duration::from_secs(30);
/// A token is renewed after this much of its lease.
pub const RENEW_AFTER: Duration = Duration::from_secs(60);
/// How long an offered token is reserved.
pub const OFFER_TIMEOUT: Duration = Duration::from_secs(30);
/// Retry interval of a tome that has no answer.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// A tome that has not asked for this long no longer waits for a token.
pub const WAITER_EXPIRY: Duration = Duration::from_secs(60);
/// While others wait, no tome holds a token for longer than this and one lease.
pub const TOKEN_HOLD_MAX: Duration = Duration::from_secs(1800);
/// Service-level objective of a request: at that age it scores 1,000.
pub const SLO: Duration = Duration::from_secs(3600);
/// Score limit for the age of a request.
pub const AGE_SCORE_MAX: u64 = 10_000;
/// Score of a rebuild.
pub const REBUILD_SCORE: u64 = 4_000;
/// Score of a waiting reader.
pub const READ_SCORE: u64 = 2_000;
/// A disk that stood still for this long scores in full; one that just spun is spared.
pub const STANDBY_SCORE_UNIT: Duration = Duration::from_secs(600);
/// Each such time that a tome waits for a token scores 1,000 more, without limit.
pub const WAIT_SCORE_UNIT: Duration = Duration::from_secs(600);

/// Most blocks of one put: what a job has in memory.
pub const PUT_BLOCKS_MAX: usize = 64;
/// Most requests that wait at a tome.
pub const TASKS_MAX: usize = 1024;
/// Reads in a row that may overtake a request that waited longer.
pub const READ_OVERTAKES_MAX: usize = 16;
/// In-flight versions of a region: what parities keep in the metadata store for each data member.
pub const DELTA_WINDOW: usize = PUT_BLOCKS_MAX;
/// Deltas that a parity keeps of a data member's region at most: a window, and as many older ones
/// that arrived after them.
pub const DELTAS_STORED_MAX: usize = 2 * DELTA_WINDOW;
/// Parity blocks to which changes are applied in one commit: as many as a put writes.
pub const APPLY_BATCH: usize = PUT_BLOCKS_MAX;
/// Resend interval: a delta without an answer is queried after this long.
pub const RESEND_INTERVAL: Duration = Duration::from_secs(20);
/// Poll interval: a parity that stores a delta is asked whether it has applied it.
pub const POLL_INTERVAL: Duration = Duration::from_secs(600);
/// Default idle time before a disk is spun down.
pub const IDLE: Duration = Duration::from_secs(60);
/// Shortest idle time: a disk without any would spin up for each message of an exchange.
pub const IDLE_MIN: Duration = Duration::from_millis(100);
/// Longest idle time: a tome does not renew its token while its disk idles.
pub const IDLE_MAX: Duration = Duration::from_secs(240);
/// Longest idle time while other tomes wait for the token.
pub const IDLE_CONTENDED: Duration = Duration::from_secs(2);
/// Blocks of the limited scrub at each spin-up: "a few hundred" (Pergamum (FAST 2008), section
/// 4.3.2).
pub const LIMITED_SCRUB_BLOCKS: usize = 256;
/// Blocks that one scrub job reads.
pub const SCRUB_BATCH: usize = 64;
/// Blocks of a disk that one scrub job covers, written or not.
pub const SCRUB_SCAN_BLOCKS: u64 = 65_536;
/// Deltas that would spin a disk up beyond its budget wait at most this long: half of what a put
/// waits for protection.
pub const APPLY_DELAY_MAX: Duration = Duration::from_secs(1800);
/// A full scrub that would spin a disk up beyond its budget waits at most this long: a pass has
/// four times as much slack.
pub const SCRUB_DELAY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Largest budget of spin-ups in a day.
pub const SPIN_UPS_A_DAY_MAX: u32 = 1000;
/// Most requests that wait for a requested scrub.
pub const SCRUB_REQUESTS_MAX: usize = 16;
/// Period of the full scrub: eleven months, which leaves one month of slack in a year.
pub const FULL_SCRUB: Duration = Duration::from_secs(335 * 24 * 3600);
/// The disk is spun up when one such part of all blocks is overdue.
pub const SCRUB_LAG_DIVISOR: u64 = 24;
/// Blocks of a segment that a group is asked for at a time: members keep them in memory.
pub const REPAIR_BLOCKS_MAX: usize = 4;
/// A member that does not answer a request for blocks in this time is skipped.
pub const REPAIR_TIMEOUT: Duration = Duration::from_secs(3600);
/// Backoff before the group is asked again for what it could not recover.
pub const REPAIR_BACKOFF: Duration = Duration::from_secs(600);
/// How long a rebuild waits for silent members, if enough of them answer.
pub const SILENT_MEMBER_TIMEOUT: Duration = Duration::from_secs(3600);
/// Segments of a source that a rebuild requests at a time, and bytes of them that it buffers in
/// memory until they are written.
pub const REBUILD_WINDOW_MAX: u32 = 16;
/// See [`REBUILD_WINDOW_MAX`].
pub const REBUILD_BUFFER_BYTES: ByteCount = ByteCount::mib(64);
/// How long received segments wait for the others.
pub const REBUILD_BUFFER_WAIT: Duration = Duration::from_secs(300);
/// A disk without readers is spun down for a tome with readers after spinning this long, or as long
/// as it had waited for its token.
pub const YIELD_AFTER: Duration = Duration::from_secs(2);
/// Upper limit for that.
pub const YIELD_AFTER_MAX: Duration = Duration::from_secs(60);
/// Most requests of other members for blocks that wait at a tome.
pub const HOLDING_REQUESTS_MAX: usize = 64;
/// An object put within this time belongs to the affinity group's current run
/// ([`crate::placement`]).
pub const AFFINITY_WINDOW: Duration = Duration::from_secs(3600);
/// Blocks of an affinity group in a row on one tome: reading them all is one disk's work.
pub const AFFINITY_RUN_BLOCKS_MAX: u64 = 1024;
/// An affinity group stays on a tome with at least one such part of the free space of the emptiest
/// one.
pub const AFFINITY_SPACE_DIVISOR: u64 = 2;
/// Affinity groups whose last placement a set remembers.
pub const AFFINITY_GROUPS_MAX: usize = 4096;
/// Restarts of a check because a region changed meanwhile.
pub const CHECK_TRIES_MAX: u32 = 8;
/// A check that is not done in this time fails.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(600);

const _: () = assert!(BLOCK_BYTES_MIN.get() < BLOCK_BYTES_MAX.get(), "block sizes have a range");
const _: () = assert!(PARITY_MAX < GROUP_MEMBERS_MAX, "a group has data");
const _: () = assert!(PARITY_MAX < SEGMENT_BLOCKS_MAX, "a segment has data");
const _: () = assert!(GROUP_MEMBERS_MAX <= 255, "a member number fits in a byte");
const _: () = assert!(REGION_BLOCKS_MAX < DISK_BLOCKS_MAX, "a disk has room for a region");
const _: () = assert!(PARITY_MAX <= 16, "a set of parities fits in 16 bits");
const _: () = assert!(RENEW_AFTER.as_nanos() * 2 < LEASE.as_nanos(), "a claim may be lost");
const _: () = assert!(
    RENEW_AFTER.as_nanos() + SPIN_DOWN_MARGIN.as_nanos() < LEASE.as_nanos(),
    "a token is renewed in time"
);
const _: () =
    assert!(RETRY_INTERVAL.as_nanos() * 2 < OFFER_TIMEOUT.as_nanos(), "an offer may be lost");
const _: () = assert!(
    RETRY_INTERVAL.as_nanos() * 2 < WAITER_EXPIRY.as_nanos(),
    "a waiting tome retries before it expires"
);
const _: () = assert!(
    LEASE_GRACE.as_nanos() * 100 >= LEASE.as_nanos(),
    "the grace period covers clock rates that differ by 1 %"
);
const _: () = assert!(PUT_BLOCKS_MAX <= PENDING_MAX, "all blocks of an object may be pending");
const _: () =
    assert!(RESEND_INTERVAL.as_nanos() * 10 < REPAIR_TIMEOUT.as_nanos(), "a request may be lost");
const _: () = assert!(REPAIR_BLOCKS_MAX > 0 && HOLDING_REQUESTS_MAX > 0, "repairs can proceed");
const _: () = assert!(
    (REBUILD_WINDOW_MAX as usize) < HOLDING_REQUESTS_MAX,
    "a source queues all requests of a window"
);
const _: () =
    assert!(YIELD_AFTER.as_nanos() < YIELD_AFTER_MAX.as_nanos(), "the turn can be extended");
const _: () = assert!(DELTA_WINDOW > 0 && APPLY_BATCH > 0, "deltas can proceed");
const _: () =
    assert!(IDLE_CONTENDED.as_nanos() < IDLE.as_nanos(), "contention shortens the idle time");
const _: () = assert!(IDLE_MIN.as_nanos() < IDLE.as_nanos(), "the default is a valid setting");
const _: () = assert!(IDLE.as_nanos() <= IDLE_MAX.as_nanos(), "the default is a valid setting");
const _: () = assert!(
    IDLE_MAX.as_nanos() + SPIN_DOWN_MARGIN.as_nanos() < LEASE.as_nanos(),
    "an idle disk stops before its lease ends"
);
const _: () = assert!(
    AFFINITY_RUN_BLOCKS_MAX >= PUT_BLOCKS_MAX as u64,
    "any object may have an affinity group"
);
