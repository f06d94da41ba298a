//! Tomes in processes of their own: gRPC between them and their set, over mutual TLS.
//!
//! ```text
//! file       tomes.toml: which tome is where          serve          processes, as the file says
//! tls        names in certificates                    server         listens for one tome
//! wire       calls and messages                       tome_service   answers, if permitted
//! encoding   what is in their bytes, with versions    remote_tome    a tome, for its set
//! failure    errors over the wire and back            session        from connect to disconnect
//! dial       connections, and backoff between them    peer_network   the network of one tome
//!                                                     route          its messages to one other
//!                                                     queue          of messages for one peer
//! ```
//!
//! The rest of the crate decides what a tome or a set does. A message comes from the tome that the
//! certificate of its sender names, or it is rejected. Design note 0030; for operators
//! docs/tomes-network.md.

mod dial;
mod encoding;
mod error;
mod failure;
mod file;
pub mod limits;
mod peer_network;
mod queue;
mod remote_tome;
mod route;
mod serve;
mod server;
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
