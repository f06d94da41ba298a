//! Tomes of a set in other processes: what is sent to them, and what is accepted from them.
//!
//! ```text
//! set --> Remotes --> RemoteHandle ~~~~~~~> a tome elsewhere
//!  ^                       |
//!  '------ SetLink <--------'   what it has, its messages to tomes here and the token manager
//! ```
//!
//! The transport between processes implements [`RemoteHandle`]; nothing here depends on it. Not
//! here: a standalone tome ([`crate::StandaloneTome`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};
use fulgurite_tome_core::{RegionId, TomeId};

use super::local::Local;
use super::names::Names;
use crate::driver::{DriverMessage, ListedObject, TomeRequest};
use crate::handshake::{HandshakeReply, SetHandshake};
use crate::network::Network;
use crate::piece_store::{ObjectLocation, PieceStore};
use crate::set_store::SetStore;
use crate::token_manager::TokenManagerMessage;
use crate::{Result, TomesError};

/// A tome in another process.
pub trait RemoteHandle: Send + Sync + fmt::Debug {
    /// Starts to connect, and keeps trying until stopped. Each time that the tome answers,
    /// [`SetLink::listed`] must get its objects before any request is sent to it.
    fn begin(&self, set_link: SetLink);

    /// Sends a request, without blocking. One that cannot be sent now fails with
    /// [`TomesError::Away`], or [`TomesError::Busy`] if too many wait for answers; one that ends
    /// without an answer fails with [`TomesError::Unanswered`].
    fn send_request(&self, request: TomeRequest);

    /// Sends a message of a tome in this process; never blocks, and may drop it.
    fn send(&self, from: TomeId, message: Message);

    /// Sends a message of the token manager; never blocks, and may drop it.
    fn send_to_holder(&self, message: FromTokenManager);

    /// Returns why it does not answer; `None` while it does.
    fn away(&self) -> Option<String>;

    /// Stops, and releases its [`SetLink`].
    fn stop(&self);
}

/// The network beyond the process of a set: a route to each tome.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    handles: BTreeMap<TomeId, Arc<dyn RemoteHandle>>,
    /// Tomes known to hold a token: their disks spin, or will.
    holding: Mutex<BTreeSet<TomeId>>,
}

impl Remotes {
    pub(super) fn new(handles: BTreeMap<TomeId, Arc<dyn RemoteHandle>>) -> Self {
        Self { handles, holding: Mutex::default() }
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = (TomeId, &Arc<dyn RemoteHandle>)> {
        self.handles.iter().map(|(tome, handle)| (*tome, handle))
    }

    /// Whether its disk probably spins.
    pub(super) fn holds(&self, tome: TomeId) -> bool {
        self.holding().contains(&tome)
    }

    fn holding(&self) -> MutexGuard<'_, BTreeSet<TomeId>> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for Remotes {
    fn send(&self, from: TomeId, to: TomeId, message: Message) {
        if let Some(handle) = self.handles.get(&to) {
            handle.send(from, message);
        }
    }

    /// The token manager is in the process of the set, so its messages never leave that.
    fn send_to_token_manager(&self, _: TomeId, _: ToTokenManager) {}

    fn send_to_holder(&self, to: TomeId, message: FromTokenManager) {
        match message {
            FromTokenManager::Held { .. } => self.holding().insert(to),
            FromTokenManager::Stale { .. } => self.holding().remove(&to),
            FromTokenManager::Offer { .. }
            | FromTokenManager::Wanted { .. }
            | FromTokenManager::WantedToRead { .. } => false,
        };
        if let Some(handle) = self.handles.get(&to) {
            handle.send_to_holder(message);
        }
    }
}

/// The set's side of a remote tome. It does not keep the set open.
#[derive(Debug)]
pub struct SetLink {
    pub(super) handshake: SetHandshake,
    pub(super) store: Weak<SetStore>,
    pub(super) names: Weak<Mutex<Names>>,
    pub(super) pieces: Weak<PieceStore>,
    pub(super) local: Weak<Local>,
    pub(super) remotes: Weak<Remotes>,
}

impl SetLink {
    /// Returns the handshake, which its tome must get first in each session.
    ///
    /// # Errors
    /// [`TomesError::Stopped`] when the set is gone, and when its stored state cannot be read.
    pub fn handshake(&self) -> Result<SetHandshake> {
        let store = self.store.upgrade().ok_or(TomesError::Stopped)?;
        let tome = self.handshake.tome;
        let may_make = self.handshake.may_make && !store.is_made(tome)?;
        // Member slots may have moved since the set was opened.
        let mut groups = store.groups()?;
        groups.retain(|group| group.slots().iter().any(|slot| slot.tome == tome));
        Ok(SetHandshake { may_make, groups, ..self.handshake.clone() })
    }

    /// Records that the tome answered, and all its objects. Blocks while it persists what is new.
    ///
    /// # Errors
    /// [`TomesError::Stopped`] when the set is gone, and when it cannot be recorded that the tome
    /// was created.
    pub fn listed(&self, reply: &HandshakeReply, objects: &[ListedObject]) -> Result<()> {
        let tome = self.handshake.tome;
        let store = self.store.upgrade().ok_or(TomesError::Stopped)?;
        if !store.is_made(tome)? {
            store.record_made(tome)?;
        }
        let names = self.names.upgrade().ok_or(TomesError::Stopped)?;
        let duplicates =
            super::lock(&names).set_listing(tome, reply.data_blocks, &reply.under_way, objects);
        for name in duplicates {
            tracing::error!(%tome, name, "another tome has an object of this name as well");
        }
        let placed = |object: &ListedObject| Some((object.name.clone(), object.placed.clone()?));
        let groups = store.groups()?;
        let slots: BTreeSet<RegionId> = groups.iter().flat_map(Group::slots).copied().collect();
        let has_tombstone = |name: &str| super::lock(&names).has_tombstone(tome, name);
        let is_here = |(name, placed): &(String, ObjectLocation)| {
            let mut blocks = placed.object.blocks.iter();
            // Objects in a region that lost its member slot are with the tome that took it over.
            blocks.all(|(index, _)| slots.contains(&RegionId { tome, index: *index }))
                && !has_tombstone(name)
        };
        let reported = objects.iter().filter_map(placed).filter(is_here).collect();
        let pieces = self.pieces.upgrade().ok_or(TomesError::Stopped)?;
        pieces.reconcile(tome, reported, &reply.under_way)
    }

    /// Delivers a message of the tome to one in the process of the set.
    pub fn deliver(&self, to: TomeId, message: Message) {
        let from = self.handshake.tome;
        if let Some(local) = self.local.upgrade() {
            local.deliver(to, DriverMessage::Received { from, message });
        }
    }

    /// Delivers a message of the tome to the token manager.
    pub fn deliver_to_token_manager(&self, message: ToTokenManager) {
        let tome = self.handshake.tome;
        if let (ToTokenManager::Release { .. }, Some(remotes)) = (&message, self.remotes.upgrade())
        {
            remotes.holding().remove(&tome);
        }
        if let Some(local) = self.local.upgrade() {
            local.deliver_to_manager(TokenManagerMessage::Received { tome, message });
        }
    }
}
