//! Tests of several sites, from outside the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, in its helpers too, and says what it saw"
)]

mod models;
mod properties;
mod restore;
mod simulation;
