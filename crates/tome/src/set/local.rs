//! The network of tomes in one process: each has a bounded inbox.
//!
//! Messages to a full inbox are dropped, as on any network, and counted. Those for a tome that is
//! not here go to the outer network, if there is one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};

use crate::driver::DriverMessage;
use crate::network::Network;
use crate::token_manager::TokenManagerMessage;

/// Inboxes of one process.
#[derive(Debug, Default)]
pub(crate) struct Local {
    inboxes: Mutex<Inboxes>,
    outer: Option<Arc<dyn Network>>,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Inboxes {
    tomes: BTreeMap<TomeId, SyncSender<DriverMessage>>,
    token_manager: Option<SyncSender<TokenManagerMessage>>,
}

impl Local {
    /// Returns the network of this process, with the one for messages to other processes.
    pub(super) fn new(outer: Arc<dyn Network>) -> Self {
        Self { outer: Some(outer), ..Self::default() }
    }

    pub(super) fn add(&self, tome: TomeId, inbox: SyncSender<DriverMessage>) {
        self.lock().tomes.insert(tome, inbox);
    }

    pub(super) fn set_token_manager(&self, inbox: SyncSender<TokenManagerMessage>) {
        self.lock().token_manager = Some(inbox);
    }

    /// Delivers a message to a tome, if it is here.
    pub(crate) fn deliver(&self, to: TomeId, message: DriverMessage) {
        let is_delivered =
            self.lock().tomes.get(&to).is_some_and(|inbox| inbox.try_send(message).is_ok());
        self.count(is_delivered);
    }

    /// Delivers a message to the token manager, if it is here.
    pub(super) fn deliver_to_manager(&self, message: TokenManagerMessage) {
        let is_delivered =
            self.lock().token_manager.as_ref().is_some_and(|k| k.try_send(message).is_ok());
        self.count(is_delivered);
    }

    /// Returns the outer network for a tome that is not here.
    fn outer(&self, to: TomeId) -> Option<&dyn Network> {
        let outer = self.outer.as_deref()?;
        (!self.lock().tomes.contains_key(&to)).then_some(outer)
    }

    fn count(&self, is_delivered: bool) {
        if !is_delivered {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::debug!(lost, "a message was lost");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for Local {
    fn send(&self, from: TomeId, to: TomeId, message: Message) {
        match self.outer(to) {
            Some(outer) => outer.send(from, to, message),
            None => self.deliver(to, DriverMessage::Received { from, message }),
        }
    }

    fn send_to_token_manager(&self, from: TomeId, message: ToTokenManager) {
        let is_here = self.lock().token_manager.is_some();
        match &self.outer {
            Some(outer) if !is_here => outer.send_to_token_manager(from, message),
            Some(_) | None => {
                self.deliver_to_manager(TokenManagerMessage::Received { tome: from, message })
            }
        }
    }

    fn send_to_holder(&self, to: TomeId, message: FromTokenManager) {
        match self.outer(to) {
            Some(outer) => outer.send_to_holder(to, message),
            None => self.deliver(to, DriverMessage::TokenManager(message)),
        }
    }
}
