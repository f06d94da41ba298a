//! The protocol of several sites, searched and tried from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod models;
