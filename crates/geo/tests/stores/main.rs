//! Real stores: each backend against a real server, if one can be started.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "tests poll until a server answers")]

mod chance;
mod conformance;
mod fragments;
mod lying_tables;
mod unconditional_s3;
// Tests of several sites use them too.
#[allow(dead_code, reason = "some items are used only there")]
mod servers;
mod stores;
