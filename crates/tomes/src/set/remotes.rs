//! Tomes of a set that are in other processes: what they are told, and what is believed of them.
//!
//! ```text
//! set --> Remotes --> RemoteSeat ~~~~~~~> a tome elsewhere
//!  ^                       |
//!  '------ Charge <--------'   what it has, what it tells tomes here and the keeper of tokens
//! ```
//!
//! Whoever carries calls between processes implements [`RemoteSeat`]; nothing here knows how. Not
//! here: a tome that runs by itself ([`crate::LoneTome`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fulgurite_tome::group::Group;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::{FromKeeper, ToKeeper};
use fulgurite_tome::{RegionId, TomeId};

use super::local::Local;
use super::names::Names;
use crate::driver::{Ask, Letter, Listed};
use crate::introduction::{Greeting, Introduction};
use crate::keeper::Note;
use crate::network::Network;
use crate::piece_store::{PieceStore, Placed};
use crate::set_store::SetStore;
use crate::{Result, TomesError};

/// A tome in another process.
pub trait RemoteSeat: Send + Sync + fmt::Debug {
    /// Begins to ask for answers, and goes on until it is stopped. Each time that the tome answers,
    /// [`Charge::listed`] is to be told what it has before anything is asked of it.
    fn begin(&self, charge: Charge);

    /// Asks for something. It never waits: what cannot be asked for now is refused with
    /// [`crate::TomesError::Away`], and what ends without an answer with
    /// [`crate::TomesError::Unanswered`].
    fn ask(&self, ask: Ask);

    /// A message of a tome that is in this process; it never waits, and may lose it.
    fn tell(&self, from: TomeId, message: Message);

    /// A message of the keeper of tokens; it never waits, and may lose it.
    fn tell_holder(&self, message: FromKeeper);

    /// Why it does not answer; nothing while it does.
    fn away(&self) -> Option<String>;

    /// Ends what was begun, and lets go of what it was charged with.
    fn stop(&self);
}

/// The network beyond the process of a set: a way to each tome.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    seats: BTreeMap<TomeId, Arc<dyn RemoteSeat>>,
    /// Tomes that have a token, as far as was heard: their disks turn, or will.
    holding: Mutex<BTreeSet<TomeId>>,
}

impl Remotes {
    pub(super) fn new(seats: BTreeMap<TomeId, Arc<dyn RemoteSeat>>) -> Self {
        Self { seats, holding: Mutex::default() }
    }

    pub(super) fn seats(&self) -> impl Iterator<Item = (TomeId, &Arc<dyn RemoteSeat>)> {
        self.seats.iter().map(|(tome, seat)| (*tome, seat))
    }

    /// Whether it is likely that its disk turns.
    pub(super) fn holds(&self, tome: TomeId) -> bool {
        self.holding().contains(&tome)
    }

    fn holding(&self) -> MutexGuard<'_, BTreeSet<TomeId>> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for Remotes {
    fn tell(&self, from: TomeId, to: TomeId, message: Message) {
        if let Some(seat) = self.seats.get(&to) {
            seat.tell(from, message);
        }
    }

    /// The keeper is in the process of the set, so nothing for it goes out of that.
    fn tell_keeper(&self, _: TomeId, _: ToKeeper) {}

    fn tell_holder(&self, to: TomeId, message: FromKeeper) {
        match message {
            FromKeeper::Held { .. } => self.holding().insert(to),
            FromKeeper::Stale { .. } => self.holding().remove(&to),
            FromKeeper::Offer { .. }
            | FromKeeper::Wanted { .. }
            | FromKeeper::WantedToRead { .. } => false,
        };
        // One of an earlier version would end its session.
        let message = match message {
            FromKeeper::WantedToRead { token, epoch } => FromKeeper::Wanted { token, epoch },
            message @ (FromKeeper::Offer { .. }
            | FromKeeper::Held { .. }
            | FromKeeper::Stale { .. }
            | FromKeeper::Wanted { .. }) => message,
        };
        if let Some(seat) = self.seats.get(&to) {
            seat.tell_holder(message);
        }
    }
}

/// What a remote seat is charged with by its set. It keeps nothing of the set open.
#[derive(Debug)]
pub struct Charge {
    pub(super) introduction: Introduction,
    pub(super) store: Weak<SetStore>,
    pub(super) names: Weak<Mutex<Names>>,
    pub(super) pieces: Weak<PieceStore>,
    pub(super) local: Weak<Local>,
    pub(super) remotes: Weak<Remotes>,
}

impl Charge {
    /// What its tome is to be told first, each time.
    ///
    /// # Errors
    /// [`TomesError::Stopped`] when the set is gone, and when what was kept of it cannot be read.
    pub fn introduction(&self) -> Result<Introduction> {
        let store = self.store.upgrade().ok_or(TomesError::Stopped)?;
        let tome = self.introduction.tome;
        let may_make = self.introduction.may_make && !store.is_made(tome)?;
        // Seats may have moved since the set was opened.
        let mut groups = store.groups()?;
        groups.retain(|group| group.seats().iter().any(|seat| seat.tome == tome));
        Ok(Introduction { may_make, groups, ..self.introduction.clone() })
    }

    /// The tome answered, and all that it has is this. What was not known is written down, which
    /// blocks.
    ///
    /// # Errors
    /// [`TomesError::Stopped`] when the set is gone, and when it cannot be kept that it was made.
    pub fn listed(&self, greeting: &Greeting, objects: &[Listed]) -> Result<()> {
        let tome = self.introduction.tome;
        let store = self.store.upgrade().ok_or(TomesError::Stopped)?;
        if !store.is_made(tome)? {
            store.note_made(tome)?;
        }
        let names = self.names.upgrade().ok_or(TomesError::Stopped)?;
        let twice =
            super::lock(&names).list_tome(tome, greeting.data_blocks, &greeting.under_way, objects);
        for name in twice {
            tracing::error!(%tome, name, "another tome has an object of this name as well");
        }
        // One of a version that does not say where they lie can be read, and not be made again.
        let placed = |object: &Listed| Some((object.name.clone(), object.placed.clone()?));
        let groups = store.groups()?;
        let seats: BTreeSet<RegionId> = groups.iter().flat_map(Group::seats).copied().collect();
        let put_off = |name: &str| super::lock(&names).is_put_off(tome, name);
        let is_here = |(name, placed): &(String, Placed)| {
            let mut blocks = placed.object.blocks.iter();
            // What lies in a region whose seat has moved is with the tome that has it.
            blocks.all(|(index, _)| seats.contains(&RegionId { tome, index: *index }))
                && !put_off(name)
        };
        let said = objects.iter().filter_map(placed).filter(is_here).collect();
        let pieces = self.pieces.upgrade().ok_or(TomesError::Stopped)?;
        pieces.agree(tome, said, &greeting.under_way)
    }

    /// The tome tells a tome that is in the process of the set.
    pub fn told(&self, to: TomeId, message: Message) {
        let from = self.introduction.tome;
        if let Some(local) = self.local.upgrade() {
            local.bring(to, Letter::Told { from, message });
        }
    }

    /// The tome tells the keeper of tokens.
    pub fn told_keeper(&self, message: ToKeeper) {
        let tome = self.introduction.tome;
        if let (ToKeeper::Release { .. }, Some(remotes)) = (&message, self.remotes.upgrade()) {
            remotes.holding().remove(&tome);
        }
        if let Some(local) = self.local.upgrade() {
            local.bring_keeper(Note::Told { tome, message });
        }
    }
}
