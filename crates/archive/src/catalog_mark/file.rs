//! The file `DIR/catalog.mark`: the last state known to be durable in the catalog
//! (docs/formats/catalog-mark.md).
//!
//! ```text
//! | mark, 64 bytes | zeros to 512 | mark, 64 bytes |     written in turn, in place, synced
//! ```
//!
//! In place, so that it needs no space and no name has to be synced; in turn, so that the previous
//! mark survives a torn write. A mark that is lost or older proves less, but nothing wrong.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_codes::crc32c;
use fulgurite_units::ArchiveId;

use crate::commits::CommitCounter;
use crate::directory::{Paths, sync_dir};
use crate::rows::CatalogAge;
use crate::{ArchiveError, Result};

const MAGIC: &[u8; 8] = b"FGCATMRK";
const VERSION: u8 = 1;
const MARK_LEN: usize = 64;
const CRC_AT: usize = 60;
/// Offsets of the two marks: separate sectors, each of which a disk writes atomically.
const PLACES: [u64; 2] = [0, 512];

/// The content of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) age: CatalogAge,
    /// Whether the run shut down cleanly with it.
    pub(super) is_last: bool,
}

impl Mark {
    fn encode(&self, archive: ArchiveId) -> [u8; MARK_LEN] {
        let mut bytes = [0; MARK_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = VERSION;
        bytes[9] = u8::from(self.is_last);
        bytes[16..32].copy_from_slice(&archive.to_bytes());
        bytes[32..40].copy_from_slice(&self.age.run.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.age.commits.to_le_bytes());
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; MARK_LEN], archive: ArchiveId) -> Option<Self> {
        let is_mark = has_version(bytes, |version| version == VERSION);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let age = CatalogAge { run: word(32), commits: word(40) };
        (is_mark && bytes[16..32] == archive.to_bytes())
            .then(|| Self { age, is_last: bytes[9] == 1 })
    }
}

/// Whether these are a mark of any version that `accepts`.
fn has_version(bytes: &[u8; MARK_LEN], accepts: fn(u8) -> bool) -> bool {
    let has_valid_crc = bytes[CRC_AT..] == crc32c(&bytes[..CRC_AT]).to_le_bytes();
    bytes.starts_with(MAGIC) && accepts(bytes[8]) && has_valid_crc
}

/// Writes the marks of this run.
#[derive(Debug)]
pub(crate) struct MarkFile {
    paths: Paths,
    archive: ArchiveId,
    run: u64,
    commits: Arc<CommitCounter>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Opened at the first write and kept, so that a deletion costs only one system call.
    file: Option<File>,
    /// Which of the two is written next: not the last one synced.
    next: usize,
    /// The last mark synced.
    recorded: Option<Mark>,
}

impl MarkFile {
    pub(crate) fn new(
        paths: Paths,
        archive: ArchiveId,
        run: u64,
        commits: Arc<CommitCounter>,
    ) -> Self {
        let next = newest(&paths, archive).map_or(0, |(place, _)| 1 - place);
        let state = Mutex::new(State { file: None, next, recorded: None });
        Self { paths, archive, run, commits, state }
    }

    /// Writes and syncs a mark of what is durable in the catalog, unless it is unchanged. Blocks.
    ///
    /// # Errors
    /// When the disk fails: then the previous mark counts.
    pub(crate) fn record(&self, is_last: bool) -> Result<()> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = self.mark(is_last);
        if state.recorded == Some(mark) {
            return Ok(());
        }
        let path = self.paths.catalog_mark();
        let file = self.write(state, mark)?;
        file.sync_data().map_err(ArchiveError::io("sync", &path))?;
        (state.next, state.recorded) = (1 - state.next, Some(mark));
        Ok(())
    }

    /// The same without a sync, which surviving a kill does not need. It is for deletions, which
    /// write no log record. A failure here is retried and reported by the next [`Self::record`].
    pub(crate) fn record_unsynced(&self) {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.write(state, self.mark(false));
    }

    fn mark(&self, is_last: bool) -> Mark {
        Mark { age: CatalogAge { run: self.run, commits: self.commits.count() }, is_last }
    }

    /// Writes `mark` over the older one of the two, never over the last one synced.
    fn write<'a>(&self, state: &'a mut State, mark: Mark) -> Result<&'a File> {
        let path = self.paths.catalog_mark();
        let file = match state.file.take() {
            Some(file) => file,
            None => {
                let mut options = File::options();
                let options = options.write(true).create(true).truncate(false).mode(0o600);
                let file = options.open(&path).map_err(ArchiveError::io("open", &path))?;
                sync_dir(self.paths.root())?;
                file
            }
        };
        file.write_all_at(&mark.encode(self.archive), PLACES[state.next])
            .map_err(ArchiveError::io("write", &path))?;
        Ok(state.file.insert(file))
    }

    /// The same at start and stop, which a failure must not prevent.
    pub(crate) fn record_or_warn(&self, is_last: bool) {
        if let Err(error) = self.record(is_last) {
            tracing::warn!(%error, "cannot update the catalog mark");
        }
    }
}

/// Returns the newest mark; `None` without a file, or if both marks are unreadable.
pub(super) fn read(paths: &Paths, archive: ArchiveId) -> Option<Mark> {
    newest(paths, archive).map(|(_, mark)| mark)
}

fn newest(paths: &Paths, archive: ArchiveId) -> Option<(usize, Mark)> {
    let parse = |(place, bytes)| Some((place, Mark::parse(&bytes, archive)?));
    // If both state the same age, the one from the clean shutdown is newer.
    read_both(paths).into_iter().filter_map(parse).max_by_key(|(_, mark)| (mark.age, mark.is_last))
}

/// Refuses marks of a newer program.
pub(super) fn refuse_newer(paths: &Paths) -> Result<()> {
    let is_newer =
        |(_, bytes): &(usize, [u8; MARK_LEN])| has_version(bytes, |found| found > VERSION);
    let Some((_, bytes)) = read_both(paths).into_iter().find(is_newer) else { return Ok(()) };
    let path = paths.catalog_mark();
    let what = format!("\"{}\" has a mark of version {}", path.display(), bytes[8]);
    Err(ArchiveError::Newer { what })
}

/// Returns the bytes in the place of each mark, as far as they can be read.
fn read_both(paths: &Paths) -> Vec<(usize, [u8; MARK_LEN])> {
    let path = paths.catalog_mark();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the catalog mark");
            return Vec::new();
        }
    };
    let bytes_at = |place: usize| {
        let mut bytes = [0; MARK_LEN];
        file.read_exact_at(&mut bytes, PLACES[place]).ok()?;
        Some((place, bytes))
    };
    (0..PLACES.len()).filter_map(bytes_at).collect()
}
