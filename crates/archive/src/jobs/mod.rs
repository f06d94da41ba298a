//! What goes on in the background: jobs, each a file here, and the one runner that has them run.
//!
//! ```text
//! PUT commits ---- ring ---> sealing: policy? plan, write, verify, store, release
//! admin seal  ---- order --'
//! PUT, DELETE commit - ring -> moving: to a tier of objects, and out of it; a job each tier
//! admin verify --- order --> verifying: platters and copies read whole again, piece by piece
//! admin move ----- order --> reclassifying: objects copied onto themselves with another class
//! RestoreObject -- mail ---> restoring: drives the controller of restores
//!                              '-- mail --> committing, restore-bench
//! every second ------------> expiring, tending, shredding
//! every ten ---------------> carrying: platters to far libraries
//! ```
//!
//! Nothing is kept in a job that a restart would miss: what is to be done is in rows. A panic fails
//! what the job was doing, and the job goes on. How another is added is told in
//! `docs/design/adding-a-job.md`.

mod carrying;
mod expiring;
mod moving;
mod reclassifying;
mod runner;
mod sealing;
mod shredding;
mod tending;
mod turns;
mod verifying;
mod workers;

pub(crate) use self::runner::{Bell, Failed, Job, Mail, Reply, Runner, Turn};
pub(crate) use self::turns::{Next, Pace};
pub(crate) use self::workers::{Bells, Inboxes, Workers};
