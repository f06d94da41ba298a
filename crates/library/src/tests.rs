//! Tests of the library. `twin.rs` is a whole library in one file: a clock, what is asked and what
//! breaks; `world.rs` the real machines, which refuse impossible commands.

mod batteries;
mod canaries;
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
