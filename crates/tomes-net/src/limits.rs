//! Every bound of the network of tomes by name, and the relations between them.

use std::time::Duration;

use fulgurite_accept::HandshakeLimits;
use fulgurite_tomes::limits::{BLOCK_BYTES_MAX, NAME_BYTES_MAX, PUTS_MAX};

/// Letters that wait for one peer. What does not fit is lost.
pub const ROUTE_MAX: usize = 256;
/// Bytes of letters that wait for one peer, beyond the last that was taken.
pub const ROUTE_BYTES_MAX: usize = 64 << 20;
/// Bytes of one message of gRPC.
pub const WIRE_BYTES_MAX: usize = 64 << 20;
/// Bytes of what a tome tells another at once, which may be a segment; what is larger is lost.
pub const LETTER_BYTES_MAX: usize = WIRE_BYTES_MAX - 4096;
/// Bytes that are sent on a stream before who reads has read.
pub const WINDOW_BYTES: u32 = 1 << 20;
/// Bytes of an object in one message.
pub const PART_BYTES: usize = 1 << 20;
/// Bytes of a question or an answer that travels in parts: what a member has of the largest object,
/// or where all objects of a region lie.
pub const SAID_BYTES_MAX: usize = 512 << 20;
/// Names in one page.
pub const PAGE_MAX: usize = 256;
/// Questions to one tome that wait for answers.
pub const ASKS_MAX: usize = 256;
/// Connections that a tome takes, and those that have not shown a certificate yet. A burst of
/// thousands of those, which say nothing, is through in seconds.
pub const HANDSHAKES: HandshakeLimits = HandshakeLimits {
    strangers: 256,
    protected: Duration::from_millis(250),
    within: ANSWER_WITHIN,
    peers: 4096,
};
/// Streams of one connection.
pub const STREAMS_MAX: u32 = 1024;
/// Bytes of a file of certificates, of a key, or `tomes.toml`.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// A connection with its handshake, and the first answer on it, are waited for so long.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A connection on which nothing comes is asked whether it is one.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// It is given up when the other end's machine does not confirm for so long what was sent to it. An
/// answer may take longer: the question waits behind all that was to be sent before it.
pub const UNCONFIRMED_MAX: Duration = Duration::from_secs(10);
/// For the answer of a machine that confirms, and says nothing.
pub const ANSWER_OF_LIFE: Duration = Duration::from_secs(60);
/// The rest after the first failure; it doubles with each.
pub const REST_MIN: Duration = Duration::from_millis(100);
/// The longest rest.
pub const REST_MAX: Duration = Duration::from_secs(10);
/// A connection that lasted so long begins the rests anew.
pub const LASTED: Duration = Duration::from_secs(1);

const _: () = assert!(BLOCK_BYTES_MAX.get() * 4 <= WIRE_BYTES_MAX as u64, "a change of a block");
const _: () = assert!(PAGE_MAX * (NAME_BYTES_MAX + 16) <= WIRE_BYTES_MAX, "a page is a message");
const _: () = assert!(PUTS_MAX * (NAME_BYTES_MAX + 16) <= WIRE_BYTES_MAX, "so is a greeting");
const _: () = assert!(PART_BYTES <= WIRE_BYTES_MAX / 2);
