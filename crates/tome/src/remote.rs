//! Tomes in processes of their own: gRPC between them and their set, over mutual TLS.
//!
//! ```text
//! file       tomes.toml: which tome is where          serve          processes, as the file says
//! tls        names in certificates                    server         listens for one tome
//! wire       messages, by hand                        tome_service   answers, if permitted
//! client     calls, by hand: client side              remote_tome    a tome, for its set
//! service    and server side                          session        from connect to disconnect
//! encoding   what is in their bytes, with versions    peer_network   the network of one tome
//! failure    errors over the wire and back            route          its messages to one other
//! dial       connections, and backoff between them
//! ```
//!
//! The rest of the crate decides what a tome or a set does. A message comes from the tome that the
//! certificate of its sender names, or it is rejected. Design note 0030; for operators
//! docs/tomes-network.md.

mod client;
mod dial;
mod encoding;
mod error;
mod failure;
mod file;
pub mod limits;
mod peer_network;
mod remote_tome;
mod route;
mod serve;
mod server;
mod service;
mod session;
mod tls;
mod tome_service;
mod wire;

pub use dial::BackoffLimits;
pub use error::{NetError, Result};
pub use file::{TomeAddress, TomesFile};
pub use fulgurite_rpc::TlsFiles;
pub use remote_tome::{RemoteOptions, RemoteTome};
pub use serve::{ServeOptions, remotes, serve};
pub use server::{Opening, ServerOptions, TomeServer};
pub use tls::{PeerName, Tls};

#[cfg(test)]
mod tests;
