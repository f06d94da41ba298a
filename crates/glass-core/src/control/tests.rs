//! Tests of the library. `twin.rs` is a whole library in one file: a clock, requests and failures;
//! `world.rs` simulates the real machines, which reject impossible commands.

mod batteries;
mod corruptions;
mod faults;
mod floor;
mod limits;
mod log;
mod mechanics;
mod pace;
mod policy;
mod restart;
mod swarm;
mod traffic;
mod twin;
mod world;
