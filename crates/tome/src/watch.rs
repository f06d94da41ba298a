//! Events of a set for subscribers, reported where they are carried out.
//!
//! There is no back-pressure: a slow subscriber learns how many events it missed. Each event
//! reports a state, not a difference, so a subscriber that missed some takes a snapshot and
//! continues.
//!
//! Not here: what is polled from time to time ([`crate::TomeSet::status`]); of a tome in another
//! process only its tokens are reported here.

use fulgurite_disks::{Cause, Power};
use fulgurite_tier::watch::{Publisher, Watch};
use fulgurite_tome_core::group::Move;
use fulgurite_tome_core::token::TokenId;
use fulgurite_tome_core::{Alarm, GroupId, TomeId};
use fulgurite_units::{Clock, UnixTime};
use serde::{Deserialize, Serialize};

use crate::limits::EVENTS_BUFFERED;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TomeEvent {
    /// The power state of a disk changed.
    Power {
        /// Its tome.
        tome: TomeId,
        /// The new state.
        power: Power,
        /// The cause, if it was spun up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// A token was granted or released.
    Token {
        /// The token.
        token: TokenId,
        /// Its holder now, if any.
        tome: Option<TomeId>,
    },
    /// An object was acknowledged: it is on its own disk, with the parity of its segments.
    Local {
        /// Its tome.
        tome: TomeId,
        /// Its size in bytes.
        bytes: u64,
    },
    /// Data of a tome that its groups do not protect yet.
    Unprotected {
        /// The tome.
        tome: TomeId,
        /// Amount; zero when every parity has everything.
        bytes: u64,
        /// Age of the oldest.
        seconds: f64,
    },
    /// Alarm of a tome for an operator: bad blocks and their repair, or member slots.
    Alarm {
        /// The tome.
        tome: TomeId,
        /// The alarm.
        alarm: Alarm,
    },
    /// A full scrub made progress.
    Scrubbed {
        /// The tome.
        tome: TomeId,
        /// Completed passes.
        passes: u64,
        /// Blocks of the disk read in this pass.
        next: u64,
        /// Blocks in all.
        blocks: u64,
    },
    /// A tome failed: it gets no requests until it works again.
    GivenUp {
        /// The tome.
        tome: TomeId,
        /// The failure.
        why: String,
    },
    /// A failed tome works again.
    Resumed {
        /// The tome.
        tome: TomeId,
    },
    /// A move of a member slot was planned, or made progress.
    SlotMove {
        /// The group.
        group: GroupId,
        /// The previous holder.
        from: TomeId,
        /// The new holder.
        to: TomeId,
        /// Fraction of the sources read, from 0 to 1.
        done: f64,
        /// Why it is stuck, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A member slot has moved.
    SlotMoved {
        /// The group.
        group: GroupId,
        /// The previous holder.
        from: TomeId,
        /// The new holder.
        to: TomeId,
    },
    /// A planned move was dropped.
    SlotStays {
        /// The group.
        group: GroupId,
        /// The target.
        to: TomeId,
    },
    /// The leaving tomes changed, or those without member slots.
    Leaving {
        /// Tomes whose member slots move to others.
        leaving: Vec<TomeId>,
        /// Tomes without member slots.
        out: Vec<TomeId>,
    },
}

impl TomeEvent {
    /// Returns the event for a completed move.
    pub(crate) const fn moved(planned: &Move) -> Self {
        Self::SlotMoved { group: planned.group, from: planned.from.tome, to: planned.to.tome }
    }

    /// Returns the event for a dropped move.
    pub(crate) const fn stays(planned: &Move) -> Self {
        Self::SlotStays { group: planned.group, to: planned.to.tome }
    }
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimestampedEvent {
    /// The time.
    pub at: UnixTime,
    /// The event.
    pub what: TomeEvent,
}

/// Publisher of events with their times. Clones share the ring.
#[derive(Clone, Debug)]
pub(crate) struct EventPublisher {
    publisher: Publisher<TimestampedEvent>,
    clock: Clock,
}

impl EventPublisher {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { publisher: Publisher::new(EVENTS_BUFFERED), clock }
    }

    /// Whether there are subscribers.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.publisher.has_subscribers()
    }

    /// Publishes an event.
    pub(crate) fn send(&self, what: impl FnOnce() -> TomeEvent) {
        self.publisher.publish(|| TimestampedEvent { at: self.clock.now(), what: what() });
    }

    /// Adds a subscriber from now on.
    pub(crate) fn watch(&self) -> Watch<TimestampedEvent> {
        self.publisher.watch()
    }
}

#[cfg(test)]
mod tests;
