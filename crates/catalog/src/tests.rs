//! Tests of the engine layer: keys against their order, every store against one suite, the
//! overlay against a model, the committer against a store that obeys the test.

mod committer;
mod conformance;
mod keys;
mod transaction;
