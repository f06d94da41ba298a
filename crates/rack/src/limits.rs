//! Every bound of this crate.

use fulgurite_units::{ByteCount, Duration};

/// Places of a rack: a hundred times the largest one known.
pub const PLACES_MAX: u64 = 100_000;
/// Axes of a shape.
pub const AXES_MAX: u64 = 8;
/// Kinds of domains, and kinds of failure units, of a shape: what is lost of a place is a bit each.
pub const SHARED_MAX: u64 = 16;

/// Legal states of a rack that a check goes through one by one; above, the proof is the sum over
/// classes alone, which says the same.
pub const STATES_MAX: u128 = 1 << 17;
/// Exchanges of two places that a search for groups tries for each place before it gives up.
pub const SEARCH_STEPS_PER_PLACE: u32 = 500;
/// Exchanges that it tries at most.
pub const SEARCH_STEPS_MAX: u32 = 200_000;

/// The least that an operation counts among bytes, so that even those of no bytes cannot overtake
/// others for ever: a fragment (Pelican, section 2.2.2).
pub const OP_BYTES_MIN: ByteCount = ByteCount::kib(128);
/// The least that an operation counts among seconds: a seek of an archival disk and a little.
pub const OP_TIME_MIN: Duration = Duration::from_millis(5);
/// Operations of one class that wait for clients (Pelican, section 4.2).
pub const CLIENT_QUEUE: usize = 1_000;
/// Operations of one class that wait and are for nobody: rebuilds, scrubs. Their driver gives more
/// as these are done.
pub const BACKGROUND_QUEUE: usize = 1_000;
/// Operations that run at once in a group, at most.
pub const AT_ONCE_MAX: usize = 64;
/// When an operation that does not say is due, from when it came: longer than anything waits in a
/// Pelican whose queues are full (measured with the twin: 20 minutes).
pub const USUAL: Duration = Duration::from_secs(3600);
/// What is due within this time may draw on the reserve of a budget of spin-ups.
pub const SOON: Duration = Duration::from_secs(15 * 60);
/// How long a group is served at a stretch while others want something: twenty times a switch.
pub const STAY: Duration = Duration::from_secs(300);
/// Reads of one group that are looked at to find out which of its disks they need; if more wait,
/// all of them are woken.
pub const NEEDED_LOOK_MAX: usize = 64;
/// How soon a refused request may come again, at the least.
pub const RETRY_MIN: Duration = Duration::from_secs(1);

/// Attempts to spin a disk up before its group goes on without it, for this turn.
pub const RISE_TRIES: u32 = 3;
/// How long a place rests after such a turn, before it is tried with its group again; doubled each
/// time, but never for ever.
pub const RISE_REST: Duration = Duration::from_secs(60);
/// The longest such rest.
pub const RISE_REST_MAX: Duration = Duration::from_secs(6 * 3600);
const _: () = assert!(RISE_REST.as_nanos() <= RISE_REST_MAX.as_nanos(), "rests only grow");
const _: () = assert!(RISE_TRIES > 0, "a disk is tried at least once");
