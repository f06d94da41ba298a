//! Bytes of received deltas, in a file of their own beside the store: each is written once.
//!
//! ```text
//! deltas    slot 0 | slot 1 | ...      a block each, and nothing between them
//! row       its slot, and the signature of the bytes
//! ```
//!
//! In the store they would be written to its journal, again when they are applied, and to its
//! tables. A slot is synced before the row that refers to it is committed, and is reused only when
//! no durable row refers to it. So an interrupted commit leaves only orphaned bytes. The file is as
//! long as the most deltas that were in flight since the start, which is bounded
//! ([`fulgurite_tome_core::limits::DELTA_WINDOW`]); a start truncates it behind the last one. Not
//! here: rows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::{Result, TomesError};

/// The file, beside the folder of the store.
const DELTAS: &str = "deltas";

/// Position of a delta's bytes, counted from zero.
pub(crate) type Slot = u32;

/// The file of deltas of one tome.
#[derive(Debug)]
pub(super) struct Slots {
    folder: PathBuf,
    block_bytes: u64,
    /// Created when the first delta arrives.
    file: Option<File>,
    /// Free slots below `end`.
    free: BTreeSet<Slot>,
    end: Slot,
    is_unsynced: bool,
}

impl Slots {
    /// Opens the file in a folder; `used` are the slots that rows refer to.
    ///
    /// # Errors
    /// When it cannot be opened; returns what is missing of those slots.
    pub(super) fn open(
        folder: &Path,
        block_bytes: u64,
        used: &BTreeSet<Slot>,
    ) -> Result<Result<Self, String>> {
        let path = folder.join(DELTAS);
        let end = used.last().map_or(0, |last| last.saturating_add(1));
        let needed = u64::from(end) * block_bytes;
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(TomesError::io("open", &path)(error)),
        };
        let length =
            file.as_ref().map_or(Ok(0), |file| file.metadata().map(|metadata| metadata.len()));
        let length = length.map_err(TomesError::io("stat", &path))?;
        if length < needed {
            let what = format!("its file of deltas has {length} bytes, and rows refer to {needed}");
            return Ok(Err(what));
        }
        if let Some(file) = file.as_ref().filter(|_| length > needed) {
            file.set_len(needed).map_err(TomesError::io("truncate", &path))?;
        }
        let free = (0..end).filter(|slot| !used.contains(slot)).collect();
        let folder = folder.to_owned();
        Ok(Ok(Self { folder, block_bytes, file, free, end, is_unsynced: false }))
    }

    /// Writes bytes to a free slot and takes it.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Slot> {
        assert_eq!(bytes.len() as u64, self.block_bytes, "a whole block");
        let slot = self.free.pop_first().unwrap_or(self.end);
        self.end = self.end.max(slot.saturating_add(1));
        self.is_unsynced = true;
        let (position, path) = (self.position(slot), self.path());
        let file = self.ensure_file()?;
        file.write_all_at(bytes, position).map_err(TomesError::io("write", &path))?;
        Ok(slot)
    }

    /// Syncs what was written (fsync).
    ///
    /// # Errors
    /// When the sync fails. It is not retried: a second one proves nothing.
    pub(super) fn sync(&mut self) -> Result<()> {
        let is_unsynced = std::mem::take(&mut self.is_unsynced);
        match self.file.as_ref().filter(|_| is_unsynced) {
            Some(file) => file.sync_data().map_err(TomesError::io("sync", &self.path())),
            None => Ok(()),
        }
    }

    /// Writes a block to a free slot and syncs it.
    ///
    /// # Errors
    /// When either fails.
    pub(super) fn probe(&mut self) -> Result<()> {
        // A file system may store zeros without allocating space.
        let bytes = vec![0x5a; usize::try_from(self.block_bytes).unwrap_or(usize::MAX)];
        let slot = self.write(&bytes)?;
        self.sync()?;
        self.give_back([slot]);
        Ok(())
    }

    /// Whether there are unsynced writes.
    pub(super) const fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// Returns the bytes of a slot.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn read(&self, slot: Slot) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.block_bytes).unwrap_or(usize::MAX)];
        let missing = || std::io::Error::from(ErrorKind::NotFound);
        let read = self.file.as_ref().ok_or_else(missing);
        let read = read.and_then(|file| file.read_exact_at(&mut bytes, self.position(slot)));
        read.map_err(TomesError::io("read", &self.path()))?;
        Ok(bytes)
    }

    /// Frees slots that no row refers to any more.
    pub(super) fn give_back(&mut self, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            assert!(slot < self.end && self.free.insert(slot), "slot {slot} was taken");
        }
    }

    fn position(&self, slot: Slot) -> u64 {
        u64::from(slot) * self.block_bytes
    }

    fn path(&self) -> PathBuf {
        self.folder.join(DELTAS)
    }

    /// Returns the file, created if needed; its directory entry is synced before its content is
    /// needed.
    fn ensure_file(&mut self) -> Result<&File> {
        if self.file.is_none() {
            let path = self.path();
            let mut options = File::options();
            let file = options.create(true).truncate(false).read(true).write(true).open(&path);
            let file = file.map_err(TomesError::io("create", &path))?;
            let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
            synced.map_err(TomesError::io("sync", &self.folder))?;
            self.file = Some(file);
        }
        let gone = || std::io::Error::from(ErrorKind::NotFound);
        self.file.as_ref().ok_or_else(|| TomesError::io("create", &self.folder)(gone()))
    }
}
