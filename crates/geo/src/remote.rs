//! Nodes at sites: a program next to the table and the blobs of a site. For remote proposers it
//! executes in one round trip what would otherwise take several (design note 0033).
//!
//! ```text
//!  proposer                      between sites                     node        store
//!  NodeTable -- link -- dial == gRPC over mutual TLS ==== server - node_state ----> Table
//!  NodeBlobs --'                                                 ' blob_handlers -> Blob
//!
//!  a step of a row      one round trip: the node reads, steps and writes, and retries on conflicts
//!  a call of a store    one round trip each
//! ```
//!
//! ```text
//! nodes     opens `node://` addresses       server          connections of a node
//! table     a table that a node serves      node_state      answers about rows
//! blobs     blobs that a node serves        blob_handlers   answers about blobs
//! link      connections, lost answers       service         server side of the calls
//! dial      one connection                  stores          the stores of a node
//! calls     client side of the calls        wire_errors     errors of stores over the wire
//! wire      messages                        tls             mutual authentication
//! ```
//!
//! A node is stateless: any number of them may serve one site, and a failed one is restarted.
//! Not here: what rows mean (`fulgurite_geo_core`), and stores (`crate::stores`).

mod blob_handlers;
mod blobs;
mod calls;
mod dial;
mod error;
pub mod limits;
mod link;
mod node_state;
mod nodes;
mod server;
mod service;
mod stores;
mod table;
mod wire;
mod wire_errors;

pub use error::{NodeError, Result};
/// The certificate and the key of a process, and their files.
pub use fulgurite_rpc::{Identity, TlsFiles};
pub use nodes::NetNodes;
pub use server::{Node, NodeOptions};
pub use stores::{AddressedStores, Stores};

#[cfg(test)]
mod tests;
