//! Tests of objects over several sites, from outside the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests print their results"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests poll servers until they answer; the caller sets how long"
)]

mod abandoned_writes;
mod cache;
mod conformance;
mod history;
mod init;
mod notes;
mod notifications;
mod older_copies;
mod operations;
mod real;
// The servers that tests of stores start.
#[allow(dead_code, reason = "some items are used only there")]
#[path = "../stores/servers.rs"]
mod servers;
mod shelf;
mod site_failures;
mod stripes;
mod wan;
