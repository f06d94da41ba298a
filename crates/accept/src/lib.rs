//! Listeners: which connections are accepted, and which are closed when a limit is reached.
//!
//! ```text
//!                      limit of unauthenticated        limit of peers
//!   listener --------> handshake --authenticated-----> a session, until it ends
//!               |      |  `--- timed out
//!               |      `------ oldest, no slot free: closed
//!               `- S3 -> connections; the longest-idle one is closed
//! ```
//!
//! Any client that reaches an address can connect to it and send nothing. Unauthenticated
//! connections have a limit of their own, at which the oldest is closed for the next: however many
//! there are, a peer with a certificate completes its handshake, and an established session stays
//! open.
//!
//! Why a crate: the S3 endpoint, the nodes of sites and the tomes in processes of their own all
//! listen, and otherwise they share only `units`, which has neither sockets nor a runtime. Not
//! here: TLS, and the protocol spoken on a connection.

mod connections;
mod handshakes;

pub use connections::{Busy, Connections, Slot};
pub use handshakes::{Handshake, HandshakeLimits, Peer, PeerPermit, admit_peers};
