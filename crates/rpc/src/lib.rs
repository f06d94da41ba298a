//! RPC between the processes of a tier: gRPC over TLS on which both sides show a certificate.
//!
//! ```text
//! tls      certificates and keys in files, and the names in certificates
//! limits   of a connection: streams, windows, heartbeats
//! server   answers the calls of authenticated peers
//! codec    messages in protobuf, up to a size
//! ```
//!
//! Nothing is read from a peer before its certificate is verified. Not here: what the calls are,
//! which peer may make them, and when a lost connection is opened again.

mod codec;
mod error;
mod limits;
mod server;
mod tls;

pub use codec::grpc;
pub use error::{Result, RpcError};
pub use limits::ConnectionLimits;
pub use server::serve;
pub use tls::{Identity, TlsFiles, dns_names, read_file};
