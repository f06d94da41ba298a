//! Objects on tomes, on real directories and simulated disks.

mod conformance;
mod lost;
mod random;
mod shelf;
