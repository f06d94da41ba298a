//! Tests of objects over several sites, from outside the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests say what they saw"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests of servers look until they are there, and how long is the caller's wish"
)]

mod begun;
mod cached;
mod conformance;
mod given_up;
mod history;
mod noted;
mod older;
mod real;
// The servers that tests of stores start.
#[allow(dead_code, reason = "some are for those alone")]
#[path = "../../../sites/tests/it/servers.rs"]
mod servers;
mod shelf;
mod sites_fail;
mod stripes;
mod told;
mod wan;
