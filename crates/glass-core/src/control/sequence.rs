//! Values that only grow: the time, and the numbers assigned in sequence.
//!
//! Ages and ranks come from one counter, so that no two requests and no two trips are alike.
//! Commands have their own counter, and each command number encodes the machine that carries it
//! out. Not here: a clock. The time is that of the last event.

use fulgurite_units::{DriveIndex, Instant, ShuttleIndex};

use crate::control::CommandId;
use crate::control::state::Age;
use crate::control::traffic::MAKING_WAY;

/// The time, and the numbers assigned so far.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    now: Instant,
    /// Ages and ranks assigned.
    assigned: u64,
    commands: u64,
}

/// The machine that carries out a command, encoded in the low bits of the command number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Shuttle(ShuttleIndex),
    Drive(DriveIndex),
}

/// Low bits of a command number that identify the actor.
const ACTOR_BITS: u32 = 12;
const FIRST_DRIVE: u64 = 1 << (ACTOR_BITS - 1);

impl Sequence {
    pub(crate) const fn new() -> Self {
        Self { now: Instant::ZERO, assigned: 0, commands: 0 }
    }

    /// The time of the current event.
    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Advances the time. Two drivers' threads may read one clock out of order; ages must not run
    /// backwards.
    pub(crate) fn advance_to(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Returns the age of a request that arrives now.
    pub(crate) const fn age(&mut self, due: Instant) -> Age {
        self.assigned += 1;
        Age { due, sequence: self.assigned }
    }

    /// Returns the rank of a trip that begins now: older trips rank higher, and all below those
    /// that make way.
    pub(crate) const fn rank(&mut self) -> u64 {
        self.assigned += 1;
        MAKING_WAY - 1 - self.assigned
    }

    /// Returns the id of the next command.
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

/// Returns the machine that was given a command.
pub(crate) fn actor(command: CommandId) -> Actor {
    let number = command.get() & ((1 << ACTOR_BITS) - 1);
    let index = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    match number.checked_sub(FIRST_DRIVE) {
        Some(drive) => Actor::Drive(DriveIndex::new(index(drive))),
        None => Actor::Shuttle(ShuttleIndex::new(index(number))),
    }
}
