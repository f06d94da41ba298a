//! The one shape of everything that decides: events in, commands out, time handed over.

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
    /// What shall be done.
    type Command;

    /// Takes one event at time `now` and appends the commands it leads to.
    fn step(&mut self, now: Instant, event: Self::Event, out: &mut Outbox<Self::Command>);

    /// When the driver must send the controller's timer event, if no other event comes first.
    fn deadline(&self) -> Option<Instant>;

    /// Asserts every invariant; called after each step by tests and by the twin.
    fn check(&self);
}

/// Commands on their way from a controller to its driver, in order.
#[derive(Clone, Debug)]
pub struct Outbox<C> {
    commands: Vec<C>,
}

impl<C> Outbox<C> {
    /// An empty outbox.
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

    /// All commands, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[C] {
        &self.commands
    }

    /// Leaves the outbox empty, for commands that were read where they are.
    pub fn clear(&mut self) {
        self.commands.clear();
    }

    /// Whether nothing waits to be executed.
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
