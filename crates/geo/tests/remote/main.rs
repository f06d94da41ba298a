//! Tests of nodes on real sockets of this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "../stores/chance.rs"]
mod chance;
#[path = "../stores/conformance.rs"]
mod conformance;
mod lost_answers;
mod refused_peers;
mod siege;
mod stores;
#[path = "../../../accept/tests/it/strangers.rs"]
mod strangers;
mod world;
