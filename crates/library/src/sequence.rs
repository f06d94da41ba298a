//! What only grows: the time, and the numbers that are given out in it.
//!
//! Ages and ranks come of one count, so that no two requests and no two trips are alike; commands
//! are counted by themselves, and the number of each says who carries it out. Not here: a clock.
//! The time is what the last event said.

use fulgurite_units::{DriveIndex, Instant, ShuttleIndex};

use crate::CommandId;
use crate::state::Age;
use crate::traffic::MAKING_WAY;

/// The time, and what was given out so far.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    now: Instant,
    /// Ages and ranks given out.
    given: u64,
    commands: u64,
}

/// Who carries out a command; its number ends in this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Shuttle(ShuttleIndex),
    Drive(DriveIndex),
}

/// Actors are told apart in the low bits of a command's number.
const ACTOR_BITS: u32 = 12;
const FIRST_DRIVE: u64 = 1 << (ACTOR_BITS - 1);

impl Sequence {
    pub(crate) const fn new() -> Self {
        Self { now: Instant::ZERO, given: 0, commands: 0 }
    }

    /// The time of the event that is looked at.
    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Two drivers' threads may read one clock out of order; ages must not run backwards.
    pub(crate) fn come_to(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// The age of what comes now.
    pub(crate) const fn age(&mut self, due: Instant) -> Age {
        self.given += 1;
        Age { due, sequence: self.given }
    }

    /// The rank of a trip that begins now: the older, the higher, and below those that make way.
    pub(crate) const fn rank(&mut self) -> u64 {
        self.given += 1;
        MAKING_WAY - 1 - self.given
    }

    /// The name of the next command.
    pub(crate) fn command(&mut self, actor: Actor) -> CommandId {
        let number = match actor {
            Actor::Shuttle(shuttle) => u64::from(shuttle.get()),
            Actor::Drive(drive) => FIRST_DRIVE + u64::from(drive.get()),
        };
        let id = CommandId::new((self.commands << ACTOR_BITS) + number);
        self.commands += 1;
        id
    }
}

/// Who was given a command.
pub(crate) fn actor(command: CommandId) -> Actor {
    let number = command.get() & ((1 << ACTOR_BITS) - 1);
    let index = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    match number.checked_sub(FIRST_DRIVE) {
        Some(drive) => Actor::Drive(DriveIndex::new(index(drive))),
        None => Actor::Shuttle(ShuttleIndex::new(index(number))),
    }
}
