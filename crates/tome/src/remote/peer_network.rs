//! The network of a tome in a process of its own: a route to each other such tome, and to the
//! process of the set through the session that it began.
//!
//! Not here: incoming messages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};
use fulgurite_units::TomeSetId;

use crate::Network;
use crate::remote::encoding::encode;
use crate::remote::limits::MESSAGE_BYTES_MAX;
use crate::remote::queue::QueueSender;
use crate::remote::route::Route;
use crate::remote::wire::{Letter, ToSet};

/// Carries the messages of one tome.
#[derive(Debug)]
pub(crate) struct PeerNetwork {
    set: TomeSetId,
    routes: BTreeMap<TomeId, Route>,
    session: Mutex<Option<(u64, QueueSender<ToSet>)>>,
    lost: AtomicU64,
}

impl PeerNetwork {
    pub(crate) fn new(set: TomeSetId, routes: BTreeMap<TomeId, Route>) -> Self {
        Self { set, routes, session: Mutex::default(), lost: AtomicU64::new(0) }
    }

    /// Starts a session; the previous one is over. Returns false if there is a later one.
    pub(crate) fn session_started(&self, session: u64, answers: QueueSender<ToSet>) -> bool {
        let mut current = self.session();
        let is_latest = current.as_ref().is_none_or(|(latest, _)| *latest < session);
        if is_latest {
            *current = Some((session, answers));
        }
        is_latest
    }

    /// Ends the session, unless there is a later one.
    pub(crate) fn end_session(&self, session: u64) {
        self.session().take_if(|(last, _)| *last == session);
    }

    /// Ends any session for good.
    pub(crate) fn close(&self) {
        *self.session() = None;
    }

    /// Number of messages dropped here.
    pub(crate) fn lost(&self) -> u64 {
        let routes: u64 = self.routes.values().map(Route::lost).sum();
        routes + self.lost.load(Ordering::Relaxed)
    }

    fn to_set(&self, message: ToSet) {
        let is_sent = self.session().as_ref().is_some_and(|(_, answers)| answers.send(message));
        if !is_sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<(u64, QueueSender<ToSet>)>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for PeerNetwork {
    fn send(&self, from: TomeId, to: TomeId, message: Message) {
        let Some(letter) = encode_message(self.set, from, to, &message) else { return };
        match self.routes.get(&to) {
            Some(route) => route.send(letter),
            None => self.to_set(ToSet { letter: Some(letter), ..ToSet::default() }),
        }
    }

    fn send_to_token_manager(&self, _: TomeId, message: ToTokenManager) {
        match encode("a token", &message) {
            Ok(token) => self.to_set(ToSet { token, ..ToSet::default() }),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// The token manager is in the process of the set, never here.
    fn send_to_holder(&self, _: TomeId, _: FromTokenManager) {}
}

/// Encodes a message for the wire; `None` if that fails.
pub(crate) fn encode_message(
    set: TomeSetId,
    from: TomeId,
    to: TomeId,
    message: &Message,
) -> Option<Letter> {
    match encode("a message", message) {
        Ok(body) if body.len() > MESSAGE_BYTES_MAX => {
            tracing::error!(%from, %to, "a message of {} bytes is too large", body.len());
            None
        }
        Ok(body) => {
            let (set, from, to) = (Bytes::copy_from_slice(&set.to_bytes()), from.get(), to.get());
            Some(Letter { set, from, to, body })
        }
        Err(error) => {
            tracing::error!("{error}");
            None
        }
    }
}
