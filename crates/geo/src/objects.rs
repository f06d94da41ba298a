//! The store of objects: strongly consistent and erasure-coded over several sites. A site needs
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
//! map                  the site map                   store               puts, reads, removals
//! open                 init, open, map changes        as_object_store     `object_store`'s trait
//! live_map             a map's stores, opened         upload              multipart uploads
//! site                 one site                       listing             rows of several sites
//! driver               runs operations                batch               small objects, together
//! fragments            bytes at sites, and back       maintenance         repair, garbage, orphans
//! object               to be put, and found           heal                repair of many objects
//! verify               all objects, read whole        examine             stores of a new site
//! undecided_versions   versions nobody decided        status              status snapshots
//! cache                fragments of other sites       chunk_writer        chunks of a stream
//! notes                objects with notes             start_counts        detects older copies
//! notification_queue   rows to be notified later      watch, tally        events and counts
//! tier                 what its operator sees, does
//! ```
//!
//! Not here: the protocol (`fulgurite_geo_core`), stores and fragments (`crate::stores`).

mod as_object_store;
mod batch;
mod cache;
mod chunk_writer;
mod driver;
mod error;
mod examine;
mod fragments;
mod heal;
pub mod limits;
mod listing;
mod live_map;
mod maintenance;
mod map;
mod names;
mod notes;
mod notification_queue;
mod object;
mod open;
mod site;
mod start_counts;
mod status;
mod store;
mod tally;
mod tier;
mod undecided_versions;
mod upload;
mod verify;
mod watch;

pub use cache::FragmentCache;
pub use error::{GeoError, Result};
pub use examine::{PROBE_PREFIX, SiteStore, StoreRole};
pub use fulgurite_tier::Mode;
pub use live_map::OpenSites;
pub use maintenance::MaintenanceReport;
pub use map::{All, Listing, SiteEntry, SiteMap, Versions};
pub use notes::{ByteStream, ObjectWithNote};
pub use status::{SiteSnapshot, Snapshot};
pub use store::{GeoOptions, GeoStore};
pub use undecided_versions::UndecidedReport;
pub use verify::VerifyReport;
pub use watch::{GeoEvent, GeoSubscriber, GeoUpdate, diff_snapshots};
