//! Nodes at sites: a program next to the table and the blobs of a site. For remote proposers it
//! executes in one round trip what would otherwise take several (design note 0033).
//!
//! ```text
//!  proposer                      between sites                     node        store
//!  NodeTable -- link == gRPC over mutual TLS ========== server - service --> Table
//!  NodeBlobs --'                                                                   '-> Blob
//!
//!  a step of a row      one round trip: the node reads, steps and writes, and retries on conflicts
//!  a call of a store    one round trip each
//! ```
//!
//! ```text
//! nodes     opens `node://` addresses       server          connections of a node
//! table     a table that a node serves      service         the calls that it answers
//! blobs     blobs that a node serves        node_state      its state, and answers about rows
//! link      connections, lost answers       blob_handlers   answers about blobs
//! refusals  why there is no connection      stores          the stores of a node
//! wire      calls and messages              wire_errors     errors of stores over the wire
//! ```
//!
//! A node is stateless: any number of them may serve one site, and a failed one is restarted.
//! Not here: what rows mean (`fulgurite_geo_core`), and stores (`crate::stores`).

mod blob_handlers;
mod blobs;
mod error;
pub mod limits;
mod link;
mod node_state;
mod nodes;
mod refusals;
mod server;
mod service;
mod stores;
mod table;
mod wire;
mod wire_errors;

pub use error::{NodeError, Result};
/// The certificate and the key of a process, their files, and its socket.
pub use fulgurite_rpc::{Identity, TlsFiles, bind};
pub use nodes::NetNodes;
pub use server::{Node, NodeOptions};
pub use stores::{AddressedStores, Stores};

#[cfg(test)]
mod tests;
