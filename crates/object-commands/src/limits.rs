//! All limits of these commands, and the relations between them.

use std::time::Duration;

/// Objects transferred at one time, unless `--transfers` says otherwise.
pub const TRANSFERS_DEFAULT: usize = 16;
/// Most objects transferred at one time.
pub const TRANSFERS_MAX: usize = 256;
/// First interval between two polls of a running restore.
pub const POLL_FIRST: Duration = Duration::from_millis(200);
/// Longest interval between two polls of a running restore.
pub const POLL_MAX: Duration = Duration::from_secs(15);
/// Failed objects that are printed one by one on the terminal; the rest are only counted.
pub const FAILURES_SHOWN_MAX: usize = 10;

const _: () = assert!(TRANSFERS_DEFAULT <= TRANSFERS_MAX, "the default is allowed");
