//! Tests of the engine layer: key order, one conformance suite for every store, the overlay against
//! a model, and the committer against a store controlled by the test.

mod committer;
mod conformance;
mod keys;
mod transaction;
