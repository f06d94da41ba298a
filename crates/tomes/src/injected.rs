//! Faults of disks and stores that a test wants: what a full disk or a failing one answers.
//!
//! Compiled in always, so that what is tested is what runs. Clones are the same.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_disks::DisksError;
use fulgurite_tome::TomeId;

use crate::{Result, TomesError};

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failing {
    /// A block cannot be written.
    Write,
    /// There is no room for a block.
    Room,
    /// Blocks cannot be synced.
    Sync,
    /// The awake store cannot be written.
    Commit,
    /// What it tells other tomes is lost.
    Tell,
    /// That it has a token cannot be written down.
    Token,
    /// Where an object of it lies cannot be written down.
    Piece,
}

/// Which tomes fail in what.
#[derive(Clone, Debug, Default)]
pub struct Injected(Arc<Mutex<BTreeSet<(TomeId, Failing)>>>);

impl Injected {
    /// From now on it fails.
    pub fn inject(&self, tome: TomeId, failing: Failing) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((tome, failing));
    }

    /// From now on nothing of it fails.
    pub fn mend(&self, tome: TomeId) {
        let mut injected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        injected.retain(|(of, _)| *of != tome);
    }

    /// Whether a tome fails in something.
    pub(crate) fn has(&self, tome: TomeId, failing: Failing) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(tome, failing))
    }

    /// What the system would answer.
    ///
    /// # Errors
    /// When it fails in that.
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
