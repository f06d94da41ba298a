//! Tests of several sites, from outside the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, in its helpers too, and prints its results"
)]

mod models;
mod properties;
mod restore;
mod simulation;
