//! Objects on tomes, in real directories with simulated disks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod conformance;
mod loss;
mod random;
mod shelf;
mod watch;
