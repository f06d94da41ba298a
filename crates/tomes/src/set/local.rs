//! The network of a set whose tomes are in one process: each has an inbox with a bound.
//!
//! What comes to a full inbox is lost, as on any network, and counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};

use crate::driver::Letter;
use crate::keeper::Note;
use crate::network::Network;

/// Inboxes of one process.
#[derive(Debug, Default)]
pub(super) struct Local {
    inboxes: Mutex<Inboxes>,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Inboxes {
    tomes: BTreeMap<TomeId, SyncSender<Letter>>,
    keeper: Option<SyncSender<Note>>,
}

impl Local {
    pub(super) fn add(&self, tome: TomeId, inbox: SyncSender<Letter>) {
        self.lock().tomes.insert(tome, inbox);
    }

    pub(super) fn set_keeper(&self, inbox: SyncSender<Note>) {
        self.lock().keeper = Some(inbox);
    }

    fn bring(&self, to: TomeId, letter: Letter) {
        let is_brought =
            self.lock().tomes.get(&to).is_some_and(|inbox| inbox.try_send(letter).is_ok());
        self.count(is_brought);
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
        self.bring(to, Letter::Told { from, message });
    }

    fn tell_keeper(&self, from: TomeId, message: ToKeeper) {
        let note = Note::Told { tome: from, message };
        let is_brought = self.lock().keeper.as_ref().is_some_and(|k| k.try_send(note).is_ok());
        self.count(is_brought);
    }

    fn tell_holder(&self, to: TomeId, message: FromKeeper) {
        self.bring(to, Letter::Keeper(message));
    }
}
