//! The operator's commands: serve an archive, monitor it, repair it, and inspect its parts.

pub mod archive;
mod banner;
pub mod bench;
pub mod config;
pub mod decode_worker;
mod descriptors;
pub mod durability;
pub mod geo;
pub mod inspect;
pub mod lab;
mod limits;
mod orphans;
mod process;
mod rack;
pub mod recover;
pub mod serve;
pub mod tier;
pub mod tome;
mod tomes;
