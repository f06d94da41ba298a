//! Background work: jobs, one file each, and the runner that runs them.
//!
//! ```text
//! PUT commits --- notify --> seal: policy? plan, write, verify, store, release
//! archive seal --- order --'
//! PUT, DELETE --- notify --> moves: to a tier of objects, and out of it; a job each tier
//! archive verify --- order --> verify: platters and copies read whole again, piece by piece
//! archive move --- order ----> reclassify: objects copied onto themselves with another class
//! RestoreObject - message -> restore: drives the controller of restores
//!                              '-- message --> its commit job and worker pool
//! every second ------------> expiry, maintenance, shred
//! every ten ---------------> transport: platters to far libraries
//! ```
//!
//! A job holds no state that a restart would lose: pending work is in rows. A panic fails what the
//! job was doing, and the job continues. `docs/design/adding-a-job.md` explains how to add one.

mod expiry;
mod maintenance;
mod moves;
mod reclassify;
mod runner;
mod schedule;
mod seal;
mod shred;
mod transport;
mod verify;
mod workers;

pub(crate) use self::runner::{Failed, Job, JobHandle, JobRun, JobSender, Reply, Runner};
pub(crate) use self::schedule::{Next, Pace};
pub(crate) use self::verify::VerifyScope;
pub(crate) use self::workers::{Inboxes, JobHandles, Workers};
