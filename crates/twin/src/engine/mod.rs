//! What every run needs: the agenda of what is to come, and times counted in little memory.
//!
//! Not here: what is simulated.

mod agenda;
pub mod histogram;

pub(crate) use agenda::Agenda;
