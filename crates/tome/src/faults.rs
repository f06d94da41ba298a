//! Fault injection for disks and stores: the errors of a full or failing disk.
//!
//! Always compiled in, so that what is tested is what runs. Clones share the same faults.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_disks::DisksError;
use fulgurite_tome_core::TomeId;

use crate::{Result, TomesError};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InjectedFault {
    /// A block cannot be written.
    Write,
    /// There is no room for a block.
    Room,
    /// Blocks cannot be synced.
    Sync,
    /// The metadata store cannot be written.
    Commit,
    /// Its messages to other tomes are lost.
    Send,
    /// Its token cannot be recorded.
    Token,
    /// The location of its objects cannot be recorded.
    Piece,
}

/// The tomes with faults.
#[derive(Clone, Debug, Default)]
pub struct FaultInjector(Arc<Mutex<BTreeSet<(TomeId, InjectedFault)>>>);

impl FaultInjector {
    /// Injects a fault from now on.
    pub fn inject(&self, tome: TomeId, fault: InjectedFault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((tome, fault));
    }

    /// Removes all faults of a tome.
    pub fn mend(&self, tome: TomeId) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.retain(|(faulty, _)| *faulty != tome);
    }

    /// Returns whether a tome has a fault.
    pub(crate) fn has(&self, tome: TomeId, fault: InjectedFault) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(tome, fault))
    }

    /// Returns the error that the system would.
    ///
    /// # Errors
    /// When the tome has this fault.
    pub(crate) fn pass(&self, tome: TomeId, fault: InjectedFault) -> Result<()> {
        if !self.has(tome, fault) {
            return Ok(());
        }
        let path: PathBuf = format!("tome {tome}").into();
        let action = match fault {
            InjectedFault::Write | InjectedFault::Room => "write",
            InjectedFault::Sync => "sync",
            InjectedFault::Commit => "commit to",
            InjectedFault::Send => "send a message of",
            InjectedFault::Token | InjectedFault::Piece => "record the state of",
        };
        let source = io::Error::other("injected");
        if fault == InjectedFault::Commit {
            return Err(TomesError::Io { action, path, source });
        }
        Err(match fault {
            InjectedFault::Room => DisksError::Full { action, path, source },
            InjectedFault::Write
            | InjectedFault::Sync
            | InjectedFault::Commit
            | InjectedFault::Send
            | InjectedFault::Token
            | InjectedFault::Piece => DisksError::Io { action, path, source },
        }
        .into())
    }
}
