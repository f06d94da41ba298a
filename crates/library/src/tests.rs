//! Tests of the library. `twin.rs` is a whole library in one file: a clock, what is asked and what
//! breaks; `world.rs` the real machines, which refuse impossible commands.

mod log;
mod swarm;
mod twin;
mod world;
