//! Nodes at sites: a program beside the table and the blobs of a site, which does for proposers
//! elsewhere what would take them several trips (design note 0033).
//!
//! ```text
//!  proposer                      between sites                     node        store
//!  NodeTable -- link -- dial == gRPC over TLS, both sides == server - served -> Table
//!  NodeBlobs --'                 show a certificate                  ' bodies -> Blob
//!
//!  a step of a row      one trip: the node reads, steps and writes, again if others were faster
//!  a call of a store    one trip each
//! ```
//!
//! ```text
//! nodes     opens `node://` addresses       server   connections of a node
//! table     a table that a node serves      served   what is answered about rows
//! blobs     blobs that a node serves        bodies   what is answered about blobs
//! link      connections, lost answers       service  calls, for who answers
//! dial      one connection                  stores   what a node serves
//! calls     calls, for who makes them       told     errors of stores over the wire
//! wire      messages                        tls      who is who
//! ```
//!
//! A node keeps nothing: any number of them may stand at one site, and one that is lost is begun
//! anew. Not here: what rows mean (`fulgurite_geo`), and stores (`fulgurite_sites`).

mod blobs;
mod bodies;
mod calls;
mod dial;
mod error;
pub mod limits;
mod link;
mod nodes;
mod served;
mod server;
mod service;
mod stores;
mod table;
mod tls;
mod told;
mod wire;

pub use error::{NodeError, Result};
pub use nodes::NetNodes;
pub use server::{Node, NodeOptions};
pub use stores::{AddressedStores, Stores};
pub use tls::{NodeTls, TlsFiles};

#[cfg(test)]
mod tests;
