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

mod abandoned_writes;
mod cache;
mod conformance;
mod history;
mod init;
mod notes;
mod older_copies;
mod real;
// The servers that tests of stores start.
mod notifications;
#[allow(dead_code, reason = "some are for those alone")]
#[path = "../stores/servers.rs"]
mod servers;
mod shelf;
mod site_failures;
mod stripes;
mod wan;
