//! Tomes over real sockets with real certificates, on disks that are simulated and a clock whose
//! hands are turned; and what needs no socket.

mod alone;
mod refused;
mod sets;
mod siege;
#[path = "../../accept/tests/it/strangers.rs"]
mod strangers;
mod world;
