//! The common shape of all decision logic: events in, commands out, time passed in.

use crate::Instant;

/// A state machine without clock, thread, socket, file or random source.
///
/// ```text
///            Event                        Command
/// driver ------------> Controller::step ----------> Outbox --> driver executes, answers with
///    ^                                                          an Event when it is done
///    '--- deadline() passes: the driver sends the controller's timer event
/// ```
///
/// Live or simulated, this is the only way in and the only way out.
pub trait Controller {
    /// What happened.
    type Event;
    /// What the driver must do.
    type Command;

    /// Applies one event at time `now` and appends the commands that follow from it.
    fn step(&mut self, now: Instant, event: Self::Event, out: &mut Outbox<Self::Command>);

    /// Returns when the driver must send the controller's timer event, if no other event comes
    /// first.
    fn deadline(&self) -> Option<Instant>;

    /// Asserts every invariant. Tests and the twin call it after each step.
    fn check(&self);
}

/// Commands on their way from a controller to its driver, in order.
#[derive(Clone, Debug)]
pub struct Outbox<C> {
    commands: Vec<C>,
}

impl<C> Outbox<C> {
    /// Creates an empty outbox.
    #[must_use]
    pub const fn new() -> Self {
        Self { commands: Vec::new() }
    }

    /// Appends one command.
    pub fn push(&mut self, command: C) {
        self.commands.push(command);
    }

    /// Takes all commands, oldest first, leaving the outbox empty.
    pub fn drain(&mut self) -> std::vec::Drain<'_, C> {
        self.commands.drain(..)
    }

    /// Returns all commands, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[C] {
        &self.commands
    }

    /// Empties the outbox, for drivers that read the commands in place.
    pub fn clear(&mut self) {
        self.commands.clear();
    }

    /// Whether no command waits for execution.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

impl<C> Default for Outbox<C> {
    fn default() -> Self {
        Self::new()
    }
}
