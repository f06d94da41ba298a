//! Every limit of these commands, by name.

use std::time::Duration;

/// Longest line of a progress stream that is read from a server.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;
/// Fewest descriptors needed to serve an archive: some 40 for its files, the rest for clients.
pub(crate) const DESCRIPTORS_MIN: u64 = 64;
/// Concurrent restores per retrieval from a rack: more than the usual number, since the rack orders
/// waiting ones by group.
pub(crate) const RACK_RESTORE_CONCURRENCY: usize = 64;
/// Bodies that are moved to tomes at a time. Each waits until its parity tomes have spun up, which
/// takes minutes and a few hundred bytes.
pub(crate) const TOMES_BODY_CONCURRENCY: usize = 64;
/// How long `tomes init` waits for tomes in other processes to answer.
pub(crate) const TOMES_TIMEOUT: Duration = Duration::from_secs(30);
/// Memory for incoming bodies of buckets that archives share, and as much for outgoing ones, in
/// MiB; more wait.
pub(crate) const SHARED_MEMORY_MIB: usize = 2048;
