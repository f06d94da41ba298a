//! Commands on objects: put, get, cat, cp, mv, sync, ls, rm, mb, rb, restore, status.
//!
//! Each is a plan (a list of files or keys, complete before the first byte moves) and a bounded
//! number of transfers at one time. A failed object does not stop the others; it is reported, and
//! the exit code reflects it.

#![expect(unnameable_types, reason = "clap alone makes flags, and only ObjectCommand has them")]

mod cat;
mod command;
mod copy;
mod get;
pub mod limits;
mod listing;
mod ls;
mod put;
mod restore;
mod rm;
mod status;
mod steps;
mod sync;
mod transfers;

pub use command::{ObjectCommand, object};
pub use get::{GetJob, GetSummary};
pub use put::{PlannedPut, PutJob, PutSummary};
pub use restore::{RestoreCounts, RestoreJob, RestoreTier};
pub use steps::{get_all, list_all, put_all, restore_all, wait_for_restore};
pub use transfers::Failures;

use listing::{ADD_RECURSIVE, add_restore_states, list_covered, not_found, require_object};
use transfers::{for_each, parse_transfers, show_rate};
