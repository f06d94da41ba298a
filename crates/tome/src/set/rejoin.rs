//! Rejoin of a tome of this process that failed and works again: it catches up, and the set records
//! its objects.
//!
//! ```text
//! its groups     member slots that moved meanwhile are no longer its own
//! removals       objects that were removed meanwhile go
//! pieces, names  its own state wins: it settles puts and removals of unknown outcome
//! ```
//!
//! All of that before it gets any request, and while no member slot moves. Not here: tomes in other
//! processes, which are listed when a session begins ([`super::remotes`]).

use std::sync::{Arc, Mutex, OnceLock, Weak};

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::metadata::{Object, TomeMetadata};

use super::choice::Choice;
use super::lock;
use super::names::Names;
use super::start::{apply_tombstones, sync_membership};
use crate::FailPoints;
use crate::driver::{ListedObject, Rejoin, RejoinOutcome, data_blocks};
use crate::metadata_store::MetadataStore;
use crate::piece_store::{ObjectLocation, PieceStore};
use crate::set_store::SetStore;
use crate::{Result, TomesError};

/// The set to which a tome returns. It does not keep the set open.
#[derive(Debug, Default)]
pub(super) struct SetRejoin {
    /// Known once the set is open.
    set: OnceLock<SetHandles>,
}

#[derive(Debug)]
struct SetHandles {
    store: Weak<SetStore>,
    pieces: Weak<PieceStore>,
    names: Weak<Mutex<Names>>,
    choice: Weak<Choice>,
    fail: Arc<FailPoints>,
}

/// A standalone tome, which its set lists when a session begins.
#[derive(Debug)]
pub(super) struct StandaloneRejoin;

impl Rejoin for StandaloneRejoin {
    fn rejoin(&self, _: &MetadataStore, metadata: TomeMetadata) -> Result<RejoinOutcome> {
        Ok(RejoinOutcome::Member(metadata))
    }
}

impl SetRejoin {
    /// Connects it to the set once that is open.
    pub(super) fn connect(
        &self,
        store: &Arc<SetStore>,
        pieces: &Arc<PieceStore>,
        names: &Arc<Mutex<Names>>,
        choice: &Arc<Choice>,
        fail: &Arc<FailPoints>,
    ) {
        let handles = SetHandles {
            store: Arc::downgrade(store),
            pieces: Arc::downgrade(pieces),
            names: Arc::downgrade(names),
            choice: Arc::downgrade(choice),
            fail: Arc::clone(fail),
        };
        // A set is opened once.
        let _ = self.set.set(handles);
    }
}

impl Rejoin for SetRejoin {
    fn rejoin(&self, own: &MetadataStore, metadata: TomeMetadata) -> Result<RejoinOutcome> {
        let tome = metadata.id();
        let handles = self.set.get().ok_or_else(|| busy(tome))?;
        let (store, pieces) = (handles.store.upgrade(), handles.pieces.upgrade());
        let (names, choice) = (handles.names.upgrade(), handles.choice.upgrade());
        let (Some(store), Some(pieces), Some(names), Some(choice)) = (store, pieces, names, choice)
        else {
            return Err(TomesError::Stopped);
        };
        // A move may be waiting for this tome, so waiting here would deadlock.
        let _guard = choice.move_lock.try_lock().map_err(|_| busy(tome))?;
        if store.retired()?.contains(&tome) || store.out()?.contains(&tome) {
            return Ok(RejoinOutcome::Out("its member slots belong to other tomes".to_owned()));
        }
        let metadata = sync_membership(&store.groups()?, own, metadata, &handles.fail)?;
        let removals = pieces.removals(tome)?;
        let metadata = apply_tombstones(own, metadata, &removals, &handles.fail)?;
        removals.iter().try_for_each(|name| pieces.delete_tombstone(tome, name))?;
        let reported =
            metadata.objects().map(|(name, object)| (name, ObjectLocation::new(&metadata, object)));
        let reported = reported.map(|(name, placed)| (name.to_owned(), placed)).collect();
        pieces.reconcile(tome, reported, &[])?;
        let listed = |(name, object): (&str, &Object)| ListedObject {
            name: name.to_owned(),
            blocks: object.blocks.len() as u64,
            placed: None,
        };
        let objects: Vec<ListedObject> = metadata.objects().map(listed).collect();
        for name in lock(&names).set_listing(tome, data_blocks(&metadata), &[], &objects) {
            tracing::error!(%tome, name, "another tome has an object of this name as well");
        }
        Ok(RejoinOutcome::Member(metadata))
    }
}

fn busy(tome: TomeId) -> TomesError {
    let why = "its set is moving member slots".to_owned();
    TomesError::Away { tome, why }
}
