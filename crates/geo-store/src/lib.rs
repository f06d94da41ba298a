//! The geo tier: a strongly consistent, erasure-coded object store over several sites. A site needs
//! only a table with conditional writes and a blob store (Giza, USENIX ATC 2017).
//!
//! ```text
//! put --> fragments to their sites -------------------.
//!     '-> the version, agreed on at the sites' rows --+--> acknowledged
//! get --> rows of a quorum: which version --.
//!     '-> fragments of the nearest sites ---+--> bytes, each block of them verified
//! ```
//!
//! Programs with the same map see each other's objects at once; none of them keeps any state.
//!
//! ```text
//! map        the site map                   store     puts, reads, removals
//! open       init, open, map changes        objects   `object_store`'s trait
//! live       a map's stores, opened         upload    multipart uploads
//! site       one site                       listing   merged rows of several sites
//! run        runs operations                batch     small objects in one stripe
//! fragments  bytes at sites, and back       keeper    repair, collect, sweep
//! object     to be put, and found           healing   repair of many objects
//! undecided  undecided versions             status    status snapshots
//! cache      fragments of other sites       writing   chunks of a stream, at their sites
//! noted      objects with notes             starts    which site has an older copy
//! ```
//!
//! Not here: the protocol (`fulgurite_geo`), stores and fragments (`fulgurite_sites`).

mod batch;
mod cache;
mod error;
mod fragments;
mod healing;
mod keeper;
pub mod limits;
mod listing;
mod live;
mod map;
mod names;
mod noted;
mod object;
mod objects;
mod open;
mod run;
mod site;
mod starts;
mod status;
mod store;
mod tally;
mod telling;
mod undecided;
mod upload;
mod watch;
mod writing;

pub use cache::FragmentCache;
pub use error::{GeoError, Result};
pub use fulgurite_keyed::Mode;
pub use keeper::Kept;
pub use live::OpenSites;
pub use map::{All, Listing, SiteEntry, SiteMap, Versions};
pub use noted::{Noted, Pieces};
pub use status::{SiteSnapshot, Snapshot};
pub use store::{GeoOptions, GeoStore};
pub use undecided::Waiting;
pub use watch::{GeoWatch, Happened, Seen, happened};
