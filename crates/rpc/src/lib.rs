//! RPC between the processes of a tier: gRPC over TLS on which both sides show a certificate.
//!
//! ```text
//! protobuf  messages and calls of a service, defined in the notation of protobuf
//! client    calls on a connection           dial      a connection to a server
//! server    answers calls                   limits    of a connection: streams, heartbeats
//! chunks    long values in several messages tls       certificates and keys in files
//! stream    a connection with a context     testing   certificates for tests (a feature)
//! ```
//!
//! Nothing is read from a peer before its certificate is verified. Not here: what the calls are,
//! which peer may make them, and when a lost connection is opened again.

mod chunks;
mod client;
mod dial;
mod error;
mod limits;
mod protobuf;
mod server;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

pub use chunks::{chunks, collect, collect_exactly};
pub use client::Client;
pub use dial::{Alert, DialError, dial};
pub use error::{Result, RpcError};
pub use limits::ConnectionLimits;
pub use protobuf::Call;
#[doc(hidden)]
pub use protobuf::labels;
pub use server::{Replies, Server, ServerOptions, bind};
#[doc(hidden)]
pub use server::{server_side, with_permit};
pub use tls::{Identity, TlsFiles, dns_names, read_file};
#[doc(hidden)]
pub use {http, prost, tokio, tonic, tower};
