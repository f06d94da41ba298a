//! The operator's commands: serve an archive, monitor it, repair it, and inspect its parts.

pub mod admin;
mod banner;
pub mod bench;
pub mod config;
pub mod decode_worker;
mod descriptors;
pub mod durability;
pub mod geo;
pub mod glass;
pub mod inspect;
mod limits;
mod orphans;
mod process;
mod rack;
pub mod recover;
pub mod serve;
pub mod tier;
pub mod tome;
mod tomes;
