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

/// Where in the queue something is: by when it is due, then in the order of its coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) due: UnixTime,
    pub(crate) sequence: u64,
}

/// How far a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Waiting,
    /// It is tried again at that time.
    Resting(Instant),
    /// Its restore gives up, and waits only for what is under way.
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
    /// Times that it failed since the restore began.
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
    /// Of all pieces.
    pub(crate) bytes: ByteCount,
    /// Pieces that did not come yet.
    pub(crate) left: usize,
    /// Pieces that are being fetched.
    pub(crate) under_way: usize,
    /// It holds room for its copy.
    pub(crate) is_begun: bool,
    /// A piece failed too often: it holds its room only until nothing of it is under way.
    pub(crate) gives_up: bool,
    /// Times that it had to begin anew.
    pub(crate) rounds: u32,
}

/// How long something rests that failed so many times: `first`, and twice as long each time after.
pub(crate) fn rest(first: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let nanos = first.as_nanos().saturating_mul(1 << doublings);
    Duration::from_nanos(nanos).min(REST_MAX)
}
