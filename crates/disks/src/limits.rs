//! Every bound of disks by name, and the relations between them.

use fulgurite_units::Duration;

/// Wakes that a ledger keeps at hand; what is older is in its file and in its totals.
pub const WAKES_KEPT: usize = 4096;
/// Disks of one wake, at most: more than any rack wakes together.
pub const WAKE_PLACES_MAX: usize = 4096;
/// Bytes of a line of a ledger's file behind the first: a wake of so many disks.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of the first line, which holds the totals of every disk.
pub const FIRST_LINE_BYTES_MAX: usize = 64 << 20;
/// Bytes after which a ledger's file is begun anew, with its totals: the one before it is kept.
pub const LEDGER_FILE_BYTES: u64 = 64 << 20;
/// Damaged ledgers that are set aside; one more and somebody has to look at them first.
pub const SET_ASIDE_MAX: u32 = 99;
/// Hours that a day's budget looks back: one more than a day has, since hours are counted whole and
/// the day began within one. So no 24 hours have more than the budget, and some have a little less.
pub const BUDGET_HOURS: u64 = 25;

/// What reads past the system's memory are whole multiples of: a page, which no disk's sector is
/// larger than.
pub const DIRECT_ALIGN: usize = 4096;

/// How long a disk is waited for, from the command to turn: a healthy one takes a tenth.
pub const SPIN_UP_WITHIN: Duration = Duration::from_secs(90);
/// How long a disk is waited for that is asked or put down, its cache written before.
pub const DEVICE_WITHIN: Duration = Duration::from_secs(30);

/// Bytes that a simulated disk reads ahead of whoever reads in order, as with a `read_ahead_kb` of
/// 2048.
pub(crate) const PACED_AHEAD_BYTES: u64 = 4 << 20;

/// Pieces of an open file that a simulated disk has in memory.
pub(crate) const PACED_RUNS_MAX: usize = 64;

const _: () = assert!(WAKES_KEPT > 0, "something can be asked for");
const _: () = assert!(WAKE_PLACES_MAX * 11 < LINE_BYTES_MAX, "a wake is one line");
const _: () = assert!(BUDGET_HOURS > 24, "a day is looked at whole");
const _: () = assert!(FIRST_LINE_BYTES_MAX as u64 <= LEDGER_FILE_BYTES, "one fits the other");
