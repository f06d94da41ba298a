//! Tests of the library. `twin.rs` is a whole library in one file: a world of real machines that
//! refuses impossible commands, a clock, and an auditor of fairness.

mod canaries;
mod faults;
mod floor;
mod limits;
mod mechanics;
mod policy;
mod swarm;
mod twin;
mod world;
