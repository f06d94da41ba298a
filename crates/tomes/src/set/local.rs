//! The network of tomes in one process: each has a bounded inbox.
//!
//! Messages to a full inbox are dropped, as on any network, and counted. Those for a tome that is
//! not here go to the outer network, if there is one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};

use crate::driver::Letter;
use crate::keeper::Note;
use crate::network::Network;

/// Inboxes of one process.
#[derive(Debug, Default)]
pub(crate) struct Local {
    inboxes: Mutex<Inboxes>,
    beyond: Option<Arc<dyn Network>>,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Inboxes {
    tomes: BTreeMap<TomeId, SyncSender<Letter>>,
    keeper: Option<SyncSender<Note>>,
}

impl Local {
    /// Returns the network of this process, with the one for messages to other processes.
    pub(super) fn new(beyond: Arc<dyn Network>) -> Self {
        Self { beyond: Some(beyond), ..Self::default() }
    }

    pub(super) fn add(&self, tome: TomeId, inbox: SyncSender<Letter>) {
        self.lock().tomes.insert(tome, inbox);
    }

    pub(super) fn set_keeper(&self, inbox: SyncSender<Note>) {
        self.lock().keeper = Some(inbox);
    }

    /// Delivers a message to a tome, if it is here.
    pub(crate) fn bring(&self, to: TomeId, letter: Letter) {
        let is_brought =
            self.lock().tomes.get(&to).is_some_and(|inbox| inbox.try_send(letter).is_ok());
        self.count(is_brought);
    }

    /// Delivers a message to the token manager, if it is here.
    pub(super) fn bring_keeper(&self, note: Note) {
        let is_brought = self.lock().keeper.as_ref().is_some_and(|k| k.try_send(note).is_ok());
        self.count(is_brought);
    }

    /// Returns the outer network for a tome that is not here.
    fn beyond(&self, to: TomeId) -> Option<&dyn Network> {
        let beyond = self.beyond.as_deref()?;
        (!self.lock().tomes.contains_key(&to)).then_some(beyond)
    }

    fn count(&self, is_brought: bool) {
        if !is_brought {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::debug!(lost, "a message was lost");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for Local {
    fn tell(&self, from: TomeId, to: TomeId, message: Message) {
        match self.beyond(to) {
            Some(beyond) => beyond.tell(from, to, message),
            None => self.bring(to, Letter::Told { from, message }),
        }
    }

    fn tell_keeper(&self, from: TomeId, message: ToKeeper) {
        let is_here = self.lock().keeper.is_some();
        match &self.beyond {
            Some(beyond) if !is_here => beyond.tell_keeper(from, message),
            Some(_) | None => self.bring_keeper(Note::Told { tome: from, message }),
        }
    }

    fn tell_holder(&self, to: TomeId, message: FromKeeper) {
        match self.beyond(to) {
            Some(beyond) => beyond.tell_holder(to, message),
            None => self.bring(to, Letter::Keeper(message)),
        }
    }
}
