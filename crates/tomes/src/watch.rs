//! What happens in a set, told to whoever watches, where it is carried out.
//!
//! Nobody is waited for: what happens goes into a ring of so many places, and who reads too slowly
//! is told how much was written over. While nobody watches nothing is made of it. Each says how
//! something is, not by how much it changed, so whoever missed some looks at the whole and goes on.
//!
//! Not here: what is looked at from time to time ([`crate::TomeSet::status`]); of a tome in another
//! process no more than its tokens is heard here.

use fulgurite_disks::{Cause, Power};
use fulgurite_tome::group::Move;
use fulgurite_tome::token::TokenId;
use fulgurite_tome::{Alarm, GroupId, TomeId};
use fulgurite_units::{Clock, UnixTime};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::limits::HAPPENINGS_WAITING;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// A disk does something else than before.
    Power {
        /// Which tome's.
        tome: TomeId,
        /// What it does.
        power: Power,
        /// What it was woken for, when it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// A token was given, or came back.
    Token {
        /// Which.
        token: TokenId,
        /// Who has it now, if anybody.
        tome: Option<TomeId>,
    },
    /// An object was acknowledged: it is on its own disk, with the parity of its segments.
    Local {
        /// On which tome.
        tome: TomeId,
        /// Its bytes.
        bytes: u64,
    },
    /// What of a tome its groups do not protect yet.
    Unprotected {
        /// Of which tome.
        tome: TomeId,
        /// So much; none when every parity has all.
        bytes: u64,
        /// How long the oldest of it waits.
        seconds: f64,
    },
    /// A tome tells what somebody should know: bad blocks, and what became of them; seats.
    Alarm {
        /// Which tome.
        tome: TomeId,
        /// What.
        alarm: Alarm,
    },
    /// A full scrub got on.
    Scrubbed {
        /// Of which tome.
        tome: TomeId,
        /// Passes that reached the end.
        passes: u64,
        /// Blocks of the disk that this pass has behind it.
        next: u64,
        /// Of so many.
        blocks: u64,
    },
    /// A tome is given up: nothing is asked of it until it works again.
    GivenUp {
        /// Which.
        tome: TomeId,
        /// Why.
        why: String,
    },
    /// A tome that was given up works again, and goes on.
    Resumed {
        /// Which.
        tome: TomeId,
    },
    /// A seat is planned to move, or got on.
    Seat {
        /// Of which group.
        group: GroupId,
        /// Whose it was.
        from: TomeId,
        /// Whose it is to be.
        to: TomeId,
        /// How much of what is to be read was, from 0 to 1.
        done: f64,
        /// Why it does not go on, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// A seat has moved.
    SeatMoved {
        /// Of which group.
        group: GroupId,
        /// Whose it was.
        from: TomeId,
        /// Whose it is.
        to: TomeId,
    },
    /// A seat that was planned to move does not.
    SeatStays {
        /// Of which group.
        group: GroupId,
        /// Whose it was to be.
        to: TomeId,
    },
    /// Seats of these tomes go to others, of those no seat is left.
    Leaving {
        /// Tomes whose seats go to others.
        leaving: Vec<TomeId>,
        /// Tomes that have none any more.
        out: Vec<TomeId>,
    },
}

impl Happening {
    /// That a seat moved.
    pub(crate) const fn moved(planned: &Move) -> Self {
        Self::SeatMoved { group: planned.group, from: planned.from.tome, to: planned.to.tome }
    }

    /// That a seat does not move.
    pub(crate) const fn stays(planned: &Move) -> Self {
        Self::SeatStays { group: planned.group, to: planned.to.tome }
    }
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// When.
    pub at: UnixTime,
    /// What.
    pub what: Happening,
}

/// Where what happens is told. Clones are the same place.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    ring: broadcast::Sender<Happened>,
    clock: Clock,
}

impl Watched {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { ring: broadcast::Sender::new(HAPPENINGS_WAITING), clock }
    }

    /// Whether anybody would hear of something.
    pub(crate) fn is_watched(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    /// Something happened.
    pub(crate) fn tell(&self, what: impl FnOnce() -> Happening) {
        if self.is_watched() {
            // Who watched may have gone.
            let _ = self.ring.send(Happened { at: self.clock.now(), what: what() });
        }
    }

    /// One more watches from now on.
    pub(crate) fn watch(&self) -> Watching {
        Watching(self.ring.subscribe())
    }
}

/// One who watches. What it does not read in time is not kept for it.
#[derive(Debug)]
pub struct Watching(broadcast::Receiver<Happened>);

impl Watching {
    /// What happened next; how much was missed of it, as an error. Nothing when the set is gone.
    /// Who stops waiting for it loses nothing.
    pub async fn next(&mut self) -> Option<Result<Happened, Missed>> {
        match self.0.recv().await {
            Ok(happened) => Some(Ok(happened)),
            Err(RecvError::Lagged(missed)) => Some(Err(Missed(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}

/// More happened than was read: so many were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed(pub u64);

#[cfg(test)]
mod tests;
