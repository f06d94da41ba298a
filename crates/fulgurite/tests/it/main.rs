//! What a user sees: commands in, complete output and exit codes out, against a real server.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod geo;
mod messages;
mod objects;
mod platters;
mod process;
mod server;
mod systems;
mod transfers;
mod twin;
mod types;
