//! The geo tier: a store of objects over several sites, strongly consistent, coded, with nothing at a
//! site but a table with conditional writes and a store of blobs (Giza, USENIX ATC 2017).
//!
//! ```text
//! put --> fragments to their sites ----------------.
//!     '-> the version, agreed on at the sites' rows --+--> the caller is told
//! get --> rows of a quorum: which version --.
//!     '-> fragments of the nearest sites -----+--> bytes, each block of them verified
//! ```
//!
//! Programs that have the same map see each other's objects at once; none of them keeps anything.
//!
//! ```text
//! map       which sites there are      store    puts, reads, removals     listing   rows side by side
//! open      begin, open, another map   run      operations, run           keeper    heal, collect, sweep
//! live      a map's stores, opened     fragments at sites, and back        status    what it says of itself
//! site      one site                   objects  `object_store`'s trait    upload    the same, in parts
//! ```
//!
//! Not here: the protocol (`fulgurite_geo`), stores and fragments (`fulgurite_sites`).

mod error;
mod fragments;
mod keeper;
pub mod limits;
mod listing;
mod live;
mod map;
mod names;
mod objects;
mod open;
mod run;
mod site;
mod status;
mod store;
mod upload;

pub use error::{GeoError, Result};
pub use keeper::Kept;
pub use live::OpenSites;
pub use map::{All, Listing, SiteEntry, SiteMap, Versions};
pub use status::{SiteSnapshot, Snapshot};
pub use store::{GeoOptions, GeoStore};
