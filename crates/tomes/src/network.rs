//! Carries messages between tomes, and between them and the token manager.
//!
//! A network may lose, delay and duplicate messages: the core is made for it. It must not misstate
//! the sender. Not here: what messages mean.

use std::fmt;

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};

/// Carries messages; never waits for the receiver.
pub trait Network: Send + Sync + fmt::Debug {
    /// Sends a message from one tome to another.
    fn tell(&self, from: TomeId, to: TomeId, message: Message);

    /// Sends a message from a tome to the token manager.
    fn tell_keeper(&self, from: TomeId, message: ToKeeper);

    /// Sends a message from the token manager to a tome.
    fn tell_holder(&self, to: TomeId, message: FromKeeper);
}
