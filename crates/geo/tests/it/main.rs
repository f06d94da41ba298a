//! Several sites, held from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod models;
mod properties;
mod restoring;
mod simulation;
