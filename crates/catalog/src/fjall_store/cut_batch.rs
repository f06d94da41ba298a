//! Torn batches that were cut off a journal at open, kept as evidence beside the store.
//!
//! ```text
//!   PATH.cut/JOURNAL-OFFSET.batch     the bytes that stood at OFFSET of JOURNAL
//! ```
//!
//! Nothing reads these files; they are for an operator who asks what the batch was. They hold rows
//! in the clear, so at most [`CUT_BATCHES_MAX`] are kept.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::limits::CUT_BATCHES_MAX;

/// A torn batch that was cut off the end of a journal at open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutBatch {
    /// The journal it was cut from.
    pub journal: PathBuf,
    /// Where in the journal it began.
    pub offset: u64,
    /// Its bytes up to the last that is not zero.
    pub bytes: u64,
    /// The file that keeps it; none if none could be written.
    pub kept: Option<PathBuf>,
}

/// Saves `bytes`, found at `offset` of `journal`, in a file of `folder`. A failure, for example on
/// a full disk, must not prevent opening: the batch was never acknowledged.
pub(super) fn save_cut_batch(
    folder: &Path,
    journal: &Path,
    offset: usize,
    bytes: &[u8],
) -> Option<PathBuf> {
    let journal = journal.file_stem()?.to_str()?;
    let path = folder.join(format!("{journal}-{offset}.batch"));
    match write(folder, &path, bytes) {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(?path, %error, "cannot save a torn batch");
            None
        }
    }
}

fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut old: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        old.push((entry.metadata()?.modified()?, entry.path()));
    }
    old.sort();
    let surplus = (old.len() + 1).saturating_sub(CUT_BATCHES_MAX);
    for (_, oldest) in &old[..surplus] {
        fs::remove_file(oldest)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}
