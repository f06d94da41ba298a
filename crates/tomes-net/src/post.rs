//! The network of a tome that is in a process of its own: a lane to each other such tome, and to
//! the process of the set whatever visit it pays.
//!
//! Not here: what comes in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};
use fulgurite_tomes::Network;
use fulgurite_units::TomeSetId;
use tokio::sync::mpsc;
use tonic::Status;

use crate::encoding::encode;
use crate::lane::Lane;
use crate::wire::{Letter, ToSet};

/// What goes to the set while it is there.
pub(crate) type Answers = mpsc::Sender<Result<ToSet, Status>>;

/// Carries what one tome says.
#[derive(Debug)]
pub(crate) struct Post {
    set: TomeSetId,
    lanes: BTreeMap<TomeId, Lane>,
    visitor: Mutex<Option<(u64, Answers)>>,
    lost: AtomicU64,
}

impl Post {
    pub(crate) fn new(set: TomeSetId, lanes: BTreeMap<TomeId, Lane>) -> Self {
        Self { set, lanes, visitor: Mutex::default(), lost: AtomicU64::new(0) }
    }

    /// The set is there; who was before is not any more.
    pub(crate) fn visited(&self, visit: u64, answers: Answers) {
        *self.visitor() = Some((visit, answers));
    }

    /// The visit is over, unless there is a later one.
    pub(crate) fn left(&self, visit: u64) {
        self.visitor().take_if(|(last, _)| *last == visit);
    }

    /// Nobody visits any more.
    pub(crate) fn close(&self) {
        *self.visitor() = None;
    }

    /// Messages that were lost here.
    pub(crate) fn lost(&self) -> u64 {
        let lanes: u64 = self.lanes.values().map(Lane::lost).sum();
        lanes + self.lost.load(Ordering::Relaxed)
    }

    fn to_set(&self, message: ToSet) {
        let is_sent = self
            .visitor()
            .as_ref()
            .is_some_and(|(_, answers)| answers.try_send(Ok(message)).is_ok());
        if !is_sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn visitor(&self) -> MutexGuard<'_, Option<(u64, Answers)>> {
        self.visitor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for Post {
    fn tell(&self, from: TomeId, to: TomeId, message: Message) {
        let Some(letter) = letter(self.set, from, to, &message) else { return };
        match self.lanes.get(&to) {
            Some(lane) => lane.tell(letter),
            None => self.to_set(ToSet { letter: Some(letter), ..ToSet::default() }),
        }
    }

    fn tell_keeper(&self, _: TomeId, message: ToKeeper) {
        match encode("a token", &message) {
            Ok(token) => self.to_set(ToSet { token, ..ToSet::default() }),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// The keeper is in the process of the set, and never here.
    fn tell_holder(&self, _: TomeId, _: FromKeeper) {}
}

/// A message as it travels; none that cannot be written.
pub(crate) fn letter(
    set: TomeSetId,
    from: TomeId,
    to: TomeId,
    message: &Message,
) -> Option<Letter> {
    match encode("a letter", message) {
        Ok(body) => {
            let (set, from, to) = (set.to_bytes().to_vec(), from.get(), to.get());
            Some(Letter { set, from, to, body })
        }
        Err(error) => {
            tracing::error!("{error}");
            None
        }
    }
}
