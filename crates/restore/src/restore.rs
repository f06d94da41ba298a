//! One restore and its pieces.
//!
//! ```text
//! Waiting --Fetch--> UnderWay --Came--> Came --all of them--> Commit
//!    ^                   |                |
//!    |                Failed             Lost
//!    '---- Resting <-----'----------------'
//! ```

use fulgurite_units::{ByteCount, Duration, Instant, UnixTime};

use crate::limits::REST_MAX;
use crate::{Piece, Place, Retrieval, TierIndex};

/// Position in a queue: by due time, then by order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) due: UnixTime,
    pub(crate) sequence: u64,
}

/// State of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Waiting,
    /// In backoff until that time.
    Resting(Instant),
    /// Its restore gives up, and waits only for the pieces in flight.
    Stopped,
    UnderWay,
    Came,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) tier: TierIndex,
    pub(crate) place: Option<Place>,
    pub(crate) bytes: ByteCount,
    pub(crate) step: Step,
    /// Failures since the restore began.
    pub(crate) failures: u32,
}

impl Held {
    pub(crate) const fn new(piece: Piece) -> Self {
        let Piece { tier, place, bytes, .. } = piece;
        Self { tier, place, bytes, step: Step::Waiting, failures: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Restore {
    pub(crate) retrieval: Retrieval,
    pub(crate) age: Age,
    pub(crate) pieces: Vec<Held>,
    /// Total of all pieces.
    pub(crate) bytes: ByteCount,
    /// Pieces that have not arrived yet.
    pub(crate) left: usize,
    /// Pieces that are being fetched.
    pub(crate) under_way: usize,
    /// It has reserved space for its copy.
    pub(crate) is_begun: bool,
    /// A piece failed too often: it keeps its space only until none of its pieces is in flight.
    pub(crate) gives_up: bool,
    /// Times that it started over.
    pub(crate) rounds: u32,
}

/// Returns the backoff after this many failures: `first`, doubled on each further failure.
pub(crate) fn rest(first: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let nanos = first.as_nanos().saturating_mul(1 << doublings);
    Duration::from_nanos(nanos).min(REST_MAX)
}
