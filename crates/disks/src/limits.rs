//! Limits of disks, and the relations between them.

use fulgurite_units::Duration;

/// Spin-ups that a ledger keeps in memory; older ones are in its file and its totals.
pub const RECENT_SPIN_UPS_MAX: usize = 4096;
/// Maximum number of disks in one record: more than any rack spins up together.
pub const RECORD_PLACES_MAX: usize = 4096;
/// Maximum bytes of a line of a ledger's file after the first: a record with that many disks.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of the first line, which holds the totals of every disk.
pub const FIRST_LINE_BYTES_MAX: usize = 64 << 20;
/// Size at which a ledger begins a new file with its totals; the previous file is kept.
pub const LEDGER_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of damaged ledgers that are set aside; beyond it an operator has to intervene.
pub const SET_ASIDE_MAX: u32 = 99;
/// Hours that a day's budget looks back: one more than a day has, since whole hours are counted and
/// the day began within one. So no 24 hours exceed the budget, and some stay slightly below it.
pub const BUDGET_HOURS: u64 = 25;

/// Alignment of direct I/O: a page, which is at least as large as any disk's sector.
pub const DIRECT_ALIGN: usize = 4096;

/// Timeout of a spin-up command: a healthy disk takes a tenth of it.
pub const SPIN_UP_TIMEOUT: Duration = Duration::from_secs(90);
/// Timeout of other commands, including a cache flush before a spin-down.
pub const DEVICE_TIMEOUT: Duration = Duration::from_secs(30);

/// Read-ahead of a simulated disk for sequential reads, as with a `read_ahead_kb` of 2048.
pub(crate) const PACED_AHEAD_BYTES: u64 = 4 << 20;

/// Ranges of an open file that a simulated disk keeps in memory.
pub(crate) const PACED_RUNS_MAX: usize = 64;

const _: () = assert!(RECENT_SPIN_UPS_MAX > 0, "the ledger keeps recent spin-ups");
const _: () = assert!(RECORD_PLACES_MAX * 11 < LINE_BYTES_MAX, "a record fits a line");
const _: () = assert!(BUDGET_HOURS > 24, "a budget covers a full day");
const _: () =
    assert!(FIRST_LINE_BYTES_MAX as u64 <= LEDGER_FILE_BYTES, "the first line fits the file");
