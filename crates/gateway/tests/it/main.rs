//! Tests of the gateway over a real archive in a temporary directory, in raw HTTP: they also send
//! requests that no client library would.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

mod admin;
mod answers;
mod auth;
mod bodies;
mod chunked;
mod classes;
mod conformance;
mod documents;
mod errors;
mod events;
mod geo;
mod harness;
mod health;
mod key_characters;
mod objects;
mod openapi;
mod outside;
mod page;
mod parameters;
mod parts;
mod rack;
mod ranges;
mod refused;
mod siege;
mod signer;
#[path = "../../../accept/tests/it/strangers.rs"]
mod strangers;
mod tls;
mod tomes;
mod unset;
mod uploads;
mod versions;
mod xml;
