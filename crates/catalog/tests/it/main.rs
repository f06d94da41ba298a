//! Tests of the catalog from outside, with real directories and real processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod crash;
mod damage;
mod load;
mod reopen;
