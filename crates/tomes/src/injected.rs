//! Fault injection for disks and stores: the errors of a full or failing disk.
//!
//! Always compiled in, so that what is tested is what runs. Clones share the same faults.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_disks::DisksError;
use fulgurite_tome::TomeId;

use crate::{Result, TomesError};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failing {
    /// A block cannot be written.
    Write,
    /// There is no room for a block.
    Room,
    /// Blocks cannot be synced.
    Sync,
    /// The metadata store cannot be written.
    Commit,
    /// Its messages to other tomes are lost.
    Tell,
    /// Its token cannot be recorded.
    Token,
    /// The location of its objects cannot be recorded.
    Piece,
}

/// The tomes with faults.
#[derive(Clone, Debug, Default)]
pub struct Injected(Arc<Mutex<BTreeSet<(TomeId, Failing)>>>);

impl Injected {
    /// Injects a fault from now on.
    pub fn inject(&self, tome: TomeId, failing: Failing) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((tome, failing));
    }

    /// Removes all faults of a tome.
    pub fn mend(&self, tome: TomeId) {
        let mut injected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        injected.retain(|(of, _)| *of != tome);
    }

    /// Returns whether a tome has a fault.
    pub(crate) fn has(&self, tome: TomeId, failing: Failing) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(tome, failing))
    }

    /// Returns the error that the system would.
    ///
    /// # Errors
    /// When the tome has this fault.
    pub(crate) fn pass(&self, tome: TomeId, failing: Failing) -> Result<()> {
        if !self.has(tome, failing) {
            return Ok(());
        }
        let path: PathBuf = format!("tome {tome}").into();
        let action = match failing {
            Failing::Write | Failing::Room => "write",
            Failing::Sync => "sync",
            Failing::Commit => "commit to",
            Failing::Tell => "tell",
            Failing::Token | Failing::Piece => "write down something of",
        };
        let source = io::Error::other("injected");
        if failing == Failing::Commit {
            return Err(TomesError::Io { action, path, source });
        }
        Err(match failing {
            Failing::Room => DisksError::Full { action, path, source },
            Failing::Write
            | Failing::Sync
            | Failing::Commit
            | Failing::Tell
            | Failing::Token
            | Failing::Piece => DisksError::Io { action, path, source },
        }
        .into())
    }
}
