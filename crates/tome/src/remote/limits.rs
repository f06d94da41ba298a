//! Every limit of the network of tomes by name, and the relations between them.

use std::time::Duration;

use fulgurite_accept::HandshakeLimits;
use fulgurite_rpc::ConnectionLimits;

use crate::limits::{BLOCK_BYTES_MAX, NAME_BYTES_MAX, PUTS_MAX};

/// Messages that wait for one peer. Beyond that they are dropped.
pub const ROUTE_MAX: usize = 256;
/// Bytes of messages that wait for one peer, not counting the one being sent.
pub const ROUTE_BYTES_MAX: usize = 64 << 20;
/// Largest gRPC message in bytes.
pub const WIRE_BYTES_MAX: usize = 64 << 20;
/// Bytes of one message between tomes, which may hold a segment; larger ones are dropped.
pub const MESSAGE_BYTES_MAX: usize = WIRE_BYTES_MAX - 4096;
/// Flow-control window: bytes sent on a stream before the receiver has read.
pub const WINDOW_BYTES: u32 = 1 << 20;
/// Bytes of an object in one message.
pub const PART_BYTES: usize = 1 << 20;
/// Bytes of a query or reply that is sent in parts: a member's holdings of the largest object, or
/// the locations of all objects of a region.
pub const REPLY_BYTES_MAX: usize = 512 << 20;
/// Names in one page.
pub const PAGE_MAX: usize = 256;
/// Requests to one tome without an answer.
pub const REQUESTS_MAX: usize = 256;
/// Connections that a tome accepts, and those still in their handshake. A burst of thousands of
/// silent ones is over in seconds.
pub const HANDSHAKES: HandshakeLimits = HandshakeLimits {
    unauthenticated: 256,
    min_idle: Duration::from_millis(250),
    timeout: CONNECT_TIMEOUT,
    peers: 4096,
};
/// Streams of one connection.
pub const STREAMS_MAX: u32 = 1024;
/// Time limit for a connection with its handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the first answer of a session, before which a tome may be created on a disk that
/// has to spin up.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit for queries that wait for no disk, and for removals.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(300);
/// Heartbeat interval on an idle connection.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A connection is closed when the peer's kernel does not acknowledge sent data for this long. An
/// answer may take longer: the request waits behind all that was to be sent before it.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// Heartbeat timeout for a peer whose kernel acknowledges data but which does not answer.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);
/// Limits of each connection.
pub const CONNECTION: ConnectionLimits = ConnectionLimits {
    streams: STREAMS_MAX,
    window_bytes: WINDOW_BYTES,
    connection_window_bytes: 4 * WINDOW_BYTES,
    keep_alive: KEEP_ALIVE,
    keep_alive_timeout: HEARTBEAT_TIMEOUT,
    tcp_user_timeout: TCP_USER_TIMEOUT,
};
/// Backoff after the first failure; it doubles with each.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest backoff.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A connection that lasted this long resets the backoff.
pub const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(1);

const _: () = assert!(BLOCK_BYTES_MAX.get() * 4 <= WIRE_BYTES_MAX as u64, "a change of a block");
const _: () = assert!(PAGE_MAX * (NAME_BYTES_MAX + 16) <= WIRE_BYTES_MAX, "a page is a message");
const _: () =
    assert!(PUTS_MAX * (NAME_BYTES_MAX + 16) <= WIRE_BYTES_MAX, "so is a handshake reply");
const _: () = assert!(PART_BYTES <= WIRE_BYTES_MAX / 2);
