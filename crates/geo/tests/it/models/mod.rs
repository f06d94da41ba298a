//! Models of several sites: whole small worlds, searched for a state that must not be.
//!
//! ```text
//! instance    one version: agreement, with messages late, lost and repeated, and rows lost
//! reading     versions and fragments: what readers answer, in order
//! collecting  removal of what nobody can ask for
//! replacing   a site that forgot its rows votes again
//! ```
//!
//! Every model has mutants: the same with one thing wrong, in which the search has to find
//! something, or it would find nothing anywhere. What a model takes for granted: sites keep rows as
//! they are told to, a conditional write is what it says, and ids are drawn once. What it does not
//! show: that the proposer does what agents do here, and that anything ever ends.
//!
//! `FULGURITE_TEST_MODELS=nightly` searches further.

mod agents;
mod collecting;
mod instance;
mod reading;
mod replacing;
mod search;
mod table;
mod world;
