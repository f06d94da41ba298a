//! The geo tier: objects over several sites, each of which is only a table with conditional writes
//! and a blob store that others run (Giza, USENIX ATC 2017).
//!
//! ```text
//! objects   the store of objects: the site map, puts, reads, listings, repair
//! stores    tables and blobs at a site: directories, buckets, PostgreSQL, etcd
//! remote    nodes at sites, which serve those stores in one round trip
//! ```
//!
//! `fulgurite_geo_core` decides what the sites agree on; this crate carries its decisions out.

pub mod objects;
pub mod remote;
pub mod stores;
