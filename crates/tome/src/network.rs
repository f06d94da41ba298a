//! Carries messages between tomes, and between them and the token manager.
//!
//! A network may lose, delay and duplicate messages: the core is made for it. It must not misstate
//! the sender. Not here: what messages mean.

use std::fmt;

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};

/// Carries messages; never waits for the receiver.
pub trait Network: Send + Sync + fmt::Debug {
    /// Sends a message from one tome to another.
    fn send(&self, from: TomeId, to: TomeId, message: Message);

    /// Sends a message from a tome to the token manager.
    fn send_to_token_manager(&self, from: TomeId, message: ToTokenManager);

    /// Sends a message from the token manager to a tome.
    fn send_to_holder(&self, to: TomeId, message: FromTokenManager);
}
