//! Tomes over real sockets with real certificates, on simulated disks and a manual clock; and tests
//! without sockets.

mod rejections;
mod sets;
mod siege;
#[path = "../../../accept/tests/it/strangers.rs"]
mod strangers;
mod without_sockets;
mod world;
