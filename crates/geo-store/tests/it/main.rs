//! Objects over several sites, held from outside.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests say what they saw"
)]

mod conformance;
mod history;
mod shelf;
mod sites_fail;
mod wan;
