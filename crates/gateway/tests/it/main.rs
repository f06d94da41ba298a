//! Tests of the gateway over a real archive in a temporary directory, in raw HTTP: they also send
//! requests that no client library would.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

mod admin;
mod auth;
mod bodies;
mod bucket_settings;
mod chunked;
mod classes;
mod conformance;
mod documents;
mod errors;
mod events;
mod fuzz_api;
mod geo;
mod glass;
mod harness;
mod health;
mod key_characters;
mod objects;
mod openapi;
mod overload;
mod page;
mod parameters;
mod parts;
mod rack;
mod ranges;
mod refusals;
mod responses;
mod signer;
#[path = "../../../accept/tests/it/strangers.rs"]
mod strangers;
mod tls;
mod tomes;
mod uploads;
mod versions;
mod xml;
