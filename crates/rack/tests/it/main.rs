//! A rack on directories with simulated disks, as the layer that uses it as a tier sees it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod conformance;
mod faults;
mod older_copy;
mod poll;
mod random;
mod remedies;
mod replay;
mod scrub;
mod shelf;
mod spin_up;
mod steps;
mod trace;
