//! Listeners: which connections are taken, and which give way when there is no room for one more.
//!
//! ```text
//!                      room for strangers              room for peers
//!   listener --------> handshake --who it is, shown--> a session, until it ends
//!               |      |  `--- took too long
//!               |      `------ silent for longest, no room: ended
//!               `- S3 -> connections; the longest idle one gives way
//! ```
//!
//! Any client that reaches an address can connect to it and say nothing. Connections without a name
//! have a bounded room of their own, in which the oldest gives way to the next: however many there
//! are, a peer with a certificate gets through its handshake, and one that has a session keeps it.
//!
//! Why a crate: the S3 endpoint, nodes of sites and tomes in processes of their own listen, and
//! all that they have in common otherwise is `units`, which has neither sockets nor a runtime.
//! Not here: TLS, and what is said on a connection.

mod connections;
mod handshakes;

pub use connections::{Busy, Connections, Slot};
pub use handshakes::{Handshake, HandshakeLimits, Peer, PeerRoom, admit_peers};
