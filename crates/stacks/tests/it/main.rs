//! A rack on directories with simulated disks, as the layer that uses it as a tier sees it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod conformance;
mod faults;
mod looked;
mod older;
mod random;
mod remedies;
mod replayed;
mod scrubbed;
mod shelf;
mod steps;
mod traced;
mod waking;
