//! Limits of nodes, and the relations between them.

use std::time::Duration;

use fulgurite_accept::HandshakeLimits;
use fulgurite_rpc::ConnectionLimits;

use crate::stores::limits::{
    ANSWER_TIMEOUT, BLOB_BYTES_MAX, BLOB_TIMEOUT, CONNECT_TIMEOUT, KEY_BYTES_MAX, PAGE_ROWS,
    ROW_BYTES_MAX,
};

/// Version of the protocol, which must be the same at both ends.
pub const VERSION: u32 = 1;
/// Maximum bytes of one gRPC message.
pub const WIRE_BYTES_MAX: usize = 4 << 20;
/// Maximum bytes of a blob in one message.
pub const PART_BYTES: usize = 1 << 20;
/// A message of a scan ends once its rows have this many bytes.
pub const ROWS_BYTES: usize = 1 << 20;
/// Maximum number of blobs in one message of a list.
pub const METAS_PER_MESSAGE: usize = 256;
/// Queue length for messages of a scan or a list.
pub const REPLY_QUEUE_LEN: usize = 2;
/// Maximum bytes of blobs that a node buffers at once; further reads wait, and further writes are
/// throttled.
pub const BUFFER_BYTES_MAX: usize = 512 << 20;
/// Unit in which those bytes are counted.
pub const BUFFER_UNIT_BYTES: usize = 1 << 10;
/// Maximum number of concurrent calls of a node; others wait.
pub const CALLS_MAX: usize = 1024;
/// Limits of a node's connections, and of those that have not shown a certificate yet. A burst of
/// thousands of silent ones clears within seconds, and handshakes between continents complete
/// meanwhile.
pub const HANDSHAKE_LIMITS: HandshakeLimits = HandshakeLimits {
    unauthenticated: 256,
    min_idle: Duration::from_millis(250),
    timeout: CONNECT_TIMEOUT,
    peers: 1024,
};
/// Maximum number of concurrent calls per connection.
pub const STREAMS_MAX: u32 = 256;
/// Flow control window of a stream: bytes in flight before the receiver acknowledges them; a larger
/// blob takes another round trip. A fragment of a default chunk, of 4 MiB, fits.
pub const WINDOW_BYTES: u32 = 8 << 20;
/// Flow control window of a connection, over all its streams. It is the memory that a connection
/// may take besides blob buffers: as many fragments as a program reads or writes ahead.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 * WINDOW_BYTES;
/// Longest maximum backoff before a throttled blob is written again.
pub const THROTTLED_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Maximum tries of a step that could not be sent, or whose answer was lost.
pub const TRIES_MAX: u32 = 4;
/// Base of the maximum backoff between tries, which doubles with each.
pub const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Timeout of a step, with all its tries; after that its outcome is unknown.
pub const STEP_TIMEOUT: Duration = ANSWER_TIMEOUT;
/// Heartbeat interval: an idle connection is probed after this time.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A connection is closed if the other machine does not acknowledge sent data within this time
/// (TCP). An answer may take longer: the request queues behind all data that is sent before it.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);
/// Heartbeat timeout, for a peer that acknowledges data but does not answer: as long as a blob may
/// take.
pub const KEEP_ALIVE_TIMEOUT: Duration = BLOB_TIMEOUT;
/// Limits of each connection.
pub const CONNECTION: ConnectionLimits = ConnectionLimits {
    streams: STREAMS_MAX,
    window_bytes: WINDOW_BYTES,
    connection_window_bytes: CONNECTION_WINDOW_BYTES,
    keep_alive: KEEP_ALIVE,
    keep_alive_timeout: KEEP_ALIVE_TIMEOUT,
    tcp_user_timeout: TCP_USER_TIMEOUT,
};
/// How long a stopping node waits for running calls.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(10);

const _: () = assert!(2 * ROW_BYTES_MAX + KEY_BYTES_MAX < WIRE_BYTES_MAX, "a row and a conflict");
const _: () = assert!(ROWS_BYTES + ROW_BYTES_MAX < WIRE_BYTES_MAX, "a message of a scan");
const _: () =
    assert!(METAS_PER_MESSAGE * (KEY_BYTES_MAX + 64) < WIRE_BYTES_MAX, "a message of a list");
const _: () = assert!(PART_BYTES < WIRE_BYTES_MAX / 2, "a part is a message");
const _: () = assert!(WIRE_BYTES_MAX < WINDOW_BYTES as usize, "a message takes one round trip");
const _: () = assert!(BLOB_BYTES_MAX <= BUFFER_BYTES_MAX, "any blob fits the buffer");
const _: () = assert!(PAGE_ROWS <= 1024, "a message of a scan has as many rows");
const _: () = assert!(CONNECT_TIMEOUT.as_secs() < STEP_TIMEOUT.as_secs(), "a step can connect");
const _: () = assert!(STEP_TIMEOUT.as_secs() < BLOB_TIMEOUT.as_secs());
