//! Every bound of nodes by name, and the relations between them.

use std::time::Duration;

use fulgurite_accept::HandshakeLimits;
use fulgurite_sites::limits::{
    ANSWER_WITHIN, BLOB_BYTES_MAX, BLOB_WITHIN, CONNECT_WITHIN, KEY_BYTES_MAX, PAGE_ROWS,
    ROW_BYTES_MAX,
};

/// The version that is spoken, which both ends have to speak.
pub const VERSION: u32 = 1;
/// Bytes of one message of gRPC.
pub const WIRE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a blob in one message.
pub const PART_BYTES: usize = 1 << 20;
/// Bytes of rows in one message of a scan, but for the last of them.
pub const ROWS_BYTES: usize = 1 << 20;
/// Blobs of which one message of a list tells.
pub const METAS: usize = 256;
/// Messages of a scan or a list that wait to be sent.
pub const REPLIES_WAITING: usize = 2;
/// Bytes of blobs that a node holds at once; who comes with more waits.
pub const BODIES_BYTES_MAX: usize = 512 << 20;
/// Those bytes are counted in pieces of this size.
pub const BODIES_UNIT: usize = 1 << 10;
/// Calls that a node works at, at once; others wait.
pub const CALLS_MAX: usize = 1024;
/// Connections that a node takes, and those that have not shown a certificate yet. A burst of
/// thousands of those, which say nothing, is through in seconds, and handshakes between
/// continents get through beside it.
pub const HANDSHAKES: HandshakeLimits = HandshakeLimits {
    strangers: 256,
    protected: Duration::from_millis(250),
    within: CONNECT_WITHIN,
    peers: 1024,
};
/// Calls on one connection.
pub const STREAMS_MAX: u32 = 256;
/// Bytes that are sent on a stream before who reads has said that it has read some: a blob of more
/// takes another trip. A fragment of a map's usual chunks, of 4 MiB, is within it.
pub const WINDOW_BYTES: u32 = 8 << 20;
/// The same of all streams of a connection, which is the memory that one may cost beside bodies:
/// as many fragments as a program reads or writes ahead.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 * WINDOW_BYTES;
/// Bytes of a file of certificates or of a key.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// Tries of a step whose answer was lost, or which could not be sent.
pub const TRIES_MAX: u32 = 4;
/// The longest rest after the first such try; it doubles with each.
pub const REST_MIN: Duration = Duration::from_millis(50);
/// A step, with all its tries, may take so long; then nobody knows what became of it.
pub const STEP_WITHIN: Duration = ANSWER_WITHIN;
/// A connection on which nothing comes is asked whether it is one.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// It is given up when the other end's machine does not confirm for so long what was sent to it. An
/// answer may take longer: the question waits behind all that was to be sent before it.
pub const UNCONFIRMED_MAX: Duration = Duration::from_secs(5);
/// For the answer of a machine that confirms, and says nothing: as long as a blob may take.
pub const ANSWER_OF_LIFE: Duration = BLOB_WITHIN;
/// A node that is told to stop waits so long for calls that are under way.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);

const _: () = assert!(2 * ROW_BYTES_MAX + KEY_BYTES_MAX < WIRE_BYTES_MAX, "a row and a conflict");
const _: () = assert!(ROWS_BYTES + ROW_BYTES_MAX < WIRE_BYTES_MAX, "a message of a scan");
const _: () = assert!(METAS * (KEY_BYTES_MAX + 64) < WIRE_BYTES_MAX, "a message of a list");
const _: () = assert!(PART_BYTES < WIRE_BYTES_MAX / 2, "a part is a message");
const _: () = assert!(WIRE_BYTES_MAX < WINDOW_BYTES as usize, "a message takes one trip");
const _: () = assert!(BLOB_BYTES_MAX <= BODIES_BYTES_MAX, "any blob comes through");
const _: () = assert!(PAGE_ROWS <= 1024, "a message of a scan has as many rows");
const _: () = assert!(CONNECT_WITHIN.as_secs() < STEP_WITHIN.as_secs(), "a step can connect");
const _: () = assert!(STEP_WITHIN.as_secs() < BLOB_WITHIN.as_secs());
