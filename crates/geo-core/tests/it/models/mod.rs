//! Models of several sites: whole small worlds, searched for a forbidden state.
//!
//! ```text
//! instance            one version: agreement, with messages late, lost, repeated, and rows lost
//! reads               versions and fragments: what readers answer, in order
//! garbage_collection  of dead versions
//! site_replacement    a site that lost its rows votes again
//! ```
//!
//! Every model has mutants: the same model with one fault, in which the search must find a
//! violation. They show that the search works. The models assume that sites store rows correctly,
//! that conditional writes check their condition, and that ids are unique. They do not show that
//! the proposer does what the agents do, nor that operations terminate.
//!
//! `FULGURITE_TEST_MODELS=nightly` searches further.

mod agents;
mod garbage_collection;
mod instance;
mod reads;
mod search;
mod site_replacement;
mod table;
mod world;
