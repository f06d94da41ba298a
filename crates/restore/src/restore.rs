//! One restore and its pieces.
//!
//! ```text
//! Waiting --Fetch--> InFlight --Came--> Arrived --all of them--> Commit
//!    ^                   |                 |
//!    |                Failed             Lost
//!    '---- Backoff <-----'----------------'
//! ```

use fulgurite_units::{ByteCount, Duration, Instant, UnixTime};

use crate::limits::BACKOFF_MAX;
use crate::{Piece, Place, Retrieval, TierIndex};

/// Position in a queue: by due time, then by order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority {
    pub(crate) due: UnixTime,
    pub(crate) sequence: u64,
}

/// State of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Waiting,
    /// In backoff until that time.
    Backoff(Instant),
    /// Its restore gives up, and waits only for the pieces in flight.
    Stopped,
    InFlight,
    Arrived,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceState {
    pub(crate) tier: TierIndex,
    pub(crate) place: Option<Place>,
    pub(crate) bytes: ByteCount,
    pub(crate) step: Step,
    /// Failures since the restore began.
    pub(crate) failures: u32,
}

impl PieceState {
    pub(crate) const fn new(piece: Piece) -> Self {
        let Piece { tier, place, bytes, .. } = piece;
        Self { tier, place, bytes, step: Step::Waiting, failures: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Restore {
    pub(crate) retrieval: Retrieval,
    pub(crate) priority: Priority,
    pub(crate) pieces: Vec<PieceState>,
    /// Total of all pieces.
    pub(crate) bytes: ByteCount,
    /// Pieces that have not arrived yet.
    pub(crate) left: usize,
    /// Pieces that are being fetched.
    pub(crate) in_flight: usize,
    /// It has reserved space for its copy.
    pub(crate) is_admitted: bool,
    /// A piece failed too often: it keeps its space only until none of its pieces is in flight.
    pub(crate) is_giving_up: bool,
    /// Times that it started over.
    pub(crate) rounds: u32,
}

/// Returns the backoff after this many failures: `first`, doubled on each further failure.
pub(crate) fn backoff(first: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let nanos = first.as_nanos().saturating_mul(1 << doublings);
    Duration::from_nanos(nanos).min(BACKOFF_MAX)
}
