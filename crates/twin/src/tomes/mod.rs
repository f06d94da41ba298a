//! A set of tomes: disks with a small computer each, of which nearly all sleep, in groups that
//! survive whole tomes and segments that survive bad blocks (Pergamum (FAST 2008)).
//!
//! ```text
//!   layout, hardware: arithmetic      group --> chain, sampled: how long until data is lost
//! ```
//!
//! No set of them is simulated yet.

mod chain;
mod group;
mod hardware;
mod layout;
mod sampled;

pub use chain::mttdl_by_chain;
pub use group::Group;
pub use hardware::{Cost, Hardware, energy_dollars};
pub use layout::{Code, awake_bytes, expansion, raw, star};
pub use sampled::{Sampled, sample};
