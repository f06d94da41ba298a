//! Every bound of these commands by name.

use std::time::Duration;

/// Largest line of a progress stream that is read from a server.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;
/// Fewest descriptors with which an archive is served: some 40 for its files, the rest for clients.
pub(crate) const DESCRIPTORS_MIN: u64 = 64;
/// Restores of each retrieval that a rack is asked for at a time: more than the usual number, since
/// it orders what waits by its groups.
pub(crate) const RACK_RESTORES_AT_ONCE: usize = 64;
/// Bodies that are brought to tomes at a time: each waits until its parities have turned, which is
/// minutes, and what it takes meanwhile is a few hundred bytes.
pub(crate) const TOMES_BODIES_AT_ONCE: usize = 64;
/// How long a store of a site may take to answer `geo status`.
pub(crate) const SITE_ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Objects that `geo verify` reads at a time.
pub(crate) const GEO_VERIFIED_AT_ONCE: usize = 4;
/// Damaged or unreadable objects that it names.
pub(crate) const GEO_NAMED_MAX: usize = 100;
/// `tomes init` waits so long for tomes in other processes to answer.
pub(crate) const TOMES_ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Memory of bodies on their way to buckets that archives share, and as much on their way out, in
/// MiB; more wait.
pub(crate) const SHARED_ROOM_MIB: usize = 2048;
