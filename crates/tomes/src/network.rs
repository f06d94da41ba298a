//! What carries messages between tomes, and between them and the keeper of tokens.
//!
//! A network may lose, delay and double what it is given: the core is made for it. It must not say
//! that a message is from a tome that it is not from. Not here: what messages mean.

use std::fmt;

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};

/// Carries messages; never waits for who gets them.
pub trait Network: Send + Sync + fmt::Debug {
    /// From one tome to another.
    fn tell(&self, from: TomeId, to: TomeId, message: Message);

    /// From a tome to the keeper of tokens.
    fn tell_keeper(&self, from: TomeId, message: ToKeeper);

    /// From the keeper of tokens to a tome.
    fn tell_holder(&self, to: TomeId, message: FromKeeper);
}
