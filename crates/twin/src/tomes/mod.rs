//! A set of tomes: disks with a small computer each, of which nearly all sleep, in groups that
//! survive whole tomes and segments that survive bad blocks (Pergamum (FAST 2008)).
//!
//! What they take and cost, by arithmetic. Nothing is simulated yet.

mod hardware;
mod layout;

pub use hardware::{Cost, Hardware, energy_dollars};
pub use layout::{Code, awake_bytes, expansion, raw, star};
